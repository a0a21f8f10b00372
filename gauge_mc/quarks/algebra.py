"""Linear combinations and scalar products of spinor fields."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.fields.sums import SlabSums, add_slices
from gauge_mc.quarks.spinors import SpinorField
from gauge_mc.quarks.storage import StoredSlab

ADVANCE_SPINORS = Kernel("advance_spinors")
COMBINE_SPINORS = Kernel("combine_spinors")
MULTIPLY_SPINORS = Kernel("multiply_spinors")

PRODUCTS = constants(source_folder() / "dirac" / "products.h")["PRODUCTS"]
"""Number of sums: the real and imaginary part of <w, r>, and <r, r>."""

Factors = NDArray[np.complex128] | NDArray[np.float64] | complex
"""A factor for every vector, or the same for all."""


@dataclass(frozen=True)
class Products:
    """Scalar products of every vector, summed in an order that depends on the lattice alone.

    Attributes
    ----------
    mixed : ndarray of complex128, shape (count,)
        <w, r>, the sum of w^* r.
    norm2 : ndarray of float64, shape (count,)
        <r, r>.
    """

    mixed: NDArray[np.complex128]
    norm2: NDArray[np.float64]


class _Prepared:
    """The launches of a kernel for every slab and vector of some spinor fields of one kind.

    Parameters
    ----------
    kernel : Kernel
    fields : mapping of str to SpinorField or None
        Arguments of the kernel.
    factors : tuple of str
        Names of the arguments that are complex factors.
    parity : int, optional
        The sites; by default those of the first field, which has only one parity.
    """

    def __init__(
        self,
        kernel: Kernel,
        fields: dict[str, SpinorField | None],
        factors: tuple[str, ...],
        parity: int | None,
    ) -> None:
        self._fields, self._factors = fields, factors  # the fields own the memory
        first = next(one for one in fields.values() if one)
        self._like, self._count = first, first.count
        self._steps: list[list[Any]] = []
        self._launches: list[list[Launch]] = []
        self._sums: list[SlabSums] = []
        for n, slab in enumerate(first.slabs):
            over = slab.whole(first.parities[0] if parity is None else parity)
            sums = None
            if kernel.sums:
                sums = SlabSums(slab, PRODUCTS, self._count, over, own_memory=True)
                self._sums.append(sums)
            self._prepare(kernel, slab, n, over, sums)

    def _prepare(
        self,
        kernel: Kernel,
        slab: StoredSlab,
        n: int,
        over: ctypes.Structure,
        sums: SlabSums | None,
    ) -> None:
        choice = self._like.storage.choice
        kind = type(self._like.structure(slab))
        at = {
            name: one.structure(one.slabs[n]) if one else kind()
            for name, one in self._fields.items()
        }
        zeros = {name: (0.0, 0.0) for name in self._factors}
        steps, launches = [], []
        for vector in range(self._count):
            row = {"sums": sums.partial_sums(vector)} if sums else {}
            arguments = slab.arguments(kernel, over, choice, vector=vector, **at, **zeros, **row)
            steps.append(repeated([arguments], 1))
            launches.append(slab.kernel(kernel, choice).prepared(steps[-1]))
        self._steps.append(steps)
        self._launches.append(launches)

    def launch(self, **factors: Factors) -> None:
        """Launch the kernel for all vectors."""
        for name, one in factors.items():
            given = one.tolist() if isinstance(one, np.ndarray) else [one] * self._count
            for steps in self._steps:
                for step, factor in zip(steps, given, strict=True):
                    setattr(step[0], name, (factor.real, factor.imag))
        for launches in self._launches:
            for launch in launches:
                launch()

    def fetch(self) -> Products:
        """Wait for the sums of the last launch."""
        local = [one.by_slice(self._count) for one in self._sums]
        sums = add_slices(self._like.field.devices, local)
        return Products(sums[:, 0] + 1j * sums[:, 1], sums[:, 2])


class Advance:
    """x += a p + b r and r += c t, with scalar products of the new r.

    Parameters
    ----------
    r, t : SpinorField
    x, p : SpinorField, optional
        If they are missing, only r changes.
    w : SpinorField, optional
        For <w, r>.
    parity : int, optional
        The sites; by default those of the first field, which has only one parity.
    """

    def __init__(
        self,
        r: SpinorField,
        t: SpinorField,
        x: SpinorField | None = None,
        p: SpinorField | None = None,
        w: SpinorField | None = None,
        parity: int | None = None,
    ) -> None:
        fields = {"r": r, "t": t, "x": x, "p": p, "w": w}
        self._prepared = _Prepared(ADVANCE_SPINORS, fields, ("a", "b", "c"), parity)

    def __call__(self, c: Factors, a: Factors = 0, b: Factors = 0) -> None:
        """Carry out the step; the factors are those of every vector."""
        self._prepared.launch(a=a, b=b, c=c)

    def products(self) -> Products:
        """Wait for the scalar products of the last step."""
        return self._prepared.fetch()


class Combine:
    """p = a p + b r + c v; a field with the factor 0 is not read.

    Parameters
    ----------
    p, r : SpinorField
    v : SpinorField, optional
    parity : int, optional
        See `Advance`.
    """

    def __init__(
        self,
        p: SpinorField,
        r: SpinorField,
        v: SpinorField | None = None,
        parity: int | None = None,
    ) -> None:
        fields: dict[str, SpinorField | None] = {"p": p, "r": r, "v": v}
        self._prepared = _Prepared(COMBINE_SPINORS, fields, ("a", "b", "c"), parity)

    def __call__(self, a: Factors, b: Factors, c: Factors = 0) -> None:
        """Carry out the combination; the factors are those of every vector."""
        self._prepared.launch(a=a, b=b, c=c)


class Multiply:
    """The scalar products <w, r> and <r, r>.

    Parameters
    ----------
    r : SpinorField
    w : SpinorField, optional
    parity : int, optional
        See `Advance`.
    """

    def __init__(
        self, r: SpinorField, w: SpinorField | None = None, parity: int | None = None
    ) -> None:
        self._prepared = _Prepared(MULTIPLY_SPINORS, {"r": r, "w": w}, (), parity)

    def __call__(self) -> Products:
        """Compute the products."""
        self._prepared.launch()
        return self._prepared.fetch()
