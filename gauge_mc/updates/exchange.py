"""Exchanges of replicas between the rungs of a ladder.

A rung is whatever replicas exchange, such as a coupling. Which replica stands on which rung is all
that an exchange changes. It needs nothing but the change of the total energy that each exchange of
neighbours would cause, so that rungs may be couplings, boundary conditions or anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import Value
from gauge_mc.updates.momenta import acceptance

KEY = 0x65786368616E6765
"""Second word of the key of the random numbers, the letters ``exchange``; the first is the seed."""

NOBODY = -1
"""Number of the partner of a rung that has none in an exchange."""

COLUMNS = TableColumns(
    Column(
        "replica",
        int,
        "Number of the replica that stands here after the exchange; replica n began on rung n.",
    ),
    Column(
        "partner",
        int,
        f"Number of the rung with which an exchange was tried; {NOBODY} if there was none.",
    ),
    Column(
        "probability",
        float,
        "Probability with which it was accepted, min(1, exp(-ΔS)); 0 without a partner.",
    ),
    Column("accepted", int, "1 if the replicas were exchanged, 0 if not."),
)
"""The columns of the table of a rung, with a row for every exchange."""


NORMALISATION = "rungs are couplings β in ascending order from 0, one exchange per row"
"""Definitions of the columns, for the header of the table."""


@dataclass(frozen=True)
class Attempt:
    """An attempt to exchange the replicas of two neighbouring rungs."""

    lower: int
    """Number of the lower rung; the other one is the next."""
    probability: float
    """Probability with which it is accepted."""
    accepted: bool
    """Whether it is accepted."""


def pairs(rungs: int, number: int) -> range:
    """Return the lower rungs of the pairs that try to exchange their replicas.

    Even and odd pairs alternate, which lets replicas drift along the ladder instead of diffusing
    (T. Okabe, M. Kawata, Y. Okamoto and M. Mikami, Chem. Phys. Lett. 335 (2001) 435). With two
    rungs it is always their pair.

    Parameters
    ----------
    rungs : int
        Number of rungs, at least 2.
    number : int
        Number of the exchange.
    """
    return range(number % 2 if rungs > 2 else 0, rungs - 1, 2)


def uniform(seed: int, update: int, lower: int) -> float:
    """Return a random number in [0, 1), a function of seed, update and pair alone.

    It is the first of the generator Philox4x64-10 of NumPy, whose key is the seed and `KEY`, and
    whose counter contains the pair and the update.
    """
    bits = np.random.Philox(key=[seed, KEY], counter=[0, 0, lower, update]).random_raw()
    return (int(bits) >> 11) * 2.0**-53


class ReplicaExchange:
    """The exchange of replicas between the rungs of a ladder.

    Parameters
    ----------
    seed : int
        Seed of the random numbers.
    replicas : sequence of int
        The replica on every rung, at the beginning 0, 1, 2, ….

    Attributes
    ----------
    replicas : list of int
        The replica on every rung.

    Raises
    ------
    ValueError
        If they are not all replicas, or there are fewer than two.
    """

    def __init__(self, seed: int, replicas: Sequence[int]) -> None:
        if len(replicas) < 2 or sorted(replicas) != [*range(len(replicas))]:
            raise ValueError("every replica must stand on one rung, and there must be two")
        self._seed = seed
        self.replicas = list(replicas)

    def step(
        self, update: int, number: int, change: Callable[[int], float]
    ) -> list[Attempt | None]:
        """Try one exchange of every second pair of neighbours.

        Detailed balance holds for the joint distribution of all rungs (K. Hukushima and K. Nemoto,
        J. Phys. Soc. Jpn. 65 (1996) 1604).

        Parameters
        ----------
        update : int
            Number of updates since the start of the chains, for the random numbers.
        number : int
            Number of the exchange, which decides about the pairs.
        change : callable
            Takes the number of the lower rung of a pair, and returns the change of the total energy
            in units of the temperature if the two exchange their replicas.

        Returns
        -------
        list of Attempt or None
            The attempt in which every rung took part; None if it had no partner.
        """
        found: list[Attempt | None] = [None] * len(self.replicas)
        for lower in pairs(len(self.replicas), number):
            probability = acceptance(change(lower))
            accepted = uniform(self._seed, update, lower) < probability
            if accepted:
                both = self.replicas[lower : lower + 2]
                self.replicas[lower : lower + 2] = reversed(both)
            found[lower : lower + 2] = [Attempt(lower, probability, accepted)] * 2
        return found

    def records(self, found: Sequence[Attempt | None]) -> list[tuple[Value, ...]]:
        """Return the row of the table of every rung after a step; see `COLUMNS`."""
        rows: list[tuple[Value, ...]] = []
        for rung, one in enumerate(found):
            row: tuple[Value, ...] = (NOBODY, 0.0, 0)
            if one:
                row = (one.lower + (one.lower == rung), one.probability, int(one.accepted))
            rows.append((self.replicas[rung], *row))
        return rows
