"""The derivative of an action with the part of a Dirac operator that is diagonal in the sites."""

from __future__ import annotations

from collections.abc import Sequence

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums
from gauge_mc.quarks.forces.force import MOST_PAIRS
from gauge_mc.quarks.matrices.hermitian import EXACT, HermitianPart, Slabs, empty_blocks
from gauge_mc.quarks.matrices.linear import ODD
from gauge_mc.quarks.vectors.spinors import SpinorField

PAIR_DERIVATIVE = Kernel("pair_derivative")
DETERMINANT_DERIVATIVE = Kernel("determinant_derivative")
LOG_DETERMINANT = Kernel("log_determinant")


class DiagonalDerivative:
    """Hermitian blocks L of all sites, with dS = Re Tr (L dH) for the hermitian part H of A.

    Every computation replaces L by that of another action.

    Parameters
    ----------
    field : Field
        The links, in double precision.

    Attributes
    ----------
    blocks : tuple of StoredSlab
        L on the devices of this process.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.blocks: Slabs = empty_blocks(field, EXACT)

    @classmethod
    def of(cls, field: Field) -> DiagonalDerivative:
        """Return the memory that all operators on a field of links share."""
        if (cls,) not in field.prepared:
            field.prepared[cls,] = cls(field)
        found = field.prepared[cls,]
        assert isinstance(found, cls)
        return found

    def of_pairs(self, x: SpinorField, y: SpinorField, weights: Sequence[float]) -> Slabs:
        """Return L for the action -sum_i weight_i 2 Re X_i^dagger A Y_i.

        Parameters
        ----------
        x, y : SpinorField
            The vectors X_i and Y_i on all sites, in double precision, as many of each.
        weights : sequence of float
            The weight of every pair.
        """
        for first in range(0, x.per_site, MOST_PAIRS):
            own = list(weights[first : min(first + MOST_PAIRS, x.per_site)])
            for slab, one, other in zip(self.blocks, x.slabs, y.slabs, strict=True):
                slab.launch(
                    PAIR_DERIVATIVE,
                    slab.whole(),
                    EXACT.choice,
                    x=x.structure(one, first),
                    y=y.structure(other, first),
                    derivative=slab.buffer.address,
                    weights=(*own, *[0.0] * (MOST_PAIRS - len(own))),
                    pairs=len(own),
                    first=first == 0,
                )
        return self.blocks

    def of_determinant(self, part: HermitianPart, weight: float) -> Slabs:
        """Return L for the action (weight / 2) sum over the odd sites of ln det (H^2 + m^2)."""
        for slab, blocks, inverse in zip(self.blocks, *part.stored(EXACT), strict=True):
            slab.launch(
                DETERMINANT_DERIVATIVE,
                slab.whole(),
                EXACT.choice,
                blocks=blocks.buffer.address,
                inverse=inverse.buffer.address,
                derivative=slab.buffer.address,
                mass=part.mass,
                weight=weight,
            )
        return self.blocks


def log_determinants(part: HermitianPart) -> list[SlabSums]:
    """Return the sums over the odd sites of ln det (H^2 + m^2), one for each slab."""
    sums = []
    for slab in part.stored(EXACT)[0]:
        one = SlabSums(slab, 1, 1, slab.whole(ODD), choices=(EXACT.choice,))
        one.launch(LOG_DETERMINANT, {"blocks": slab.buffer.address, "mass": part.mass})
        sums.append(one)
    return sums
