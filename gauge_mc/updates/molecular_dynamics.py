"""Trajectories of links and momenta in the forces of an action, of one chain or of several."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.devices import BACKENDS, Buffer
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import ChainError
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.chain_steps import START, ChainSteps, ShiftedSteps, StageSteps, schedule
from gauge_mc.updates.integrators import Move, StepTuner, TimeScales
from gauge_mc.updates.momenta import Draw, Energy, acceptance, begin_momenta, total
from gauge_mc.updates.monomials import GAUGE, Failures, Force, Monomial, alike
from gauge_mc.updates.monomials.gauge import BegunKick, GaugeMonomial, StepsInMemory, begin_actions
from gauge_mc.updates.sweep import MANY_REPLICAS, in_memory, keys_in_memory
from gauge_mc.updates.terms import TermLinks

MEMORY_SHARE = 0.5
"""Fraction of the free memory of a device that trajectories may take."""

FAILURES = "failures"
"""Key of the number of trajectories in a row in which a solver has failed, in checkpoints."""


class Outcome(NamedTuple):
    """The result of a trajectory: whether it was accepted, its energy, and its forces.

    Attributes
    ----------
    change : float
        Change of the energy; 0 if a solver has failed.
    accepted : bool
        Whether its links are now those of the chain.
    probability : float
        Probability with which it was accepted.
    steps : int
        Number of steps of the outermost level.
    action : float
        The gauge action of the links after the update.
    kinetic : float
        Kinetic energy at the end of the trajectory; at its beginning if a solver has failed.
    forces : Forces or None
        The forces; None if a solver has failed.
    iterations : list of int
        Numbers of iterations of the terms other than the gauge action.
    measured : list of tuple of float
        What these terms have measured; see `Monomial.measured`.
    """

    change: float
    accepted: bool
    probability: float
    steps: int
    action: float
    kinetic: float
    forces: Forces | None
    iterations: list[int]
    measured: list[tuple[float, ...]]


def divided(links: Field, each: int, share: float = 1.0, most: float = math.inf) -> list[slice]:
    """Divide the replicas of a field into groups, each of which moves together.

    Groups are as large as keeps the device busy, or as its memory allows. They move one after the
    other, and results do not depend on them.
    """
    slab, count = links.slabs[0], len(links.replicas)
    busy = int(share * BACKENDS[slab.device.backend].busy_sites) // links.lattice.sites
    fitting = MEMORY_SHARE * slab.device.free_bytes() // each
    groups = math.ceil(count / max(1, min(busy, int(fitting), most)))
    size = math.ceil(count / groups)
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def decided(change: float, uniform: float, step: int, tuner: StepTuner) -> tuple[float, bool]:
    """Decide about a trajectory, and let the number of steps be chosen from it."""
    probability = acceptance(change)
    # Far from equilibrium the energy may change so much that nothing would ever be accepted.
    always = 2 * step <= tuner.updates and math.isfinite(change)
    tuner.take(change, step)
    return probability, always or uniform < probability


@dataclass
class MovingChains:
    """Chains whose launches are those of all of them.

    Each chain has its own number of steps and of iterations of solvers, and its trajectories are
    accepted or rejected alone. The trajectory of a chain in which a solver fails is rejected.

    Attributes
    ----------
    dynamics : MolecularDynamics
        The links of the chains, and memory for their trajectories.
    levels : sequence of sequence of str
        Names of the terms of the action by the level on which they act, the outermost level first.
    scales : TimeScales
        The time scales of a trajectory.
    length : float
        Its length.
    randoms : sequence of Random
        The random numbers of every chain.
    tuners : sequence of StepTuner
        Choose the number of steps of every chain.
    numbers : sequence of dict of str to float
        Numbers that the checkpoint of every chain contains besides links and random numbers.
    failures : int
        Number of trajectories in a row in which a solver fails, after which a chain ends.
    actions : list of Energy or None
        The gauge actions of the links, once they are known. Nothing else changes links between
        updates.
    reasons : dict of int to str
        Why a solver of a chain has failed the last time.
    """

    dynamics: MolecularDynamics
    levels: Sequence[Sequence[str]]
    scales: TimeScales
    length: float
    randoms: Sequence[Random]
    tuners: Sequence[StepTuner]
    numbers: Sequence[dict[str, float]]
    failures: int
    actions: list[Energy] | None = None
    reasons: dict[int, str] = dataclasses.field(default_factory=dict)
    _plans: dict[tuple[int, ...], TrajectoryPlan] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        """End a chain in which solvers have failed too often in a row.

        The next session tries as many trajectories again.
        """
        for n, numbers in enumerate(self.numbers):
            if numbers.get(FAILURES, 0) >= self.failures:
                numbers[FAILURES] = 0
                reason = self.reasons.get(n, "")
                raise ChainError(
                    f"Solvers have failed in {self.failures} trajectories in a row, the last time "
                    f"because {reason[:1].lower()}{reason[1:]}"
                )

    def update(self) -> list[Outcome]:
        """Do one trajectory of every chain, and accept or reject each."""
        dynamics = self.dynamics
        for random in self.randoms:
            random.step += 1
        plan = self._plan(tuple(tuner.steps for tuner in self.tuners))
        dynamics.update_halos()
        # Sums of kernels are fetched at the end, so that the device need not wait in between.
        draw = dynamics.begin_momenta()
        before = self.actions or dynamics.begin_actions(dynamics.start)()
        outcomes, after = self._move(plan, draw, before)
        dynamics.accept([o.accepted for o in outcomes], plan.ends)
        self.actions = [
            new if o.accepted else old for o, new, old in zip(outcomes, after, before, strict=True)
        ]
        return outcomes

    def _move(
        self, plan: TrajectoryPlan, draw: Callable[[], list[Draw]], before: list[Energy]
    ) -> tuple[list[Outcome], list[Energy]]:
        """Do a trajectory of every chain; return the outcomes and the gauge actions at the end."""
        dynamics, terms, failures = self.dynamics, self.dynamics.terms, Failures()
        dynamics.show(dynamics.start)
        others_before = [term.draw(self.randoms, failures) for term in terms]
        moving, actions = dynamics.begin(plan, failures), dynamics.begin_actions(plan.ends)
        others_after = []
        if len(failures.errors) < len(before):
            dynamics.show(plan.ends)
            others_after = [term.actions(failures) for term in terms]
        drawn, forces, after = draw(), moving(), actions()
        outcomes = []
        for n, force in enumerate(forces):
            if force is None:
                outcomes.append(self._fail(n, str(failures.errors[n]), drawn[n], before[n]))
                continue
            start = total([drawn[n].kinetic, before[n], *(x[n] for x in others_before)])
            end = total([force.kinetic, after[n], *(x[n] for x in others_after)])
            change, steps = end.minus(start), self.tuners[n].steps
            if terms:
                self.numbers[n][FAILURES] = 0
            step = self.randoms[n].step
            probability, accepted = decided(change, drawn[n].uniform, step, self.tuners[n])
            action, kinetic = float(after[n] if accepted else before[n]), float(force.kinetic)
            counts, measured = self._iterations(n), self._measured(n)
            outcome = change, accepted, probability, steps, action, kinetic, force, counts, measured
            outcomes.append(Outcome(*outcome))
        return outcomes, after

    def _fail(self, n: int, reason: str, drawn: Draw, before: Energy) -> Outcome:
        """Reject the trajectory of a chain in which a solver has failed, and count it."""
        numbers, tuner = self.numbers[n], self.tuners[n]
        self.reasons[n], steps = reason, tuner.steps
        numbers[FAILURES] = numbers.get(FAILURES, 0) + 1
        tuner.take(math.inf, self.randoms[n].step)
        action, kinetic = float(before), float(drawn.kinetic)
        counts = self._iterations(n), self._measured(n)
        return Outcome(0.0, False, 0.0, steps, action, kinetic, None, *counts)

    def _iterations(self, n: int) -> list[int]:
        """Return the numbers of iterations of the terms of a chain."""
        return [int(term.iterations[n]) for term in self.dynamics.terms]

    def _measured(self, n: int) -> list[tuple[float, ...]]:
        """Return what the terms of a chain have measured."""
        return [term.measured(n) for term in self.dynamics.terms]

    def _plan(self, steps: tuple[int, ...]) -> TrajectoryPlan:
        """Return the launches of trajectories with these numbers of steps; the last are kept."""
        if steps not in self._plans:
            self._plans.clear()
            trajectories = {count: self.scales.trajectory(self.length, count) for count in {*steps}}
            self._plans[steps] = self.dynamics.plan(
                self.levels, [trajectories[step] for step in steps]
            )
        return self._plans[steps]


COPY_REPLICAS = Kernel("copy_replicas")
DRIFT = Kernel("drift")

INDEX = np.dtype(np.int32)
"""Type of the numbers of replicas in memory."""

COPIES = 3
"""Largest number of copies of the links that terms with vectors need, in all precisions
together."""

SPINS = 4
"""Number of vectors of colours that a vector of a term has at a site."""


class Forces(NamedTuple):
    """The forces of a trajectory, and the kinetic energy after its last kick."""

    kinetic: Energy
    """-Tr P^2 summed over all links."""
    of: Mapping[str, list[Force]]
    """Forces of the kicks by the name of the term. The gauge action has only the last one, because
    the size of the others is not computed.
    """

    def mean(self, name: str) -> float:
        """Return the root mean square of a force, over links and kicks."""
        return math.sqrt(math.fsum(x.mean * x.mean for x in self.of[name]) / len(self.of[name]))

    def largest(self, name: str) -> float:
        """Return the largest force on a link."""
        return max(x.largest for x in self.of[name])


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
    """Prepared launches of a trajectory of every chain.

    Attributes
    ----------
    ends : tuple of int
        The field in which the links of every chain are at the end.
    memory : StepsInMemory
        Memory to which the arguments refer.
    stages : list of TrajectoryStage
        Kicks and drifts, one after the other.
    """

    ends: tuple[int, ...]
    memory: StepsInMemory
    stages: list[TrajectoryStage]


class _Notes:
    """Forces of trajectories that are under way.

    Parameters
    ----------
    count : int
        Number of chains.

    Attributes
    ----------
    latest : dict of int to Force
        The last force of every chain.
    """

    def __init__(self, count: int) -> None:
        self._found: list[dict[str, list[Force]]] = [{} for _ in range(count)]
        self.latest: dict[int, Force] = {}
        self._begun: list[BegunKick] = []

    def take(self, name: str, forces: Mapping[int, Force]) -> None:
        """Take note of the forces of a term."""
        for n, force in forces.items():
            self._found[n].setdefault(name, []).append(force)
        self.latest.update(forces)

    def begin(self, kicks: Iterable[Callable[[], BegunKick]]) -> None:
        """Begin kicks of the gauge action, for which `wait` waits."""
        self._begun = [kick() for kick in kicks]

    def wait(self) -> None:
        """Wait for kicks that have begun."""
        for kick in self._begun:
            self.take(GAUGE, kick())
        self._begun = []

    def forces(self, failures: Failures) -> list[Forces | None]:
        """Return the forces of every chain; None if a solver has failed."""
        self.wait()
        return [
            None if n in failures.errors else Forces(self.latest[n].kinetic, x)
            for n, x in enumerate(self._found)
        ]


class MolecularDynamics:
    """Molecular dynamics of links and momenta, with the memory that they need.

    This is two fields of links and one of algebra elements, another one for kicks with a shift, and
    that of other terms than the gauge action. A chain alone may be divided over devices. Several
    chains are replicas of a field: a launch moves all that do a step at the same time, each with
    its own coupling and its own step, so that every chain has the bits that it has alone.

    Parameters
    ----------
    field : Field
        The links with which trajectories begin, one replica for every chain. They are changed by
        `accept` only.
    couplings : sequence of Coupling
        The gauge action of every chain, whose kernels are the same.
    randoms : sequence of Random
        The random numbers of every chain.
    make : sequence of callable
        Functions that return the other terms of the action, given their links.
    replicas : Choice, optional
        See `GaugeMonomial`.
    sharing : MolecularDynamics, optional
        Dynamics of as many other chains, whose memory and terms are used in turn.

    Attributes
    ----------
    gauge : GaugeMonomial
        The gauge action.
    terms : list of Monomial
        The terms of the action other than the gauge action.
    momenta : AlgebraField
        The momenta.
    links : tuple of Field
        The fields of links by number; see `TrajectoryPlan.ends`.
    chains : int
        Number of chains.

    Raises
    ------
    UsageError
        If the actions do not declare their loops.
    GaugeError
        If a device has too little memory.
    """

    def __init__(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        make: Sequence[Callable[[TermLinks], Monomial]] = (),
        replicas: Choice | None = None,
        sharing: MolecularDynamics | None = None,
    ) -> None:
        self.gauge = GaugeMonomial(couplings, field, replicas)
        self._randoms = tuple(randoms)
        self._memory: _TrajectoryMemory = (
            sharing._memory if sharing else _TrajectoryMemory(field, make)
        )
        self.momenta, self.terms = self._memory.momenta, self._memory.terms
        self.links = (*self._memory.fields, field)
        self.chains = len(randoms)
        several = self.gauge.replicas == MANY_REPLICAS
        self._keys = keys_in_memory(field, randoms) if several else None
        self._seen: tuple[int, ...] | None = None

    @property
    def start(self) -> tuple[int, ...]:
        """The fields in which the links of all chains are at the beginning of a trajectory."""
        return (START,) * self.chains

    def begin_momenta(self) -> Callable[[], list[Draw]]:
        """Begin to draw the momenta of all chains; see `begin_momenta`."""
        return begin_momenta(self.momenta, self._randoms, self._keys)

    def begin_actions(self, ends: Sequence[int]) -> Callable[[], list[Energy]]:
        """Begin to compute the gauge action of every chain; return a call that waits for them."""
        couplings = self.gauge.couplings
        begun = {now: begin_actions(self.links[now], couplings, str(now)) for now in {*ends}}

        def actions() -> list[Energy]:
            energies = {now: x() for now, x in begun.items()}
            return [energies[now][n] for n, now in enumerate(ends)]

        return actions

    def update_halos(self) -> None:
        """Begin a trajectory: update the halos of the links, which may have changed."""
        self._update_halo(START)
        self._seen = None

    def _update_halo(self, field: int) -> None:
        links = self.links[field]
        if len(links.layouts) > 1:
            links.exchange_halo(self.gauge.halo_depth)

    def show(self, now: tuple[int, ...]) -> None:
        """Let other terms see the links of every chain, given the fields in which they are."""
        links = self._memory.term_links
        if links is None or now == self._seen:
            return
        for source, group in groupby(range(len(now)), lambda n: now[n]):
            for copy in self._copies(links.field, self.links[source], [*group]):
                copy()
        links.refresh()
        self._seen = now

    def kick_all(self, term: Monomial, size: float) -> None:
        """Do a kick of every chain with the force of a term, which sees the links."""
        sizes = dict.fromkeys(range(self.chains), size)
        term.kick(self._memory.force, self.momenta, sizes, Failures())

    def plan(
        self, levels: Sequence[Sequence[str]], trajectories: Sequence[Iterable[Move]]
    ) -> TrajectoryPlan:
        """Prepare the launches of trajectories."""
        scheduled, ends = schedule(levels, trajectories)
        steps = [*dict.fromkeys(n for x in scheduled for n in x.steps)]
        memory = self.gauge.in_memory(self.links[START], steps)
        moves = {
            step: [*self._moves(step, memory, self.momenta)] for x in scheduled for step in x.moves
        }
        stages = [
            TrajectoryStage(
                y,
                [self._shifted_stage(x, memory) for x in y.shifted],
                [self._kick(step, memory) for step in y.last],
                [launch for step in y.moves for launch in moves[step]],
            )
            for y in scheduled
        ]
        return TrajectoryPlan(ends, memory, stages)

    def begin(self, plan: TrajectoryPlan, failures: Failures) -> Callable[[], list[Forces | None]]:
        """Begin trajectories; return a call that waits for the last kicks and returns the forces.

        They change the momenta.
        """
        notes, memory = _Notes(self.chains), self._memory
        terms = {term.title: term for term in self.terms}
        for stage in plan.stages:
            if len(failures.errors) == self.chains:
                break
            if stage.shifted or stage.steps.kicks:
                notes.wait()
            for shifted in stage.shifted:
                self._kick_shifted(shifted, stage.steps.now, notes, failures)
            if stage.steps.kicks:
                self.show(stage.steps.now)
            for name, sizes in stage.steps.kicks:
                notes.take(name, terms[name].kick(memory.force, memory.momenta, sizes, failures))
            if stage.last:
                memory.largest.clear()
                notes.begin(stage.last)
            self._move(stage.moves, stage.steps.moves)
        return lambda: notes.forces(failures)

    def _kick_shifted(
        self, stage: ShiftedStage, now: tuple[int, ...], notes: _Notes, failures: Failures
    ) -> None:
        """Do kicks with the force of shifted links.

        The shift is a drift with momenta that are the force. It goes to the field to which the
        next drift would go. Forces of other terms than the gauge action are added to those that
        were found.
        """
        steps, terms = stage.steps, [term for term in self.terms if term.title in stage.steps.terms]
        memory = self._memory
        memory.shift.clear()
        if terms:
            self.show(now)
        for term in terms:
            notes.take(term.title, term.kick(memory.force, memory.shift, steps.shifts, failures))
        self._move(stage.moves, steps.moves)
        if terms:
            self.show(steps.shifted)
        for term in terms:
            notes.take(term.title, term.kick(memory.force, memory.momenta, steps.sizes, failures))
        for begin in stage.kicks:
            notes.latest.update(begin()())
        self._seen = None

    def accept(self, accepted: Sequence[bool], ends: Sequence[int]) -> None:
        """Copy the links of accepted trajectories to those of the chains; others do not change."""
        links = self.links[START]
        if self.chains == 1:
            if accepted[0]:
                links.copy(self.links[ends[0]])
                self._update_halo(START)
            return
        slab, pairs = links.slabs[0], [*zip(accepted, ends, strict=True)]
        for now, source in enumerate(self._memory.fields):
            numbers = np.array([n for n, pair in enumerate(pairs) if pair == (True, now)], INDEX)
            if numbers.size:
                offset = now * self.chains * INDEX.itemsize
                slab.device.write(self._accepted, offset, numbers.view(np.uint8))
                fields = {"source": source.slabs[0].buffer.address, "target": slab.buffer.address}
                some, replicas = range(numbers.size), self._accepted.address + offset
                slab.launch(COPY_REPLICAS, slab.whole(some=some), **fields, replicas=replicas)

    @cached_property
    def _accepted(self) -> Buffer:
        """Numbers of the chains whose trajectories are accepted, for each field of links."""
        return in_memory(self.links[START], np.zeros(2 * self.chains, INDEX))

    def _move(self, launches: Iterable[Launch], steps: Iterable[ChainSteps]) -> None:
        """Do drifts, and update the halos of the links, which other terms have not seen."""
        for launch in launches:
            launch()
        for field in {step.target for step in steps}:
            self._update_halo(field)
            self._seen = None

    def _shifted_stage(self, steps: ShiftedSteps, memory: StepsInMemory) -> ShiftedStage:
        """Return kicks with the force of shifted links as calls."""
        shift = self._memory.shift
        moves = [launch for move in steps.moves for launch in self._moves(move, memory, shift)]
        return ShiftedStage(steps, moves, [self._kick(kick, memory) for kick in steps.kicks])

    def _kick(self, steps: ChainSteps, memory: StepsInMemory) -> Callable[[], BegunKick]:
        """Return a call that begins kicks of some chains with the gauge force, which is wanted."""
        shared, address = self._memory, memory.addresses[steps]
        arguments = self.links[steps.source], shared.momenta, steps, address, shared.largest
        return partial(self.gauge.begin_kick, *arguments)

    def _moves(
        self, steps: ChainSteps, memory: StepsInMemory, momenta: AlgebraField
    ) -> Iterator[Launch]:
        """Yield calls that do drifts of some chains with momenta, or forces in their place."""
        source, target = self.links[steps.source], self.links[steps.target]
        if steps.kicked:
            address = memory.addresses[steps]
            yield from self.gauge.kick_and_drift(source, target, momenta, steps, address)
            return
        if source is not target:
            yield from self._copies(target, source, [n for n, _ in steps.moves])
        # Integrators that begin with a drift have drifts without a kick at both ends.
        for some, size in alike({n: step.drift for n, step in steps.moves}):
            for slab, algebra in zip(target.slabs, momenta.slabs, strict=True):
                fields = {"links": slab.buffer.address, "momenta": algebra.buffer.address}
                arguments = slab.arguments(DRIFT, slab.whole(some=some), **fields, drift=size)
                yield from slab.kernel(DRIFT).launches(repeated([arguments], 1), [1])

    def _copies(self, target: Field, source: Field, numbers: Sequence[int]) -> Iterator[Launch]:
        """Yield calls that copy the links of some chains, one for all neighbours."""
        for some, _ in alike(dict.fromkeys(numbers, 0.0)):
            complete = len(some) == self.chains
            pair = target, source
            to, of = pair if complete else (x.part(some.start, len(some)) for x in pair)
            yield partial(to.copy, of)


class _TrajectoryMemory:
    """Memory of trajectories of some chains, and then of others.

    Parameters
    ----------
    like : Field
        The links, one replica for every chain.
    make : sequence of callable
        Functions that return the terms other than the gauge action, given their links.
    """

    def __init__(self, like: Field, make: Sequence[Callable[[TermLinks], Monomial]]) -> None:
        self.fields = like.empty_like(), like.empty_like()
        self.momenta = AlgebraField.like(self.fields[0])
        self.largest = LargestValues(self.fields[0])
        self.term_links = TermLinks(like) if make else None
        self.terms = [x(self.term_links) for x in make if self.term_links]

    @cached_property
    def force(self) -> AlgebraField:
        """Forces of terms other than the gauge action, which are 0 between kicks."""
        return AlgebraField.like(self.fields[0])

    @cached_property
    def shift(self) -> AlgebraField:
        """Forces that shift links."""
        return AlgebraField.like(self.fields[0])


def bytes_of_trajectory(field: Field, vectors: int = 0, shifted: bool = False) -> int:
    """Return the bytes of memory that the trajectory of a replica takes besides its links."""
    layout, group = field.layouts[0].of_replica, field.group
    links, algebra = (2, 1 + shifted) if not vectors else (2 + COPIES, 2 + shifted)
    components = links * group.components + algebra * group.algebra_components
    sites = layout.lanes * layout.slots * layout.slices_in_memory  # of one parity
    each = sites * 2 * SPINS * group.colours * layout.real.itemsize
    return layout.field_bytes(components) + vectors * each
