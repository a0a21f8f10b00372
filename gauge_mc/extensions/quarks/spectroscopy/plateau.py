"""Plateaus of effective masses and of ratios of the correlators of hadrons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gauge_mc.analysis.fitting import LinearFit, Points, akaike_weights, weighting
from gauge_mc.analysis.states import State
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.arrays import Array

LEAST_TIMES = 2
"""Minimum number of t in a plateau; whether it is level cannot be seen from one."""

TOLERANCE = 0.5
"""Shift by excited states up to which a plateau is accepted, in units of its error."""

SIGNIFICANT = 3.0
"""Number of standard deviations from which on excited states are seen."""

GOOD = 2.0
"""Ratio of chi2 to its expectation up to which a constant and an exponential describe E(t)."""

GAPS = np.linspace(0.2, 3.0, 57)
"""Energies of the excited state above the ground state, in lattice units, that are tried."""


@dataclass(frozen=True)
class LevelSeries:
    """A series that tends to a constant from above."""

    series: Array
    """Linearised time series, of shape (configurations, times)."""
    first: int
    """First t."""

    @cached_property
    def weighting(self) -> tuple[float, bool]:
        """Weighting of the t in all fits."""
        return weighting(self.series)

    def plateau(self, t_min: int | None = None, average: bool = False) -> State | None:
        """Return the plateau, or None if excited states matter at all t.

        Parameters
        ----------
        t_min : int, optional
            First t of the plateau; by default the first one from which on excited states shift it
            by at most `TOLERANCE`.
        average : bool
            Whether to average over all later first t with Akaike weights.
        """
        start: int | None = 0 if t_min is None else t_min - self.first
        if t_min is None:
            excited = self._excited()
            if excited is not None or not average:
                start = self._start(excited)
        if start is None or start >= self.series.shape[1]:
            return None
        count = self.series.shape[1] - start
        starts = range(start, start + (max(1, count + 1 - LEAST_TIMES) if average else 1))
        fits = [self._constant(n) for n in starts]
        lines = [
            self.series[:, n:] @ fit.projection[0] for n, fit in zip(starts, fits, strict=True)
        ]
        weights = akaike_weights([fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits])
        line, best = np.tensordot(weights, lines, axes=1), int(np.argmax(weights))
        last = self.first + self.series.shape[1] - 1
        return State(estimate(line), 0.0, line, self.first + starts[best], last, 1, fits[best])

    def _constant(self, start: int) -> LinearFit:
        later = self.series[:, start:]
        points = Points.of(later, *self.weighting)
        return points.fit(np.ones((later.shape[1], 1)))

    def _start(self, excited: Array | None) -> int | None:
        """Return the index of the first t of a plateau, or None.

        If excited states shift the plateau too much everywhere, it consists of the last t, unless
        the shift exceeds its error. Values agree if the earlier one is larger by at most one
        standard deviation.
        """
        ratio, count = math.inf, self.series.shape[1]
        for t in range(count - LEAST_TIMES + 1):
            plateau, later = self._constant(t).projection[0], self.series[:, t:]
            if excited is not None:
                ratio = abs(plateau @ excited[t:]) / estimate(later @ plateau).error
                if ratio <= TOLERANCE:
                    return t
            elif t > 0:
                excess = estimate(self.series[:, t - 1] - later @ plateau)
                if excess.value <= excess.error:
                    return t
        return count - LEAST_TIMES if ratio <= 1 else None

    def _excited(self) -> Array | None:
        """Return c exp(-gap t) of a fit of E + c exp(-gap t), or None if c is not significant.

        The fit begins at the first t from which on it is good, but has at least four t.
        """
        count = self.series.shape[1]
        for first in range(count - 3):
            later, t = self.series[:, first:], np.arange(count - first)
            designs = [np.stack([np.ones(t.size), np.exp(-gap * t)], axis=1) for gap in GAPS]
            fits = Points.of(later, *self.weighting).fits(np.stack(designs))
            chi2, expected = min((fit.chi2, fit.chi2_expected) for fit in fits)
            if chi2 <= GOOD * expected or t.size == 4:
                weights = np.exp((chi2 - np.array([fit.chi2 for fit in fits])) / 2)
                weights /= weights.sum()
                c = np.array([fit.projection[1] for fit in fits])  # by gap and t
                size = estimate(later @ (weights @ c))
                if size.value < SIGNIFICANT * size.error:
                    return None
                since = np.arange(count) - first
                parts = (c @ later.mean(axis=0))[:, None] * np.exp(-GAPS[:, None] * since)
                return np.asarray(weights @ parts)
        return None
