"""Where a curve with errors may vanish."""

from __future__ import annotations

import numpy as np

from gauge_mc.arrays import Array


def zero_interval(at: float, x: Array, ratio: Array, size: float = 1.0) -> tuple[float, float]:
    """Return the interval around a zero of a curve in which the curve is zero within its error.

    It is what the data do not exclude (E. C. Fieller, J. R. Stat. Soc. B 16 (1954) 175). This holds
    where the slope of the curve is hardly known, whereas an error of the curve divided by its slope
    is too small if that is large by chance.

    Parameters
    ----------
    at : float
        The zero.
    x : ndarray, shape (n,)
        Where the curve is known, ascending.
    ratio : ndarray, shape (n,)
        The modulus of the curve in units of its error.
    size : float
        Number of errors within which it counts as zero.

    Returns
    -------
    begin, end : float
        The first and the last value of x up to which the ratio is not larger than `size`, counted
        from the zero; an end of x if it is not larger up to there.
    """
    left, right = x < at, x > at
    begin = _edge(at, x[left][::-1], ratio[left][::-1], size)
    return begin, _edge(at, x[right], ratio[right], size)


def _edge(at: float, x: Array, ratio: Array, size: float) -> float:
    """Return where the ratio exceeds the size first on the way from a zero; else the last x."""
    x, y = np.concatenate([[at], x]), np.concatenate([[0.0], ratio])
    outside = np.flatnonzero(y > size)
    if not outside.size:
        return float(x[-1])
    n = int(outside[0])
    return float(x[n - 1] + (x[n] - x[n - 1]) * (size - y[n - 1]) / (y[n] - y[n - 1]))
