"""Trajectories of several replicas at once, in the forces of quarks and of the gauge action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import NamedTuple

from gauge_mc.actions import Coupling
from gauge_mc.devices.base import Launch
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.spinors import SPINS
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.molecular_dynamics import Forces, KicksAndDrift, stages
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


class _Schedule(NamedTuple):
    """Kicks of quarks, last kicks of the gauge action, and drifts that are done at one time."""

    now: tuple[int, ...]
    """The field in which the links of every replica are."""
    kicks: list[tuple[str, dict[int, float]]]
    """Names of terms of quarks, with the sizes of their kicks by the number of the replica."""
    last: list[ReplicaSteps]
    """Kicks of the gauge action whose force is wanted."""
    moves: list[ReplicaSteps]
    """Drifts, most of them after a kick of the gauge action."""


@dataclass
class _TrajectoryStage:
    """Kicks and drifts that are done at one time, as calls."""

    now: tuple[int, ...]
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
        gauge = [step for one in schedule for step in (*one.last, *one.moves)]
        memory, addresses = self._in_memory([*dict.fromkeys(gauge)])
        moves = {
            step: self._launches(step, addresses[step]) for one in schedule for step in one.moves
        }
        made = [
            _TrajectoryStage(
                one.now,
                one.kicks,
                [self._last_kick(step, addresses[step]) for step in one.last],
                [launch for step in one.moves for launch in moves[step]],
            )
            for one in schedule
        ]
        return QuarkTrajectoryPlan(ends, memory, made)

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
        moved = False
        self._largest.clear()

        def take(name: str, forces: Mapping[int, Force]) -> None:
            for n, one in forces.items():
                found[n].setdefault(name, []).append(one)
                latest[n] = one

        for stage in plan.stages:
            if stage.kicks and moved:
                self.take(stage.now)
            for name, sizes in stage.kicks:
                take(name, terms[name].kick(self._force, self._momenta, sizes, failures))
            for begin in stage.last:
                forces = begin()()
                own = {n: one.of[GaugeMonomial.name][0] for n, one in forces.items()}
                take(GaugeMonomial.name, own)
            for launch in stage.moves:
                launch()
            moved = bool(stage.moves)
        return [
            None if n in failures.errors else Forces(latest[n].kinetic, own)
            for n, own in enumerate(found)
        ]


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
        before = tuple(now)
        for number, stage in _numbered(at_once):
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
                [(name, kicks[name]) for name in order if name in kicks],
                [ReplicaSteps(field, True, tuple(own)) for field, own in ending.items()],
                [ReplicaSteps(*key, tuple(own)) for key, own in moves.items()],
            )
        )
    return found, tuple(now)


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
    links = layout.field_bytes(COPIES * group.components + group.algebra_components)
    sites = layout.lanes * layout.slots * layout.slices_in_memory  # of one parity
    vector = sites * 2 * SPINS * group.colours * layout.real.itemsize
    return bytes_of_trajectory(field) + links + terms * VECTORS * vector
