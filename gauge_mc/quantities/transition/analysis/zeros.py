"""Couplings at which a curve vanishes, with errors that hold where its slope is hardly known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.fitting.zeros import zero_interval
from gauge_mc.arrays import Array


@dataclass(frozen=True)
class CurveZero:
    """A coupling at which a curve vanishes."""

    samples: Array
    """The coupling and samples of it, of shape (1 + replicas,); NaN if the curve does not vanish.
    """
    begin: float
    """First coupling from which on the curve is zero within its error, up to the one at which it
    vanishes."""
    end: float
    """Last coupling up to which it is."""
    open: bool
    """Whether one of these is where the curve begins or ends, so that the error may be larger."""


def curve_zero(beta: Array, curves: Array, at: float) -> CurveZero:
    """Return a zero of a curve with its error.

    The couplings that the data do not exclude by one standard deviation are those at which the
    curve is zero within its error; see `zero_interval`. Zeros of bootstrap samples would be too
    close to each other: samples without a zero between the runs are missing, and of several zeros
    one has to be taken. The error is the distance to the end of that interval that is farther away.
    Samples are those of the value of the curve at the coupling, scaled to this error.

    Parameters
    ----------
    beta : ndarray, shape (couplings,)
        Couplings, ascending.
    curves : ndarray, shape (1 + replicas, couplings)
        The curve and its bootstrap samples, of which an error needs two.
    at : float
        The zero of the curve; NaN if there is none.
    """
    if not math.isfinite(at):
        return CurveZero(np.full(len(curves), math.nan), math.nan, math.nan, False)
    if len(curves) < 3:  # no error is known
        return CurveZero(np.full(len(curves), at), at, at, False)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(curves[0]) / np.nanstd(curves[1:], axis=0, ddof=1)
    ratio = np.nan_to_num(ratio, nan=math.inf, posinf=math.inf)
    begin, end = zero_interval(at, beta, ratio)
    changes = np.array([np.interp(at, beta, row - curves[0]) for row in curves])
    spread = float(np.nanstd(changes[1:], ddof=1))
    slope = np.interp(at, beta, np.gradient(curves[0], beta))
    scale = -math.copysign(max(at - begin, end - at), slope) / spread if spread else 0.0
    return CurveZero(at + scale * changes, begin, end, begin == beta[0] or end == beta[-1])
