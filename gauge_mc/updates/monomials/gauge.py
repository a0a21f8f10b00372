"""The gauge action."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.energy import Energy, block_sums, exact_sum
from gauge_mc.updates.monomials import Force, Monomial

KICK = Kernel("kick")
KICK_AND_DRIFT = Kernel("kick_and_drift")


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
        action, layout = coupling.action, like.layouts[0]
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
        self.coupling, self.halo_depth = coupling, action.halo_depth
        self._choice = action.choice
        self._largest = LargestValues(like)

    def draw(self, links: Field, random: Random) -> None:
        """Draw nothing: the action depends on the links only."""

    def action(self, links: Field) -> Energy:
        """Return the action of a field whose halos are up to date; 0 if all links are 1."""
        beta, parts = self.coupling.beta, []
        for loops, weights in self.coupling.action.weights.items():
            factors = beta * np.array(weights)
            sums = [SlabSums(slab, len(weights), 1) for slab in links.slabs]
            for one in sums:
                one.launch(loops.kernel, {"links": one.slab.buffer.address})
            traces = block_sums(links.devices, sums) / links.group.colours
            parts += [-factors * traces, links.lattice.sites * factors * loops.kinds]
        return Energy.of(np.concatenate([one.reshape(-1) for one in parts]))

    def kick(self, links: Field, momenta: AlgebraField, size: float) -> Force:
        """Change the momenta; see `Monomial.kick`."""
        self._largest.clear()
        sums = [SlabSums(slab, 2, 1, choices=(self._choice,)) for slab in links.slabs]
        for n, one in enumerate(sums):
            one.launch(
                KICK,
                {
                    "links": one.slab.buffer.address,
                    "momenta": momenta.slabs[n].buffer.address,
                    "kick": size,
                    "largest": self._largest.address(n),
                    "action": self._coefficients(KICK, one.slab),
                },
            )
        kinetic, squares = np.moveaxis(block_sums(links.devices, sums), -1, 0)
        mean = math.sqrt(exact_sum(squares) / links.lattice.links)
        return Force(Energy.of(kinetic), mean, float(self._largest.by_slice().max()))

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
                source=slab.buffer.address,
                target=other.buffer.address,
                momenta=own.buffer.address,
                kick=kick,
                drift=drift,
                action=self._coefficients(KICK_AND_DRIFT, slab),
            )
            kernel = slab.kernel(KICK_AND_DRIFT, self._choice)
            yield from kernel.launches(repeated([arguments], 1), [1])

    def _coefficients(self, kernel: Kernel, slab: Slab) -> ctypes.Structure:
        kind = kernel.part("ACTION::Coefficients", slab.variant(self._choice))
        return kind(**self.coupling.coefficients(slab.group))
