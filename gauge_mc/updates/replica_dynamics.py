"""Trajectories of several replicas at once, in the forces of the gauge action and of quarks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import work
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.quarks.solvers import Failures
from gauge_mc.quarks.vectors.spinors import SPINS
from gauge_mc.updates.energy import Energy, replica_sums
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.molecular_dynamics import DRIFT, Forces
from gauge_mc.updates.momenta import Draw, begin_momenta
from gauge_mc.updates.monomials import Force
from gauge_mc.updates.monomials.gauge import (
    KICK,
    KICK_AND_DRIFT,
    GaugeMonomial,
    begin_actions,
    check_action,
    gauge_force,
)
from gauge_mc.updates.monomials.replica_quarks import ReplicaTerm
from gauge_mc.updates.quark_links import QuarkLinks
from gauge_mc.updates.replica_schedule import ReplicaSteps, ShiftedSteps, StageSteps, schedule
from gauge_mc.updates.replicas import (
    MANY_REPLICAS,
    couplings_in_memory,
    in_memory,
    keys_in_memory,
)

COPY_REPLICAS = Kernel("copy_replicas")

INDEX = np.dtype(np.int32)
"""Type of the numbers of replicas in memory."""

COPIES = 3
"""Largest number of copies of the links that quarks need, in all precisions together."""

BegunKick = Callable[[], Mapping[int, Force]]
"""Waits for kicks that have begun, and returns forces by the number of the replica."""


@dataclass
class ShiftedStage:
    """Kicks with the force of shifted links, as calls."""

    steps: ShiftedSteps
    moves: list[Launch]
    kicks: list[Callable[[], BegunKick]]


@dataclass
class TrajectoryStage:
    """Kicks and drifts that are done at one time, as calls; see `StageSteps`."""

    steps: StageSteps
    shifted: list[ShiftedStage]
    last: list[Callable[[], BegunKick]]
    moves: list[Launch]


@dataclass
class TrajectoryPlan:
    """Prepared launches of a trajectory of every replica.

    Attributes
    ----------
    ends : tuple of int
        The field in which the links of every replica are at the end.
    memory : object
        Memory to which the arguments refer.
    stages : list of TrajectoryStage
        Kicks and drifts, one after the other.
    """

    ends: tuple[int, ...]
    memory: object
    stages: list[TrajectoryStage]


class _Notes:
    """Forces of trajectories that are under way.

    Parameters
    ----------
    count : int
        Number of replicas.

    Attributes
    ----------
    latest : dict of int to Force
        The last force of every replica.
    """

    def __init__(self, count: int) -> None:
        self._found: list[dict[str, list[Force]]] = [{} for _ in range(count)]
        self.latest: dict[int, Force] = {}
        self._begun: list[BegunKick] = []

    def take(self, name: str, forces: Mapping[int, Force]) -> None:
        """Take note of the forces of a term."""
        for n, one in forces.items():
            self._found[n].setdefault(name, []).append(one)
        self.latest.update(forces)

    def begin(self, kicks: Iterable[Callable[[], BegunKick]]) -> None:
        """Begin kicks of the gauge action, for which `wait` waits."""
        self._begun = [one() for one in kicks]

    def wait(self) -> None:
        """Wait for kicks that have begun."""
        for one in self._begun:
            self.take(GaugeMonomial.name, one())
        self._begun = []

    def forces(self, failures: Failures) -> list[Forces | None]:
        """Return the forces of every replica; None if a solver has failed."""
        self.wait()
        return [
            None if n in failures.errors else Forces(self.latest[n].kinetic, own)
            for n, own in enumerate(self._found)
        ]


class ReplicaDynamics:
    """Molecular dynamics of several replicas, with the memory that they need.

    This is two fields of links and one of algebra elements, for all replicas, another one for kicks
    with a shift, and that of quarks. A launch moves all replicas that do a step at the same time,
    each with its own coupling and its own step, so that every replica has the bits that it has
    alone.

    Parameters
    ----------
    field : Field
        A field of the kind of those that will move, on one slab. It is not changed.
    couplings : sequence of Coupling
        The gauge action of every replica, whose kernels are the same.
    randoms : sequence of Random
        The random numbers of every replica.
    make : sequence of callable
        Functions that return the terms of quarks, given their links.
    other : ReplicaDynamics, optional
        Dynamics of as many other replicas, whose memory and terms of quarks are used in turn.

    Raises
    ------
    UsageError
        If the actions do not declare their loops.
    GaugeError
        If the device has too little memory.
    """

    def __init__(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        make: Sequence[Callable[[QuarkLinks], ReplicaTerm]] = (),
        other: ReplicaDynamics | None = None,
    ) -> None:
        for one in couplings:
            check_action(one.action, field)
        count = len(couplings)
        self._couplings, self._randoms = tuple(couplings), tuple(randoms)
        self._memory: _TrajectoryMemory = (
            other._memory if other else _TrajectoryMemory(field, count, make)
        )
        self._choices = (couplings[0].action.choice, MANY_REPLICAS)
        self._keys = keys_in_memory(field, randoms)
        self._actions = couplings_in_memory(field, KICK, self._choices, couplings)
        self._coefficients = couplings[0].coefficients(field.group)
        self._accepted = in_memory(field, np.zeros(2 * count, INDEX))

    @property
    def _fields(self) -> tuple[Field, Field]:
        return self._memory.fields

    @property
    def terms(self) -> list[ReplicaTerm]:
        """The terms of quarks."""
        return self._memory.terms

    @property
    def chains(self) -> int:
        """Number of replicas."""
        return len(self._couplings)

    def start(self, field: Field) -> None:
        """Copy the links of all replicas of a field."""
        self._fields[0].copy(field)

    def begin_momenta(self) -> Callable[[], list[Draw]]:
        """Begin to draw the momenta of all replicas; see `begin_momenta`."""
        return begin_momenta(self._memory.momenta, self._randoms, self._keys)

    def begin_actions(self, ends: Sequence[int] | None = None) -> Callable[[], list[Energy]]:
        """Begin to compute the gauge action of every replica; return a call that waits for them.

        Parameters
        ----------
        ends : sequence of int, optional
            See `TrajectoryPlan.ends`; by default the links are those at the beginning.
        """
        ends = ends or [0] * len(self._couplings)
        begun = {
            now: begin_actions(self._fields[now], self._couplings, str(now)) for now in {*ends}
        }

        def actions() -> list[Energy]:
            found = {now: one() for now, one in begun.items()}
            return [found[now][n] for n, now in enumerate(ends)]

        return actions

    def take(self, now: Sequence[int]) -> None:
        """Let quarks see the links of every replica, given the fields in which they are."""
        if self._memory.quark_links is None:
            return
        target = self._memory.quark_links.field
        for source, group in groupby(range(len(now)), lambda n: now[n]):
            own = [*group]
            some = own[0], len(own)
            target.part(*some).copy(self._fields[source].part(*some))
        self._memory.quark_links.refresh()

    def kick_all(self, term: ReplicaTerm, size: float) -> None:
        """Do a kick of every replica with the force of a term of quarks, which see their links."""
        sizes = dict.fromkeys(range(self.chains), size)
        term.kick(self._memory.force, self._memory.momenta, sizes, Failures())

    def plan(
        self, levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
    ) -> TrajectoryPlan:
        """Prepare the launches of trajectories.

        Parameters
        ----------
        levels : sequence of sequence of str
            Names of the terms of the action on every level, the outermost first.
        trajectories : sequence of iterable of Kick or Drift
            The trajectory of every replica.
        """
        done, ends = schedule(levels, trajectories)
        memory, addresses = self._in_memory([*dict.fromkeys(n for one in done for n in one.steps)])
        moves = {step: self._launches(step, addresses[step]) for one in done for step in one.moves}
        made = [
            TrajectoryStage(
                one,
                [self._shifted_stage(own, addresses) for own in one.shifted],
                [self._last_kick(step, addresses[step]) for step in one.last],
                [launch for step in one.moves for launch in moves[step]],
            )
            for one in done
        ]
        return TrajectoryPlan(ends, memory, made)

    def _shifted_stage(
        self, steps: ShiftedSteps, addresses: Mapping[ReplicaSteps, int]
    ) -> ShiftedStage:
        """Return kicks with the force of shifted links as calls."""
        launches = [
            launch
            for one in steps.moves
            for launch in (
                *self._copies(one),
                *self._launches(one, addresses[one], self._memory.shift),
            )
        ]
        return ShiftedStage(
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

    def begin(self, plan: TrajectoryPlan, failures: Failures) -> Callable[[], list[Forces | None]]:
        """Begin trajectories; return a call that waits for the last kicks and returns the forces.

        They begin with the links that were copied by `start`, and which quarks see, and change the
        momenta.

        Parameters
        ----------
        plan : TrajectoryPlan
            The trajectories.
        failures : Failures
            Replicas without forces of quarks, to which those are added in which a solver fails.

        Returns
        -------
        callable
            Returns the forces of every replica; None if a solver has failed.
        """
        notes, terms = _Notes(self.chains), {one.name: one for one in self.terms}
        seen: tuple[int, ...] | None = plan.stages[0].steps.now

        def see(now: tuple[int, ...] | None) -> None:
            nonlocal seen
            if now and now != seen:
                self.take(now)
            seen = now

        for stage in plan.stages:
            if stage.shifted or stage.steps.kicks:
                notes.wait()
            for shifted in stage.shifted:
                self._kick_shifted(shifted, stage.steps.now, see, notes, failures)
            if stage.steps.kicks:
                see(stage.steps.now)
            for name, sizes in stage.steps.kicks:
                own = self._memory.force, self._memory.momenta
                notes.take(name, terms[name].kick(*own, sizes, failures))
            if stage.last:
                self._memory.largest.clear()
                notes.begin(stage.last)
            for launch in stage.moves:
                launch()
            if stage.moves:
                see(None)
        return lambda: notes.forces(failures)

    def _kick_shifted(
        self,
        stage: ShiftedStage,
        now: tuple[int, ...],
        see: Callable[[tuple[int, ...] | None], None],
        notes: _Notes,
        failures: Failures,
    ) -> None:
        """Do kicks with the force of shifted links; see `MolecularDynamics`.

        Parameters
        ----------
        stage : ShiftedStage
            The kicks.
        now : tuple of int
            The field in which the links of every replica are.
        see : callable
            Lets quarks see the links in given fields, or forget that they have.
        notes : object
            Takes note of the forces of terms of quarks.
        failures : Failures
            See `begin`.
        """
        steps, terms = stage.steps, [one for one in self.terms if one.name in stage.steps.terms]
        memory = self._memory
        memory.shift.clear()
        if terms:
            see(now)
        for term in terms:
            notes.take(term.name, term.kick(memory.force, memory.shift, steps.shifts, failures))
        for launch in stage.moves:
            launch()
        see(None)
        if terms:
            see(steps.shifted)
        for term in terms:
            notes.take(term.name, term.kick(memory.force, memory.momenta, steps.sizes, failures))
        for begin in stage.kicks:
            notes.latest.update(begin()())

    def accept(self, field: Field, accepted: Sequence[bool], ends: Sequence[int]) -> None:
        """Copy the links of accepted trajectories to a field, whose other replicas do not change.

        Parameters
        ----------
        field : Field
            The links of all chains.
        accepted : sequence of bool
            Whether the trajectory of a replica is accepted.
        ends : sequence of int
            See `TrajectoryPlan.ends`.
        """
        slab, count = field.slabs[0], len(accepted)
        for now, source in enumerate(self._fields):
            pairs = enumerate(zip(accepted, ends, strict=True))
            chosen = np.array([n for n, one in pairs if one == (True, now)], INDEX)
            if chosen.size:
                offset = now * count * INDEX.itemsize
                slab.device.write(self._accepted, offset, chosen.view(np.uint8))
                slab.launch(
                    COPY_REPLICAS,
                    self._work(chosen.size),
                    source=source.slabs[0].buffer.address,
                    target=slab.buffer.address,
                    replicas=self._accepted.address + offset,
                )

    def _work(self, count: int, first: int = 0) -> Any:
        """Return the work on some consecutive lattices of a launch."""
        period = self._fields[0].layouts[0].period
        return work(first * period, 1, count * period, BOTH_PARITIES)

    def _in_memory(self, moving: Sequence[ReplicaSteps]) -> tuple[object, dict[ReplicaSteps, int]]:
        """Return memory with the steps of replicas, and the addresses in it."""
        kind: Any = KICK.part("ReplicaMove", self._fields[0].slabs[0].variant(*self._choices))
        kicked = [one for one in moving if one.kicked]
        moves = [
            kind(kick=step.kick, drift=step.drift, replica=n, unused=0)
            for one in kicked
            for n, step in one.moves
        ]
        data = (kind * len(moves))(*moves)
        size = ctypes.sizeof(kind)
        memory = in_memory(self._fields[0], np.frombuffer(data, np.uint8))
        addresses, place = dict.fromkeys(moving, 0), memory.address
        for one in kicked:
            addresses[one] = place
            place += len(one.moves) * size
        return memory, addresses

    def _values(self, address: int, momenta: AlgebraField | None = None) -> dict[str, Any]:
        """Return the arguments of kicks of several replicas."""
        return {
            "momenta": (momenta or self._memory.momenta).slabs[0].buffer.address,
            "kick": 0.0,
            "action": self._coefficients,
            "moves": address,
            "actions": self._actions.address,
        }

    def _launches(
        self, moving: ReplicaSteps, address: int, momenta: AlgebraField | None = None
    ) -> list[Launch]:
        """Return calls that do a step of some replicas, by default with their momenta."""
        slab = self._fields[moving.now].slabs[0]
        if not moving.kicked:
            return list(self._bare_drifts(moving, momenta or self._memory.momenta))
        coefficients = KICK_AND_DRIFT.part("ACTION::Coefficients", slab.variant(*self._choices))
        arguments = slab.arguments(
            KICK_AND_DRIFT,
            self._work(len(moving.moves)),
            *self._choices,
            source=slab.buffer.address,
            target=self._fields[1 - moving.now].slabs[0].buffer.address,
            drift=0.0,
            **self._values(address, momenta) | {"action": coefficients(**self._coefficients)},
        )
        kernel = slab.kernel(KICK_AND_DRIFT, *self._choices)
        return list(kernel.launches(repeated([arguments], 1), [1]))

    def _bare_drifts(self, moving: ReplicaSteps, algebra: AlgebraField) -> Iterator[Launch]:
        """Yield calls that do drifts without a kick before, one for all neighbours with one size.

        Integrators that begin with a drift have such at both ends of a trajectory.
        """
        slab, momenta = self._fields[moving.now].slabs[0], algebra.slabs[0]
        alike = groupby(enumerate(moving.moves), lambda one: (one[1][0] - one[0], one[1][1].drift))
        for (_, size), group in alike:
            numbers = [n for _, (n, _) in group]
            arguments = slab.arguments(
                DRIFT,
                self._work(len(numbers), numbers[0]),
                links=slab.buffer.address,
                momenta=momenta.buffer.address,
                drift=size,
            )
            yield from slab.kernel(DRIFT).launches(repeated([arguments], 1), [1])

    def _last_kick(self, moving: ReplicaSteps, address: int) -> Callable[[], BegunKick]:
        """Return a call that begins a kick of some replicas with the gauge force, which is wanted.

        There is no other kick of replicas whose links are in the same field before its end.
        """
        links, lattice = self._fields[moving.now], self._fields[0].lattice
        slab, numbers = links.slabs[0], [n for n, _ in moving.moves]

        def kick() -> BegunKick:
            scratch, over = f"{KICK.name} {moving.now}", self._work(len(numbers))
            sums = SlabSums(slab, 2, 1, over, choices=self._choices, scratch=scratch, wide=True)
            kind = KICK.part("ACTION::Coefficients", slab.variant(*self._choices))
            sums.launch(
                KICK,
                {
                    **self._values(address),
                    "action": kind(**self._coefficients),
                    "links": slab.buffer.address,
                    "largest": self._memory.largest.address(0),
                },
            )

            def wait() -> Mapping[int, Force]:
                found = replica_sums(links.devices, [sums], len(numbers))
                largest = self._memory.largest.by_slice().reshape(self.chains, -1)
                return {
                    n: gauge_force(own, largest[n], lattice)
                    for own, n in zip(found, numbers, strict=True)
                }

            return wait

        return kick


class _TrajectoryMemory:
    """Memory of trajectories of several replicas, one of them after the other.

    Parameters
    ----------
    field : Field
        The links of a replica, or of several.
    count : int
        Number of replicas.
    make : sequence of callable
        Functions that return the terms of quarks, given their links.
    """

    def __init__(
        self, field: Field, count: int, make: Sequence[Callable[[QuarkLinks], ReplicaTerm]]
    ) -> None:
        self.fields = field.repeated(count), field.repeated(count)
        links = self.fields[0]
        self.momenta = AlgebraField.like(links)
        self.largest = LargestValues(links)
        self.quark_links = QuarkLinks(links) if make else None
        self.terms = [one(self.quark_links) for one in make if self.quark_links]

    @cached_property
    def force(self) -> AlgebraField:
        """Forces of quarks."""
        return AlgebraField.like(self.fields[0])

    @cached_property
    def shift(self) -> AlgebraField:
        """Forces that shift links."""
        return AlgebraField.like(self.fields[0])


def bytes_of_trajectory(field: Field, vectors: int = 0, shifted: bool = False) -> int:
    """Return the bytes of memory that the trajectory of a replica takes besides its links.

    Parameters
    ----------
    field : Field
        The links.
    vectors : int
        Number of vectors on the even or odd sites that quarks need; 0 without quarks.
    shifted : bool
        Whether there are kicks with the force of shifted links.
    """
    layout, group = field.layouts[0].of_replica, field.group
    links, algebra = (2, 1 + shifted) if not vectors else (2 + COPIES, 2 + shifted)
    components = links * group.components + algebra * group.algebra_components
    sites = layout.lanes * layout.slots * layout.slices_in_memory  # of one parity
    each = sites * 2 * SPINS * group.colours * layout.real.itemsize
    return layout.field_bytes(components) + vectors * each
