"""Bases of vectors and of spins, with the arithmetic and the phases of the host.

Orthonormal vectors span a subspace, into which `Projection` projects others. Matrices in spin space
are products of gamma matrices in one of several `BASES`.

Complex arithmetic is that of NumPy, or has the same bits on all machines. NumPy fuses
multiplications and additions of complex numbers on some processors, and leaves sums to libraries
that add up in orders of their own. Real numbers it rounds as IEEE 754 says.
"""

from __future__ import annotations

import cmath
import ctypes
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.devices.base import Launch
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.vectors import Complex, SpinorField, StoredSlab
from gauge_mc.extensions.quarks.vectors.algebra import HEADER, Multiply
from gauge_mc.options import Option
from gauge_mc.quoting import number, quoted, unit_number
from gauge_mc.registry import nearest

COMBINE_BASIS = Kernel("combine_basis")

MOST_COMBINED = HEADER["MOST_COMBINED"]
"""Number of vectors of a basis that a launch can combine."""


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
        cls, vectors: SpinorField, first: int = 0, count: int = 1, repeated: bool = False
    ) -> VectorView:
        """Return a view of the vectors of a field."""
        kind = vectors.field, vectors.storage, vectors.parities
        memory = vectors.slabs, vectors.layouts
        return cls(*kind, count, *memory, vectors.fifth, vectors, first, repeated)

    def structure(self, slab: StoredSlab, first: int = 0) -> ctypes.Structure:
        """Return the structure ``Spinors``; see `SpinorField.structure`."""
        assert self.whole is not None
        spinors = self.whole.structure(slab, self.first + (0 if self.repeated else first))
        if self.repeated:
            spinors.vector = 0
        return spinors


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
        view = VectorView.of(w, number, count, repeated=True)
        self._products = Multiply(view, VectorView.of(basis, 0, count))
        self.norm2 = 0.0
        """The scalar product <w, w> of the last call."""

    def __call__(self) -> Complex:
        """Return the products, of the shape (count,)."""
        products = self._products()
        self.norm2 = float(products.norm2[0])
        return products.mixed


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
        self._groups: list[list[tuple[Any, Launch]]] = []
        for first in range(0, basis.count, MOST_COMBINED):
            group = [
                slab.prepared(
                    COMBINE_BASIS,
                    slab.whole(w.launched),
                    w.storage.choice,
                    r=w.structure(slab, number),
                    v=basis.structure(s, first),
                    c=(0.0,) * 2 * MOST_COMBINED,
                    a=1.0,
                    vectors=0,
                )
                for slab, s in zip(w.slabs, basis.slabs, strict=True)
            ]
            self._groups.append(group)

    def __call__(self, c: Complex, a: float = 1.0) -> None:
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
        self._products = [BasisProducts(basis, w, n, basis.count) for n in range(w.count)]
        self._combine = [CombineBasis(w, n, basis) for n in range(w.count)]

    def remove(self) -> Complex:
        """Subtract the parts inside of the subspace, and return their coefficients."""
        coefficients = np.array([products() for products in self._products])
        self.add(-coefficients)
        return coefficients

    def add(self, coefficients: Complex) -> None:
        """Add combinations of the basis to the vectors, with coefficients (count, basis)."""
        for combine, c in zip(self._combine, coefficients, strict=True):
            combine(c)


@dataclass(frozen=True)
class Arithmetic:
    """How complex numbers are multiplied, divided and summed."""

    multiply: Callable[[Any, Any], Complex]
    """Return the product of arrays, element by element."""
    divide: Callable[[Any, Any], Complex]
    """Return the quotient of arrays, element by element."""
    einsum: Callable[..., Complex]
    """Return what `numpy.einsum` does."""
    matmul: Callable[[Any, Any], Complex]
    """Return the product of a matrix with each of the matrices [t, i, j]."""


def arithmetic_of(strict: bool) -> Arithmetic:
    """Return the arithmetic of strict or of usual calculations."""
    return STRICT if strict else USUAL


def _multiplied(a: Any, b: Any) -> Complex:
    a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
    real = a.real * b.real - a.imag * b.imag
    return _joined(real, a.real * b.imag + a.imag * b.real)


def _divided(a: Any, b: Any) -> Complex:
    a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
    norm2 = b.real * b.real + b.imag * b.imag
    real = (a.real * b.real + a.imag * b.imag) / norm2
    return _joined(real, (a.imag * b.real - a.real * b.imag) / norm2)


def _joined(real: Array, imaginary: Array) -> Complex:
    array = np.empty(np.shape(real), np.complex128)
    array.real, array.imag = real, imaginary
    return array


def _summed(names: str, *operands: Any, **_options: Any) -> Complex:
    """Return what `numpy.einsum` does, adding up in the order of the indices that are summed.

    Terms with a factor that is 0 are left out.
    """
    before, after = names.split("->")
    arrays = dict(enumerate(zip(before.split(","), map(np.asarray, operands), strict=True)))
    extents = {
        name: extent
        for labels, array in arrays.values()
        for name, extent in zip(labels, array.shape, strict=True)
    }
    summed = sorted(extents.keys() - set(after))
    total = np.zeros([extents[name] for name in after], np.complex128)
    for place in product(*(range(extents[name]) for name in summed)):
        fixed = dict(zip(summed, place, strict=True))
        factors = [_part(labels, array, fixed, after) for labels, array in arrays.values()]
        if all(factor.any() for factor in factors):
            total = total + reduce(_multiplied, factors)
    return total


