"""Trajectories of several replicas at once, in the forces of quarks and of the gauge action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
from typing import NamedTuple

from gauge_mc.actions import Coupling
from gauge_mc.devices.base import Launch
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.spinors import SPINS
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.molecular_dynamics import Forces, KicksAndDrift, ShiftedKick, stages
from gauge_mc.updates.monomials import Force
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from gauge_mc.updates.monomials.replica_quarks import Failures, ReplicaTerm
from gauge_mc.updates.quark_links import QuarkLinks
from gauge_mc.updates.replica_dynamics import (
    KickAndDrift,
    ReplicaDynamics,
    ReplicaSteps,
    TrajectoryPlan,
    bytes_of_trajectory,
)

COPIES = 3
"""Largest number of copies of the links that quarks need, in all precisions together."""

VECTORS = 48
"""Largest number of vectors on the even or odd sites that a term needs, in double precision."""


class _ShiftedSteps(NamedTuple):
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


class _Schedule(NamedTuple):
    """Kicks of quarks, last kicks of the gauge action, and drifts that are done at one time."""

    now: tuple[int, ...]
    """The field in which the links of every replica are."""
    shifted: list[_ShiftedSteps]
    """Kicks with the force of shifted links, which are done first."""
    kicks: list[tuple[str, dict[int, float]]]
    """Names of terms of quarks, with the sizes of their kicks by the number of the replica."""
    last: list[ReplicaSteps]
    """Kicks of the gauge action whose force is wanted."""
    moves: list[ReplicaSteps]
    """Drifts, most of them after a kick of the gauge action."""


@dataclass
class _ShiftedStage:
    """Kicks with the force of shifted links, as calls."""

    steps: _ShiftedSteps
    moves: list[Launch]
    kicks: list[Callable[[], Callable[[], Mapping[int, Forces]]]]


@dataclass
class _TrajectoryStage:
    """Kicks and drifts that are done at one time, as calls."""

    now: tuple[int, ...]
    shifted: list[_ShiftedStage]
    kicks: list[tuple[str, dict[int, float]]]
    last: list[Callable[[], Callable[[], Mapping[int, Forces]]]]
    moves: list[Launch]


@dataclass
class QuarkTrajectoryPlan(TrajectoryPlan):
    """Prepared launches of a trajectory of every replica with quarks.

    Attributes
    ----------
    stages : list of object
        Kicks and drifts, one after the other.
    """

    stages: list[_TrajectoryStage]


class QuarkReplicaDynamics(ReplicaDynamics):
    """Molecular dynamics of several replicas with quarks, with the memory that they need.

    Trajectories of different lengths or numbers of steps do their n-th kicks at the same time.

    Parameters
    ----------
    field, couplings, randoms
        See `ReplicaDynamics`.
    make : sequence of callable
        Functions that return the terms of quarks, given their links.
    other : QuarkReplicaDynamics, optional
        See `ReplicaDynamics`; the terms of quarks are then those of the other one.
    """

    def __init__(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        make: Sequence[Callable[[QuarkLinks], ReplicaTerm]],
        other: QuarkReplicaDynamics | None = None,
    ) -> None:
        super().__init__(field, couplings, randoms, other)
        self._quark_links: QuarkLinks = other._quark_links if other else QuarkLinks(field)
        self._force: AlgebraField = other._force if other else AlgebraField.like(self._fields[0])
        self._shift: AlgebraField | None = other._shift if other else None
        self.terms: list[ReplicaTerm] = (
            other.terms if other else [one(self._quark_links) for one in make]
        )

    def take(self, now: Sequence[int]) -> None:
        """Let quarks see the links of every replica, given the fields in which they are."""
        target = self._quark_links.field
        for source, group in groupby(range(len(now)), lambda n: now[n]):
            own = [*group]
            some = own[0], len(own)
            target.part(*some).copy(self._fields[source].part(*some))
        self._quark_links.refresh()

    def kick_all(self, term: ReplicaTerm, size: float) -> None:
        """Do a kick of every replica with the force of a term of quarks, which see their links."""
        sizes = dict.fromkeys(range(self.chains), size)
        term.kick(self._force, self._momenta, sizes, Failures())

    def plan_with_quarks(
        self, levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
    ) -> QuarkTrajectoryPlan:
        """Prepare the launches of trajectories.

        Parameters
        ----------
        levels : sequence of sequence of str
            Names of the terms of the action on every level, the outermost first.
        trajectories : sequence of iterable of Kick or Drift
            The trajectory of every replica.
        """
        schedule, ends = _schedule(levels, trajectories)
        shifts = [one for stage in schedule for one in stage.shifted]
        if shifts and self._shift is None:
            self._shift = AlgebraField.like(self._fields[0])
        gauge = [step for one in schedule for step in (*one.last, *one.moves)]
        gauge += [step for one in shifts for step in (*one.moves, *one.kicks)]
        memory, addresses = self._in_memory([*dict.fromkeys(gauge)])
        moves = {
            step: self._launches(step, addresses[step]) for one in schedule for step in one.moves
        }
        made = [
            _TrajectoryStage(
                one.now,
                [self._shifted_stage(own, addresses) for own in one.shifted],
                one.kicks,
                [self._last_kick(step, addresses[step]) for step in one.last],
                [launch for step in one.moves for launch in moves[step]],
            )
            for one in schedule
        ]
        return QuarkTrajectoryPlan(ends, memory, made)

    def _shifted_stage(
        self, steps: _ShiftedSteps, addresses: Mapping[ReplicaSteps, int]
    ) -> _ShiftedStage:
        """Return kicks with the force of shifted links as calls."""
        launches = [
            launch
            for one in steps.moves
            for launch in (
                *self._copies(one),
                *self._launches(one, addresses[one], self._shift),
            )
        ]
        return _ShiftedStage(
            steps, launches, [self._last_kick(one, addresses[one]) for one in steps.kicks]
        )

    def _copies(self, moving: ReplicaSteps) -> Iterator[Launch]:
        """Yield calls that copy links which a bare drift then changes where they are."""
        if not moving.kicked:
            for n, _ in moving.moves:
                target, source = (
                    self._fields[one].part(n, 1) for one in (moving.now, 1 - moving.now)
                )
                yield partial(target.copy, source)

    def move(self, plan: QuarkTrajectoryPlan, failures: Failures) -> list[Forces | None]:
        """Do trajectories, which begin with the links of `start`, and of which quarks know.

        Parameters
        ----------
        plan : QuarkTrajectoryPlan
            The trajectories.
        failures : Failures
            Replicas without forces of quarks, to which those are added in which a solver fails.

        Returns
        -------
        list of Forces or None
            The forces of every replica; None if a solver has failed.
        """
        found: list[dict[str, list[Force]]] = [{} for _ in plan.ends]
        latest: dict[int, Force] = {}
        terms = {one.name: one for one in self.terms}
        seen: tuple[int, ...] | None = plan.stages[0].now

        def see(now: tuple[int, ...] | None) -> None:
            nonlocal seen
            if now and now != seen:
                self.take(now)
            seen = now

        def take(name: str, forces: Mapping[int, Force]) -> None:
            for n, one in forces.items():
                found[n].setdefault(name, []).append(one)
                latest[n] = one

        for stage in plan.stages:
            for shifted in stage.shifted:
                self._kick_shifted(shifted, stage.now, see, take, failures)
            if stage.kicks:
                see(stage.now)
            for name, sizes in stage.kicks:
                take(name, terms[name].kick(self._force, self._momenta, sizes, failures))
            for begin in stage.last:
                self._largest.clear()
                forces = begin()()
                own = {n: one.of[GaugeMonomial.name][0] for n, one in forces.items()}
                take(GaugeMonomial.name, own)
            for launch in stage.moves:
                launch()
            if stage.moves:
                see(None)
        return [
            None if n in failures.errors else Forces(latest[n].kinetic, own)
            for n, own in enumerate(found)
        ]

    def _kick_shifted(
        self,
        stage: _ShiftedStage,
        now: tuple[int, ...],
        see: Callable[[tuple[int, ...] | None], None],
        take: Callable[[str, Mapping[int, Force]], None],
        failures: Failures,
    ) -> None:
        """Do kicks with the force of shifted links; see `MolecularDynamics`.

        Parameters
        ----------
        stage : object
            The kicks.
        now : tuple of int
            The field in which the links of every replica are.
        see : callable
            Lets quarks see the links in given fields, or forget that they have.
        take : callable
            Takes note of the forces of a term.
        failures : Failures
            See `move`.
        """
        steps, terms = stage.steps, [one for one in self.terms if one.name in stage.steps.terms]
        assert self._shift is not None
        self._shift.clear()
        if terms:
            see(now)
        for term in terms:
            take(term.name, term.kick(self._force, self._shift, steps.shifts, failures))
        for launch in stage.moves:
            launch()
        see(None)
        if terms:
            see(steps.shifted)
        for term in terms:
            take(term.name, term.kick(self._force, self._momenta, steps.sizes, failures))
        for begin in stage.kicks:
            begin()()


def _schedule(
    levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
) -> tuple[list[_Schedule], tuple[int, ...]]:
    """Return what several trajectories do one after the other, and the fields where they end."""
    each = [[*stages(levels, GaugeMonomial.name, one)] for one in trajectories]
    last = [max(n for n, one in enumerate(own) if one.gauge is not None) for own in each]
    order = [name for level in levels for name in level]
    now, found = [0] * len(each), []
    for n, at_once in enumerate(zip_longest(*each)):
        kicks: dict[str, dict[int, float]] = {}
        ending: dict[int, list[tuple[int, KickAndDrift]]] = {}
        moves: dict[tuple[int, bool], list[tuple[int, KickAndDrift]]] = {}
        shifts: dict[tuple[str, ...], dict[int, ShiftedKick[str]]] = {}
        before = tuple(now)
        for number, stage in _numbered(at_once):
            for own in stage.shifted:
                shifts.setdefault(tuple(own.terms), {})[number] = own
            for name, size in stage.kicks:
                kicks.setdefault(name, {})[number] = size
            kick = None if n == last[number] else stage.gauge
            if stage.gauge is not None and kick is None:
                alone = KickAndDrift(stage.gauge, 0.0)
                ending.setdefault(now[number], []).append((number, alone))
            if stage.drift:
                key = now[number], kick is not None
                moves.setdefault(key, []).append((number, KickAndDrift(kick, stage.drift.size)))
                now[number] = (now[number] + (kick is not None)) % 2
        found.append(
            _Schedule(
                before,
                [_shifted_steps(names, own, before) for names, own in shifts.items()],
                [(name, kicks[name]) for name in order if name in kicks],
                [ReplicaSteps(field, True, tuple(own)) for field, own in ending.items()],
                [ReplicaSteps(*key, tuple(own)) for key, own in moves.items()],
            )
        )
    return found, tuple(now)


def _shifted_steps(
    names: tuple[str, ...], kicks: Mapping[int, ShiftedKick[str]], now: tuple[int, ...]
) -> _ShiftedSteps:
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
    return _ShiftedSteps(
        tuple(one for one in names if one != GaugeMonomial.name),
        {n: one.shift for n, one in kicks.items()},
        {n: one.size for n, one in kicks.items()},
        tuple(1 - field if n in kicks else field for n, field in enumerate(now)),
        moves,
        last,
    )


def _numbered(
    at_once: Iterable[KicksAndDrift[str] | None],
) -> list[tuple[int, KicksAndDrift[str]]]:
    """Return the stages of trajectories that have not ended, with the numbers of these."""
    return [(n, one) for n, one in enumerate(at_once) if one is not None]


def bytes_with_quarks(field: Field, terms: int) -> int:
    """Return the bytes of memory that the trajectory of a replica takes besides its links.

    Parameters
    ----------
    field : Field
        The links.
    terms : int
        Number of terms of quarks.
    """
    layout, group = field.layouts[0].of_replica, field.group
    links = layout.field_bytes(COPIES * group.components + 2 * group.algebra_components)
    sites = layout.lanes * layout.slots * layout.slices_in_memory  # of one parity
    vector = sites * 2 * SPINS * group.colours * layout.real.itemsize
    return bytes_of_trajectory(field) + links + terms * VECTORS * vector
