"""Least-squares fits to correlated data, averages over fits, and zeros of curves with errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load

POOR = 0.01
"""Probability of a larger chi2, if the form is right, below which a fit is called poor."""


@dataclass(frozen=True)
class LinearFit:
    """A least-squares fit of a model that is linear in its parameters."""

    projection: Array
    """Matrix of shape (parameters, points) that maps data to fitted parameters, ``projection @
    data``; applied to every sample of the data, it gives the time series of the parameters.
    """
    chi2: float
    """Minimum of chi2."""
    dof: int
    """Degrees of freedom: points minus parameters."""
    chi2_expected: float
    """Expectation of chi2 for data with the given covariance, to be compared with chi2 (M. Bruno
    and R. Sommer, arXiv:2209.14188). It equals dof if the fit is correlated.
    """
    correlated: bool
    """True if the points are weighted by their inverse covariance matrix, False if by their errors
    alone.
    """
    residuals: Array
    """Covariance matrix of the weighted residuals, the sum of whose squares is chi2, of shape
    (points, points).
    """
    growth: float = 1.0
    """Factor by which the error of the projected data is too small; see `Points.sample`."""

    @property
    def p_value(self) -> float:
        """Probability of a larger chi2 if the model is right; see `exceedance`."""
        return exceedance(self.chi2, np.asarray(np.linalg.eigvalsh(self.residuals)))

    @property
    def quality(self) -> tuple[float, float, float]:
        """chi2, its expectation, and `p_value`."""
        return self.chi2, self.chi2_expected, self.p_value


def fit_linear(design: Array, series: Array, tau_int: float, correlated: bool) -> LinearFit:
    """Fit ``mean of series = design @ parameters``.

    Points are weighted by their inverse covariance matrix, or by their errors alone. Choose the
    latter if the matrix is badly known (see `can_invert`), because the fit would follow its noise.
    For the same reason all points share one tau_int in the weights: separate values would favour
    points whose errors happen to come out small. With either weights the errors of the parameters
    are correct if they are computed from the series of the parameters.
    """
    return Points.of(series, tau_int, correlated).fit(design)


@dataclass(frozen=True)
class Points:
    """Points of correlated data, with the weights that all fits to them share."""

    mean: Array
    """Mean of the data, of shape (points,)."""
    error: Array
    """Its error, of shape (points,)."""
    correlation: Array
    """Correlation matrix of the data, of shape (points, points)."""
    root: Array
    """Matrix that multiplies a residual to give the numbers the sum of whose squares is chi2, of
    shape (points, points).
    """
    correlated: bool
    """See `LinearFit`."""
    sample: Array
    """Covariance matrix of the samples, of which the weights are made, of shape (points, points).

    The weights follow its noise, so that the square of an error is N/(N - d) times that with the
    true weights, and appears as (N - d)/N times it, with N independent samples and d degrees of
    freedom (A. Taylor and B. Joachimi, arXiv:1402.6983, for large N). With shrunk weights d is the
    trace of the covariance matrix of the weighted residuals of the samples.
    """
    independent: float = math.inf
    """Number N of independent samples; infinite if the weights do not follow their noise."""

    @classmethod
    def of(cls, series: Array, tau_int: float, correlated: bool) -> Points:
        """Return the points of a time series; see `fit_linear`."""
        error = series.std(axis=0, ddof=1) * np.sqrt(2 * tau_int / len(series))
        correlation = np.atleast_2d(np.corrcoef(series, rowvar=False))
        root = np.eye(error.size)
        if correlated:
            values, vectors = np.linalg.eigh(correlation)
            # Linearly dependent points have eigenvalues of the size of rounding errors, of either
            # sign. The bound is 5000 roundings of the largest one.
            values = np.maximum(values, 1e-12 * values[-1])
            root = vectors / np.sqrt(values) @ vectors.T
        sample = correlation * np.outer(error, error)
        return cls(series.mean(axis=0), error, correlation, root / error, correlated, sample)

    @classmethod
    def shrunk(cls, series: Array, tau_int: float, more: Array | None = None) -> Points:
        """Return the points of a time series, weighted by their shrunk covariance matrix.

        Correlations are multiplied by 1 - x, where x is the ratio of the sum of their variances to
        that of their squares, at most 1 (J. Schaefer and K. Strimmer, Stat. Appl. Genet. Mol. Biol.
        4 (2005) 32, sect. 2), so that the matrix can be inverted however few samples there are.
        """
        points = cls.of(series, tau_int, False)
        unit, correlation = np.eye(points.error.size), points.correlation
        squares = correlation**2 - unit
        variance = (1 - correlation**2) ** 2 * (2 * tau_int / len(series))
        keep = 1 - min(1.0, float(variance.sum()) / max(float(squares.sum()), TINY))
        covariance = replace(points, correlation=keep * correlation + (1 - keep) * unit).covariance
        covariance = covariance if more is None else covariance + np.diag(more**2)
        weighted, independent = cls.known(points.mean, covariance), len(series) / (2 * tau_int)
        return replace(weighted, sample=points.sample, independent=independent)

    def chosen(self, used: Integers) -> Points:
        """Return some of the points, given their indices, with weights of their own."""
        matrix = np.ix_(used, used)
        points = self.known(self.mean[used], self.covariance[matrix])
        return replace(points, sample=self.sample[matrix], independent=self.independent)

    @classmethod
    def known(cls, mean: Array, covariance: Array) -> Points:
        """Return points with a covariance matrix, by the inverse of which they are weighted."""
        error = np.sqrt(covariance.diagonal())
        correlation = covariance / np.outer(error, error)
        root = np.linalg.inv(np.linalg.cholesky(correlation + ROUND * np.eye(error.size)))
        return cls(mean, error, correlation, root / error, True, covariance)

    @property
    def covariance(self) -> Array:
        """The covariance matrix, of shape (points, points)."""
        return self.correlation * np.outer(self.error, self.error)

    def with_prior(self, value: float, error: float) -> Points:
        """Return these points and a further independent one."""
        zero, size = np.zeros((self.mean.size, 1)), np.array([[error]])
        return Points(
            np.append(self.mean, value),
            np.append(self.error, error),
            np.block([[self.correlation, zero], [zero.T, np.eye(1)]]),
            np.block([[self.root, zero], [zero.T, 1 / size]]),
            self.correlated,
            np.pad(self.sample, (0, 1)),
            self.independent,
        )

    def chi2(self, values: Array) -> float:
        """Return chi2 of values of a model, shape (points,)."""
        return float(np.sum((self.root @ (self.mean - values)) ** 2))

    def fit(self, design: Array, values: Array | float = 0.0) -> LinearFit:
        """Fit ``mean = values + design @ parameters``; see `fit_linear`."""
        return self.fits(design[np.newaxis], values)[0]

    def fits(self, designs: Array, values: Array | float = 0.0) -> list[LinearFit]:
        """Fit several models, whose designs have the shape (models, points, parameters)."""
        projections = np.linalg.pinv(self.root @ designs) @ self.root
        rest = self.root @ (np.eye(self.mean.size) - designs @ projections)
        chi2 = np.sum((rest @ (self.mean - values)) ** 2, axis=1)
        transfer = rest * self.error
        residuals = transfer @ self.correlation @ transfer.swapaxes(1, 2)
        expected = np.trace(residuals, axis1=1, axis2=2)
        dof = designs.shape[1] - designs.shape[2]
        free, n = np.einsum("mij,jk,mik->m", rest, self.sample, rest), self.independent
        growth = 1 / np.maximum(1 - free / n, 1 / n)
        every = zip(projections, chi2.tolist(), expected.tolist(), residuals, growth, strict=True)
        return [LinearFit(p, c, dof, e, self.correlated, *rest) for p, c, e, *rest in every]


def exceedance(chi2: float, weights: Array) -> float:
    """Return the probability that the sum of w z^2 exceeds chi2, for normally distributed z.

    This is the distribution of chi2 of a fit with any weights of its points, if w are the
    eigenvalues of the covariance matrix of the weighted residuals (M. Bruno and R. Sommer,
    arXiv:2209.14188). The Laplace transform of the probability is
    [1 - prod (1 + 2 w s)^(-1/2)] / s, which is inverted on the contour of Talbot (J. A. C. Weideman
    and L. N. Trefethen, Math. Comp. 76 (2007) 1341), since it is singular only for s < 0.
    """
    if not chi2 > ROUNDING * weights.size:
        return 1.0
    angle = (np.arange(CONTOUR) + 0.5) * 2 * np.pi / CONTOUR - np.pi
    tangent = np.tan(0.6407 * angle)
    s = CONTOUR / chi2 * (0.5017 * angle / tangent - 0.6122 + 0.2645j * angle)
    slope = 0.5017 / tangent - 0.5017 * 0.6407 * angle * (1 + tangent**-2.0) + 0.2645j
    below = np.prod(1 / np.sqrt(1 + 2 * np.maximum(weights, 0.0)[:, None] * s), axis=0) / s
    return float(np.clip(1 - np.sum(np.exp(s * chi2) * below * slope).imag / chi2, 0.0, 1.0))


ROUND = 1e-12
"""Small number that is added to the diagonal of a correlation matrix against rounding."""

TINY = 1e-30
"""Sum of squares that counts as zero."""

CONTOUR = 32
"""Number of points on the contour, with which the error is below 1e-8."""

ROUNDING = 1e-20
"""Largest chi2 per point that counts as zero, because it is due to rounding errors."""


def can_invert(points: int, independent: float) -> bool:
    """Return whether there are enough independent samples to invert the covariance matrix.

    A reliable chi2 of D points needs at least max(D^2, 10 (D + 1)) independent samples (C. Michael
    and A. McKerrell, hep-lat/9412087).
    """
    return independent >= max(points**2, 10 * (points + 1))


def weighting(series: Array) -> tuple[float, bool]:
    """Return the mean tau_int of series, shape (samples, points), and whether `can_invert`."""
    tau_int = float(np.mean([estimate(values).tau_int for values in series.T]))
    return tau_int, can_invert(series.shape[1], len(series) / (2 * tau_int))


def fit_line(x: Array, series: Array) -> LinearFit:
    """Fit a straight line in x, shape (points,), with the weights that `weighting` allows."""
    return fit_linear(np.stack([np.ones_like(x), x], axis=1), series, *weighting(series))


Curve = Callable[[Array], tuple[Array, Array]]
"""A function of the parameters, shape (parameters,), that returns the values of the points, shape
(points,), and their derivatives by the parameters, shape (points, parameters)."""

MOST_STEPS = 50
"""Maximum number of Gauss-Newton steps, of which five or so are needed."""

MOST_HALVINGS = 20
"""Maximum number of times that a step is halved."""

CONVERGED = 1e-10
"""Change of all parameters, relative to their sizes or to 1, at which the fit has converged."""

INDEPENDENT = 1e-3
"""Largest deviation of the projection of the derivatives from 1. If it is larger, the points do not
determine all parameters."""

LARGEST = 1e4
"""Bound on the values of a curve in units of the largest one of the data, beyond which rounding
errors would hide how these fluctuate."""


@dataclass(frozen=True)
class CurveFit:
    """A least-squares fit of a curve."""

    series: Array
    """Linearised time series of the parameters, of shape (samples, parameters), whose means are the
    fitted values.
    """
    fit: LinearFit
    """The fit of the linearised curve at the minimum."""

    @property
    def values(self) -> Array:
        """The fitted parameters."""
        return np.asarray(self.series.mean(axis=0))


def fit_curve(
    curve: Curve, start: Array, series: Array, tau_int: float, correlated: bool
) -> CurveFit:
    """Fit ``mean of series = curve(parameters)`` by Gauss-Newton steps.

    A step that increases chi2 is halved until it does not. Weights and errors are those of
    `fit_linear`.
    """
    parameters = np.asarray(start, dtype=np.float64)
    points, largest = Points.of(series, tau_int, correlated), float(np.abs(series).max())
    chi2 = np.inf
    for _ in range(MOST_STEPS):
        values, slopes = _at(curve, parameters)
        if not np.isfinite(slopes).all():
            break
        fit = points.fit(slopes, values)
        if not np.allclose(fit.projection @ slopes, np.eye(parameters.size), atol=INDEPENDENT):
            break
        step = fit.projection @ (points.mean - values)
        if (np.abs(step) <= CONVERGED * np.maximum(np.abs(parameters), 1)).all():
            return CurveFit(parameters + (series - values) @ fit.projection.T, fit)
        parameters, chi2 = _descend(curve, parameters, step, chi2, points, largest)
    raise no_fit()


def no_fit() -> GaugeError:
    """Return the error for a fit that does not converge."""
    return GaugeError("The fit does not converge; choose another range.")


def _at(curve: Curve, parameters: Array) -> tuple[Array, Array]:
    """Return values and derivatives of a curve, which may be infinite or not numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return curve(parameters)


