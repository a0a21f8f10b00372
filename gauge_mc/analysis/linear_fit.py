"""Linear least-squares fits to correlated data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearFit:
    """A least-squares fit of a model that is linear in its parameters.

    Attributes
    ----------
    projection : ndarray of float64, shape (parameters, points)
        Matrix that maps data to fitted parameters, ``projection @ data``; applied to every sample
        of the data, it gives the time series of the parameters.
    chi2 : float
        Minimum of chi2.
    dof : int
        Degrees of freedom: points minus parameters.
    chi2_expected : float
        Expectation of chi2 for data with the given covariance, to be compared with chi2 (M. Bruno
        and R. Sommer, arXiv:2209.14188). It equals dof if the fit is correlated.
    correlated : bool
        True if the points are weighted by their inverse covariance matrix, False if by their
        errors alone.
    """

    projection: Array
    chi2: float
    dof: int
    chi2_expected: float
    correlated: bool


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
    """
    return fit_models([design], series, tau_int, correlated)[0]


def fit_models(
    designs: Sequence[Array], series: Array, tau_int: float, correlated: bool
) -> list[LinearFit]:
    """Fit several models to the same data; see `fit_linear`."""
    data, points = series.mean(axis=0), series.shape[1]
    error = series.std(axis=0, ddof=1) * np.sqrt(2 * tau_int / len(series))
    correlation = np.atleast_2d(np.corrcoef(series, rowvar=False))
    whiten = (_inverse_root(correlation) if correlated else np.eye(points)) / error
    fits = []
    for design in designs:
        projection = np.linalg.pinv(whiten @ design) @ whiten
        rest = whiten @ (np.eye(points) - design @ projection)
        chi2, transfer = float(np.sum((rest @ data) ** 2)), rest * error
        expected = float(np.sum(transfer @ correlation * transfer))
        fits.append(LinearFit(projection, chi2, points - design.shape[1], expected, correlated))
    return fits


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