def _part(labels: str, array: NDArray[Any], fixed: dict[str, int], after: str) -> NDArray[Any]:
    """Return the elements of an array with some fixed indices, with the axes of the result."""
    part = array[tuple(fixed.get(name, slice(None)) for name in labels)]
    axes = [name for name in labels if name not in fixed]
    order = sorted(range(len(axes)), key=lambda axis: after.index(axes[axis]))
    extents = dict(zip(axes, part.shape, strict=True))
    return np.asarray(part.transpose(order).reshape([extents.get(name, 1) for name in after]))


PLAIN, SMITH, SMITH_FUSED = "PLAIN", "SMITH", "SMITH_FUSED"
"""Names of kinds of arithmetic in the kernel ``bicgstab_coefficients``."""

SAMPLE = 64
"""Number of pairs of numbers from which is found what NumPy does."""


@cache
def in_kernels(arithmetic: Arithmetic) -> str | None:
    """Return the kind of arithmetic with which kernels find the same bits, None if there is none.

    NumPy divides complex numbers by R. Smith's algorithm (Commun. ACM 5 (1962) 435).
    """
    if arithmetic is STRICT:
        return PLAIN
    if not _finds(arithmetic.divide, _smith):
        return None
    kinds = {SMITH_FUSED: _fused, SMITH: _not_fused}
    return next((name for name, kind in kinds.items() if _finds(arithmetic.multiply, kind)), None)


