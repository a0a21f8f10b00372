"""Peaks of susceptibilities of separate runs, against any parameter.

Runs with quarks of different masses or chemical potentials cannot be reweighted without their
determinants. The peak is that of a parabola through the values of the runs around it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import POOR, exceedance
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.arrays import Array
from gauge_mc.results import documented, result_field

LEAST_POINTS = 4
"""Number of points from which on a parabola has a degree of freedom."""


AT = "The other numbers in which runs differ, in words; null if there are none."


@documented
@dataclass(frozen=True)
class CrossoverPoint:
    """The runs at one value of the parameter on one lattice, all other numbers being equal."""

    lattice: str = result_field("Extents.", symbol="lattice")
    at: str | None = result_field(AT, symbol="at")
    x: float = result_field("Value of the parameter.", symbol="x")
    loop: Estimate | None = result_field(
        "Modulus of the Polyakov loop; null if it was not measured.", symbol="|L|"
    )
    phase: Estimate | None = result_field(
        "Phase of the mean Polyakov loop in units of π.", symbol="arg⟨L⟩/π"
    )
    loop_susceptibility: Estimate | None = result_field(
        "V (⟨|L|²⟩ − ⟨|L|⟩²) with the number V of spatial sites.", symbol="χ_L"
    )
    chiral_condensate: Estimate | None = result_field(
        "⟨Tr S⟩ / V, which is −⟨ψ̄ψ⟩ per flavour; null if it was not measured.", symbol="−⟨ψ̄ψ⟩"
    )
    chiral_susceptibility: Estimate | None = result_field(
        "Disconnected susceptibility of the condensate; null with one source.", symbol="χ_disc"
    )


@documented
@dataclass(frozen=True)
class SusceptibilityPeak:
    """The peak of a susceptibility on one lattice."""

    lattice: str = result_field("Extents.", symbol="lattice")
    at: str | None = result_field(AT, symbol="at")
    susceptibility: str = result_field("The susceptibility: χ_L or χ_disc.", symbol="of")
    position: Estimate = result_field("Position of the peak.", symbol="x at the peak")
    height: Estimate = result_field("Height of the peak.", symbol="height")
    points: int = result_field("Number of points of the parabola.", symbol="points")
    chi2: float | None = result_field("chi2 of the parabola; null for three points.", symbol="χ²")
    p_value: float | None = result_field(
        "Probability of a larger chi2 if the points lie on a parabola.", symbol="p"
    )
    coefficients: tuple[float, float, float] = result_field(
        "Coefficients of 1, x and x² of the parabola."
    )


@documented
@dataclass(frozen=True)
class CrossoverResult:
    """Susceptibilities of a study against one parameter, with their peaks."""

    ensemble: Mapping[str, str] = result_field("What all runs share.")
    over: str = result_field("Name of the parameter, such as ``beta`` or ``kappa``.")
    points: Sequence[CrossoverPoint] = result_field("The runs, by lattice and parameter.")
    peaks: Sequence[SusceptibilityPeak] = result_field("The peaks that are known.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.")


Curve = tuple[str, str | None]
"""The lattice, and the other numbers, that points of a curve share."""

SUSCEPTIBILITIES = {"χ_L": "loop_susceptibility", "χ_disc": "chiral_susceptibility"}
"""Fields of the points with susceptibilities, by their symbols."""


def curves_of(points: Sequence[CrossoverPoint]) -> list[Curve]:
    """Return the curves on which points are, in their order."""
    return list(dict.fromkeys((one.lattice, one.at) for one in points))


def series_of_points(
    points: Sequence[CrossoverPoint], curve: Curve, field: str
) -> tuple[Array, list[Estimate]]:
    """Return where a quantity is known with its error on a curve, and its values."""
    pairs = [(one.x, getattr(one, field)) for one in points if (one.lattice, one.at) == curve]
    known = [(x, one) for x, one in pairs if one and math.isfinite(one.error) and one.error > 0]
    return np.array([x for x, _ in known]), [one for _, one in known]


def peaks_of(
    points: Sequence[CrossoverPoint], samples: int, seed: int = 1
) -> tuple[list[SusceptibilityPeak], list[str]]:
    """Return the peaks of all susceptibilities on all curves, and cautions about them.

    Parameters
    ----------
    points : sequence of CrossoverPoint
        The runs.
    samples : int
        Number of sets of points that are drawn within their errors, for the errors of the peaks.
    seed : int
        Seed of these sets.
    """
    found, cautions = [], []
    for curve in curves_of(points):
        where = " at ".join(filter(None, curve))
        for name, field in SUSCEPTIBILITIES.items():
            x, values = series_of_points(points, curve, field)
            if not x.size:
                continue
            peak = _peak(curve, name, x, values, samples, seed)
            if isinstance(peak, str):
                cautions.append(f"On {where} {name} {peak}")
                continue
            found.append(peak)
            if peak.p_value is not None and peak.p_value < POOR:
                cautions.append(
                    f"On {where} the points around the peak of {name} do not lie on a parabola "
                    f"(p = {peak.p_value:.2g}): add runs closer to it."
                )
    return found, cautions


def _peak(
    curve: Curve, name: str, x: Array, values: Sequence[Estimate], samples: int, seed: int
) -> SusceptibilityPeak | str:
    """Return a peak, or why there is none, as the end of a sentence."""
    y, error = np.array([[one.value, one.error] for one in values]).T
    top = int(np.argmax(y))
    if x.size < 3:
        return f"is known at {x.size} values, and a peak needs three: add runs."
    if top in (0, x.size - 1):
        side = "smaller" if top == 0 else "larger"
        return f"is largest at the end of the runs: add runs beyond x = {x[top]:.12g}, {side} ones."
    near = _around(y, error, top)
    at, size, width = x[near], y[near], error[near]
    best = _parabola(at, size, width)
    middle = -best[1] / (2 * best[2]) if best[2] < 0 else math.nan
    if not at[0] <= middle <= at[-1]:
        return "has no peak beyond its errors: make the runs longer, or add others."
    drawn = size + width * np.random.default_rng(seed).normal(size=(samples, size.size))
    every = np.array([best, *(_parabola(at, one, width) for one in drawn)])
    every = every[every[:, 2] < 0]  # samples without a maximum have no position
    positions = -every[:, 1] / (2 * every[:, 2])
    heights = every[:, 0] + every[:, 1] * positions / 2
    chi2 = float((((size - np.polynomial.polynomial.polyval(at, best)) / width) ** 2).sum())
    dof, first = at.size - best.size, best.tolist()
    return SusceptibilityPeak(
        *curve,
        name,
        _estimate(positions),
        _estimate(heights),
        int(at.size),
        chi2 if dof else None,
        exceedance(chi2, np.ones(dof)) if dof else None,
        (first[0], first[1], first[2]),
    )


def _around(y: Array, error: Array, top: int) -> slice:
    """Return the points around the largest one: three, and neighbours above half of its height.

    A neighbour counts as above if it is so within its error.
    """
    first, last, half = top - 1, top + 1, y[top] / 2
    while first > 0 and y[first - 1] + error[first - 1] > half:
        first -= 1
    while last < y.size - 1 and y[last + 1] + error[last + 1] > half:
        last += 1
    return slice(first, last + 1)


def _parabola(x: Array, y: Array, error: Array) -> Array:
    """Return the coefficients of 1, x and x^2 of a parabola, by least squares."""
    middle = x.mean()
    a, b, c = np.polynomial.polynomial.polyfit(x - middle, y, 2, w=1 / error)
    return np.array([a - b * middle + c * middle**2, b - 2 * c * middle, c])


def _estimate(samples: Array) -> Estimate:
    """Return the first number with half the interval of the middle 68 % of all as its error.

    Parabolas that are almost flat have peaks far away, which would dominate a variance.
    """
    low, high = np.quantile(samples, [0.16, 0.84])
    return Estimate(float(samples[0]), float(high - low) / 2, math.nan, math.nan, samples.size - 1)
