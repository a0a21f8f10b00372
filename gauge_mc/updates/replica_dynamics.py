"""Trajectories of several replicas at once, in the force of the gauge action."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

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
from gauge_mc.updates.energy import Energy, replica_sums
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.molecular_dynamics import DRIFT, Forces
from gauge_mc.updates.momenta import Draw, begin_momenta
from gauge_mc.updates.monomials.gauge import (
    KICK,
    KICK_AND_DRIFT,
    GaugeMonomial,
    begin_actions,
    check_action,
    gauge_force,
)
from gauge_mc.updates.replicas import (
    MANY_REPLICAS,
    couplings_in_memory,
    in_memory,
    keys_in_memory,
)

COPY_REPLICAS = Kernel("copy_replicas")

INDEX = np.dtype(np.int32)
"""Type of the numbers of replicas in memory."""


class KickAndDrift(NamedTuple):
    """A kick, if there is one, and the drift after it."""

    kick: float | None
    drift: float


class _GaugeTrajectory(NamedTuple):
    """A trajectory, in the parts that are done by different kernels."""

    steps: tuple[KickAndDrift, ...]
    """The steps before the last kick."""
    kick: float
    """The last kick, whose force and kinetic energy are wanted."""
    drifts: tuple[KickAndDrift, ...]
    """The steps after the last kick: none, or a drift."""

    @classmethod
    def of(cls, moves: Sequence[Move]) -> _GaugeTrajectory:
        """Return the parts of a trajectory in the force of one level."""
        last = max(n for n, one in enumerate(moves) if isinstance(one, Kick))
        return cls(tuple(_steps(moves[:last])), moves[last].size, tuple(_steps(moves[last + 1 :])))

    @property
    def end(self) -> int:
        """The field in which the links are at the end, if they are in field 0 at the beginning."""
        return sum(one.kick is not None for one in self.steps) % 2


def _steps(moves: Iterable[Move]) -> Iterator[KickAndDrift]:
    """Yield kicks with the drifts after them."""
    kick = None
    for one in moves:
        if isinstance(one, Drift):
            yield KickAndDrift(kick, one.size)
        kick = one.size if isinstance(one, Kick) else None


class ReplicaSteps(NamedTuple):
    """Replicas that do a step at the same time, as a kernel sees them."""

    now: int
    """The field in which their links are."""
    kicked: bool
    """Whether there is a kick before the drift."""
    moves: tuple[tuple[int, KickAndDrift], ...]
    """The numbers of the replicas, and their steps."""


@dataclass
class TrajectoryPlan:
    """Prepared launches of a trajectory of every replica.

    Attributes
    ----------
    ends : tuple of int
        The field in which the links of every replica are at the end.
    memory : object
        Memory to which the arguments refer.
    """

    ends: tuple[int, ...]
    memory: object


@dataclass
class GaugeTrajectoryPlan(TrajectoryPlan):
    """Prepared launches of a trajectory of every replica in the force of the gauge action.

    Attributes
    ----------
    launches : list of callable
        Calls that do all steps before the last kicks.
    kicks : list of callable
        Calls that begin the last kicks of some replicas, and return calls that wait for the forces,
        which are returned by the numbers of the replicas.
    drifts : list of callable
        Calls that do the drifts after the last kicks.
    """

    launches: list[Launch]
    kicks: list[Callable[[], Callable[[], Mapping[int, Forces]]]]
    drifts: list[Launch]


class ReplicaDynamics:
    """Molecular dynamics of several replicas, with the memory that they need.

    This is two fields of links and one of algebra elements, for all replicas. A launch moves all
    replicas whose trajectories have not ended, each with its own coupling and its own step. What
    has ended is left out, so that every replica has the bits that it has alone.

    Parameters
    ----------
    field : Field
        A field of the kind of those that will move, on one slab. It is not changed.
    couplings : sequence of Coupling
        The gauge action of every replica, whose kernels are the same.
    randoms : sequence of Random
        The random numbers of every replica.
    other : ReplicaDynamics, optional
        Dynamics of as many other replicas, whose memory is used in turn.

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
        other: ReplicaDynamics | None = None,
    ) -> None:
        for one in couplings:
            check_action(one.action, field)
        count = len(couplings)
        self._couplings, self._randoms = tuple(couplings), tuple(randoms)
        self._fields: tuple[Field, Field] = (
            other._fields if other else (field.repeated(count), field.repeated(count))
        )
        self._momenta: AlgebraField = (
            other._momenta if other else AlgebraField.like(self._fields[0])
        )
        self._largest: LargestValues = other._largest if other else LargestValues(self._fields[0])
        self._choices = (couplings[0].action.choice, MANY_REPLICAS)
        self._keys = keys_in_memory(field, randoms)
        self._actions = couplings_in_memory(field, KICK, self._choices, couplings)
        self._coefficients = couplings[0].coefficients(field.group)
        self._accepted = in_memory(field, np.zeros(2 * count, INDEX))

    @property
    def chains(self) -> int:
        """Number of replicas."""
        return len(self._couplings)

    def start(self, field: Field) -> None:
        """Copy the links of all replicas of a field."""
        self._fields[0].copy(field)

    def begin_momenta(self) -> Callable[[], list[Draw]]:
        """Begin to draw the momenta of all replicas; see `begin_momenta`."""
        return begin_momenta(self._momenta, self._randoms, self._keys)

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

    def plan(self, trajectories: Sequence[Sequence[Move]]) -> GaugeTrajectoryPlan:
        """Prepare the launches of trajectories.

        Parameters
        ----------
        trajectories : sequence of sequence of Kick or Drift
            The trajectory of every replica, with kicks of the gauge action only.
        """
        divided = [_GaugeTrajectory.of(one) for one in trajectories]
        ends = tuple(one.end for one in divided)
        steps = list(_together([one.steps for one in divided], [0] * len(divided)))
        last = {
            now: [
                (n, KickAndDrift(one.kick, 0.0)) for n, one in enumerate(divided) if one.end == now
            ]
            for now in sorted({*ends})
        }
        kicks = [ReplicaSteps(now, True, tuple(moves)) for now, moves in last.items()]
        drifts = list(_together([one.drifts for one in divided], ends))
        memory, addresses = self._in_memory([*dict.fromkeys((*steps, *kicks))])
        launches = {one: self._launches(one, addresses[one]) for one in dict.fromkeys(steps)}
        return GaugeTrajectoryPlan(
            ends,
            memory,
            [launch for one in steps for launch in launches[one]],
            [self._last_kick(one, addresses[one]) for one in kicks],
            [launch for one in drifts for launch in self._launches(one, 0)],
        )

    def begin(self, plan: GaugeTrajectoryPlan) -> Callable[[], list[Forces]]:
        """Begin trajectories; return a call that waits for the last kicks and returns the forces.

        They begin with the links that were copied by `start`, and change the momenta.
        """
        for launch in plan.launches:
            launch()
        self._largest.clear()
        begun = [kick() for kick in plan.kicks]
        for launch in plan.drifts:
            launch()

        def forces() -> list[Forces]:
            found: dict[int, Forces] = {}
            for one in begun:
                found.update(one())
            return [found[n] for n in range(len(self._couplings))]

        return forces

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
            kind(kick=step.kick, drift=step.drift, replica=n)
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
            "momenta": (momenta or self._momenta).slabs[0].buffer.address,
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
            return list(self._bare_drifts(moving, momenta or self._momenta))
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

    def _last_kick(
        self, moving: ReplicaSteps, address: int
    ) -> Callable[[], Callable[[], Mapping[int, Forces]]]:
        """Return a call that begins the last kick of some replicas; see `TrajectoryPlan.kicks`."""
        links, lattice = self._fields[moving.now], self._fields[0].lattice
        slab, numbers = links.slabs[0], [n for n, _ in moving.moves]

        def kick() -> Callable[[], Mapping[int, Forces]]:
            scratch, over = f"{KICK.name} {moving.now}", self._work(len(numbers))
            sums = SlabSums(slab, 2, 1, over, choices=self._choices, scratch=scratch, wide=True)
            kind = KICK.part("ACTION::Coefficients", slab.variant(*self._choices))
            sums.launch(
                KICK,
                {
                    **self._values(address),
                    "action": kind(**self._coefficients),
                    "links": slab.buffer.address,
                    "largest": self._largest.address(0),
                },
            )

            def wait() -> Mapping[int, Forces]:
                found = replica_sums(links.devices, [sums], len(numbers))
                largest = self._largest.by_slice().reshape(len(self._couplings), -1)
                forces = [
                    gauge_force(own, largest[n], lattice)
                    for own, n in zip(found, numbers, strict=True)
                ]
                return {
                    n: Forces(one.kinetic, {GaugeMonomial.name: [one]})
                    for n, one in zip(numbers, forces, strict=True)
                }

            return wait

        return kick


def bytes_of_trajectory(field: Field) -> int:
    """Return the bytes of memory that the trajectory of a replica takes besides its links."""
    layout, group = field.layouts[0].of_replica, field.group
    components = 2 * group.components + group.algebra_components
    return layout.field_bytes(components)


def _together(
    parts: Sequence[Sequence[KickAndDrift]], fields: Sequence[int]
) -> Iterator[ReplicaSteps]:
    """Yield which replicas do their n-th step at the same time, for all n.

    Parameters
    ----------
    parts : sequence of sequence of KickAndDrift
        The steps of every replica.
    fields : sequence of int
        The field in which the links of every replica are at the beginning.
    """
    now = list(fields)
    for at_once in zip_longest(*parts):
        groups: dict[tuple[int, bool], list[tuple[int, KickAndDrift]]] = {}
        for n, step in enumerate(at_once):
            if step is not None:
                groups.setdefault((now[n], step.kick is not None), []).append((n, step))
                now[n] = (now[n] + (step.kick is not None)) % 2
        for key, moves in groups.items():
            yield ReplicaSteps(*key, tuple(moves))
