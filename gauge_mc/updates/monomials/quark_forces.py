"""The force of quarks on the momenta."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import zero
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LargestValues
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.vectors.algebra import MULTIPLY_SPINORS, PRODUCTS
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy, block_sums, exact_sum
from gauge_mc.updates.monomials import Force, Monomial

ADD_FORCE = Kernel("add_force")


class ForceField:
    """Memory for a force on the links, which is 0 between kicks.

    Parameters
    ----------
    like : Field
        The links.
    """

    def __init__(self, like: Field) -> None:
        self.force = AlgebraField.like(like)
        self._lattice = like.lattice
        self._largest = LargestValues(like)

    @classmethod
    def of(cls, field: Field) -> ForceField:
        """Return the memory that all monomials on a field of links share."""
        if (cls,) not in field.prepared:
            field.prepared[cls,] = cls(field)
        found = field.prepared[cls,]
        assert isinstance(found, cls)
        return found

    def kick(self, momenta: AlgebraField, size: float) -> Force:
        """Change the momenta, P <- P + size F, clear F, and return what it was like."""
        self._largest.clear()
        sums = [SlabSums(slab, 2, 1, wide=True) for slab in momenta.slabs]
        for n, one in enumerate(sums):
            one.launch(
                ADD_FORCE,
                {
                    "momenta": one.slab.buffer.address,
                    "force": self.force.slabs[n].buffer.address,
                    "size": size,
                    "largest": self._largest.address(n),
                },
            )
        kinetic, squares = np.moveaxis(block_sums(momenta.devices, sums), -1, 0)
        mean = math.sqrt(exact_sum(squares) / self._lattice.links)
        return Force(Energy.of(kinetic), mean, float(self._largest.by_slice().max()))


class QuarkMonomial(Monomial):
    """A monomial that adds its force to a field, from solutions on the links of its operators.

    Methods do not look at the links that they are given, but at those of `field`, which
    `gauge_mc.updates.quark_links.QuarkLinks` updates.

    Parameters
    ----------
    field : Field
        The links of the operators.
    name : str
        Name of the monomial, which no other one of the run has.
    """

    def __init__(self, field: Field, name: str) -> None:
        self.field, self.name = field, name
        self._iterations = 0

    @abstractmethod
    def add_force(self, force: AlgebraField) -> None:
        """Add the force F of the monomial."""

    def kick(self, links: Field, momenta: AlgebraField, size: float) -> Force:
        """Change the momenta; see `Monomial.kick`."""
        memory = ForceField.of(self.field)
        self.add_force(memory.force)
        return memory.kick(momenta, size)

    @property
    def iterations(self) -> int:
        """Number of iterations of solvers since this was last asked."""
        found, self._iterations = self._iterations, 0
        return found


def local_norm(vector: SpinorField) -> Energy:
    """Return the sum of |v|^2 over the even sites, as the contributions of blocks of them."""
    (found,) = local_norms(vector)
    return found


def local_norms(vectors: SpinorField) -> list[Energy]:
    """Return the sum of |v|^2 over the even sites of every replica; see `local_norm`."""
    sums = []
    for slab in vectors.slabs:
        choices, count = (vectors.storage.choice,), vectors.per_site
        one = SlabSums(slab, PRODUCTS, count, slab.whole(EVEN), choices=choices, wide=True)
        own = [vectors.by_vector(slab, n) for n in range(count)]
        one.launch(MULTIPLY_SPINORS, *({"w": zero(type(this)), "r": this} for this in own))
        sums.append(one.by_block())
    found = slices_of_all_slabs(vectors.field.devices, sums)[..., PRODUCTS - 1]
    each = found.reshape(len(found), vectors.replicas, -1)
    return [Energy.of(each[:, n]) for n in range(vectors.replicas)]
