"""Replicas on a ladder of couplings: acceptance of exchanges, and round trips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rungs_of_replicas(replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return on which rung every replica stands.

    Parameters
    ----------
    replicas : ndarray of int64, shape (exchanges, rungs)
        The replica on every rung after each exchange; every row is a permutation of 0, 1, 2, ….

    Returns
    -------
    ndarray of int64, shape (exchanges, replicas)
        The rung of every replica.

    Raises
    ------
    ValueError
        If a row is not a permutation.
    """
    rungs = np.argsort(replicas, axis=1, kind="stable")
    if not np.array_equal(np.take_along_axis(replicas, rungs, 1), _numbers(replicas)):
        raise ValueError("a replica is missing or on several rungs")
    return rungs


def round_trips(replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often every replica has gone from the lowest rung to the highest and back.

    Parameters
    ----------
    replicas : ndarray of int64, shape (exchanges, rungs)
        See `rungs_of_replicas`.

    Returns
    -------
    ndarray of int64, shape (replicas,)
        The number of round trips that began and ended in this time.
    """
    rungs, last = rungs_of_replicas(replicas), replicas.shape[1] - 1
    return np.array([_trips(one, last) for one in rungs.T], np.int64)


def _trips(rungs: NDArray[np.int64], last: int) -> int:
    """Return the number of round trips of a replica."""
    ends = rungs[(rungs == 0) | (rungs == last)]
    turns = ends[np.diff(ends, prepend=-1) != 0]  # the ends in turn, each once
    first = int(turns.size > 0 and turns[0] != 0)  # a trip begins on the lowest rung
    return max(0, len(turns) - first - 1) // 2


def _numbers(replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.broadcast_to(np.arange(replicas.shape[1]), replicas.shape)
