"""Eigenvectors of small matrices, by one thread of the library that NumPy calls.

OpenBLAS divides even matrices of 50 rows among all cores. While other threads or processes use
these, that takes 20 to 50 times as long as one thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAPPED_FILES = Path("/proc/self/maps")
"""Linux's list of the files that are mapped into the memory of this process."""

NAMES = tuple(product(("scipy_", ""), ("64_", "")))
"""Prefixes and suffixes of names of functions in builds of OpenBLAS."""


@cache
def _thread_numbers() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """Return functions that get and set the number of threads, for each OpenBLAS that is loaded."""
    try:
        lines = MAPPED_FILES.read_text().splitlines()
    except OSError:
        return ()
    found = []
    for path in sorted({line.split()[-1] for line in lines if "openblas" in line.lower()}):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for before, after in NAMES:
            get, set_ = (f"{before}openblas_{word}_num_threads{after}" for word in ("get", "set"))
            if hasattr(library, get) and hasattr(library, set_):
                found.append((getattr(library, get), getattr(library, set_)))
                break
    return tuple(found)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS use one thread; other libraries are left as they are."""
    libraries = _thread_numbers()
    before = [get() for get, _ in libraries]
    for _, set_ in libraries:
        set_(1)
    try:
        yield
    finally:
        for (_, set_), number in zip(libraries, before, strict=True):
            set_(number)


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
    with one_thread():
        values, vectors = np.linalg.eigh(matrix)
    return values, vectors
