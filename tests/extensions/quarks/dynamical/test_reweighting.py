"""Hybrid Monte Carlo with quarks against quenched ensembles that determinants reweight exactly."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.extensions.quarks.dynamical.flavours import doublet_on, operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Determinant, Ratio, Rational, TwoFlavours
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.integrators import INTEGRATORS, StepTuner, TimeScales
from gauge_mc.updates.molecular_dynamics import MolecularDynamics, MovingChains
from tests.extensions.quarks.reference.reweighting import (
    AVERAGES,
    BETAS,
    CASES,
    LATTICE,
    QUARKS,
    averages,
    exact_averages,
    table_of,
)

SIGMAS = 4.5
"""Bound of deviations in units of their standard deviation; the seeds are fixed."""

HEAVIER = 0.6
"""Hopping parameter of the heavier mass of a ratio, in units of the lighter one."""

STEPS = {"su2": 2, "su3": 4}
"""Steps of a trajectory; with two a third of the trajectories of SU(3) is accepted."""

RANGE = (0.08, 3.0)
"""Range of the rational functions of a doublet, in which its spectrum is, for few poles."""

REQUEST = QuarkSolver()

TWO_FLAVOURS = [name for name, (_, flavours) in CASES.items() if flavours == 2]

ONE_FLAVOUR = [name for name in CASES if name.startswith("one_flavour")]

THREE_COLOURS = [*((name, False) for name in CASES if name != "doublet"), ("wilson", True)]
"""Cases of SU(3), and whether there is a ratio of masses."""


def terms(case, group, quarks, ratio):
    """The monomials of a case: with a ratio there are two pseudofermions instead of one."""
    quark = QUARKS[CASES[case][0]]
    kappa, phases = quark.kappa[group], (1, 1, 1, quark.phase)

    if quark.operator == "doublet":
        doublet = doublet_on(quarks, kappa, boundary=phases, **quark.parameters)
        return [Rational(doublet, REQUEST, 0, ends=RANGE)]

    def operator(kappa):
        return operator_on(quarks, quark.operator, kappa, phases, **quark.parameters)

    light, flavours = operator(kappa), CASES[case][1]
    found = [Determinant(light, flavours)]
    if flavours == 1:
        return [*found, Rational(light, REQUEST, 0)]
    if not ratio:
        return [*found, TwoFlavours(light, REQUEST, 0)]
    heavy = operator(HEAVIER * kappa)
    return [*found, TwoFlavours(heavy, REQUEST, 0), Ratio(light, heavy, REQUEST, 1)]


def chain(case, group, device, trajectories, ratio=False, seed=3):
    """The averages and the changes of the energy of trajectories after a tenth of them."""
    field = Field.hot(LATTICE, group, "double", device, seed=seed)
    random, made = Random.for_field(field, seed=seed), []

    def term(number, links):
        made[:] = made or terms(case, group, links, ratio)
        return made[number]

    count = 1 if QUARKS[CASES[case][0]].operator == "doublet" else 3 if ratio else 2
    make = [partial(term, n) for n in range(count)]
    dynamics = MolecularDynamics(field, [Coupling.of(BETAS[group])], [random], make)
    tuner = StepTuner({}, trajectories // 5, STEPS[group], 0.8, 2, 1)
    levels = [["gauge", *(one.title for one in dynamics.terms)]]
    scales = TimeScales.of((), INTEGRATORS["omf2"], {0})
    moving = MovingChains(dynamics, levels, scales, 1.0, [random], [tuner], [{}], 1)
    rows, changes = [], []
    for step in range(1, trajectories + 1):
        (found,) = moving.update()
        if 10 * step > trajectories:
            rows.append(averages(field))
            changes.append(found.change)
    return np.array(rows), np.array(changes)


def check(case, group, trajectories, ratio=False):
    """Compare the averages with the exact ones, and the change of the energy with 0."""
    rows, changes = chain(case, group, CpuDevice(1), trajectories, ratio)
    weight = estimate(np.exp(-changes))
    assert abs(weight.value - 1) < SIGMAS * weight.error
    assert 0.6 < np.exp(-np.maximum(changes, 0)).mean() < 0.999
    exact = exact_averages(table_of(group, case), case)
    for n, name in enumerate(AVERAGES):
        own = estimate(rows[:, n])
        error = math.hypot(own.error, exact.errors[n])
        assert abs(own.value - exact.values[n]) < SIGMAS * error, name


@pytest.mark.slow
def test_two_flavours_have_the_averages_of_the_reweighted_ensemble():
    """Quenched averages deviate by nine errors."""
    check("clover", "su2", 500, ratio=True)


@pytest.mark.every
@pytest.mark.parametrize(
    ("group", "case", "ratio"),
    [
        *(("su2", *one) for one in product(TWO_FLAVOURS, (False, True))),
        *(("su2", one, False) for one in ONE_FLAVOUR),
        *(("su3", *one) for one in THREE_COLOURS),
    ],
)
def test_quarks_have_the_averages_of_the_reweighted_ensemble(group, case, ratio):
    """The plaquette of quenched links of SU(3) deviates by six errors."""
    check(case, group, {"su2": 1500, "su3": 300}[group], ratio)


@pytest.mark.parametrize(("group", "case"), [*product(("su2", "su3"), CASES)])
def test_tables_contain_the_logarithms_of_determinants(group, case):
    """A configuration is no longer known by its row, but the fluctuations are."""
    exact = exact_averages(table_of(group, case), case)
    assert 0.15 < exact.share < 0.9
    assert exact.errors[0] < 2e-3
