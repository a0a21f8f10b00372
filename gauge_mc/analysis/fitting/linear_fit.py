"""Linear least-squares fits to correlated data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.arrays import Array

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

    @property
    def p_value(self) -> float:
        """Probability of a larger chi2 if the model is right; see `exceedance`."""
        return exceedance(self.chi2, np.asarray(np.linalg.eigvalsh(self.residuals)))


def fit_linear(design: Array, series: Array, tau_int: float, correlated: bool) -> LinearFit:
    """Fit ``mean of series = design @ parameters``.

    Points are weighted by their inverse covariance matrix, or by their errors alone. Choose the
    latter if the matrix is badly known (see `can_invert`), because the fit would follow its noise.
    For the same reason all points share one tau_int in the weights: separate values would favour
    points whose errors happen to come out small. With either weights the errors of the parameters
    are correct if they are computed from the series of the parameters.

    Parameters
    ----------
    design : ndarray of float64, shape (points, parameters)
        Derivative of each point by each parameter.
    series : ndarray of float64, shape (samples, points)
        The data; every point must fluctuate.
    tau_int : float
        Integrated autocorrelation time in samples, the same for all points.
    correlated : bool
        Whether to use the inverse covariance matrix.

    Returns
    -------
    LinearFit
        The matrix that maps data to parameters, and chi^2.
    """
    return Points.of(series, tau_int, correlated).fit(design)


def fit_models(
    designs: Sequence[Array], series: Array, tau_int: float, correlated: bool
) -> list[LinearFit]:
    """Fit several models of equally many parameters to the same data; see `fit_linear`."""
    return Points.of(series, tau_int, correlated).fits(np.stack(designs))


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

    @classmethod
    def of(cls, series: Array, tau_int: float, correlated: bool) -> Points:
        """Return the points of a time series; see `fit_linear`."""
        error = series.std(axis=0, ddof=1) * np.sqrt(2 * tau_int / len(series))
        correlation = np.atleast_2d(np.corrcoef(series, rowvar=False))
        root = (_inverse_root(correlation) if correlated else np.eye(error.size)) / error
        return cls(series.mean(axis=0), error, correlation, root, correlated)

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
        every = zip(projections, chi2.tolist(), expected.tolist(), residuals, strict=True)
        return [LinearFit(p, c, dof, e, self.correlated, r) for p, c, e, r in every]


def exceedance(chi2: float, weights: Array) -> float:
    """Return the probability that the sum of w z^2 exceeds chi2, for normally distributed z.

    This is the distribution of chi2 of a fit with any weights of its points, if w are the
    eigenvalues of the covariance matrix of the weighted residuals (M. Bruno and R. Sommer,
    arXiv:2209.14188). The Laplace transform of the probability is
    [1 - prod (1 + 2 w s)^(-1/2)] / s, which is inverted on the contour of Talbot (J. A. C. Weideman
    and L. N. Trefethen, Math. Comp. 76 (2007) 1341), since it is singular only for s < 0.

    Parameters
    ----------
    chi2 : float
        Sum of the squares of the weighted residuals.
    weights : ndarray of float64
        The numbers w; those that are negative by rounding count as 0.

    Returns
    -------
    float
        From 0 to 1, with an accuracy of 1e-8; 1 if chi2 is 0, as for a fit without degrees of
        freedom up to rounding.
    """
    if not chi2 > ROUNDING * weights.size:
        return 1.0
    angle = (np.arange(CONTOUR) + 0.5) * 2 * np.pi / CONTOUR - np.pi
    tangent = np.tan(0.6407 * angle)
    s = CONTOUR / chi2 * (0.5017 * angle / tangent - 0.6122 + 0.2645j * angle)
    slope = 0.5017 / tangent - 0.5017 * 0.6407 * angle * (1 + tangent**-2.0) + 0.2645j
    below = np.prod(1 / np.sqrt(1 + 2 * np.maximum(weights, 0.0)[:, None] * s), axis=0) / s
    return float(np.clip(1 - np.sum(np.exp(s * chi2) * below * slope).imag / chi2, 0.0, 1.0))


CONTOUR = 32
"""Number of points on the contour, with which the error is below 1e-8."""

ROUNDING = 1e-20
"""Largest chi2 per point that counts as zero, because it is due to rounding errors."""


def can_invert(points: int, independent: float) -> bool:
    """Return whether there are enough independent samples to invert the covariance matrix.

    A reliable chi2 of D points needs at least max(D^2, 10 (D + 1)) independent samples (C. Michael
    and A. McKerrell, hep-lat/9412087).

    Parameters
    ----------
    points : int
        Number D of points, the dimension of the matrix.
    independent : float
        Number of independent samples.
    """
    return independent >= max(points**2, 10 * (points + 1))


def _inverse_root(correlation: Array) -> Array:
    """Return the inverse square root of a correlation matrix."""
    values, vectors = np.linalg.eigh(correlation)
    # Linearly dependent points have eigenvalues of the size of rounding errors, of either sign. The
    # bound is 5000 roundings of the largest one.
    values = np.maximum(values, 1e-12 * values[-1])
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)
