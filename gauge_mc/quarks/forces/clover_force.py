"""The force of actions that depend on the clovers of all sites."""

from __future__ import annotations

from collections.abc import Sequence

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.quarks.vectors.storage import STORAGES, StoredSlab, empty_slabs

CLOVER_PLANES = Kernel("clover_planes")
CLOVER_FORCE = Kernel("clover_force")

EXACT = STORAGES["double"]
"""Storage of the derivative."""

PLANES = 6
"""Number of planes of a site."""


class CloverForce:
    """Memory for the derivative of an action with the clovers of all sites, and their force.

    Parameters
    ----------
    field : Field
        The links, in double precision.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        layouts, colours = EXACT.layouts(field), field.group.colours
        reals = (colours**2 + 1) // 2 * 2
        self._planes = empty_slabs(field, layouts, PLANES * EXACT.bytes(reals))
        self._halo = None
        if len(layouts) > 1:
            self._halo = HaloExchange(field.devices, self._planes, transfers_of(layouts, 1))

    @classmethod
    def of(cls, field: Field) -> CloverForce:
        """Return the memory that all operators on a field of links share."""
        if (cls,) not in field.prepared:
            field.prepared[cls,] = cls(field)
        found = field.prepared[cls,]
        assert isinstance(found, cls)
        return found

    def add(self, force: AlgebraField, derivative: Sequence[StoredSlab], factor: float) -> None:
        """Add the force of an action, given its derivative with the clover term.

        Parameters
        ----------
        force : AlgebraField
            The force F is added to it; see `gauge_mc.updates.monomials.Monomial.kick`.
        derivative : sequence of StoredSlab
            The blocks L of `gauge_mc.quarks.forces.derivative.DiagonalDerivative`.
        factor : float
            kappa c_SW.
        """
        for slab, blocks in zip(self._planes, derivative, strict=True):
            slab.launch(
                CLOVER_PLANES,
                slab.whole(),
                EXACT.choice,
                derivative=blocks.buffer.address,
                planes=slab.buffer.address,
                factor=factor,
            )
        if self._halo:
            self._halo.post(SliceRange(0, self._planes[0].slice_bytes))
            self._halo.wait()
        own = zip(self._planes, self._field.slabs, force.slabs, strict=True)
        for slab, links, algebra in own:
            slab.launch(
                CLOVER_FORCE,
                slab.whole(),
                EXACT.choice,
                links=links.buffer.address,
                planes=slab.buffer.address,
                force=algebra.buffer.address,
            )
