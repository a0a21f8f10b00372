"""The range of t of a plateau, and the constant that is fitted to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import LinearFit, fit_linear, fit_models
from gauge_mc.analysis.fitting.model_averages import akaike_weights
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.lattice_coulomb import improved_distance
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint

AUTOMATIC = (
    "from {start}, later where a fit of a constant and an exponential sees them at one R alone"
)
"""Default rule for the first t of a plateau, in words, given the common start."""

COMMON = (
    "t = {first} on, where excited states shift the mean over R of V(R, t) by at most {tolerance}"
)
"""Common start of all plateaus, in words, given its t and the tolerance."""

OWN = "where excited states shift V(R) by at most {tolerance}, since the mean over R is never level"
"""Start of the plateaus in words, if excited states matter at all t in the mean over R."""

SHARES = {0.5: "half of its error", 1.0: "its error"}
"""Tolerated shifts by excited states, in words."""

SIGNIFICANT = 3.0
"""Number of standard deviations from which on excited states are seen."""

GOOD = 2.0
"""Ratio of chi2 to its expectation up to which a constant and an exponential describe V(t)."""

GAPS = np.linspace(0.2, 3.0, 57)
"""Energies of the excited state above the ground state, in lattice units, that are tried."""

AVERAGED = "averaged over first t with Akaike weights"
"""Rule for the first t of a plateau that is an average over ranges, in words."""


@dataclass(frozen=True)
class _Part:
    """E(t) at the times t of a plateau, and the contribution of excited states."""

    known: Array
    t: range
    excited: Array | None


@dataclass(frozen=True)
class FittedPlateau:
    """V(R) with its time series, and the weights and series of the ranges that were averaged.

    `later` is V(R) from the plateau that begins one step later, if there is a later t.
    """

    point: PlateauPoint
    series: Array
    weights: Array
    ranges: Array
    later: tuple[PlateauPoint, Array]


@dataclass(frozen=True)
class PlateauFits:
    """How constants are fitted to plateaus; the same for all R."""

    tau_int: float
    correlated: bool
    least: int
    average: bool
    tolerance: float

    def rule(self, common: int | None, t_min: int | None) -> str:
        """Return the rule for the first t in words."""
        if t_min is not None:
            first = f"from t = {t_min}{' on' * self.average}"
        else:
            start = OWN if common is None else COMMON
            words = start.format(first=common, tolerance=SHARES[self.tolerance])
            first = AUTOMATIC.format(start=words)
        return f"{AVERAGED}, {first}" if self.average else first

    def common_start(self, everything: Sequence[Array], times: range) -> int | None:
        """Return the first t of all plateaus, or None if excited states matter at all t.

        It is the start of the plateau of the mean over R of E(t), in units of the scatter of E at
        the first t. Noise of one R moves it little, and excited states, which have the same sign
        everywhere, are seen best. The mean is of the half of the R that is known to the largest t.
        """
        count = sorted(one.shape[1] for one in everything)[len(everything) // 2]
        chosen = [one[:, :count] for one in everything if one.shape[1] >= count]
        mean = np.mean([one / one[:, 0].std() for one in chosen], axis=0)
        excited = self._excited(mean, times[:count])
        if self.average and excited is None:
            return times[0]
        index = self._automatic_start(mean, excited)
        return None if index is None else times[index]

    def part(self, known: Array, times: range, common: int | None, automatic: bool) -> _Part | None:
        """Return the plateau of E(t), which is known at the first of `times`, or None without any.

        It does not begin before the common start, where a single t is enough if that was found
        from the data, since other R have shown that E(t) is level from there on.
        """
        t = times[: known.shape[1]]
        excited, least = self._excited(known, t), self.least
        index: int | None = 0
        if automatic and (excited is not None or (common is None and not self.average)):
            index = self._automatic_start(known, excited)
        if index is None:
            return None
        if common is not None:
            start = sum(one < common for one in t)
            if automatic and index <= start:
                least = 1
            index = max(index, start)
        if index + least > len(t):
            return None
        return _Part(known[:, index:], t[index:], excited if excited is None else excited[index:])

    def point(self, energies: EffectiveEnergies, i: int, part: _Part) -> FittedPlateau:
        """Return V(R): from one range of t, or averaged over all of at least `least` t."""
        last = part.known.shape[1] - 1
        count = max(1, last + 2 - self.least) if self.average else 1
        parts = [part.known[:, n:] for n in range(count)]
        fits = [self._constant(one) for one in parts]
        series = np.array([one @ fit.projection[0] for one, fit in zip(parts, fits, strict=True)])
        weights = akaike_weights([fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits])
        mean = np.tensordot(weights, series, axes=1)
        best = int(np.argmax(weights))
        path, steps = energies.path, int(energies.r[i])
        shifted = part.excited is not None and not self.average

        def point(first: int, fit: LinearFit, values: Array) -> PlateauPoint:
            return PlateauPoint(
                path=path,
                steps=steps,
                distance=float(energies.distances[i]),
                potential=estimate(values),
                t_min=part.t[first],
                t_max=part.t[-1],
                chi2=fit.chi2,
                chi2_expected=fit.chi2_expected,
                improved=improved_distance(path, steps) if path else math.nan,
            )

        found = point(best, fits[best], mean)
        if shifted:
            found = replace(found, shift=float(fits[0].projection[0] @ part.excited))
        step = min(1, last)
        fit = self._constant(part.known[:, step:])
        later = part.known[:, step:] @ fit.projection[0]
        return FittedPlateau(found, mean, weights, series, (point(step, fit, later), later))

    def _constant(self, later: Array) -> LinearFit:
        """Fit a constant to V(t), which has the shape (configurations, t)."""
        return fit_linear(np.ones((later.shape[1], 1)), later, self.tau_int, self.correlated)

    def _automatic_start(self, known: Array, excited: Array | None) -> int | None:
        """Return the index of the first t of a plateau by the rule `AUTOMATIC`, or None.

        If excited states shift the plateau too much everywhere, it consists of the last t, unless
        the shift exceeds its error. Values agree if the earlier one is larger by at most one
        standard deviation.
        """
        ratio = math.inf
        for t in range(known.shape[1] - self.least + 1):
            later = known[:, t:]
            plateau = self._constant(later).projection[0]
            if excited is not None:
                ratio = abs(plateau @ excited[t:]) / estimate(later @ plateau).error
                if ratio <= self.tolerance:
                    return t
            elif t > 0:
                excess = estimate(known[:, t - 1] - later @ plateau)
                if excess.value <= excess.error:
                    return t
        return known.shape[1] - self.least if ratio <= 1 else None

    def _excited(self, known: Array, times: range) -> Array | None:
        """Return c exp(-gap t) of a fit of E + c exp(-gap t), or None if c is not significant.

        The fit begins at the first t from which on it is good, but has at least four t.
        """
        for first in range(known.shape[1] - 3):
            later = known[:, first:]
            t = np.array(times[first:]) - times[first]
            designs = [np.stack([np.ones(t.size), np.exp(-gap * t)], axis=1) for gap in GAPS]
            fits = fit_models(designs, later, self.tau_int, self.correlated)
            chi2, expected = min((fit.chi2, fit.chi2_expected) for fit in fits)
            if chi2 <= GOOD * expected or t.size == 4:
                weights = np.exp((chi2 - np.array([fit.chi2 for fit in fits])) / 2)
                weights /= weights.sum()
                c = np.array([fit.projection[1] for fit in fits])  # by gap and t
                size = estimate(later @ (weights @ c))
                if size.value < SIGNIFICANT * size.error:
                    return None
                since = np.array(times) - times[first]
                parts = (c @ later.mean(axis=0))[:, None] * np.exp(-GAPS[:, None] * since)
                return np.asarray(weights @ parts)
        return None
