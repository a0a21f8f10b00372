"""The lattice spacing at the couplings of a study, and the beta function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.actions import Action, LengthScale
from gauge_mc.arrays import Array
from gauge_mc.groups import Group

MOST_ORDER = 3
"""Largest order of the polynomial in beta through ln(length / a) of the runs."""


@dataclass(frozen=True)
class ScaleCurve:
    """A length in units of the lattice spacing at several couplings, and its slope.

    All arrays have the shape (couplings,), with NaN where the length is not known.
    """

    name: str
    """The length, such as r0."""
    source: str
    """Where it is from, in words."""
    length: Array
    """The length divided by a."""
    slope: Array
    """-d ln(a) / d beta."""
    slope_error: Array
    """Error of the slope."""


def known_scale(action: Action, group: Group, beta: Array) -> ScaleCurve | None:
    """Return the length of the literature that is known at most of the couplings.

    The error of its slope is the largest difference from those of other lengths that are known at
    the same coupling, which is 0 if there is none.

    Parameters
    ----------
    action : Action
        The action.
    group : Group
        The group.
    beta : ndarray, shape (couplings,)
        The couplings.

    Returns
    -------
    ScaleCurve, or None
        None if no length is known at any of the couplings.
    """
    known = [action.scales_at(group, float(one)) for one in beta]
    every = {scale.name: scale for scales in known for scale in scales}
    if not every:
        return None
    best = max(every.values(), key=lambda scale: sum(scale in scales for scales in known))
    rows = [_at(best, float(one), scales) for one, scales in zip(beta, known, strict=True)]
    length, slope, error = np.array(rows).T
    return ScaleCurve(best.name, best.source, length, slope, error)


def _at(best: LengthScale, beta: float, known: Sequence[LengthScale]) -> tuple[float, float, float]:
    """Return a length at one coupling, its slope, and the spread of slopes."""
    if best not in known:
        return math.nan, math.nan, math.nan
    slope = best.slope(beta)
    return best.length(beta), slope, max(abs(one.slope(beta) - slope) for one in known)


@dataclass(frozen=True)
class MeasuredLength:
    """A length that was measured at one coupling."""

    beta: float
    """The coupling."""
    value: float
    """The length in units of the lattice spacing."""
    error: float
    """Its error."""


def measured_scale(
    name: str, source: str, points: Sequence[MeasuredLength], beta: Array
) -> ScaleCurve | None:
    """Return a length that was measured at some couplings, by a polynomial in beta.

    The polynomial is fitted to ln(length / a), weighted by the errors. Its order is 3, but 2 if the
    length is known at three or four couplings, and 1 at two.

    Parameters
    ----------
    name, source : str
        See `ScaleCurve`.
    points : sequence of MeasuredLength
        The measured lengths.
    beta : ndarray, shape (couplings,)
        Couplings at which the length is wanted. It is known between the outermost points.

    Returns
    -------
    ScaleCurve, or None
        None if there are fewer than two couplings.
    """
    at = np.array([one.beta for one in points])
    count = np.unique(at).size
    if count < 2:
        return None
    order = min(MOST_ORDER, count - 1 if count < 4 else count - 2)
    values = np.array([math.log(one.value) for one in points])
    errors = np.array([one.error / one.value for one in points])
    middle = at.mean()
    weights = 1 / errors
    fit = np.linalg.pinv(np.vander(at - middle, order + 1, increasing=True) * weights[:, None])
    projection = fit * weights  # of the values to the coefficients
    x = beta - middle
    powers = np.arange(1, order + 1)
    slopes = np.concatenate(
        [np.zeros((x.size, 1)), powers * np.vander(x, order, increasing=True)], axis=1
    )
    inside = (beta >= at.min()) & (beta <= at.max())
    logarithm = np.vander(x, order + 1, increasing=True) @ projection @ values
    slope, spread = slopes @ projection @ values, (slopes @ projection) ** 2 @ errors**2
    return ScaleCurve(
        name,
        source,
        np.where(inside, np.exp(logarithm), np.nan),
        np.where(inside, slope, np.nan),
        np.where(inside, np.sqrt(spread), np.nan),
    )