def _finds(
    call: Callable[[Any, Any], Complex], rule: Callable[[complex, complex], complex]
) -> bool:
    """Return whether a function has the bits of a rule, for arrays of all small sizes."""
    a, b = np.sin(np.arange(1.0, 4 * SAMPLE + 1)).view(complex).reshape(2, SAMPLE)
    expected = [rule(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    sizes = range(1, SAMPLE + 1)
    return all(call(a[:n], b[:n]).tolist() == expected[:n] for n in sizes)


def _not_fused(a: complex, b: complex) -> complex:
    return complex(_multiplied(a, b))


def _smith(a: complex, b: complex) -> complex:
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        scale = 1 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = 1 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def _fused(a: complex, b: complex) -> complex:
    def rounded_once(x: float, y: float, z: float) -> float:
        return float(Fraction(x) * Fraction(y) + Fraction(z))

    first, second = a.imag * b.imag, a.imag * b.real
    return complex(rounded_once(a.real, b.real, -first), rounded_once(a.real, b.imag, second))


USUAL = Arithmetic(np.multiply, np.true_divide, np.einsum, np.matmul)
STRICT = Arithmetic(
    _multiplied, _divided, _summed, lambda matrix, many: _summed("ij,tjk->tik", matrix, many)
)


LARGEST = 1e6
"""Largest size of an angle, in units of pi."""

NAMES = {"antiperiodic": (0.0, 0.0, 0.0, 1.0), "periodic": (0.0, 0.0, 0.0, 0.0)}
"""Angles of boundary conditions that have a name."""

BOUNDARY = Option(
    "boundary",
    str,
    "Antiperiodic or periodic in time, or four angles along x, y, z and t in units of pi, such as "
    "0.2,0.4,0,1.",
    default="antiperiodic",
    metavar="NAME|ANGLES",
    least=-LARGEST,
    most=LARGEST,
    each=float,
    choices=tuple(NAMES),
    open=True,
)


IMAGINARY_MU = Option(
    "imaginary_mu",
    float,
    "Imaginary chemical potential μ_I/(πT), added to the angle along t.",
    usual=0.0,
    least=-LARGEST,
    most=LARGEST,
    symbol="μ_I/(πT)",
)
"""The chemical potential times the extent of time, in units of pi. Forward links along t have the
factor exp(i a mu_I), which a redefinition of the quark moves to the boundary."""


def angles_of(text: str | tuple[float, ...], imaginary_mu: float = 0.0) -> tuple[float, ...]:
    """Return the angles of boundary conditions along x, y, z and t in units of pi."""
    angles: tuple[float, ...] = ()
    with suppress(UsageError):
        named = isinstance(text, str) and text in NAMES
        angles = NAMES[str(text)] if named else BOUNDARY.numbers(text, number)
    if len(angles) == len(NAMES["periodic"]):
        return (*angles[:3], angles[3] + imaginary_mu)
    raise UsageError(
        f"{BOUNDARY.flag} is {quoted(text)}; give {' or '.join(NAMES)}, or four angles in "
        "units of pi, such as 0,0,0,1."
    )


def phases_of(angles: Iterable[float], strict: bool = False) -> tuple[complex, ...]:
    """Return exp(i pi angle) for each angle, exactly for whole angles.

    Strict ones are rounded once, as no C library does it.
    """
    return tuple(
        (-1.0) ** int(angle) + 0j
        if angle == int(angle)
        else unit_number(angle)
        if strict
        else cmath.exp(1j * math.pi * angle)
        for angle in angles
    )


Matrix = Complex
"""A matrix in spin space, shape (4, 4)."""

GAMMA: tuple[Matrix, ...] = (
    np.array([[0, 0, 0, 1j], [0, 0, 1j, 0], [0, -1j, 0, 0], [-1j, 0, 0, 0]]),
    np.array([[0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]], dtype=np.complex128),
    np.array([[0, 0, 1j, 0], [0, 0, 0, -1j], [-1j, 0, 0, 0], [0, 1j, 0, 0]]),
    np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=np.complex128),
)
"""gamma_x, gamma_y, gamma_z and gamma_t."""

GAMMA_5: Matrix = reduce(np.matmul, GAMMA)
"""gamma_x gamma_y gamma_z gamma_t."""

CONJUGATION: Matrix = GAMMA[3] @ GAMMA[1]
"""C = gamma_t gamma_y, for which C gamma_mu C^-1 = -gamma_mu^T and C^T = -C."""

DIRECTIONS = "xyzt"
"""Names of the directions in the names of matrices."""


def _products() -> dict[str, Matrix]:
    names = [f"g{x}" for x in DIRECTIONS]
    vectors = dict(zip(names, GAMMA, strict=True))
    axial = {f"{name}g5": vector @ GAMMA_5 for name, vector in vectors.items()}
    tensors = {a + b: vectors[a] @ vectors[b] for a, b in combinations(names, 2)}
    unit = np.eye(4, dtype=np.complex128)
    return {"unit": unit, "g5": GAMMA_5, **vectors, **axial, **tensors}


SIXTEEN: dict[str, Matrix] = _products()
"""The sixteen independent matrices, by name: ``unit``, ``g5``, ``gx`` … ``gt``, ``gxg5`` … ``gtg5``
and ``gxgy`` … ``gzgt``. A name spells the product in its order, without factors of i."""


def adjoint(gamma: Matrix) -> Matrix:
    """Return gamma_t Gamma^dagger gamma_t, with which (q̄ Gamma q')^dagger = q̄' adjoint q."""
    return np.asarray(GAMMA[3] @ gamma.conj().T @ GAMMA[3])


SIGMA = (
    np.array([[0, 1], [1, 0]], np.complex128),
    np.array([[0, -1j], [1j, 0]]),
    np.array([[1, 0], [0, -1]], np.complex128),
)
"""Pauli matrices."""


def _kron(upper: Matrix, lower: NDArray[Any]) -> Matrix:
    """Return the Kronecker product of two 2x2 matrices."""
    return np.asarray(np.kron(upper, lower), np.complex128)


SPATIAL = tuple(_kron(SIGMA[1], sigma) for sigma in SIGMA)
"""The matrices [[0, -i sigma_k], [i sigma_k, 0]]."""

DEGRAND_ROSSI = "degrand-rossi"

BASES: dict[str, tuple[Matrix, ...]] = {
    DEGRAND_ROSSI: GAMMA,
    "dirac-pauli": (*SPATIAL, _kron(SIGMA[2], np.eye(2))),
    "weyl": (*SPATIAL, _kron(-SIGMA[0], np.eye(2))),
}
"""gamma_x, gamma_y, gamma_z and gamma_t of each basis. The one of Dirac and Pauli has gamma_t =
diag(1, 1, -1, -1). That of Weyl is the one of openQCD and tmLQCD, with gamma_t = [[0, -1],
[-1, 0]], and has gamma_x gamma_y gamma_z gamma_t = diag(-1, -1, 1, 1)."""


def change_of_basis(old: str, new: str) -> Matrix:
    """Return the unitary Q with gamma'_mu = Q gamma_mu Q^dagger, and psi' = Q psi.

    By Schur's lemma it is the sum of Gamma' X Gamma^-1 over the group that the matrices generate,
    up to a factor, for an X for which this is not zero. Its first element that is not zero is
    positive.
    """
    for name in (old, new):
        if name not in BASES:
            raise UsageError(f"There is no basis '{name}' of gamma matrices{nearest(name, BASES)}")
    source, target = (_group(BASES[name]) for name in (old, new))
    for place in range(16):
        x = np.eye(16, dtype=np.complex128)[place].reshape(4, 4)
        q = np.sum([b @ x @ a.conj().T for a, b in zip(source, target, strict=True)], axis=0)
        if np.abs(q).max() > 0:
            break
    q *= 2 / np.linalg.norm(q)
    first = q.ravel()[np.flatnonzero(q)[0]]
    return np.asarray(q * (abs(first) / first))


def _group(gammas: tuple[Matrix, ...]) -> list[Matrix]:
    """Return the products of all subsets of four gamma matrices, in one order."""
    subsets = (combinations(gammas, n) for n in range(5))
    unit = np.eye(4, dtype=np.complex128)
    return [reduce(np.matmul, x, unit) for some in subsets for x in some]
