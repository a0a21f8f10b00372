"""Integrators, without a lattice: their order, and what is refused."""

import itertools
import math

import numpy as np
import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick

ROUNDING = 1e-14
"""Rounding error of sums of order 1 in double precision."""


def words(step, longest):
    """The expansion of a step in words of the operators K of kicks and D of drifts.

    A step is the product of exp(size K) and exp(size D), whose words do not commute. A shift s adds
    s F F' to the force F, up to its square: K - s/2 [K, [K, D]], because K = F d/dp, D = p d/dq.
    """
    total = {"": 1.0}
    for one in step:
        if isinstance(one, Kick):
            half = one.size * one.shift / 2
            generator = {"K": one.size, "KKD": -half, "KDK": 2 * half, "DKK": -half}
        else:
            generator = {"D": one.size}
        power = total
        for n in range(1, longest + 1):
            power = {word: factor / n for word, factor in times(power, generator, longest).items()}
            total = {word: total.get(word, 0.0) + power.get(word, 0.0) for word in total | power}
    return total


def times(left, right, longest):
    """The product of two sums of words."""
    product = {}
    for (a, x), (b, y) in itertools.product(left.items(), right.items()):
        if len(a + b) <= longest:
            product[a + b] = product.get(a + b, 0.0) + x * y
    return product


@pytest.mark.parametrize("name", INTEGRATORS)
def test_steps_are_exact_to_the_order_that_is_declared(name):
    """The words of an exact step, exp(K + D), have the coefficients 1 / n!."""
    one = INTEGRATORS[name]
    found = words(one.step, one.order + 1)
    errors = {n: 0.0 for n in range(one.order + 2)}
    for n in errors:
        for word in map("".join, itertools.product("KD", repeat=n)):
            errors[n] = max(errors[n], abs(found.get(word, 0.0) - 1 / math.factorial(n)))
    assert max(errors[n] for n in range(one.order + 1)) < ROUNDING
    assert errors[one.order + 1] > 1e-5


@pytest.mark.parametrize(("name", "outer"), [("leapfrog", 0.5), ("omf2", 0.1931833275037836)])
def test_errors_of_the_second_order_are_those_of_the_publication(name, outer):
    """The commutators of third order of the step with outer kicks of this size, hep-lat/0505020.

    They have the factors alpha = (1 - 6 outer + 6 outer^2) / 12 and beta = (1 - 6 outer) / 24, up
    to signs. Without an inner kick the step is the leapfrog.
    """
    step = INTEGRATORS[name].step
    found = words(step, 3)
    alpha, beta = (1 - 6 * outer + 6 * outer**2) / 12, (1 - 6 * outer) / 24
    errors = {abs(found["DDK"] - 1 / 6), abs(found["DKK"] - 1 / 6)}
    assert sorted(errors) == pytest.approx(sorted([abs(alpha), abs(beta)]), abs=ROUNDING)


def test_the_minimum_norm_is_that_of_the_publication():
    """The real root of the polynomial whose solution hep-lat/0505020 states."""
    outer = INTEGRATORS["omf2"].step[0].size
    cube = (2 * np.sqrt(326) + 36) ** (1 / 3)
    assert outer == pytest.approx(1 / 2 - cube / 12 + 1 / (6 * cube), abs=ROUNDING)


class DriftFirst(Integrator):
    """A leapfrog that begins with a drift."""

    name = "drift-first"
    summary = "leapfrog of positions"
    order = 2
    step = (Drift(0.5), Kick(1.0), Drift(0.5))


def made(parts):
    """An integrator with a step of these parts."""
    kind = type(
        "Odd", (Integrator,), {"name": "odd", "summary": "a toy", "order": 1, "step": parts}
    )
    return kind()


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((Kick(1.0), Drift(1.0)), "does not read the same backwards"),
        ((Kick(0.5), Drift(0.9), Kick(0.5)), "drifts add up to 0.9"),
        ((Drift(0.5), Kick(1.1), Drift(0.5)), "kicks add up to 1.1"),
        ((Drift(0.5), Kick(1.0, shift=0.1), Drift(0.5)), "no kick without a shift"),
        ((Kick(0.5, shift=0.1), Drift(1.0), Kick(0.5, shift=0.1)), "not between two drifts"),
    ],
)
def test_steps_that_are_none_are_refused(parts, reason):
    with pytest.raises(GaugeError, match=reason):
        INTEGRATORS.register(made(parts))
    assert "odd" not in INTEGRATORS


def energy(q, p):
    """Energy of an anharmonic oscillator."""
    return p * p / 2 - np.cos(q) + q**4 / 4


def moved(q, p, moves):
    """Carry out a trajectory of the oscillator."""
    for one in moves:
        if isinstance(one, Kick):
            p = p + one.size * force(q + one.shift * force(q))
        else:
            q = q + one.size * p
    return q, p


def force(q):
    """Force on the oscillator."""
    return -np.sin(q) - q**3


@pytest.mark.parametrize("name", INTEGRATORS)
def test_energy_changes_with_the_power_of_the_step_that_is_declared(name):
    one, begin = INTEGRATORS[name], (np.longdouble("0.7"), np.longdouble("0.4"))
    changes = []
    for steps in (32, 64):
        end = moved(*begin, one.trajectory(1.0, steps))
        changes.append(float(energy(*end) - energy(*begin)))
    # The next power of the step is two higher.
    assert changes[0] / changes[1] == pytest.approx(2.0**one.order, rel=0.05)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_trajectories_are_reversible(name):
    moves = INTEGRATORS[name].trajectory(1.3, 5)
    q, p = moved(0.7, 0.4, moves)
    back = moved(q, -p, moves)
    assert back == pytest.approx((0.7, -0.4), abs=ROUNDING)
