"""Link matrices in files: conversion from and to bytes, missing rows, and tests for SU(N)."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

Links = NDArray[np.complex128]
"""Links of one time slice, ``U[z, y, x, mu, a, b]``."""

TOLERANCE = 1e-4
"""Largest deviation of a link from SU(N), as in ``check_unitarity`` of the MILC code. It must allow
for links that other programs have computed in single precision."""


def encode(links: Links, dtype: DTypeLike) -> NDArray[np.uint8]:
    """Return links as bytes: the real and imaginary parts in `dtype`, in the order of the axes."""
    reals = np.ascontiguousarray(links).reshape(-1).view(np.float64)
    return reals.astype(dtype).view(np.uint8)


def decode(data: NDArray[np.uint8], dtype: DTypeLike, shape: tuple[int, ...]) -> Links:
    """Return complex128 links of the given shape from bytes; the inverse of `encode`."""
    with np.errstate(invalid="ignore"):
        return data.view(dtype).astype(np.float64).view(np.complex128).reshape(shape)


def complete_rows(rows: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Compute the last row of SU(2) or SU(3) matrices from the others.

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
    """Return a time slice with the sites innermost, for fast loops over sites.

    The result is ``[mu, a, b, z, y, x]``, or ``[a, b, z, y, x]`` for links without a direction.
    """
    return np.ascontiguousarray(np.moveaxis(links, (0, 1, 2), (-3, -2, -1)))


def misfit(links: Links, t: int) -> str | None:
    """Look for a link that deviates from SU(N) by more than `TOLERANCE`, or is not a number.

    Parameters
    ----------
    links : complex128 array [z, y, x, mu, a, b]
    t : int
        Number of the time slice, for the message.

    Returns
    -------
    str or None
        A message that names the first such link; None if all links are in SU(N).
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
    """Return the deviations of links ``[z, y, x, a, b]`` from SU(N), an array ``[z, y, x]``.

    A deviation is the largest error of a scalar product of two rows, or of an element of the last
    row, which follows from the others for a matrix with determinant 1.
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
    """Return the last row, the conjugate of the vector product of the others ``[a, b, ...]``."""
    if len(rows) == 1:
        a, b = rows[0]
        return [-b.conj(), a.conj()]
    u, v = rows
    return [(u[i] * v[j] - u[j] * v[i]).conj() for i, j in ((1, 2), (2, 0), (0, 1))]
