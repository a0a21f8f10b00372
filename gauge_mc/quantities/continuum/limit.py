"""Extrapolation to the continuum, averaged over orders of lattice artefacts and over ranges.

Models are polynomials in the powers of a that the action declares, fitted to all points or without
the coarsest ones. They are averaged with weights exp(-(chi2 + 2 k + 2 c)/2), where k is the number
of parameters and c that of the points left out (W. I. Jay and E. T. Neil, arXiv:2008.01069).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.fitting import Points, akaike_weights, no_fit, scatter
from gauge_mc.arrays import Array
from gauge_mc.results import documented, result_field

STEPS = 5
"""Number of fits in each of which the slope of the one before turns errors of x into those of y."""


@documented
@dataclass(frozen=True)
class ContinuumModel:
    """A fit of which the continuum limit is an average."""

    powers: Sequence[int] = result_field(
        "Powers of a beside the constant; empty for a constant.", symbol="powers of a"
    )
    points: int = result_field("Number of points, beginning with the finest.", symbol="points")
    chi2: float = result_field("Minimum of chi2.", symbol="χ²")
    dof: int = result_field("Degrees of freedom.", symbol="dof")
    p_value: float = result_field("Probability of a larger chi2 if the model is right.", symbol="p")
    value: float = result_field("Limit of this fit.", symbol="limit")
    error: float = result_field("Its error from those of the points.", symbol="error")
    weight: float = result_field("Weight in the average.", symbol="weight")


@dataclass(frozen=True)
class ModelFit:
    """A polynomial in powers of the abscissa, fitted to the finest points."""

    model: ContinuumModel
    """The model, with its weight not yet known."""
    parameters: Array
    """The constant and the coefficients, of shape (parameters,)."""
    response: Array
    """Derivative of the parameters by all ordinates and then all abscissae, of shape (parameters, 2
    points); 0 for points left out.
    """


def _basis(x: Array, powers: Sequence[int]) -> Array:
    """Return the powers of abscissae, of shape (points, parameters)."""
    return np.asarray(x[:, np.newaxis] ** (np.array([0, *powers]) / 2))


@dataclass(frozen=True)
class Extrapolation:
    """The average of models of some points."""

    covariance: Array
    """Covariance matrix of all ordinates and then all abscissae, of shape (2 points, 2 points)."""
    fits: Sequence[ModelFit]
    """The models."""
    weights: Array
    """Their weights, whose sum is 1."""

    @classmethod
    def of(cls, x: Array, y: Array, covariance: Array, artefacts: Sequence[int]) -> Extrapolation:
        """Return the average over all models of some points.

        Parameters
        ----------
        x : ndarray of float64, shape (points,)
            Squares of lattice spacings in units of a length, ascending.
        y : ndarray of float64, shape (points,)
            The ordinates.
        covariance : ndarray of float64, shape (2 points, 2 points)
            Covariance matrix of the ordinates and then the abscissae.
        artefacts : sequence of int
            See `gauge_mc.actions.Action.artefacts`.

        Raises
        ------
        GaugeError
            If the covariance matrix is not positive.
        """
        try:
            fits = [_fit(x, y, covariance, *model) for model in models(x.size, artefacts)]
        except np.linalg.LinAlgError:
            raise no_fit() from None
        quality = [(fit.model.chi2, fit.model.dof) for fit in fits]
        return cls(covariance, fits, akaike_weights(*zip(*quality, strict=True)))

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the averaged curve, its error from those of the points, and the spread of models.

        The first error is that of the average with its weights kept fixed, in which models are
        correlated since they have the same points. Each result has the shape of x.
        """
        bases = [_basis(x, fit.model.powers) for fit in self.fits]
        pairs = [*zip(bases, self.fits, strict=True)]
        curves = np.stack([basis @ fit.parameters for basis, fit in pairs])
        responses = [basis @ fit.response for basis, fit in pairs]
        response = np.tensordot(self.weights, responses, axes=1)
        variance = np.einsum("xi,ij,xj->x", response, self.covariance, response)
        return self.weights @ curves, np.sqrt(variance), scatter(self.weights, curves)

    @property
    def models(self) -> list[ContinuumModel]:
        """The models with their results, that with the largest weight first."""
        pairs = zip(self.fits, self.weights.tolist(), strict=True)
        models = [replace(fit.model, weight=weight) for fit, weight in pairs]
        return sorted(models, key=lambda model: -model.weight)


def models(points: int, artefacts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the powers of a of every model beside the constant, and its number of points.

    A constant must describe all points, and a model of the finest points alone must have a degree
    of freedom. Otherwise two points that happen to agree would count as much as a fit to all.
    """
    every = [(), *((p,) for p in artefacts), *((p, 2 * p) for p in artefacts)]
    for powers in every:
        for count in range(points, len(powers), -1):
            if count == points or (powers and count > len(powers) + 1):
                yield powers, count


def _fit(x: Array, y: Array, covariance: Array, powers: tuple[int, ...], count: int) -> ModelFit:
    """Return the fit of a model to the finest points.

    The weights are those of y - f'(x) dx, where dx is the error of x (effective variance).
    """
    used = np.concatenate([np.arange(count), x.size + np.arange(count)])
    some, design, slope = covariance[np.ix_(used, used)], _basis(x[:count], powers), np.zeros(count)
    for _ in range(STEPS):
        transfer = np.hstack([np.eye(count), -np.diag(slope)])
        fit = Points.known(y[:count], transfer @ some @ transfer.T).fit(design)
        parameters = fit.projection @ y[:count]
        slope = design[:, 1:] @ (np.array(powers) / 2 * parameters[1:]) / x[:count]
    response = np.zeros((parameters.size, 2 * x.size))
    response[:, used] = fit.projection @ transfer
    error = np.sqrt(response[0] @ covariance @ response[0])
    limit = float(parameters[0]), float(error), math.nan
    model = ContinuumModel(powers, count, fit.chi2, fit.dof, fit.p_value, *limit)
    return ModelFit(model, parameters, response)
