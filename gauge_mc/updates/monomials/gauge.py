"""The gauge action."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Action, Coupling
from gauge_mc.devices import Buffer
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.sums import SlabSums
from gauge_mc.options import Option
from gauge_mc.updates.chain_steps import ChainSteps, KickAndDrift
from gauge_mc.updates.momenta import Energy, exact_sum, replica_sums
from gauge_mc.updates.monomials import GAUGE, MONOMIALS, Failures, Force, Mask, Monomial
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA, couplings_in_memory, in_memory

KICK = Kernel("kick")
KICK_AND_DRIFT = Kernel("kick_and_drift")

BegunKick = Callable[[], Mapping[int, Force]]
"""Waits for kicks that have begun, and returns forces by the number of the chain."""


class StepsInMemory(NamedTuple):
    """Steps of chains as kernels read them."""

    memory: Buffer | None
    """The memory; None if they are arguments of the kernels."""
    addresses: Mapping[ChainSteps, int | None]
    """Addresses in it."""


def check_action(action: Action, like: Field) -> None:
    """Check that trajectories are possible with an action."""
    layout = like.layouts[0]
    if not action.loops:
        raise UsageError(
            f"The action {action.name} declares no loops, so that its value is not known; "
            "declare them as its attribute loops, or choose another algorithm."
        )
    if len(like.layouts) > 1 and action.halo_depth > min(layout.above, layout.below):
        raise UsageError(
            f"The action {action.name} needs halos of {action.halo_depth} time slices, but the "
            f"field has {min(layout.above, layout.below)}; make it with deeper ones."
        )


def gauge_actions(links: Field, couplings: Sequence[Coupling]) -> list[Energy]:
    """Return the gauge action of every replica of a field; 0 if all links are 1."""
    return begin_actions(links, couplings)()


def begin_actions(
    links: Field, couplings: Sequence[Coupling], use: str = ""
) -> Callable[[], list[Energy]]:
    """Begin to compute the gauge actions of `gauge_actions`."""
    begun = []
    for loops in couplings[0].action.weights:
        scratch = f"action {loops.kernel.name} {use}"
        sums = [SlabSums(slab, len(loops.kinds), 1, scratch=scratch) for slab in links.slabs]
        for slab_sums in sums:
            slab_sums.launch(loops.kernel, {"links": slab_sums.slab.buffer.address})
        begun.append((loops, sums))

    def actions() -> list[Energy]:
        parts: list[list[NDArray[np.float64]]] = [[] for _ in couplings]
        for loops, sums in begun:
            loop_traces = replica_sums(links.devices, sums, len(couplings)) / links.group.colours
            for terms, coupling, traces in zip(parts, couplings, loop_traces, strict=True):
                factors = coupling.beta * np.array(coupling.action.weights[loops])
                terms += [-factors * traces, links.lattice.sites * factors * loops.kinds]
        return [Energy.of(np.concatenate([x.reshape(-1) for x in part])) for part in parts]

    return actions


@MONOMIALS.register
class GaugeMonomial(Monomial):
    """The gauge action of one chain or of several, of any kind that declares its loops.

    That of a run also moves the links: a kick and the drift after it are one kernel. A launch moves
    all chains that do a step at the same time, each with its own coupling and its own step, so that
    every chain has the bits that it has alone.

    Parameters
    ----------
    couplings : sequence of Coupling
        The gauge action of every chain, whose kernels are the same.
    like : Field
        A field of the kind of those that move, with one replica for every chain.
    replicas : Choice, optional
        How the kernels treat replicas; by default as there are one or several.

    Raises
    ------
    UsageError
        If an action does not declare its loops, or the halos are not deep enough for it.
    """

    name = GAUGE
    summary = "gauge action, of any kind"
    chosen_by = "action"

    def __init__(
        self, couplings: Sequence[Coupling], like: Field, replicas: Choice | None = None
    ) -> None:
        super().__init__(like, GAUGE)
        for coupling in couplings:
            check_action(coupling.action, like)
        self.couplings, first = tuple(couplings), couplings[0]
        several = MANY_REPLICAS if len(couplings) > 1 else ONE_REPLICA
        self.replicas, self.halo_depth = replicas or several, first.action.halo_depth
        self._choices = first.action.choice, self.replicas
        coefficients = [coupling.coefficients(like.group) for coupling in couplings]
        self._coefficients, self._actions = coefficients[0], None
        if self.replicas == MANY_REPLICAS:
            self._actions = couplings_in_memory(like, KICK, self._choices, coefficients)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the action of every chain."""
        return gauge_actions(self.field, self.couplings)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains, as kicks of size 1."""
        each = tuple((n, KickAndDrift(1.0, 0.0)) for n in range(self.chains))
        steps = ChainSteps(0, 0, True, each)
        memory = self.in_memory(self.field, [steps])
        address = memory.addresses[steps]
        self.begin_kick(self.field, force, steps, address, self._largest)()

    def in_memory(self, like: Field, moving: Sequence[ChainSteps]) -> StepsInMemory:
        """Return the steps of chains in the memory of the device, if kernels read them there."""
        addresses: dict[ChainSteps, int | None] = dict.fromkeys(moving)
        if self.replicas == ONE_REPLICA:
            return StepsInMemory(None, addresses)
        kind: Any = KICK.part("ReplicaMove", like.slabs[0].variant(*self._choices))
        kicked = [x for x in moving if x.kicked]
        moves = [
            kind(kick=step.kick, drift=step.drift, replica=n, unused=0)
            for x in kicked
            for n, step in x.moves
        ]
        memory = in_memory(like, np.frombuffer((kind * len(moves))(*moves), np.uint8))
        place = memory.address
        for steps in kicked:
            addresses[steps] = place
            place += len(steps.moves) * ctypes.sizeof(kind)
        return StepsInMemory(memory, addresses)

    def begin_kick(
        self,
        links: Field,
        momenta: AlgebraField,
        steps: ChainSteps,
        address: int | None,
        largest: LargestValues,
    ) -> BegunKick:
        """Begin kicks of some chains whose force is wanted, and return a call that waits for it.

        There is no other kick of chains whose links are in the same field before its end.
        """
        numbers = [n for n, _ in steps.moves]
        memory = False, self._choices, f"{KICK.name} {steps.source}"
        sums = [
            SlabSums(slab, 2, 1, first(slab, len(numbers)), *memory, wide=True)
            for slab in links.slabs
        ]
        for n, slab_sums in enumerate(sums):
            arguments = self._arguments(KICK, slab_sums.slab, momenta.slabs[n], steps, address)
            addresses = {"links": slab_sums.slab.buffer.address, "largest": largest.address(n)}
            slab_sums.launch(KICK, {**arguments, **addresses})

        def wait() -> Mapping[int, Force]:
            totals = replica_sums(links.devices, sums, len(numbers))
            values = largest.by_slice().reshape(len(self.couplings), -1)
            forces = {}
            for x, n in zip(totals, numbers, strict=True):
                mean = math.sqrt(exact_sum(x[..., 1]) / links.lattice.links)
                forces[n] = Force(Energy.of(x[..., 0]), mean, float(values[n].max()))
            return forces

        return wait

    def kick_and_drift(
        self,
        source: Field,
        target: Field,
        momenta: AlgebraField,
        steps: ChainSteps,
        address: int | None,
    ) -> Iterator[Launch]:
        """Yield calls that do kicks and then drifts of some chains, without the halo exchange."""
        for slab, moved, algebra in zip(source.slabs, target.slabs, momenta.slabs, strict=True):
            arguments = slab.arguments(
                KICK_AND_DRIFT,
                first(slab, len(steps.moves)),
                *self._choices,
                source=slab.buffer.address,
                target=moved.buffer.address,
                drift=steps.moves[0][1].drift,
                **self._arguments(KICK_AND_DRIFT, slab, algebra, steps, address),
            )
            kernel = slab.kernel(KICK_AND_DRIFT, *self._choices)
            yield from kernel.launches(repeated([arguments], 1), [1])

    def _arguments(
        self, kernel: Kernel, slab: Slab, momenta: Slab, steps: ChainSteps, address: int | None
    ) -> dict[str, Any]:
        """Return the arguments that both kernels have; many chains read theirs from memory."""
        kind = kernel.part("ACTION::Coefficients", slab.variant(*self._choices))
        return {
            "momenta": momenta.buffer.address,
            "kick": steps.moves[0][1].kick,
            "action": kind(**self._coefficients),
            "moves": address,
            "actions": self._actions.address if self._actions else None,
        }


def first(slab: Slab, count: int) -> ctypes.Structure:
    """Return the work of a launch on as many lattices, which kernels map to replicas."""
    return slab.whole(some=range(count))


ADJOINT_PLAQUETTE = Kernel("adjoint_plaquette")


@MONOMIALS.register
class AdjointPlaquette(Monomial):
    """S = beta sum_p (1 - Tr_A U_p / (N^2 - 1)), where Tr_A U = |Tr U|^2 - 1.

    With the Wilson action it is the mixed action of plaquettes in the fundamental and the adjoint
    representation (G. Bhanot and M. Creutz, Phys. Rev. D 24 (1981) 3212), whose coupling beta_A is
    `beta`.
    """

    name = "adjoint-plaquette"
    summary = "plaquettes in the adjoint representation"
    qcdml: ClassVar = {"plaquetteGluonAction": {"beta": "beta"}}
    representation = "adjoint"
    options = (Option("beta", float, "Coupling β_A of adjoint plaquettes.", least=-1e3, most=1e3),)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain."""
        totals = replica_sums(self.field.devices, self._launched(), self.chains)
        return [Energy.of(self.values["beta"] * x) for x in totals]

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        self._launched(force)

    def _launched(self, force: AlgebraField | None = None) -> list[SlabSums]:
        """Return sums that have begun, and add the forces if there is a field for them."""
        sums = [SlabSums(slab, 1, 1, scratch=self.title) for slab in self.field.slabs]
        for n, slab_sums in enumerate(sums):
            values = {
                "links": slab_sums.slab.buffer.address,
                "force": force.slabs[n].buffer.address if force else None,
                "factor": self.values["beta"] if force else 0.0,
            }
            slab_sums.launch(ADJOINT_PLAQUETTE, values)
        return sums
