"""Several orthonormal vectors: scalar products with a vector, and linear combinations."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.quarks.vectors.algebra import HEADER, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.storage import StoredSlab

COMBINE_BASIS = Kernel("combine_basis")

MOST_COMBINED = HEADER["MOST_COMBINED"]
"""Number of vectors of a basis that a launch can combine."""

Numbers = NDArray[np.complex128]


@dataclass(frozen=True, repr=False)
class VectorView(SpinorField):
    """Some consecutive vectors of a field, or one vector of it that stands for all of a count.

    Use it for combinations and products. It has no halos of its own.
    """

    whole: SpinorField | None = None
    """The field."""
    first: int = 0
    """The first vector of the field."""
    repeated: bool = False
    """Whether that vector stands for all."""

    @classmethod
    def of(
        cls, whole: SpinorField, first: int = 0, count: int = 1, repeated: bool = False
    ) -> VectorView:
        """Return a view of the vectors of a field."""
        return cls(
            whole.field,
            whole.storage,
            whole.parities,
            count,
            whole.slabs,
            whole.layouts,
            whole.fifth,
            whole,
            first,
            repeated,
        )

    def structure(self, slab: StoredSlab, first: int = 0) -> ctypes.Structure:
        """Return the structure ``Spinors``; see `SpinorField.structure`."""
        assert self.whole is not None
        made = self.whole.structure(slab, self.first + (0 if self.repeated else first))
        if self.repeated:
            made.vector = 0
        return made


class BasisProducts:
    """The scalar products <v_j, w> of some vectors v_j of a basis and one vector w.

    Parameters
    ----------
    basis : SpinorField
        The vectors v_j; the first `count` are used.
    w : SpinorField
        The field of the vector w, on the same sites.
    number : int
        Which of its vectors.
    count : int
        How many vectors v_j.
    """

    def __init__(self, basis: SpinorField, w: SpinorField, number: int, count: int) -> None:
        one = VectorView.of(w, number, count, repeated=True)
        some = VectorView.of(basis, 0, count)
        self._products = Multiply(one, some)
        self.norm2 = 0.0
        """The scalar product <w, w> of the last call."""

    def __call__(self) -> Numbers:
        """Return the products, of the shape (count,)."""
        found = self._products()
        self.norm2 = float(found.norm2[0])
        return found.mixed


class CombineBasis:
    """w = a w + sum over j of c_j v_j, for one vector w and some vectors v_j of a basis.

    Parameters
    ----------
    w : SpinorField
        The field of the vector w.
    number : int
        Which of its vectors.
    basis : SpinorField
        The vectors v_j, on the same sites.
    """

    def __init__(self, w: SpinorField, number: int, basis: SpinorField) -> None:
        self._fields = (w, basis)  # which own the memory
        self._groups: list[list[tuple[ctypes.Structure, Launch]]] = []
        for first in range(0, basis.count, MOST_COMBINED):
            group = []
            for n, slab in enumerate(w.slabs):
                arguments = slab.arguments(
                    COMBINE_BASIS,
                    slab.whole(w.launched),
                    w.storage.choice,
                    r=w.structure(slab, number),
                    v=basis.structure(basis.slabs[n], first),
                    c=(0.0,) * 2 * MOST_COMBINED,
                    a=1.0,
                    vectors=0,
                )
                step = repeated([arguments], 1)
                kernel = slab.kernel(COMBINE_BASIS, w.storage.choice)
                group.append((step[0], kernel.prepared(step)))
            self._groups.append(group)

    def __call__(self, c: Numbers, a: float = 1.0) -> None:
        """Carry out the combination with the first len(c) vectors of the basis."""
        parts = [c[n : n + MOST_COMBINED] for n in range(0, len(c), MOST_COMBINED)]
        for part, group in zip(parts, self._groups, strict=False):
            for arguments, launch in group:
                values = np.frombuffer(arguments.c, np.complex128)
                values[: len(part)] = part
                arguments.vectors, arguments.a = len(part), a
                launch()
            a = 1.0
        if not parts and a != 1.0:
            raise ValueError("There are no vectors to combine.")


class Projection:
    """The part of vectors outside of a subspace, and inside of it.

    Parameters
    ----------
    basis : SpinorField
        Orthonormal vectors.
    w : SpinorField
        The vectors that are projected.
    """

    def __init__(self, basis: SpinorField, w: SpinorField) -> None:
        count, vectors = basis.count, range(w.count)
        self._products = [BasisProducts(basis, w, n, count) for n in vectors]
        self._combine = [CombineBasis(w, n, basis) for n in vectors]

    def remove(self) -> Numbers:
        """Subtract the parts inside of the subspace, and return their coefficients.

        Returns
        -------
        ndarray, shape (count, basis), complex128
            <v_j, w_n> before the subtraction.
        """
        found = np.array([one() for one in self._products])
        for one, c in zip(self._combine, found, strict=True):
            one(-c)
        return found

    def add(self, coefficients: Numbers) -> None:
        """Add combinations of the basis to the vectors, with coefficients (count, basis)."""
        for one, c in zip(self._combine, coefficients, strict=True):
            one(c)
