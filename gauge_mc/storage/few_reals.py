"""Matrices of SU(2) and SU(3) from N² - 1 reals, as the program GLU stores them.

In SU(2) these are the phase of U00 and U01, in SU(3) U01, U02 and U10 and the phases of U00 and
U20. What is left follows from the norms and from unitarity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLOURS = (2, 3)
"""Numbers of colours of the groups."""


def first_rows(reals: NDArray[np.float64], n: int) -> NDArray[np.complex128]:
    """Return all rows but the last, ``[link][row][column]``.

    Parameters
    ----------
    reals : ndarray, shape (links, n² - 1), float64
        The reals.
    n : int
        Number of colours, one of `COLOURS`.
    """
    return _of_su2(reals) if n == min(COLOURS) else _of_su3(reals)


def _of_su2(reals: NDArray[np.float64]) -> NDArray[np.complex128]:
    u01 = reals[:, 1] + 1j * reals[:, 2]
    return np.stack([_rest(u01) * np.exp(1j * reals[:, 0]), u01], axis=1)[:, np.newaxis]


def _of_su3(reals: NDArray[np.float64]) -> NDArray[np.complex128]:
    u01, u02, u10 = (reals[:, k] + 1j * reals[:, k + 1] for k in (0, 2, 4))
    u00 = _rest(u01, u02) * np.exp(1j * reals[:, 6])
    u20 = _rest(u00, u10) * np.exp(1j * reals[:, 7])
    norm = np.abs(u01) ** 2 + np.abs(u02) ** 2
    # The first two rows are orthogonal, and U20 is a cofactor of them.
    overlap, cofactor = -u00.conj() * u10, u20.conj()
    with np.errstate(all="ignore"):
        u11 = (u01 * overlap - u02.conj() * cofactor) / norm
        u12 = (u02 * overlap + u01.conj() * cofactor) / norm
    rows = np.stack([u00, u01, u02, u10, u11, u12], axis=1).reshape(-1, 2, 3)
    rows[norm == 0] = np.eye(3)[:2]  # for which the reals say nothing more; GLU takes 1 as well
    return rows


def _rest(*entries: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return the modulus of the entry of a unit vector, given the others."""
    rest = 1 - sum(np.abs(one) ** 2 for one in entries)
    return np.sqrt(np.maximum(rest, 0))
