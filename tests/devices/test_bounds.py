"""Launch bounds: those that were found are kept, and change no result."""

import numpy as np
import pytest

from gauge_mc.devices.bounds import USUAL, Bounds, Tuned
from gauge_mc.devices.source import Variant
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.random import Random
from gauge_mc.tune import candidates, tune
from gauge_mc.updates import heatbath, overrelax
from tests.calls import call

SU3 = Variant("su3", "single")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Leave what was found for this machine alone."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path))


@pytest.mark.usefixtures("own_cache")
def test_bounds_are_kept_for_a_gpu_and_a_kernel():
    assert Tuned("A card").bounds("heatbath", SU3) == USUAL["su3", "single"]
    Tuned("A card").keep("heatbath", SU3, Bounds(64, 8))
    Tuned("A card").keep("overrelaxation", SU3, Bounds(256, 2))
    assert Tuned("A card").bounds("heatbath", SU3) == Bounds(64, 8)
    assert Tuned("A card").bounds("overrelaxation", SU3) == Bounds(256, 2)
    assert Tuned("A card").bounds("plaquette", SU3) == USUAL["su3", "single"]
    assert Tuned("Another").bounds("heatbath", SU3) == USUAL["su3", "single"]


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("damage", ["", "[]", "{}", None])
def test_what_is_damaged_or_of_other_sources_is_forgotten(tmp_path, damage):
    Tuned("A card").keep("heatbath", SU3, Bounds(64, 8))
    file = next(tmp_path.glob("bounds-*"))
    text = file.read_text()
    file.write_text(text.replace('"sources": "', '"sources": "0') if damage is None else damage)
    assert Tuned("A card").bounds("heatbath", SU3) == USUAL["su3", "single"]


def test_candidates_differ_and_fit():
    found = candidates()
    assert len({(bounds.threads, bounds.registers) for bounds in found}) == len(found) > 10
    assert all(bounds.registers * bounds.threads * bounds.blocks <= 65536 for bounds in found)


def test_a_cpu_cannot_be_tuned():
    said, code = call("bench", "--backend", "cpu", "--tune", "--lattice", "4x4x4x4")
    assert code == 2
    assert "--tune is for a GPU" in said


@pytest.mark.gpu
@pytest.mark.usefixtures("own_cache")
def test_tuning_keeps_the_fastest_and_changes_no_bit(gpu, group):
    lattice = Lattice(8, 4, 4, 4)

    def chain():
        field = Field.hot(lattice, group, "single", gpu, seed=2)
        heatbath(field, 4.0, Random.for_field(field, seed=3))
        overrelax(field)
        return field.to_numpy(), plaquette(field)

    links, average = chain()
    trials = []
    for trial in tune(gpu, group, lattice, seconds=0.01):
        trials.append(trial)
        assert not gpu.kernel(trial.kernel, Variant(group, "single"))._sweep
    for kernel in ("heatbath", "overrelaxation"):
        mine = [trial for trial in trials if trial.kernel == kernel]
        assert len(mine) >= len(candidates())
        best = [trial.bounds for trial in mine if trial.kept][-1]
        assert gpu.tuned.bounds(kernel, Variant(group, "single")) == best
    again, average_again = chain()
    assert np.array_equal(links, again)
    assert average == average_again