def _descend(
    curve: Curve, parameters: Array, step: Array, chi2: float, points: Points, largest: float
) -> tuple[Array, float]:
    """Return the parameters after a step, halved until chi2 does not increase, and chi2 there.

    `largest` is the largest modulus of the data.
    """
    for _ in range(MOST_HALVINGS):
        values = _at(curve, parameters + step)[0]
        if (np.abs(values) < LARGEST * largest).all():
            changed = points.chi2(values)
            if changed <= chi2 * (1 + CONVERGED):
                return parameters + step, changed
        step = step / 2
    raise no_fit()


def akaike_weights(chi2: Sequence[float], expected: Sequence[float]) -> Array:
    """Return the weights exp(-(chi2 - 2 <chi2>)/2) of models, whose sum is 1.

    For correlated fits <chi2> is the number of degrees of freedom, and chi2 - 2 <chi2> is the
    information criterion of Akaike up to a constant: chi2 + 2 (parameters) + 2 (points left out).
    """
    exponent = (np.array(chi2) - 2 * np.array(expected)) / 2
    weights = np.exp(exponent.min() - exponent)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class ModelAverage:
    """An average over fits of one quantity.

    Attributes
    ----------
    weights : ndarray, shape (fits,)
        The weights of the fits, whose sum is 1.
    value : float
        The average.
    error : float
        The total error: half the width of the central 68 % of the distribution of the quantity,
        which is the sum of the normal distributions of all fits with their weights (S. Borsanyi et
        al., arXiv:2002.12347, supplementary information).
    """

    weights: Array
    value: float
    error: float

    @classmethod
    def of(
        cls, fits: Sequence[LinearFit], values: Array, errors: Array, shares: Array
    ) -> ModelAverage:
        """Return the average over fits, given their values, total errors and prior weights.

        The weights are those of `akaike_weights`, divided by the squares of the errors, because
        otherwise fits that are noise alone would count (S. R. Beane et al., arXiv:2003.12130). Fits
        that are further from the median than `FAR` errors do not count.
        """
        quality = [(fit.chi2, fit.chi2_expected) for fit in fits]
        weights = akaike_weights(*zip(*quality, strict=True)) * shares / errors**2
        weights *= weights > NEGLIGIBLE * weights.max()
        weights /= weights.sum()
        low, middle, high = (_quantile(q, weights, values, errors) for q in NORMAL)
        near = weights * (np.abs(values - middle) <= FAR * (high - low) / 2)
        near /= near.sum()
        return cls(near, float(near @ values), (high - low) / 2)


