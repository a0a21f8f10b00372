"""The equation of state by the integral method.

The pressure is the integral over the coupling of the difference of the action between T = 0 and T
> 0, and the trace anomaly is its derivative by the temperature (J. Engels et al., Phys. Lett. B 252
(1990) 625; G. Boyd et al., hep-lat/9602007). With the action per site divided by beta, s, which for
the Wilson action is 6 (1 - P) with the plaquette P,

    p / T^4 = N_t^4 integral d beta (s_0 - s_T),
    (e - 3 p) / T^4 = N_t^4 (-d beta / d ln a) (s_0 - s_T).

All results are linear in the averages of s, which are independent at different couplings, so that
their errors follow exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.arrays import Array
from gauge_mc.groups import Group
from gauge_mc.libraries import load
from gauge_mc.quantities.thermodynamics.analysis.ideal_gas import (
    ideal_pressure,
    ideal_pressure_on_lattice,
)
from gauge_mc.quantities.thermodynamics.analysis.scale import ScaleCurve
from gauge_mc.results import documented, result_field

SIGNIFICANT = 3.0
"""Number of errors from which on a number is called different from zero."""

COARSE = 0.05
"""Difference of two ways to integrate, relative to the pressure, from which on it is said."""


@documented
@dataclass(frozen=True)
class ThermodynamicState:
    """Pressure, energy density and entropy density at one coupling."""

    beta: float = result_field("Coupling.", symbol="β")
    length: float | None = result_field(
        "The temperature times the length of the scale; null where the length is not known."
    )
    ratio: float | None = result_field(
        "The temperature in units of the critical one; null without a critical coupling.",
        symbol="T/T_c",
    )
    difference: Estimate = result_field(
        "Action per site divided by beta at T = 0, minus that at T > 0.", symbol="s₀ − s_T"
    )
    beta_function: float | None = result_field(
        "-d beta / d ln a; null where the scale is not known.", symbol="−dβ/d ln a"
    )
    anomaly: Estimate | None = result_field(
        "Trace anomaly (e - 3 p) / T^4.", None, symbol="(ε−3p)/T⁴"
    )
    pressure: Estimate | None = result_field("p / T^4.", None, symbol="p/T⁴")
    energy: Estimate | None = result_field("Energy density e / T^4.", None, symbol="ε/T⁴")
    entropy: Estimate | None = result_field("Entropy density s / T^3.", None, symbol="s/T³")
    scale_error: float | None = result_field(
        "Error of the trace anomaly, the energy and the entropy that is due to the scale.", None
    )
    pressure_interpolation: float | None = result_field(
        "Difference between the integrals of a spline and of straight lines.", None
    )


@documented
@dataclass(frozen=True)
class ThermodynamicsResult:
    """The equation of state at one temporal extent."""

    ensemble: Mapping[str, str] = result_field("Group and action.")
    lattice: str = result_field("Extents of the lattice at T > 0.")
    scale: str | None = result_field("The length of the scale; null if none is known.")
    scale_source: str | None = result_field("Where the scale is from; null if none is known.")
    critical_beta: float | None = result_field("Critical coupling that was given, or null.")
    states: Sequence[ThermodynamicState] = result_field("The couplings, ascending.")
    ideal_pressure: float = result_field("p / T^4 of the ideal gas in the continuum.")
    ideal_pressure_on_lattice: float | None = result_field(
        "p / T^4 of the ideal gas for the Wilson action and this N_t, and infinite space; null for "
        "other actions."
    )
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


@dataclass(frozen=True)
class ActionDifferences:
    """Differences of the action per site divided by beta, between T = 0 and T > 0."""

    beta: Array
    """Couplings, ascending, of shape (couplings,)."""
    hot: Sequence[Estimate]
    """Averages at T > 0."""
    cold: Sequence[Estimate]
    """Averages at T = 0."""

    @property
    def value(self) -> Array:
        """s_0 - s_T, of shape (couplings,)."""
        return np.array([a.value - b.value for a, b in zip(self.cold, self.hot, strict=True)])

    @property
    def error(self) -> Array:
        """Its error, of shape (couplings,)."""
        pairs = zip(self.cold, self.hot, strict=True)
        return np.array([math.hypot(a.error, b.error) for a, b in pairs])

    @property
    def samples(self) -> list[int]:
        """Numbers of measurements."""
        return [a.samples + b.samples for a, b in zip(self.cold, self.hot, strict=True)]


@dataclass(frozen=True)
class LinearQuantities:
    """Quantities at every coupling that are linear in the differences of the action."""

    matrix: Array
    """Coefficients, of shape (couplings, couplings)."""
    differences: ActionDifferences
    """The differences."""

    @property
    def values(self) -> Array:
        """The quantities, of shape (couplings,)."""
        return np.asarray(self.matrix @ self.differences.value)

    @property
    def estimates(self) -> list[Estimate]:
        """The quantities with their statistical errors."""
        errors = np.sqrt(self.matrix**2 @ self.differences.error**2)
        rows = zip(self.values.tolist(), errors.tolist(), self.differences.samples, strict=True)
        return [Estimate(value, error, math.nan, math.nan, size) for value, error, size in rows]


def integration_weights(x: Array, smooth: bool = True) -> Array:
    """Return the matrix that maps values at points x to the integrals from the first point.

    Parameters
    ----------
    x : ndarray, shape (points,)
        Ascending abscissae, at least two.
    smooth : bool
        Whether a cubic spline goes through the values, instead of straight lines.

    Returns
    -------
    ndarray, shape (points, points)
        The first row is zero.
    """
    if smooth:
        spline = load("scipy.interpolate").CubicSpline(x, np.eye(x.size))
        return np.asarray(spline.antiderivative()(x))
    steps = np.diff(x) / 2
    pieces = np.zeros((x.size, x.size))
    rows = np.arange(1, x.size)
    pieces[rows, rows - 1] = steps
    pieces[rows, rows] += steps
    return np.cumsum(pieces, axis=0)


def equation_of_state(
    differences: ActionDifferences,
    extent: int,
    scale: ScaleCurve | None,
    critical: float = math.nan,
) -> list[ThermodynamicState]:
    """Return pressure, energy density and entropy density at all couplings.

    The pressure is 0 at the first coupling.

    Parameters
    ----------
    differences : ActionDifferences
        Differences of the action at two couplings or more.
    extent : int
        Number N_t of links along t.
    scale : ScaleCurve, optional
        The lattice spacing at the couplings. Without it only the pressure is known.
    critical : float
        The length of the scale in units of the lattice spacing at the critical coupling.
    """
    beta, size = differences.beta, differences.beta.size
    unknown = np.full(size, math.nan)
    slope = unknown if scale is None else scale.slope
    spread = unknown if scale is None else scale.slope_error
    length = unknown if scale is None else scale.length
    weights = integration_weights(beta)
    pressure = LinearQuantities(extent**4 * weights, differences)
    straight = LinearQuantities(extent**4 * integration_weights(beta, False), differences)
    anomaly = np.diag(extent**4 / slope)
    found = [
        LinearQuantities(matrix, differences).estimates
        for matrix in (anomaly, anomaly + 3 * pressure.matrix, anomaly + 4 * pressure.matrix)
    ]
    return [
        ThermodynamicState(
            beta=float(beta[n]),
            length=_known(length[n] / extent),
            ratio=_known(length[n] / critical),
            difference=_difference(differences, n),
            beta_function=_known(1 / slope[n]),
            anomaly=_finite(found[0][n]),
            pressure=pressure.estimates[n],
            energy=_finite(found[1][n]),
            entropy=_finite(found[2][n]),
            scale_error=_known(abs(found[0][n].value) * spread[n] / slope[n]),
            pressure_interpolation=float(abs(pressure.values[n] - straight.values[n])),
        )
        for n in range(size)
    ]


def _difference(differences: ActionDifferences, n: int) -> Estimate:
    value, error = float(differences.value[n]), float(differences.error[n])
    return Estimate(value, error, math.nan, math.nan, differences.samples[n])


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _finite(value: Estimate) -> Estimate | None:
    return value if math.isfinite(value.value) else None


def ideal_gas(group: Group, wilson: bool, extent: int) -> tuple[float, float | None]:
    """Return p/T^4 of the ideal gas in the continuum, and for the Wilson action on the lattice."""
    on_lattice = ideal_pressure_on_lattice(group.dimension, extent) if wilson else None
    return ideal_pressure(group.dimension), on_lattice


def cautions_of(states: Sequence[ThermodynamicState]) -> list[str]:
    """Return what to keep in mind about the pressure, in sentences."""
    found = []
    first = states[0].difference
    if abs(first.value) > SIGNIFICANT * first.error:
        found.append(
            f"At the smallest coupling, β = {states[0].beta:.12g}, s₀ − s_T is {first} and not 0, "
            "so that the pressure there is not negligible: add smaller couplings."
        )
    last = states[-1]
    if last.pressure and last.pressure_interpolation is not None:
        difference = last.pressure_interpolation
        if difference > max(last.pressure.error, COARSE * abs(last.pressure.value)):
            found.append(
                f"The pressure at the largest coupling changes by {difference:.2g} if straight "
                "lines instead of a spline are integrated: add couplings between those there are."
            )
    return found
