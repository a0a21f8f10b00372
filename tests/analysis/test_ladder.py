"""Round trips of replicas, counted on paths that are drawn by hand."""

import numpy as np
import pytest

from gauge_mc.scans.ladders import round_trips, rungs_of_replicas


def ladder_of(*rungs):
    """Return the replica on every rung, given the rung of every replica."""
    return np.argsort(np.array(rungs).T, axis=1)


def test_a_round_trip_is_from_the_lowest_rung_to_the_highest_and_back():
    first = (0, 1, 2, 1, 0, 0, 1, 2, 2, 1, 0)  # two round trips
    second = (2, 2, 1, 2, 2, 1, 0, 0, 1, 2, 2)  # down and up again: none that began below
    third = (1, 0, 0, 0, 1, 2, 2, 1, 0, 0, 1)  # one
    replicas = ladder_of(first, second, third)
    assert np.array_equal(rungs_of_replicas(replicas), np.array([first, second, third]).T)
    assert round_trips(replicas).tolist() == [2, 0, 1]


def test_two_rungs():
    first = (0, 1, 0, 1, 1)
    assert round_trips(ladder_of(first, [1 - one for one in first])).tolist() == [1, 1]


def test_a_replica_that_stays_makes_none():
    assert round_trips(np.tile([1, 0, 2], (5, 1))).tolist() == [0, 0, 0]
    assert round_trips(np.empty((0, 2), np.int64)).tolist() == [0, 0]


def test_a_replica_on_two_rungs_is_refused():
    with pytest.raises(ValueError, match="on several rungs"):
        round_trips(np.array([[0, 1], [0, 0]]))
