"""Eigenvectors of small matrices, by one thread of the library that NumPy calls.

OpenBLAS divides even matrices of 50 rows among all cores. While other threads or processes use
these, that takes 20 to 50 times as long as one thread.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries with threads that are loaded, which takes a millisecond to find out."""
    return ThreadpoolController()


def eigenvectors(
    matrix: NDArray[np.complex128] | NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Return the eigenvalues of a hermitian matrix, ascending, and eigenvectors as columns.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        The matrix.

    Returns
    -------
    values : ndarray of float64, shape (n,)
        The eigenvalues.
    vectors : ndarray, shape (n, n)
        The eigenvectors.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        values, vectors = np.linalg.eigh(matrix)
    return values, vectors
