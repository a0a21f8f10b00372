"""The static potential: fits of V(R) and the scales that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.libraries import load
from gauge_mc.analysis.linear_fit import can_invert, fit_linear
from gauge_mc.analysis.loops import Loops
from gauge_mc.analysis.plateau import PlateauPoint, Plateaus, find_plateaus
from gauge_mc.analysis.timeseries import STRETCH, Estimate
from gauge_mc.errors import GaugeError, UsageError

Array = NDArray[np.float64]

HBAR_C = 197.3269804
"""hbar c in MeV fm (CODATA 2018; exact in the SI)."""

ROOT_SIGMA = 440.0
"""Square root of the string tension in MeV, which sets the scale. It is a
convention: in pure gauge theory it defines what 1 fm is."""

LUSCHER = -math.pi / 12
"""Coefficient of 1/R in the potential of the bosonic string in four dimensions (M. Luescher,
K. Symanzik and P. Weisz, Nucl. Phys. B 173 (1980) 365)."""

R0_FORCE, R1_FORCE = 1.65, 1.0
"""Values of r^2 F(r) that define r0 (R. Sommer, hep-lat/9310022) and r1 (C. Bernard et al.,
hep-lat/0002028)."""

LEAST_DISTANCES = 4
"""Minimum number of distances in a fit: one more than A + B/R + sigma R has parameters."""

WINDOW = (
    "from R of at least 2 and at least r0/3 to the largest R with a plateau, but at least four "
    "distances"
)
"""Default window of a fit, in words. R >= 2 avoids lattice artefacts, and R >= r0/3 (0.17 fm) the
perturbative region, where B depends on R. Neither bound depends on the noise of the data."""

FEW_SAMPLES = 50
"""Number of independent samples below which results carry a caution. At this number the relative
error of an error is about 17 % (eq. (42) of hep-lat/0306017 with W = 4 tau_int)."""

ENSEMBLE = "ensemble"
"""Name that the Markov chain has in pyerrors."""


@dataclass(frozen=True)
class WindowFit:
    """A fit of V(R) = A + B/R + sigma R to the distances r_min <= R <= r_max.

    Attributes
    ----------
    b_free : bool
        True if B was fitted, False if it was set to -pi/12.
    r_min, r_max : float
        Smallest and largest distance fitted, in lattice units.
    points : int
        Number of fitted points.
    A, B, sigma : Estimate
        Parameters in lattice units: A a, B and sigma a^2.
    spacing : Estimate
        a in fm, from sqrt(sigma) = 440 MeV; NaN if sigma is not positive.
    r0, r1 : Estimate
        Scales r0/a and r1/a, at which r^2 dV/dr is 1.65 and 1; NaN if there is no such r.
    covariance : tuple of tuple of float, 3 x 3
        Covariance matrix of A, B and sigma.
    chi2, chi2_expected : float
        Minimum of chi2, and its expectation, which is dof if the fit is correlated.
    dof : int
        Degrees of freedom.
    correlated : bool
        True if the points are weighted by their inverse covariance matrix, False if by their
        errors alone, because there are too few independent samples for the matrix. The errors of
        the parameters include all correlations in both cases.
    """

    b_free: bool
    r_min: float
    r_max: float
    points: int
    A: Estimate
    B: Estimate
    sigma: Estimate
    spacing: Estimate
    r0: Estimate
    r1: Estimate
    covariance: tuple[tuple[float, ...], ...]
    chi2: float
    chi2_expected: float
    dof: int
    correlated: bool

    def potential(self, r: Array) -> tuple[Array, Array]:
        """Return the fitted V(r) and its error, in lattice units, at distances r > 0."""
        design = _design(r)
        value = design @ [self.A.value, self.B.value, self.sigma.value]
        variance = np.einsum("ri,ij,rj->r", design, np.array(self.covariance), design)
        return value, np.sqrt(np.maximum(variance, 0.0))


@dataclass(frozen=True)
class WindowScan:
    """A fit, and fits to other windows of distances.

    Attributes
    ----------
    fit : WindowFit
        Fit to the chosen window.
    from_r : tuple of WindowFit
        Fits to all windows with the same r_max, sorted by r_min.
    to_r : tuple of WindowFit
        Fits to all windows with the same r_min, sorted by r_max.
    """

    fit: WindowFit
    from_r: tuple[WindowFit, ...]
    to_r: tuple[WindowFit, ...]

    def shift(self, name: str) -> float:
        """Return the largest change of a quantity when one end of the window moves by up to R = 1.

        Parameters
        ----------
        name : str
            ``"A"``, ``"B"``, ``"sigma"``, ``"spacing"``, ``"r0"`` or ``"r1"``.

        Returns
        -------
        float
            The change, a measure of the systematic error, in the units of the quantity. NaN if no
            other window is within one lattice unit.
        """
        near = [
            one
            for one in (*self.from_r, *self.to_r)
            if abs(one.r_min - self.fit.r_min) + abs(one.r_max - self.fit.r_max) < 1 + 1e-9
        ]
        shifts = [abs(getattr(one, name).value - getattr(self.fit, name).value) for one in near]
        return max((one for one in shifts if one > 0), default=math.nan)


@dataclass(frozen=True)
class StaticPotential:
    """V(R) of an ensemble, with its fits.

    Attributes
    ----------
    smearing : int
        Number of smearing iterations of the loops used.
    configurations : int
        Number of configurations.
    independent : float
        Effective number of independent configurations.
    plateau, window : str
        Rules for the plateaus in t and for the window in R, in words.
    points : tuple of PlateauPoint
        V(R), sorted by R.
    free, string : WindowScan
        Fits with B free, and with B = -pi/12.
    ensemble : dict of str to str
        Group, beta and lattice of the ensemble.
    """

    smearing: int
    configurations: int
    independent: float
    plateau: str
    window: str
    points: tuple[PlateauPoint, ...]
    free: WindowScan
    string: WindowScan
    ensemble: dict[str, str] = field(default_factory=dict)

    @property
    def cautions(self) -> list[str]:
        """Cautions about these results, one sentence each."""
        fit = self.free.fit
        found = []
        if self.independent < FEW_SAMPLES:
            found.append(
                f"There are effectively only {self.independent:.0f} independent configurations: "
                "the true errors may be 1.5 times as large."
            )
        if not fit.correlated:
            found.append(
                "The fits weight each V(R) by its error alone, because the inverse covariance "
                f"matrix of {len(self.points)} points needs more configurations; the errors of the "
                "results include all correlations."
            )
        if fit.chi2 > 2 * fit.chi2_expected:
            found.append("The fit is poor: try a larger r_min, or plateaus from a larger t_min.")
        return found


def static_potential(
    loops: Sequence[Loops],
    t_min: int | None = None,
    t_max: int | None = None,
    r_min: float | None = None,
    r_max: float | None = None,
    ensemble: Mapping[str, str] | None = None,
) -> StaticPotential:
    """Determine V(R) from Wilson loops and fit it.

    Parameters
    ----------
    loops : sequence of Loops
        Loops along each path, measured on the same configurations at the same smearing level.
    t_min, t_max : int, optional
        First and last t of the plateaus of all R; see `find_plateaus` for the default.
    r_min, r_max : float, optional
        Window of distances to fit, in lattice units; see `WINDOW` for the default.
    ensemble : mapping of str to str, optional
        Group, beta and lattice of the ensemble, which are passed on to the result.

    Returns
    -------
    StaticPotential

    Raises
    ------
    GaugeError
        If there are too few configurations, plateaus or distances, if the loops have different
        smearing levels, or if pyerrors is not installed.
    UsageError
        If a window is outside the data or contains too few points.
    """
    if len({one.smearing for one in loops}) != 1:
        raise GaugeError("The paths have Wilson loops at different smearing levels; choose one.")
    plateaus = find_plateaus(loops, t_min, t_max)
    low, high = choose_window(plateaus, r_min, r_max)
    window = f"from R = {low:.4g} to {high:.4g}"
    if r_min is None:
        window += f" ({WINDOW})"
    return StaticPotential(
        smearing=loops[0].smearing,
        configurations=int(plateaus.sweeps.size),
        independent=plateaus.independent,
        plateau=plateaus.rule,
        window=window,
        points=plateaus.points,
        free=scan_windows(plateaus, True, low, high),
        string=scan_windows(plateaus, False, low, high),
        ensemble=dict(ensemble or {}),
    )


def choose_window(
    plateaus: Plateaus, r_min: float | None = None, r_max: float | None = None
) -> tuple[float, float]:
    """Return the smallest and the largest distance to fit, in lattice units.

    Parameters
    ----------
    plateaus : Plateaus
    r_min, r_max : float, optional
        Requested window. By default it is chosen by the rule `WINDOW`, with r0 from a fit that
        starts at R = 2. Smaller R are included if there would be fewer than four distances.

    Raises
    ------
    GaugeError
        If there are plateaus at fewer than four distances.
    UsageError
        If the requested window contains fewer than four distances with a plateau.
    """
    known = _distances(plateaus)
    if known.size < LEAST_DISTANCES:
        raise GaugeError(
            f"V(R) has plateaus at {known.size} distances, but a fit of A + B/R + sigma R needs "
            f"{LEAST_DISTANCES}; measure larger loops or more configurations."
        )
    inside = known[_between(known, r_min or 0.0, math.inf if r_max is None else r_max)]
    if inside.size < LEAST_DISTANCES:
        raise UsageError(
            f"The window contains {inside.size} distances with a plateau, but a fit needs at least "
            f"{LEAST_DISTANCES}; choose a wider one between R = {known[0]:.4g} and {known[-1]:.4g}."
        )
    if r_min is None:
        last = float(inside[-LEAST_DISTANCES])
        start = min(2.0, last)
        scale = fit_window(plateaus, True, start, float(inside[-1])).r0.value
        start = min(max(start, scale / 3 if math.isfinite(scale) else start), last)
        inside = inside[_between(inside, start, math.inf)]
    return float(inside[0]), float(inside[-1])


def scan_windows(plateaus: Plateaus, b_free: bool, r_min: float, r_max: float) -> WindowScan:
    """Fit a window of distances, and all windows that differ from it in one end.

    Parameters
    ----------
    plateaus : Plateaus
    b_free : bool
        Whether B is fitted or set to -pi/12.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.
    """
    known = _distances(plateaus)
    below = known[known <= r_max + 1e-9][: 1 - LEAST_DISTANCES]
    above = known[known >= r_min - 1e-9][LEAST_DISTANCES - 1 :]
    return WindowScan(
        fit_window(plateaus, b_free, r_min, r_max),
        tuple(fit_window(plateaus, b_free, float(low), r_max) for low in below),
        tuple(fit_window(plateaus, b_free, r_min, float(high)) for high in above),
    )


def fit_window(plateaus: Plateaus, b_free: bool, r_min: float, r_max: float) -> WindowFit:
    """Fit V(R) = A + B/R + sigma R to the points with r_min <= R <= r_max.

    The errors are computed from the linearised time series of the parameters by the Gamma method
    of pyerrors. So they include autocorrelations and all correlations among the points.

    Parameters
    ----------
    plateaus : Plateaus
    b_free : bool
        Whether B is fitted or set to -pi/12.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.

    Raises
    ------
    GaugeError
        If pyerrors is not installed.
    """
    distances = np.array([one.distance for one in plateaus.points])
    used = _between(distances, r_min, r_max)
    r, series = distances[used], plateaus.series[:, used]
    # The choice is the same for all windows, so that differences among them are not due to it.
    correlated = can_invert(distances.size, plateaus.independent)
    if b_free:
        fit = fit_linear(_design(r), series, plateaus.tau_int, correlated)
        parameters = series @ fit.projection.T
    else:
        series = series - LUSCHER / r
        fit = fit_linear(_design(r)[:, ::2], series, plateaus.tau_int, correlated)
        parameters = np.insert(series @ fit.projection.T, 1, LUSCHER, axis=1)
    A, B, sigma, spacing, r0, r1 = _quantities(parameters, b_free, plateaus.sweeps)
    return WindowFit(
        b_free=b_free,
        r_min=float(r[0]),
        r_max=float(r[-1]),
        points=r.size,
        A=A,
        B=B,
        sigma=sigma,
        spacing=spacing,
        r0=r0,
        r1=r1,
        covariance=_covariance(parameters, np.array([A.error, B.error, sigma.error])),
        chi2=fit.chi2,
        chi2_expected=fit.chi2_expected,
        dof=fit.dof,
        correlated=fit.correlated,
    )


def _design(r: Array) -> Array:
    """Return 1, 1/r and r, the derivatives of V(r) by A, B and sigma, shape (points, 3)."""
    return np.stack([np.ones_like(r), 1 / r, r], axis=1)


def _quantities(parameters: Array, b_free: bool, sweeps: NDArray[np.int64]) -> list[Estimate]:
    """Return A, B, sigma, spacing, r0 and r1 from the time series of A, B and sigma."""
    obs = load("pyerrors").Obs
    A, B, sigma = (obs([one], [ENSEMBLE], idl=[sweeps.tolist()]) for one in parameters.T)
    B = B if b_free else LUSCHER
    spacing = np.sqrt(sigma) * (HBAR_C / ROOT_SIGMA) if sigma > 0 else math.nan
    squares = [(force + B) / sigma for force in (R0_FORCE, R1_FORCE)]
    r0, r1 = (np.sqrt(one) if sigma > 0 and one > 0 else math.nan for one in squares)
    return [_as_estimate(one, len(sweeps)) for one in (A, B, sigma, spacing, r0, r1)]


def _as_estimate(quantity: Any, samples: int) -> Estimate:
    """Return the estimate of a pyerrors observable, or of a float, which is exact or NaN."""
    if isinstance(quantity, float):
        return Estimate(quantity, 0.0 * quantity, 0.5, 0.0, samples)
    quantity.gamma_method(S=STRETCH)
    return Estimate(
        float(quantity.value),
        float(quantity.dvalue),
        float(quantity.e_tauint[ENSEMBLE]),
        float(quantity.e_dtauint[ENSEMBLE]),
        samples,
    )


def _covariance(parameters: Array, error: Array) -> tuple[tuple[float, ...], ...]:
    """Return the covariance matrix with the given errors and the correlations of the series."""
    scatter = parameters.std(axis=0)
    scale = np.divide(error, scatter, out=np.zeros_like(error), where=error > 0)
    unit = (parameters - parameters.mean(axis=0)) * scale
    return tuple(map(tuple, (unit.T @ unit / len(unit)).tolist()))


def _distances(plateaus: Plateaus) -> Array:
    """Return the distances that have a plateau, without duplicates, ascending."""
    return np.unique([one.distance for one in plateaus.points])


def _between(r: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Mark the distances from low to high; 1e-9 allows for the rounding of their square roots."""
    return np.asarray((r >= low - 1e-9) & (r <= high + 1e-9))
