"""The gauge action."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.energy import Energy, block_sums, exact_sum, replica_sums
from gauge_mc.updates.monomials import Force, Monomial
from gauge_mc.updates.replicas import ONE_REPLICA

KICK = Kernel("kick")
KICK_AND_DRIFT = Kernel("kick_and_drift")

ALONE = {"moves": None, "actions": None}
"""Arguments of both kernels for a field of one replica."""


def check_action(action: Action, like: Field) -> None:
    """Check that trajectories are possible with an action.

    Raises
    ------
    UsageError
        If the action does not declare its loops, or the halos are not deep enough for it.
    """
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
    """Return the gauge action of every replica of a field; 0 if all links are 1.

    Parameters
    ----------
    links : Field
        A field whose halos are up to date.
    couplings : sequence of Coupling
        The couplings of every replica, of actions with the same kinds of loops.
    """
    return begin_actions(links, couplings)()


def begin_actions(
    links: Field, couplings: Sequence[Coupling], use: str = ""
) -> Callable[[], list[Energy]]:
    """Begin to compute the gauge actions of `gauge_actions`.

    Parameters
    ----------
    links : Field
        See `gauge_actions`.
    couplings : sequence of Coupling
        See `gauge_actions`.
    use : str
        Name that tells actions apart which are computed at the same time.

    Returns
    -------
    callable
        Waits for the actions, and returns them. It must be called before actions of the same `use`
        begin again on the device.
    """
    begun = []
    for loops in couplings[0].action.weights:
        scratch = f"action {loops.kernel.name} {use}"
        sums = [SlabSums(slab, len(loops.kinds), 1, scratch=scratch) for slab in links.slabs]
        for one in sums:
            one.launch(loops.kernel, {"links": one.slab.buffer.address})
        begun.append((loops, sums))

    def actions() -> list[Energy]:
        parts: list[list[NDArray[np.float64]]] = [[] for _ in couplings]
        for loops, sums in begun:
            found = replica_sums(links.devices, sums, len(couplings)) / links.group.colours
            for own, coupling, traces in zip(parts, couplings, found, strict=True):
                factors = coupling.beta * np.array(coupling.action.weights[loops])
                own += [-factors * traces, links.lattice.sites * factors * loops.kinds]
        return [Energy.of(np.concatenate([one.reshape(-1) for one in own])) for own in parts]

    return actions


def gauge_force(sums: NDArray[np.float64], largest: NDArray[np.float64], lattice: Lattice) -> Force:
    """Return what the kernel `KICK` has found.

    Parameters
    ----------
    sums : ndarray, shape (slices, blocks, 2)
        Its sums over blocks of sites.
    largest : ndarray, shape (slices,)
        The largest |F| of every time slice.
    lattice : Lattice
        The lattice.
    """
    mean = math.sqrt(exact_sum(sums[..., 1]) / lattice.links)
    return Force(Energy.of(sums[..., 0]), mean, float(largest.max()))


class GaugeMonomial(Monomial):
    """A gauge action, of any kind that declares its loops.

    Parameters
    ----------
    coupling : Coupling
        The gauge action with its couplings.
    like : Field
        A field of the same kind as those to which the monomial is applied.

    Raises
    ------
    UsageError
        If the action does not declare its loops, or the halos are not deep enough for it.
    """

    name = "gauge"

    def __init__(self, coupling: Coupling, like: Field) -> None:
        action = coupling.action
        check_action(action, like)
        self.coupling, self.halo_depth = coupling, action.halo_depth
        self._choice = action.choice
        self._largest = LargestValues(like)

    def draw(self, links: Field, random: Random) -> None:
        """Draw nothing: the action depends on the links only."""

    def action(self, links: Field) -> Energy:
        """Return the action of a field whose halos are up to date; 0 if all links are 1."""
        return self.begin_action(links)()

    def begin_action(self, links: Field) -> Callable[[], Energy]:
        """Begin to compute the action, and return a call that waits for it; see `begin_actions`."""
        actions = begin_actions(links, [self.coupling])
        return lambda: actions()[0]

    def kick(self, links: Field, momenta: AlgebraField, size: float) -> Force:
        """Change the momenta; see `Monomial.kick`."""
        return self.begin_kick(links, momenta, size)()

    def begin_kick(self, links: Field, momenta: AlgebraField, size: float) -> Callable[[], Force]:
        """Begin to change the momenta, and return a call that waits for the force.

        It must be called before the next kick of a gauge action on the device.
        """
        self._largest.clear()
        choices = (self._choice, ONE_REPLICA)
        sums = [
            SlabSums(slab, 2, 1, choices=choices, scratch=KICK.name, wide=True)
            for slab in links.slabs
        ]
        for n, one in enumerate(sums):
            one.launch(
                KICK,
                {
                    "links": one.slab.buffer.address,
                    "momenta": momenta.slabs[n].buffer.address,
                    "kick": size,
                    "largest": self._largest.address(n),
                    "action": self._coefficients(KICK, one.slab),
                    **ALONE,
                },
            )

        def force() -> Force:
            found, largest = block_sums(links.devices, sums), self._largest.by_slice()
            return gauge_force(found, largest, links.lattice)

        return force

    def kick_and_drift(
        self, source: Field, target: Field, momenta: AlgebraField, kick: float, drift: float
    ) -> Iterator[Launch]:
        """Yield calls that do a kick and then a drift, apart from the halo exchange.

        Parameters
        ----------
        source, target : Field
            The links before and after the drift, which are different fields.
        momenta : AlgebraField
            The momenta, which the kick changes.
        kick, drift : float
            Sizes of the kick and of the drift.
        """
        for slab, other, own in zip(source.slabs, target.slabs, momenta.slabs, strict=True):
            arguments = slab.arguments(
                KICK_AND_DRIFT,
                slab.whole(),
                self._choice,
                ONE_REPLICA,
                source=slab.buffer.address,
                target=other.buffer.address,
                momenta=own.buffer.address,
                kick=kick,
                drift=drift,
                action=self._coefficients(KICK_AND_DRIFT, slab),
                **ALONE,
            )
            kernel = slab.kernel(KICK_AND_DRIFT, self._choice, ONE_REPLICA)
            yield from kernel.launches(repeated([arguments], 1), [1])

    def _coefficients(self, kernel: Kernel, slab: Slab) -> ctypes.Structure:
        kind = kernel.part("ACTION::Coefficients", slab.variant(self._choice, ONE_REPLICA))
        return kind(**self.coupling.coefficients(slab.group))
