"""Trajectories of one chain or several, in steps that are done at the same time.

Links begin in the field of the chains, which does not change. They move in two others, 0 and 1, and
every drift after a kick of the gauge action takes them to the one in which they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import Value
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.momenta import acceptance
from gauge_mc.updates.monomials import GAUGE

START = 2
"""Number of the field of the chains."""


class ShiftedKick(NamedTuple):
    """A kick with the force of shifted links; see `Kick.shift`."""

    terms: Sequence[str]
    """Names of the terms of the action whose force it is, and which shift the links."""
    size: float
    shift: float


class KicksAndDrift(NamedTuple):
    """Kicks at one time, and the drift after them."""

    shifted: list[ShiftedKick]
    """Kicks with the force of shifted links, which are done first."""
    kicks: list[tuple[str, float]]
    """Names of other terms than the gauge action, with the sizes of their kicks."""
    gauge: float | None
    """The kick of the gauge action, if there is one."""
    drift: Drift | None
    """The drift; None at the end of a trajectory that ends with kicks."""


class KickAndDrift(NamedTuple):
    """A kick, if there is one, and the drift after it."""

    kick: float | None
    drift: float


class ChainSteps(NamedTuple):
    """Chains that do a step at the same time, as a kernel sees them."""

    source: int
    """The field in which their links are before the step."""
    target: int
    """The field in which they are then. A drift without a kick changes them where they are, after
    they have been copied from another field.
    """
    kicked: bool
    """Whether there is a kick before the drift."""
    moves: tuple[tuple[int, KickAndDrift], ...]
    """The numbers of the chains, and their steps."""


class ShiftedSteps(NamedTuple):
    """Kicks of the terms of a level with the force of shifted links; see `Kick.shift`."""

    terms: tuple[str, ...]
    """Names of the terms other than the gauge action."""
    shifts: dict[int, float]
    """Shifts by the number of the chain."""
    sizes: dict[int, float]
    """Sizes of the kicks."""
    shifted: tuple[int, ...]
    """The field in which the links of every chain are then."""
    moves: list[ChainSteps]
    """Steps that shift the links, with forces in place of the momenta."""
    kicks: list[ChainSteps]
    """Kicks of the gauge action, if it is one of the terms."""


class StageSteps(NamedTuple):
    """Kicks of other terms, last kicks of the gauge action, and drifts at one time."""

    now: tuple[int, ...]
    """The field in which the links of every chain are."""
    shifted: list[ShiftedSteps]
    """Kicks with the force of shifted links, which are done first."""
    kicks: list[tuple[str, dict[int, float]]]
    """Names of terms other than the gauge action, with their kicks by the number of the chain."""
    last: list[ChainSteps]
    """Kicks of the gauge action whose force is wanted."""
    moves: list[ChainSteps]
    """Drifts, most of them after a kick of the gauge action."""

    @property
    def steps(self) -> list[ChainSteps]:
        """All kicks of the gauge action, and all drifts."""
        shifted = [step for x in self.shifted for step in (*x.moves, *x.kicks)]
        return [*shifted, *self.last, *self.moves]


def schedule(
    levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
) -> tuple[list[StageSteps], tuple[int, ...]]:
    """Return what several trajectories do at the same time, and the fields where they end.

    All begin at the same time, and do their last kick of the gauge action at the same time, before
    which those with fewer steps wait.
    """
    each = [[*stages(levels, t)] for t in trajectories]
    before = [max(n for n, y in enumerate(x) if y.gauge is not None) for x in each]
    last = max(before)
    waiting = [
        [*x[:count], *[None] * (last - count), *x[count:]]
        for x, count in zip(each, before, strict=True)
    ]
    order = [name for level in levels for name in level]
    now, timeline = [START] * len(each), []
    for n, at_once in enumerate(zip_longest(*waiting)):
        kicks: dict[str, dict[int, float]] = {}
        ending: dict[int, list[tuple[int, KickAndDrift]]] = {}
        moves: dict[tuple[int, int, bool], list[tuple[int, KickAndDrift]]] = {}
        shifts: dict[tuple[str, ...], dict[int, ShiftedKick]] = {}
        start = tuple(now)
        for number, stage in enumerate(at_once):
            if stage is None:
                continue
            for shifted in stage.shifted:
                shifts.setdefault(tuple(shifted.terms), {})[number] = shifted
            for name, size in stage.kicks:
                kicks.setdefault(name, {})[number] = size
            kick = None if n == last else stage.gauge
            if n == last and stage.gauge is not None:
                drift = KickAndDrift(stage.gauge, 0.0)
                ending.setdefault(now[number], []).append((number, drift))
            if stage.drift:
                field, kicked = now[number], kick is not None
                target = other(field) if kicked else field % START
                step = number, KickAndDrift(kick, stage.drift.size)
                moves.setdefault((field, target, kicked), []).append(step)
                now[number] = target
        timeline.append(
            StageSteps(
                start,
                [_shifted_steps(names, shift, start) for names, shift in shifts.items()],
                [(name, kicks[name]) for name in order if name in kicks],
                [ChainSteps(field, field, True, tuple(x)) for field, x in ending.items()],
                [ChainSteps(*key, tuple(move)) for key, move in moves.items()],
            )
        )
    return timeline, tuple(now)


def _shifted_steps(
    names: tuple[str, ...], kicks: Mapping[int, ShiftedKick], now: tuple[int, ...]
) -> ShiftedSteps:
    """Return kicks of the terms of a level, by the number of the chain.

    The shifted links are in the field to which the next drift would go.
    """
    gauge = GAUGE in names
    moves, last = [], []
    for field in sorted({now[n] for n in kicks}):
        kicking = {n: kick for n, kick in kicks.items() if now[n] == field}
        steps = [(n, KickAndDrift(x.shift if gauge else None, 1.0)) for n, x in kicking.items()]
        moves.append(ChainSteps(field, other(field), gauge, tuple(steps)))
        bare = tuple((n, KickAndDrift(x.size, 0.0)) for n, x in kicking.items())
        last += [ChainSteps(other(field), other(field), True, bare)] if gauge else []
    return ShiftedSteps(
        tuple(name for name in names if name != GAUGE),
        {n: kick.shift for n, kick in kicks.items()},
        {n: kick.size for n, kick in kicks.items()},
        tuple(other(field) if n in kicks else field for n, field in enumerate(now)),
        moves,
        last,
    )


def other(field: int) -> int:
    """Return the field to which links go from another one."""
    return 0 if field == 1 else 1


def stages(levels: Sequence[Sequence[str]], moves: Iterable[Move]) -> Iterator[KicksAndDrift]:
    """Yield the kicks of a trajectory with the drifts that follow them.

    Kicks at one time commute. That of the gauge action is the last of them, because it and a drift
    are one kernel.
    """
    kicks: list[Kick] = []

    def stage(drift: Drift | None) -> KicksAndDrift:
        plain = [kick for kick in kicks if not kick.shift]
        acting = [(term, x.size) for x in plain for term in levels[x.level]]
        sizes = [size for term, size in acting if term == GAUGE]
        term_kicks = [x for x in acting if x[0] != GAUGE]
        shifted = [
            ShiftedKick(levels[kick.level], kick.size, kick.shift) for kick in kicks if kick.shift
        ]
        return KicksAndDrift(shifted, term_kicks, sizes[0] if sizes else None, drift)

    for move in moves:
        if isinstance(move, Kick):
            kicks.append(move)
        else:
            yield stage(move)
            kicks = []
    if kicks:
        yield stage(None)


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
        """
        attempts: list[Attempt | None] = [None] * len(self.replicas)
        for lower in pairs(len(self.replicas), number):
            probability = acceptance(change(lower))
            accepted = uniform(self._seed, update, lower) < probability
            if accepted:
                both = self.replicas[lower : lower + 2]
                self.replicas[lower : lower + 2] = reversed(both)
            attempts[lower : lower + 2] = [Attempt(lower, probability, accepted)] * 2
        return attempts

    def records(self, attempts: Sequence[Attempt | None]) -> list[tuple[Value, ...]]:
        """Return the row of the table of every rung after a step; see `COLUMNS`."""
        rows: list[tuple[Value, ...]] = []
        for rung, attempt in enumerate(attempts):
            row: tuple[Value, ...] = (NOBODY, 0.0, 0)
            if attempt:
                row = (
                    attempt.lower + (attempt.lower == rung),
                    attempt.probability,
                    int(attempt.accepted),
                )
            rows.append((self.replicas[rung], *row))
        return rows


@dataclass(frozen=True)
class UpdatePart:
    """A part of an update, for ``gauge-mc bench --hmc``.

    Attributes
    ----------
    name : str
        Its name in the table of results.
    call : callable
        Function that carries out a given number of them.
    calls : int
        Number of times that it is done in an update.
    essential : bool
        Whether it is a force or a solver.
    iterations : int
        Iterations of solvers in one of them.
    chains : int
        Number of chains for which it is done at once.
    """

    name: str
    call: Callable[[int], object]
    calls: int = 1
    essential: bool = False
    iterations: int = 0
    chains: int = 1


def repeated(call: Callable[[], object]) -> Callable[[int], object]:
    """Return a function that makes a call without arguments a given number of times."""

    def repeat(times: int) -> None:
        for _ in range(times):
            call()

    return repeat
