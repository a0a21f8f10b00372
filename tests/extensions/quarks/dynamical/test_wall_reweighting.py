"""Hybrid Monte Carlo with domain walls against quenched links that determinants reweight."""

import math

import numpy as np
import pytest

from gauge_mc import heatbath
from gauge_mc.actions import Coupling
from gauge_mc.algorithms import Tuning, parse
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from tests.extensions.quarks.reference import walls
from tests.extensions.quarks.reference.determinants import reweighted

LATTICE, BETA = Lattice(2, 2, 2, 4), 0.5
MASS, EXTENT, HEIGHT, OTHERS = 0.2, 4, 1.7, {"b": 1.5, "c": 0.5}
PHASES = (1, 1, 1, -1)
CONFIGURATIONS, TRAJECTORIES = 120, 160
SIGMAS = 4.5
"""Bound of deviations in units of their standard deviation; the seeds are fixed."""


def winding(links):
    """The mean of the Polyakov loops along x, y and z, on which light quarks depend most here."""
    found = []
    for mu in range(3):
        u = links[..., mu, :, :]
        loops = u @ np.roll(u, -1, 3 - mu)
        found.append(loops.trace(axis1=-2, axis2=-1).real.mean() / 2)
    return np.mean(found)


def log_determinant(links):
    """ln det of the effective operator, which is det D5(m) / det D5(1) but for a constant."""
    matrix, _, _ = walls.effective(links, EXTENT, MASS, HEIGHT, PHASES, **OTHERS)
    return float(np.linalg.slogdet(matrix)[1])


def hot(seed):
    field = Field.hot(LATTICE, "su2", "double", CpuDevice(1), seed=seed)
    return field, Random.for_field(field, seed=seed)


def quenched():
    """Loops of independent links without quarks, and their logarithms of determinants."""
    field, random = hot(1)
    heatbath(field, BETA, random, 20)
    rows, logs = [], []
    for _ in range(CONFIGURATIONS):
        heatbath(field, BETA, random, 4)
        links = field.to_numpy()
        rows.append([winding(links)])
        logs.append(log_determinant(links))
    return np.array(rows), np.array(logs)


@pytest.mark.slow
@pytest.mark.parametrize("flavours", [2, pytest.param(1, marks=pytest.mark.every)])
def test_loops_are_those_of_the_reweighted_ensemble(flavours):
    """And <exp(-Delta H)> is 1. Loops without quarks deviate by more."""
    rows, logs = quenched()
    exact = reweighted(rows, flavours * logs)
    words = ":".join(f"{name}={value}" for name, value in OTHERS.items())
    text = f"domain-wall:ls={EXTENT}:m5={HEIGHT}:m={MASS}:{words}:flavours={flavours}"
    algorithm = parse("hmc").with_options(quarks=text, steps=3).check()
    field, random = hot(3)
    update = algorithm.prepare(field, [Coupling.of(BETA)], [random], 2, [Tuning()])
    place = algorithm.columns.names.index("delta_h")
    found, changes = [], []
    for step in range(TRAJECTORIES):
        (record,) = update()
        if 10 * step > TRAJECTORIES:
            found.append(winding(field.to_numpy()))
            changes.append(record[place])
    changes = np.array(changes, float)
    weight = estimate(np.exp(-changes))
    assert abs(weight.value - 1) < SIGMAS * weight.error
    assert 0.6 < np.exp(-np.maximum(changes, 0)).mean() < 0.999
    own = estimate(np.array(found))
    error = math.hypot(own.error, exact.errors[0])
    assert abs(own.value - exact.values[0]) < SIGMAS * error
    assert abs(rows.mean() - exact.values[0]) > SIGMAS * error


def test_the_effective_operator_has_the_ratio_of_determinants(rng):
    """On 2^4, from all elements of D5."""
    found = []
    for seed in (1, 2):
        field = Field.hot(Lattice(2, 2, 2, 2), "su2", "double", CpuDevice(1), seed=seed)
        links, numbers = field.to_numpy(), (HEIGHT, PHASES)
        light, heavy = (
            np.linalg.slogdet(walls.dense(links, EXTENT, m, *numbers, **OTHERS))[1]
            for m in (MASS, 1.0)
        )
        found.append((light - heavy, log_determinant(links)))
    (first, own), (second, other) = found
    assert abs(second - first) > 0.01
    assert other - own == pytest.approx(second - first, abs=1e-10)
