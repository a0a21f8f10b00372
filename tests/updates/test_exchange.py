"""Exchanges of replicas, tried on ladders whose distributions are known exactly."""

import itertools
import math

import numpy as np
import pytest

from gauge_mc.updates.chain_steps import KEY, NOBODY, ReplicaExchange, pairs, uniform
from gauge_mc.updates.momenta import acceptance
from tests.reference import randoms

ENERGIES = np.array([0.0, 0.7, 1.1, 2.5])
"""Energies of a system with four states."""

BETAS = (0.3, 1.0, 1.7)


def weights(beta):
    """Return the probabilities of the four states."""
    found = np.exp(-beta * ENERGIES)
    return found / found.sum()


def change(states, lower):
    """Return the change of the exponent of the joint distribution in an exchange."""
    one, other = ENERGIES[states[lower]], ENERGIES[states[lower + 1]]
    before = BETAS[lower] * one + BETAS[lower + 1] * other
    return BETAS[lower] * other + BETAS[lower + 1] * one - before


@pytest.mark.parametrize(
    ("seed", "update", "lower"), [(1, 1, 0), (2**63 - 1, 2**40 + 3, 5), (0, 77, 9999)]
)
def test_random_numbers_are_those_of_philox_for_seed_update_and_pair(seed, update, lower):
    # NumPy raises the lowest word of the counter before it draws.
    word, *_ = randoms.philox4x64([1, 0, lower, update], [seed, KEY])
    assert uniform(seed, update, lower) == (word >> 11) / 2**53


def test_the_reference_of_philox_knows_the_published_answers():
    # kat_vectors of the authors' library Random123: philox4x64, 10 rounds, all bits 0
    found = [f"{word:016x}" for word in randoms.philox4x64([0] * 4, [0] * 2)]
    assert found == ["16554d9eca36314c", "db20fe9d672d0fdc", "d7e772cee186176b", "7e68b68aec7ba23b"]


def test_all_neighbours_take_part_in_turn():
    assert [*pairs(5, 0)] == [0, 2]
    assert [*pairs(5, 1)] == [1, 3]
    assert [*pairs(4, 1)] == [1]
    assert [*pairs(2, 0)] == [*pairs(2, 1)] == [0]
    assert [*pairs(4, -1)] == [1]  # exchanges of the thermalisation have negative numbers


def test_an_exchange_is_in_detailed_balance_with_the_joint_distribution():
    """P(x) T(x -> y) = P(y) T(y -> x) for every joint state x and every pair that exchanges."""
    joint = math.prod(np.ix_(*map(weights, BETAS)))
    for states in itertools.product(range(4), repeat=3):
        for lower in (0, 1):
            moved = list(states)
            moved[lower : lower + 2] = moved[lower + 1], moved[lower]
            there = joint[states] * acceptance(change(states, lower))
            back = joint[tuple(moved)] * acceptance(change(moved, lower))
            assert there == pytest.approx(back, rel=1e-13)


@pytest.mark.slow
def test_exchanges_keep_the_distribution_of_every_rung():
    """Ladders drawn from the exact distribution have it after many exchanges as well."""
    dice, ladders = np.random.default_rng(3), 1500
    states = np.stack([dice.choice(4, ladders, p=weights(beta)) for beta in BETAS], axis=1)
    accepted = 0
    for n in range(ladders):
        exchange = ReplicaExchange(n, [0, 1, 2])
        for update in range(6):
            own = states[n]
            found = exchange.step(update, update, lambda lower, own=own: change(own, lower))
            for one in dict.fromkeys(found):
                if one and one.accepted:
                    own[[one.lower, one.lower + 1]] = own[[one.lower + 1, one.lower]]
                    accepted += 1
    assert accepted > ladders
    for rung, beta in enumerate(BETAS):
        expected = ladders * weights(beta)
        chi2 = ((np.bincount(states[:, rung], minlength=4) - expected) ** 2 / expected).sum()
        assert chi2 < 16.3  # p = 0.001 with three degrees of freedom


def test_records_name_replicas_and_partners():
    exchange = ReplicaExchange(1, [2, 0, 1])
    always = exchange.step(1, 0, lambda lower: -1.0)
    assert exchange.replicas == [0, 2, 1]
    assert exchange.records(always) == [(0, 1, 1.0, 1), (2, 0, 1.0, 1), (1, NOBODY, 0.0, 0)]
    never = exchange.step(2, 1, lambda lower: math.inf)
    assert exchange.records(never) == [(0, NOBODY, 0.0, 0), (2, 2, 0.0, 0), (1, 1, 0.0, 0)]
    assert acceptance(0.5) == math.exp(-0.5)
    assert acceptance(math.nan) == 0
