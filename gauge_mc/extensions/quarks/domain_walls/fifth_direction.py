"""Matrices that act on the fifth direction of spinors psi_s(x), and on chirality.

They are ratios of two bidiagonal matrices with a corner, which a recursion applies in O(L)
operations, where L is the extent of the fifth direction.
"""

from __future__ import annotations

import ctypes
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Launch
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import REAL_BYTES, Choice, Kernel
from gauge_mc.devices.source import source_file, structure, zero
from gauge_mc.extensions.quarks.hopping import PreparedHop
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, Storage, zeroth
from gauge_mc.extensions.quarks.vectors.transport import shares_of
from gauge_mc.fields.field import Field


class WallOperator(DiracOperator):
    """An operator D5 with coefficients b_s and c_s along a fifth direction.

    Attributes
    ----------
    fifth : int
        The extent of the fifth direction.
    weights, b, c : ndarray of float64, shape (fifth,)
        The weights w_s, and the coefficients with them.
    """

    fifth: int
    weights: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]

    @classmethod
    @abstractmethod
    def has_midpoint(cls, **parameters: Any) -> bool:
        """Return whether there are a midpoint and conserved currents, given the parameters."""

    @abstractmethod
    def to_solver(self, target: SpinorField, right: SpinorField) -> None:
        """Compute the right-hand sides for solvers from those of D5 x = b."""

    @abstractmethod
    def from_solver(self, target: SpinorField, solution: SpinorField) -> None:
        """Compute the solutions of D5 x = b from those that solvers find."""

    @abstractmethod
    def hopping_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        addend: SpinorField | None = None,
    ) -> PreparedHop:
        """Return a call that computes D psi, or u + factor D psi, on one parity, for every s.

        Parameters
        ----------
        target, source : SpinorField
            The result, and the vectors psi.
        parity : int
            Parity of the sites of the result.
        addend : SpinorField, optional
            The vectors u.
        """


FIFTH_DIRECTION = Kernel("fifth_direction")

FIFTH = source_file("dirac/fifth.h")
"""The header that declares the structure ``Fifth``."""

Array = NDArray[np.float64]

UP, DOWN = 0, 1
"""Chirality of the upper and of the lower two components of a spinor."""

CHIRALITIES = 2
"""Number of chiralities."""

REALS = 4
"""Number of reals of a colour and a chirality, which a thread treats together."""

COLUMN_BYTES = 512
"""Bytes of such numbers in all slices that a thread of a GPU keeps in registers, at most."""

BOUNDS = ((256, (256, 2)), (COLUMN_BYTES, (128, 2)))
"""Threads per block and minimum number of resident blocks per multiprocessor, by these bytes."""


@cache
def column_of(extent: int, number_bytes: int) -> Choice:
    """Return the choice of a kernel that keeps numbers of all slices of a site in registers."""
    if not extent:
        return Choice.of("column", "", "dirac/column.h", "0")
    size = REALS * extent * number_bytes
    bounds = next(bounds for most, bounds in BOUNDS if size <= most)
    choice = Choice.of("column", f"{extent} slices", "dirac/column.h", str(extent))
    return replace(choice, launch_bounds=bounds)


def along_of(extent: int) -> Choice:
    """Return the choice of a hop with a product along the fifth direction after it."""
    name = f"along {extent} slices" if extent else "along"
    return Choice.of("reflection", name, "dirac/along_fifth.h", "AlongFifth", COLUMN=extent)


def kept_extent(field: Field, storage: Storage, extent: int | None, together: bool = False) -> int:
    """Return the extent of the fifth direction if threads keep numbers of all slices, else 0."""
    extent, size = extent or 1, REAL_BYTES[storage.arithmetic]
    fits = REALS * extent * size <= COLUMN_BYTES and (together or not storage.norm_bytes)
    return extent if fits and not field.devices.devices[0].in_host_memory else 0


