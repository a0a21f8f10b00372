"""Linear least squares to correlated data."""

from __future__ import annotations

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
        The fitted parameters are ``projection @ data``, and their series follow in the same way.
    chi2 : float
        The minimum of chi2.
    dof : int
        Points less parameters.
    chi2_expected : float
        The expectation of chi2 for data of the given covariance, with which chi2 is to be compared
        (M. Bruno and R. Sommer, arXiv:2209.14188). It is dof if the fit is correlated.
    correlated : bool
        Whether chi2 contains the inverse covariance matrix, or the errors alone.
    """

    projection: Array
    chi2: float
    dof: int
    chi2_expected: float
    correlated: bool


def fit_linear(design: Array, series: Array, tau_int: float, correlated: bool) -> LinearFit:
    """Fit ``mean of series = design @ parameters``.

    Points are weighted by their inverse covariance matrix, or by their errors alone if that matrix
    is badly known (`can_invert`), since the fit would then follow its noise. For the same reason
    all points have the same tau_int in the weights: separate ones would favour points whose errors
    happen to come out small. Errors of the parameters are right in any case if they are taken from
    their series.

    Parameters
    ----------
    design : ndarray of float64, shape (points, parameters)
    series : ndarray of float64, shape (samples, points)
        The data, all of which must fluctuate.
    tau_int : float
        The integrated autocorrelation time common to the data, in samples.
    correlated : bool
        Whether to use the inverse covariance matrix.

    Returns
    -------
    LinearFit
    """
    points, parameters = design.shape
    data = series.mean(axis=0)
    error = series.std(axis=0, ddof=1) * np.sqrt(2 * tau_int / len(series))
    correlation = np.atleast_2d(np.corrcoef(series, rowvar=False))
    whiten = (_inverse_root(correlation) if correlated else np.eye(points)) / error
    projection = np.linalg.pinv(whiten @ design) @ whiten
    residual = whiten @ (data - design @ (projection @ data))
    transfer = whiten @ (np.eye(points) - design @ projection) * error
    expected = float(np.einsum("ij,jk,ik->", transfer, correlation, transfer))
    return LinearFit(
        projection, float(residual @ residual), points - parameters, expected, correlated
    )


def can_invert(points: int, independent: float) -> bool:
    """Return whether so many independent samples determine the inverse covariance of so many points.

    A reliable chi2 of D points takes max(D^2, 10 (D + 1)) of them (C. Michael and A. McKerrell,
    hep-lat/9412087).
    """
    return independent >= max(points**2, 10 * (points + 1))


def _inverse_root(correlation: Array) -> Array:
    """Return the inverse square root of a correlation matrix."""
    values, vectors = np.linalg.eigh(correlation)
    values = np.maximum(values, 1e-12 * values[-1])  # for linearly dependent points
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)
