"""Link matrices as files hold them: bytes, rows, membership of the group."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

Links = NDArray[np.complex128]
"""Canonical links of one time slice, ``U[z, y, x, mu, a, b]``."""

TOLERANCE = 1e-4
"""How far a link may be from its group: the accuracy of links that other programs have written in
single precision."""


def encode(links: Links, dtype: DTypeLike) -> NDArray[np.uint8]:
    """Return links as bytes: reals of `dtype`, re and im in turn, in the order of the axes."""
    reals = np.ascontiguousarray(links).reshape(-1).view(np.float64)
    return reals.astype(dtype).view(np.uint8)


def decode(data: NDArray[np.uint8], dtype: DTypeLike, shape: tuple[int, ...]) -> Links:
    """Return complex128 links of `shape` from bytes; the inverse of `encode`."""
    with np.errstate(invalid="ignore"):
        return data.view(dtype).astype(np.float64).view(np.complex128).reshape(shape)


def complete_rows(rows: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Rebuild the last row of SU(2) or SU(3) matrices from the others.

    Parameters
    ----------
    rows : complex128 array [..., N - 1, N]

    Returns
    -------
    complex128 array [..., N, N]
    """
    n = rows.shape[-1]
    full = np.empty((*rows.shape[:-2], n, n), np.complex128)
    full[..., : n - 1, :] = rows
    for b, entry in enumerate(_last_row(np.moveaxis(rows, (-2, -1), (0, 1)))):
        full[..., n - 1, b] = entry
    return full


def components(links: Links) -> NDArray[np.complex128]:
    """Bring the sites of a time slice innermost, ``[..., a, b, z, y, x]``, for fast loops.

    Directions come first if there are any: ``[mu, a, b, z, y, x]``.
    """
    return np.ascontiguousarray(np.moveaxis(links, (0, 1, 2), (-3, -2, -1)))


def misfit(links: Links, t: int) -> str | None:
    """Look for a link that is not in SU(N) to single precision, or not a number.

    Parameters
    ----------
    links : complex128 array [z, y, x, mu, a, b]
    t : int
        The time slice, for the answer.

    Returns
    -------
    str or None
        The first link that is not, in words; None if all are.
    """
    bad = np.stack(
        [~(_deviation(links[..., mu, :, :]) <= TOLERANCE) for mu in range(links.shape[3])], axis=-1
    )
    if not bad.any():
        return None
    z, y, x, mu = np.unravel_index(int(np.argmax(bad)), bad.shape)
    n = links.shape[-1]
    return (
        f"the link in direction {'xyzt'[int(mu)]} at (x, y, z, t) = ({x}, {y}, {z}, {t}) "
        f"is not in SU({n})"
    )


def _deviation(links: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return how far links ``[z, y, x, a, b]`` are from SU(N), ``[z, y, x]``.

    Rows must have length one and be orthogonal, and the last one must be the one that the others
    determine, which also fixes the determinant.
    """
    rows = components(links)
    n = len(rows)
    with np.errstate(all="ignore"):
        worst = np.zeros(links.shape[:3])
        for b, entry in enumerate(_last_row(rows[:-1])):
            np.maximum(worst, np.abs(rows[n - 1, b] - entry), out=worst)
        for a in range(n - 1):
            for c in range(a + 1):
                product = np.sum(rows[a] * rows[c].conj(), axis=0)
                np.maximum(worst, np.abs(product - (a == c)), out=worst)
    return worst


def _last_row(rows: NDArray[np.complex128]) -> list[NDArray[np.complex128]]:
    """Return the conjugate of the vector product of the other rows ``[a, b, ...]``."""
    if len(rows) == 1:
        a, b = rows[0]
        return [-b.conj(), a.conj()]
    u, v = rows
    return [(u[i] * v[j] - u[j] * v[i]).conj() for i, j in ((1, 2), (2, 0), (0, 1))]
