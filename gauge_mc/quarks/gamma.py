"""Gamma matrices in Euclidean space, in the basis of DeGrand and Rossi.

They are Hermitian, {gamma_mu, gamma_nu} = 2 delta_mu_nu, and gamma_5 = gamma_x gamma_y gamma_z
gamma_t is diag(1, 1, -1, -1). The basis is that of T. A. DeGrand and P. Rossi, Comput. Phys.
Commun. 60 (1990) 211, which Chroma, QDP++ and QUDA use as well.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

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


def time_parity(source: str, sink: str) -> int:
    """Return the sign of a meson correlator under t to T - t at zero momentum.

    Parameters
    ----------
    source, sink : str
        Names of two of the `SIXTEEN` matrices.

    Returns
    -------
    int
        1 for two matrices that both commute or both anticommute with gamma_t gamma_5, or else -1.
    """
    reflection = GAMMA[3] @ GAMMA_5

    def sign(name: str) -> int:
        one = SIXTEEN[name]
        return 1 if np.allclose(reflection @ one, one @ reflection) else -1

    return sign(source) * sign(sink)