NORMAL = (0.158655, 0.5, 0.841345)
"""Probabilities below -1, 0 and 1 standard deviations."""

NEGLIGIBLE = 1e-5
"""Weight relative to the largest one below which a fit is left out."""

FAR = 4.0
"""Number of errors from the median beyond which fits are left out of an average."""


def _quantile(probability: float, weights: Array, values: Array, errors: Array) -> float:
    """Return a quantile of a sum of normal distributions."""
    normal, positive = load("scipy.special").ndtr, weights > 0
    weights, values, errors = weights[positive], values[positive], errors[positive]
    low, high = float((values - 9 * errors).min()), float((values + 9 * errors).max())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = normal((middle - values) / errors)
        low, high = (middle, high) if weights @ below < probability else (low, middle)
    return high


BISECTIONS = 60
"""Number of times that the interval of a quantile is halved."""


def scatter(weights: Array, values: Array) -> Array:
    """Return the standard deviation of results of models, shape (models, ...), a systematic error.

    The sum of the weights, shape (models,), is 1.
    """
    return np.asarray(np.sqrt(weights @ (values - weights @ values) ** 2))


def covariance_of(series: Array, errors: Array) -> Array:
    """Return the covariance matrix with the given errors and the correlations of the series."""
    scatter = series.std(axis=0)
    mask = (errors > 0) & (scatter > 0)
    scale = np.divide(errors, scatter, out=np.zeros_like(errors), where=mask)
    unit = (series - series.mean(axis=0)) * scale
    return np.asarray(unit.T @ unit / len(unit))


def zero_interval(at: float, x: Array, ratio: Array, size: float = 1.0) -> tuple[float, float]:
    """Return the interval around a zero of a curve in which the curve is zero within its error.

    It is what the data do not exclude (E. C. Fieller, J. R. Stat. Soc. B 16 (1954) 175). This holds
    where the slope of the curve is hardly known, whereas an error of the curve divided by its slope
    is too small if that is large by chance.
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