@dataclass(frozen=True)
class Bidiagonal:
    """A matrix with two elements in a row, the second one next to the diagonal."""

    here: Array
    """The diagonal, for both chiralities, of shape (2, L)."""
    there: Array
    """The coefficients of the neighbours, which `FifthMatrix` defines, by row, of shape (2, L)."""

    @classmethod
    def of(
        cls, diagonal: Sequence[float] | Array, offdiagonal: Sequence[float] | Array
    ) -> Bidiagonal:
        """Return the matrix with the same coefficients, shape (L,), for both chiralities."""
        return cls(*(np.array([x, x], np.float64) for x in (diagonal, offdiagonal)))

    @classmethod
    def diagonal(cls, coefficients: Sequence[float] | Array) -> Bidiagonal:
        """Return a matrix that is diagonal."""
        return cls.of(coefficients, np.zeros(len(coefficients)))


@dataclass(frozen=True)
class FifthMatrix:
    """N Q^-1, where N and Q are bidiagonal with a corner.

    For the upper components (Q z)_s = here_s z_s + there_s z_{s-1} with z_{-1} = -m z_{L-1}, and
    for the lower ones z_{s+1} instead of z_{s-1}, with z_L = -m z_0. The same holds for N.
    """

    numerator: Bidiagonal
    """N."""
    denominator: Bidiagonal
    """Q."""
    mass: float
    """The number m."""
    exchanged: bool = False
    """Whether the two directions are exchanged."""

    @property
    def inverse(self) -> FifthMatrix:
        """The inverse, Q N^-1."""
        return replace(self, numerator=self.denominator, denominator=self.numerator)

    def with_directions_exchanged(self) -> FifthMatrix:
        """Return the matrix that acts on each chirality as this one does on the other."""
        parts = self.numerator, self.denominator
        n, q = (Bidiagonal(part.here[::-1], part.there[::-1]) for part in parts)
        return FifthMatrix(n, q, self.mass, not self.exchanged)

    @property
    def coefficients(self) -> Array:
        """Numbers [chirality][s][4] for the kernel: 1 / q, -q' / q, n and n'."""
        n, q = self.numerator, self.denominator
        return np.stack([1 / q.here, -q.there / q.here, n.here, n.there], axis=-1)

    @property
    def elements(self) -> Array:
        """The elements of the matrices on the upper and the lower components, shape (2, L, L)."""
        rows = self.coefficients
        matrices = np.zeros((*rows.shape[:2], rows.shape[1]))
        for up_or_down, (factors, corner) in enumerate(zip(rows, self.corner, strict=True)):
            unit = np.eye(len(factors))
            ascending = (up_or_down == UP) != self.exchanged
            order = range(len(factors)) if ascending else range(len(factors) - 1, -1, -1)
            z = np.zeros(len(factors))
            for s in order:
                z = factors[s, 0] * unit[s] + factors[s, 1] * z
            z *= corner
            for s in order:
                before, z = z, factors[s, 0] * unit[s] + factors[s, 1] * z
                matrices[up_or_down, s] = factors[s, 2] * z + factors[s, 3] * before
        return matrices

    @property
    def norm(self) -> float:
        """An upper bound of the norm: the root of the largest sum of a row times that of a column.

        It has the same bits on all machines, unlike singular values.
        """

        def largest_sum(lines: Array) -> float:
            return max(math.fsum(line) for line in lines.tolist())

        return math.sqrt(max(largest_sum(x) * largest_sum(x.T) for x in np.abs(self.elements)))

    @property
    def corner(self) -> tuple[float, float]:
        """The factor from the last z, found with z_{-1} = 0, to z_{-1}, for each chirality.

        It is -m / (1 + m R), since z_{L-1} has the part R z_{-1}, with the product R of all -q' /
        q. It is 0 if z_{-1} does not matter.
        """
        ratios = -self.denominator.there / self.denominator.here
        matters = (self.denominator.there != 0) | (self.numerator.there != 0)
        up, down = (
            -self.mass / (1 + self.mass * math.prod(row)) if any(x) else 0.0
            for row, x in zip(ratios.tolist(), matters.tolist(), strict=True)
        )
        return up, down


