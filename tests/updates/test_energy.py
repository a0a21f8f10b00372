"""Energies as contributions of blocks of sites: their changes are more exact than their totals."""

import math

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.integrators import INTEGRATORS
from gauge_mc.updates.momenta import Energy, exact_sum
from tests.reference.fields import trace
from tests.reference.observables import plaquette_matrix
from tests.updates.links import start
from tests.updates.moving import Moving

LATTICE = Lattice(8, 8, 8, 8)
BETA = 2.3
EPS = np.finfo(float).eps


def in_80_bits(links):
    """The action of every plaquette in extended precision."""
    exact = links.astype(np.clongdouble)
    planes = [plaquette_matrix(exact, mu, nu) for mu in range(4) for nu in range(mu)]
    return np.longdouble(BETA) * np.stack([1 - trace(one).real / 2 for one in planes])


def test_a_local_difference_is_more_exact_than_that_of_totals(best_device):
    field = Field.from_slices(LATTICE, "su2", start(LATTICE, "su2"), "double", best_device)
    moving = Moving(field, Coupling.of(BETA), Random.for_field(field, seed=3))
    moving.draw()
    before, first = moving.action(), in_80_bits(moving.links.to_numpy())
    moving.move(INTEGRATORS["leapfrog"].trajectory(0.02, 1))
    after, last = moving.action(), in_80_bits(moving.links.to_numpy())
    change = float((last - first).sum())
    assert float(after) == pytest.approx(float(last.sum()), rel=1e-14)
    assert abs(change) > 1
    # Some hundred additions are rounded in each of the blocks, which are independent.
    bound = 8 * EPS * float(after) / math.sqrt(after.parts.size)
    assert abs(after.minus(before) - change) < bound
    # What does not change does not matter, however large it is; in totals it does.
    large = Energy.of(2.0**60)
    assert (large + after).minus(large + before) == after.minus(before)
    assert abs(float(large + after) - float(large + before) - change) > 1


def test_contributions_are_added_without_rounding():
    parts = np.array([1.0, 2.0**60, 2.0**-60, -(2.0**60)])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]):
        assert float(Energy.of(parts[order])) == 1.0
    assert Energy.of([2.0**53, 1.0]).minus(Energy.of([2.0**53, 0.5])) == 0.5
    assert float(Energy.of([[1, 2], [3, 4]]) + Energy.of(5)) == 15


@pytest.mark.parametrize("decades", [0, 3, 200, 400])
@pytest.mark.parametrize("count", [1, 2, 100, 20000])
def test_sums_are_rounded_once_for_any_sizes(count, decades, rng):
    """As those of math.fsum are, which takes ten times as long."""
    sizes = 10.0 ** rng.uniform(-min(decades, 300), min(decades, 290) / 2, size=count)
    for values in (sizes, sizes * rng.choice([-1, 1], size=count), np.full(count, 1 - EPS / 2)):
        assert exact_sum(values) == math.fsum(values)
        assert exact_sum(np.concatenate([values, -values[::-1], [EPS]])) == EPS
    assert exact_sum(np.zeros(count)) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_energies_that_are_not_finite_have_no_finite_change(value):
    broken = Energy.of([value, value, 0.0])
    assert not math.isfinite(float(broken))
    assert not math.isfinite(broken.minus(Energy.of([0.0, 0.0, 0.0])))
    assert math.isfinite(float(Energy.of([1e308, -1e308, 1e308])))
