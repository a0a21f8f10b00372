"""Tuning: the fastest launch bounds are kept, and change no result."""

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.benchmarks.kernels import tune
from gauge_mc.benchmarks.plan import BenchPlan
from gauge_mc.devices.cuda import kernel as bounds
from gauge_mc.devices.kernels import Variant
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.plaquette import Plaquette
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import HEATBATH, ONE_REPLICA, OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.sweep import norms_of


@pytest.mark.gpu
@pytest.mark.parametrize("group", ["su2", pytest.param("su3", marks=pytest.mark.slow)])
def test_tuning_keeps_the_fastest_and_changes_no_bit(gpu, group, tmp_path, monkeypatch):
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path))
    monkeypatch.setattr(bounds, "REGISTER_LIMITS", (64, 255))  # each is compiled for both kernels
    lattice = Lattice(8, 4, 4, 4)
    choices = (
        *GROUPS[group].choices,
        *ACTIONS["wilson"].choices,
        norms_of("single"),
        GENERATORS["philox"].choice(),
        ONE_REPLICA,
    )
    variant = Variant("single", choices)
    kernels = {kernel.name: kernel for kernel in (HEATBATH, OVERRELAXATION)}

    def chain():
        field = Field.hot(lattice, group, "single", gpu, seed=2)
        heatbath(field, 4.0, Random.for_field(field, seed=3))
        overrelax(field)
        return field.to_numpy(), Plaquette().measure(field)

    links, averages = chain()
    devices, trials = DeviceGroup.of(gpu), []
    for timing, choice, _, kept in tune(devices, BenchPlan(group=group), lattice, seconds=0.01):
        trials.append((timing.name, choice, kept))
        # What is timed are single launches, which have the bounds.
        assert not gpu.kernel(kernels[timing.name], variant).sweep
    for name, kernel in kernels.items():
        choices = {choice: kept for timed, choice, kept in trials if timed == name}
        assert len(choices) >= len(bounds.candidates()) == 6
        best = str(gpu.tuned.bounds(kernel, variant))
        assert best == [choice for choice, kept in choices.items() if kept][-1]
    again, averages_again = chain()
    assert np.array_equal(links, again)
    assert averages == averages_again