def adjoint(matrix: Bidiagonal, mass: float) -> FifthMatrix:
    """Return the adjoint of a bidiagonal matrix with a corner, which is another one."""
    diagonal = matrix.here
    offdiagonal = np.stack([np.roll(matrix.there[UP], -1), np.roll(matrix.there[DOWN], 1)])
    unit = Bidiagonal.diagonal(np.ones(diagonal.shape[1]))
    return FifthMatrix(Bidiagonal(diagonal, offdiagonal), unit, mass, exchanged=True)


class FifthProduct:
    """A matrix that acts on the fifth direction, in the memory of devices.

    Parameters
    ----------
    matrix : FifthMatrix
        The matrix.
    """

    def __init__(self, matrix: FifthMatrix) -> None:
        self.matrix = matrix
        self._buffers: dict[Any, Buffer] = {}

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parities: Sequence[int],
        addend: SpinorField | None = None,
        some: range | None = None,
    ) -> PreparedProduct:
        """Return a call that computes u + factor N Q^-1 psi on some parities, given the factor."""
        if target is source or (addend is target and source.storage.norm_bytes):
            raise ValueError("The result of a product must not take the place of its source.")
        return PreparedProduct(self, target, source, parities, addend, some)

    def structure(
        self,
        slab: int,
        target: SpinorField,
        source: SpinorField,
        addend: SpinorField | None,
        some: range | None = None,
    ) -> ctypes.Structure:
        """Return the structure ``Fifth`` of a product on a slab of this process, with factor 1."""
        stored, first = source.slabs[slab], zeroth(source, some)
        psi = source.structure(stored, first)
        product: ctypes.Structure = structure("Fifth", (FIFTH,))(
            source=psi,
            target=target.structure(target.slabs[slab], first),
            other=addend.structure(addend.slabs[slab], first) if addend else zero(type(psi)),
            coefficients=self.address(stored.device, stored.layout.real),
            corner=self.matrix.corner,
            factor=1.0,
            extent=source.fifth,
            vectors=source.per_site,
            reversed=self.matrix.exchanged,
        )
        return product

    def address(self, device: Any, real: np.dtype[Any]) -> int:
        """Return the address of the coefficients, as reals of a type, in the memory of a device."""
        key = device, real
        if key not in self._buffers:
            values = np.ascontiguousarray(self.matrix.coefficients, real)
            self._buffers[key] = device.allocate(values.nbytes)
            device.write(self._buffers[key], 0, values)
        return self._buffers[key].address


class PreparedProduct:
    """The launches of a product on all slabs of this process, for repeated use.

    Parameters
    ----------
    product, target, source, parities, addend, some
        See `FifthProduct.prepare`.
    """

    def __init__(
        self,
        product: FifthProduct,
        target: SpinorField,
        source: SpinorField,
        parities: Sequence[int],
        addend: SpinorField | None,
        some: range | None,
    ) -> None:
        self._used = product, target, source, addend  # which own the memory
        self._launches: list[tuple[Any, Launch]] = []
        # All numbers of a site have a unit in common, or chiralities and colours are independent.
        each = 1 if source.storage.norm_bytes else CHIRALITIES * source.field.group.colours
        parts = each * source.count // source.replicas
        extent = kept_extent(source.field, source.storage, source.fifth)
        choices = source.storage.choice, column_of(extent, source.storage.number_bytes)
        for n, slab in enumerate(source.slabs):
            for parity in parities:
                part = slab.whole(parity, some=some)
                sites = part.slices * slab.layout.slots
                threads, blocks = (1, parts) if extent else shares_of(parts, sites, 1)
                shares = geometry_structure("Shares")(threads, blocks)
                fifth = product.structure(n, target, source, addend, some)
                values = {"fifth": fifth, "shares": shares}
                self._launches.append(slab.prepared(FIFTH_DIRECTION, part, *choices, **values))

    def __call__(self, factor: float = 1.0) -> None:
        """Compute the product."""
        for arguments, _ in self._launches:
            arguments.fifth.factor = factor
        for _, launch in self._launches:
            launch()
