"""Trajectories of several replicas, in steps that are done at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from gauge_mc.updates.integrators import Move
from gauge_mc.updates.molecular_dynamics import ShiftedKick, stages
from gauge_mc.updates.monomials.gauge import GaugeMonomial


class KickAndDrift(NamedTuple):
    """A kick, if there is one, and the drift after it."""

    kick: float | None
    drift: float


class ReplicaSteps(NamedTuple):
    """Replicas that do a step at the same time, as a kernel sees them."""

    now: int
    """The field in which their links are."""
    kicked: bool
    """Whether there is a kick before the drift."""
    moves: tuple[tuple[int, KickAndDrift], ...]
    """The numbers of the replicas, and their steps."""


class ShiftedSteps(NamedTuple):
    """Kicks of the terms of a level with the force of shifted links; see `Kick.shift`."""

    terms: tuple[str, ...]
    """Names of the terms of quarks."""
    shifts: dict[int, float]
    """Shifts by the number of the replica."""
    sizes: dict[int, float]
    """Sizes of the kicks."""
    shifted: tuple[int, ...]
    """The field in which the links of every replica are then."""
    moves: list[ReplicaSteps]
    """Steps that shift the links, with forces in place of the momenta."""
    kicks: list[ReplicaSteps]
    """Kicks of the gauge action, if it is one of the terms."""


class StageSteps(NamedTuple):
    """Kicks of quarks, last kicks of the gauge action, and drifts that are done at one time."""

    now: tuple[int, ...]
    """The field in which the links of every replica are."""
    shifted: list[ShiftedSteps]
    """Kicks with the force of shifted links, which are done first."""
    kicks: list[tuple[str, dict[int, float]]]
    """Names of terms of quarks, with the sizes of their kicks by the number of the replica."""
    last: list[ReplicaSteps]
    """Kicks of the gauge action whose force is wanted."""
    moves: list[ReplicaSteps]
    """Drifts, most of them after a kick of the gauge action."""

    @property
    def steps(self) -> list[ReplicaSteps]:
        """All kicks of the gauge action, and all drifts."""
        shifted = [step for one in self.shifted for step in (*one.moves, *one.kicks)]
        return [*shifted, *self.last, *self.moves]


def schedule(
    levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
) -> tuple[list[StageSteps], tuple[int, ...]]:
    """Return what several trajectories do at the same time, and the fields where they end.

    All begin at the same time, and do their last kick of the gauge action at the same time, before
    which those with fewer steps wait. Links begin in field 0, and every drift after a kick of the
    gauge action takes them to the other field.

    Parameters
    ----------
    levels : sequence of sequence of str
        Names of the terms of the action on every level, the outermost first.
    trajectories : sequence of iterable of Kick or Drift
        The trajectory of every replica.
    """
    each = [[*stages(levels, GaugeMonomial.name, one)] for one in trajectories]
    before = [max(n for n, one in enumerate(own) if one.gauge is not None) for own in each]
    last = max(before)
    waiting = [
        [*own[:count], *[None] * (last - count), *own[count:]]
        for own, count in zip(each, before, strict=True)
    ]
    order = [name for level in levels for name in level]
    now, found = [0] * len(each), []
    for n, at_once in enumerate(zip_longest(*waiting)):
        kicks: dict[str, dict[int, float]] = {}
        ending: dict[int, list[tuple[int, KickAndDrift]]] = {}
        moves: dict[tuple[int, bool], list[tuple[int, KickAndDrift]]] = {}
        shifts: dict[tuple[str, ...], dict[int, ShiftedKick[str]]] = {}
        start = tuple(now)
        for number, stage in enumerate(at_once):
            if stage is None:
                continue
            for own in stage.shifted:
                shifts.setdefault(tuple(own.terms), {})[number] = own
            for name, size in stage.kicks:
                kicks.setdefault(name, {})[number] = size
            kick = None if n == last else stage.gauge
            if n == last and stage.gauge is not None:
                alone = KickAndDrift(stage.gauge, 0.0)
                ending.setdefault(now[number], []).append((number, alone))
            if stage.drift:
                key = now[number], kick is not None
                moves.setdefault(key, []).append((number, KickAndDrift(kick, stage.drift.size)))
                now[number] = (now[number] + (kick is not None)) % 2
        found.append(
            StageSteps(
                start,
                [_shifted_steps(names, own, start) for names, own in shifts.items()],
                [(name, kicks[name]) for name in order if name in kicks],
                [ReplicaSteps(field, True, tuple(own)) for field, own in ending.items()],
                [ReplicaSteps(*key, tuple(own)) for key, own in moves.items()],
            )
        )
    return found, tuple(now)


def _shifted_steps(
    names: tuple[str, ...], kicks: Mapping[int, ShiftedKick[str]], now: tuple[int, ...]
) -> ShiftedSteps:
    """Return kicks of the terms of a level, by the number of the replica.

    The shifted links are in the field to which the next drift would go.
    """
    gauge = GaugeMonomial.name in names
    moves, last = [], []
    for field in sorted({now[n] for n in kicks}):
        own = {n: one for n, one in kicks.items() if now[n] == field}
        steps = [(n, KickAndDrift(one.shift if gauge else None, 1.0)) for n, one in own.items()]
        moves.append(ReplicaSteps(field if gauge else 1 - field, gauge, tuple(steps)))
        alone = tuple((n, KickAndDrift(one.size, 0.0)) for n, one in own.items())
        last += [ReplicaSteps(1 - field, True, alone)] if gauge else []
    return ShiftedSteps(
        tuple(one for one in names if one != GaugeMonomial.name),
        {n: one.shift for n, one in kicks.items()},
        {n: one.size for n, one in kicks.items()},
        tuple(1 - field if n in kicks else field for n, field in enumerate(now)),
        moves,
        last,
    )
