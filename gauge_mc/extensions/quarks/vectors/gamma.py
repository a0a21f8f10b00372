"""Gamma matrices in Euclidean space, in the basis of DeGrand and Rossi.

They are Hermitian, {gamma_mu, gamma_nu} = 2 delta_mu_nu, and gamma_5 = gamma_x gamma_y gamma_z
gamma_t is diag(1, 1, -1, -1). The basis is that of T. A. DeGrand and P. Rossi, Comput. Phys.
Commun. 60 (1990) 211, which Chroma, QDP++ and QUDA use as well.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.quoting import number, quoted, unit_number
from gauge_mc.registry import nearest

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
    """Return the angles of boundary conditions along x, y, z and t in units of pi.

    Parameters
    ----------
    text : str or tuple of float
        The boundary conditions, as `BOUNDARY` takes them.
    imaginary_mu : float
        See `IMAGINARY_MU`.

    Raises
    ------
    UsageError
        If the text is neither a name nor four numbers.
    """
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
        (-1.0) ** int(one) + 0j
        if one == int(one)
        else unit_number(one)
        if strict
        else cmath.exp(1j * math.pi * one)
        for one in angles
    )


Matrix = NDArray[np.complex128]
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
    names = [f"g{one}" for one in DIRECTIONS]
    vectors = dict(zip(names, GAMMA, strict=True))
    axial = {f"{name}g5": one @ GAMMA_5 for name, one in vectors.items()}
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

    Raises
    ------
    UsageError
        If a basis is unknown.
    """
    for name in (old, new):
        if name not in BASES:
            raise UsageError(f"There is no basis '{name}' of gamma matrices{nearest(name, BASES)}")
    one, other = (_group(BASES[name]) for name in (old, new))
    for place in range(16):
        x = np.eye(16, dtype=np.complex128)[place].reshape(4, 4)
        q = np.sum([b @ x @ a.conj().T for a, b in zip(one, other, strict=True)], axis=0)
        if np.abs(q).max() > 0:
            break
    q *= 2 / np.linalg.norm(q)
    first = q.ravel()[np.flatnonzero(q)[0]]
    return np.asarray(q * (abs(first) / first))


def _group(gammas: tuple[Matrix, ...]) -> list[Matrix]:
    """Return the products of all subsets of four gamma matrices, in one order."""
    subsets = (combinations(gammas, n) for n in range(5))
    unit = np.eye(4, dtype=np.complex128)
    return [reduce(np.matmul, one, unit) for some in subsets for one in some]
