"""The static potential: fits of V(R) and the scales that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting.linear_fit import POOR, LinearFit, can_invert, fit_linear
from gauge_mc.analysis.potential.lattice_coulomb import force_distance
from gauge_mc.analysis.potential.loops import AXIS, Loops, step_length
from gauge_mc.analysis.potential.plateau import (
    LARGEST_SHIFT,
    LOOP_PRECISION,
    EffectiveEnergies,
    PlateauPoint,
    Plateaus,
    akaike_weights,
    covariance_of,
    excess,
    find_plateaus,
    scatter,
)
from gauge_mc.analysis.timeseries import Estimate, caution_series, caution_short, estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.results import documented, result_field

Array = NDArray[np.float64]

HBAR_C = 197.3269804
"""hbar c in MeV fm (CODATA 2018; exact in the SI)."""

ROOT_SIGMA = 440.0
"""Square root of the string tension in MeV, which sets the scale. It is a
convention: in pure gauge theory it defines what 1 fm is."""

LUSCHER = -math.pi / 12
"""Coefficient of 1/R in the potential of the bosonic string in four dimensions (M. Luescher,
K. Symanzik and P. Weisz, Nucl. Phys. B 173 (1980) 365)."""

FORCES = {"r0": 1.65, "r1": 1.0, "rc": 0.65}
"""Values of r^2 F(r) that define r0 (R. Sommer, hep-lat/9310022), r1 (C. Bernard et al.,
hep-lat/0002028) and r_c (S. Necco and R. Sommer, hep-lat/0108008)."""

CORNELL, NAMBU_GOTO = "cornell", "nambu-goto"
"""Forms of V(R): A + B/R + sigma R, and the ground state of the Nambu-Goto string."""

CONTINUUM, LATTICE = "continuum", "lattice"
"""Forms of 1/R in fits: the geometric distance, or the Coulomb potential on the lattice, 1/d_I."""

LOOPS, CORRELATORS = "loops", "correlators"
"""What V(R) is from: Wilson loops, or correlators of Polyakov loops."""

UNKNOWN = Estimate(math.nan, math.nan, math.nan, math.nan, 0)
"""A quantity that was not determined."""

LEAST_DISTANCES = 4
"""Minimum number of distances in a fit: one more than A + B/R + sigma R has parameters."""

TRUSTED_DISTANCES = 5
"""Minimum number of distances in a window that is not asked for: two degrees of freedom are left,
so that chi2 can tell whether the form fits."""

SMALLEST_R = 2.0
"""Smallest R of a window that is not asked for. At R = 1 lattice artefacts are largest."""

KNOWN = 3.0
"""Least size of sigma, in units of its statistical and systematic errors, with which a fit to a
window that is not asked for is trusted."""

WINDOW = (
    "from R of at least 2 and at least r0/3, and from where on the fit with B free is not poor, to "
    "the largest R with a plateau, with at least five distances"
)
"""Default window of a fit, in words. R >= 2 avoids lattice artefacts, and R >= r0/3 (0.17 fm) the
perturbative region, where B depends on R. Precise data see both at larger R, too."""


class UntrustedError(GaugeError):
    """V(R) is known, but no fit to it can be trusted."""


@documented
@dataclass(frozen=True, kw_only=True)
class WindowFit:
    """A fit of V(R) to the distances r_min <= R <= r_max."""

    b_free: bool = result_field("True if B was fitted, False if it was set to -pi/12.")
    r_min: float = result_field("Smallest distance fitted, in lattice units.")
    r_max: float = result_field("Largest distance fitted, in lattice units.")
    points: int = result_field("Number of fitted points.")
    A: Estimate = result_field("The constant A a in lattice units.", symbol="A a")
    B: Estimate = result_field("The coefficient of 1/R.", symbol="B")
    sigma: Estimate = result_field("String tension sigma a^2 in lattice units.", symbol="σ a²")
    root_sigma: Estimate = result_field("sqrt(sigma a^2).", UNKNOWN, symbol="√σ a")
    spacing: Estimate = result_field(
        "a in fm, from sqrt(sigma) = 440 MeV; NaN if sigma is not positive.",
        symbol="a",
        unit="fm",
    )
    r0: Estimate = result_field(
        "Scale r0/a, at which r^2 dV/dr is 1.65; NaN if there is no such r.",
        symbol="r₀/a",
    )
    r1: Estimate = result_field(
        "Scale r1/a, at which r^2 dV/dr is 1; NaN if there is no such r.",
        symbol="r₁/a",
    )
    rc: Estimate = result_field("Scale r_c/a, at which r^2 dV/dr is 0.65.", UNKNOWN, symbol="r_c/a")
    covariance: tuple[tuple[float, ...], ...] = result_field(
        "3 x 3 covariance matrix of A, B and sigma."
    )
    chi2: float = result_field("Minimum of chi2.")
    chi2_expected: float = result_field(
        "Expectation of the minimum of chi2, which is dof if the fit is correlated.",
    )
    dof: int = result_field("Degrees of freedom.")
    correlated: bool = result_field(
        "True if the points are weighted by their inverse covariance matrix, False if by their "
        "errors alone, because there are too few independent samples for the matrix. The "
        "errors of the parameters include all correlations in both cases.",
    )
    form: str = result_field(
        '``"cornell"`` for A + B/R + sigma R, or ``"nambu-goto"`` for A + sigma R sqrt(1 - '
        "pi/(6 sigma R^2)), where B is -pi/12 for large R.",
        CORNELL,
    )
    coulomb: str = result_field(
        '``"continuum"`` if the term B/R has the geometric distance, ``"lattice"`` if 1/R is '
        "the Coulomb potential on the lattice.",
        CONTINUUM,
    )
    systematic: dict[str, float] = result_field(
        "Systematic errors of the quantities, by name, from the range of t: from the ranges "
        "that were averaged, or else the change with plateaus that begin one step later, "
        "beyond its statistical error; empty if it is not known. They are not in the errors.",
        dict,
    )
    p_value: float = result_field(
        "Probability of a larger chi2 if the form is right, from the distribution of chi2 with "
        "the weights of the fit (M. Bruno and R. Sommer, arXiv:2209.14188); NaN in results of "
        "versions that did not compute it.",
        math.nan,
    )

    def potential(self, r: Array) -> tuple[Array, Array]:
        """Return the fitted V(r) in the continuum and its error, in lattice units, at r > 0."""
        if self.form == NAMBU_GOTO:
            level, slope = _string(r, self.sigma.value)
            design = np.stack([np.ones_like(r), np.zeros_like(r), slope], axis=1)
            value = self.A.value + level
        else:
            design = np.stack([np.ones_like(r), 1 / r, r], axis=1)
            value = design @ [self.A.value, self.B.value, self.sigma.value]
        variance = np.einsum("ri,ij,rj->r", design, np.array(self.covariance), design)
        return value, np.sqrt(np.maximum(variance, 0.0))

    def continuum(self, points: Sequence[PlateauPoint]) -> Array:
        """Return V(R) of points, without the lattice artefact of the Coulomb term if it is known.

        The artefact is B (1/d_I - 1/R), if the fit contains 1/d_I.
        """
        value = np.array([one.potential.value for one in points])
        r, improved = (
            np.array([getattr(one, x) for one in points]) for x in ("distance", "improved")
        )
        lattice = self.coulomb == LATTICE and self.form == CORNELL
        return value - self.B.value * (1 / improved - 1 / r) if lattice else value


@dataclass(frozen=True)
class ForcePoint:
    """The force F = [V(R) - V(R - d)] / d between neighbouring distances on a path.

    Attributes
    ----------
    path : str
        Direction of the spatial lines; d is the length of a step.
    steps : int
        Number of steps of the larger distance.
    distance : float
        Tree-level improved distance r_I, at which the force on the lattice is that in the
        continuum at tree level, in lattice units.
    force : Estimate
        F a^2 at r_I.
    scaled : Estimate
        r_I^2 F.
    """

    path: str
    steps: int
    distance: float
    force: Estimate
    scaled: Estimate


@dataclass(frozen=True)
class ForceScale:
    """A scale from the force at improved distances, interpolated by F = f1 + f2/r^2.

    Attributes
    ----------
    value : Estimate
        The scale in lattice units, with its statistical error.
    systematic : float
        Systematic error of the interpolation: the largest change of the scale with a further term
        f3/r^4 and a third point, the next lower or the next higher one, less the statistical error
        of the change in quadrature; NaN if there is no third point.
    r_low, r_high : float
        The two improved distances between which it was interpolated.
    ranges : float
        Systematic error from the range of t, as in `WindowFit`; NaN if it is not known.
    """

    value: Estimate
    systematic: float
    r_low: float
    r_high: float
    ranges: float = math.nan

    def __str__(self) -> str:
        """Return the scale with its statistical and its systematic error, as in ``2.932(3)(2)``."""
        text = str(self.value)
        known = [one for one in (self.systematic, self.ranges) if math.isfinite(one)]
        if not known:
            return text
        number, _, error = text.partition("(")
        decimals = len(number.partition(".")[2])
        total = math.hypot(*known)
        whole = f"{total:.{decimals}f}" if "." in error else f"{total * 10**decimals:.0f}"
        return f"{text}({whole})"


@dataclass(frozen=True)
class RangeAverage:
    """A quantity averaged over windows in R with Akaike weights.

    Attributes
    ----------
    value : Estimate
        The average, with its statistical error.
    systematic : float
        Scatter of the quantity among the windows, its systematic error from the ranges of t, and
        1/sqrt(3) of its change with the other form of 1/R beyond the statistical error, in
        quadrature.
    """

    value: Estimate
    systematic: float


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
    window : dict of str to float
        Systematic errors of the quantities, by name, from the window and the form: the largest
        change, beyond its statistical error, when one end of the window moves by up to one lattice
        unit, or 1/sqrt(3) of it when 1/R is replaced by its other form, among fits that are not
        poor. A quantity without any such fit is missing.
    """

    fit: WindowFit
    from_r: tuple[WindowFit, ...]
    to_r: tuple[WindowFit, ...]
    window: dict[str, float] = field(default_factory=dict)

    def systematic(self, name: str) -> float:
        """Return the systematic error of a quantity, from the range of t and from the window.

        Parameters
        ----------
        name : str
            Name of an attribute of `WindowFit`, such as ``"r0"``.

        Returns
        -------
        float
            Both in quadrature, in the units of the quantity.
        """
        return math.hypot(self.fit.systematic.get(name, 0.0), self.window.get(name, 0.0))

    def error(self, name: str) -> float:
        """Return the statistical and the systematic error of a quantity in quadrature."""
        return math.hypot(getattr(self.fit, name).error, self.systematic(name))


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
    free, string : WindowScan or None
        Fits with B free, and with B = -pi/12; None if no fit can be trusted.
    ensemble : dict of str to str
        Group, beta and lattice of the ensemble.
    correlated_plateaus : bool
        Whether all plateaus are weighted by the inverse covariance matrix of their t, or all by
        the errors alone.
    left_out : tuple of str
        Paths and distances that have loops, but no plateau.
    nambu_goto : WindowScan or None
        Fit of the Nambu-Goto string to the distances R >= r0; None if there are too few.
    force : tuple of ForcePoint
        Forces between neighbouring distances on each path, sorted by r_I.
    force_scales : dict of str to ForceScale
        Scales ``r0``, ``r1`` and ``rc`` from the force on axis, as far as it brackets them.
    averaged : dict of str to RangeAverage
        Quantities of the fit with B free, averaged over windows in R if that was asked for.
    levels : tuple of int
        Smearing levels of a variational analysis; empty for loops at one level.
    reference : str
        Reference time t0 of the variational analysis, in words.
    excited : tuple of PlateauPoint
        First excited energies of a variational analysis.
    notes : tuple of str
        Further cautions, one sentence each.
    skip : int
        Last update that was left out.
    t_step : int
        Distance of the values of t of the loops.
    source : str
        ``"loops"`` for Wilson loops, or ``"correlators"`` for correlators of Polyakov loops. The t
        of the points then are the extent of the lattice in time.
    refused : tuple of str
        Why there is no fit with B free, or with B = -pi/12, one sentence each.
    """

    smearing: int
    configurations: int
    independent: float
    plateau: str
    window: str
    points: tuple[PlateauPoint, ...]
    free: WindowScan | None
    string: WindowScan | None
    ensemble: dict[str, str] = field(default_factory=dict)
    correlated_plateaus: bool = True
    left_out: tuple[str, ...] = ()
    nambu_goto: WindowScan | None = None
    force: tuple[ForcePoint, ...] = ()
    force_scales: dict[str, ForceScale] = field(default_factory=dict)
    averaged: dict[str, RangeAverage] = field(default_factory=dict)
    levels: tuple[int, ...] = ()
    reference: str = ""
    excited: tuple[PlateauPoint, ...] = ()
    notes: tuple[str, ...] = ()
    skip: int = 0
    t_step: int = 1
    source: str = LOOPS
    refused: tuple[str, ...] = ()

    @property
    def fits(self) -> dict[str, WindowScan]:
        """The fits that can be trusted, by the name of their attribute."""
        found = {"free": self.free, "string": self.string, "nambu_goto": self.nambu_goto}
        return {name: scan for name, scan in found.items() if scan}

    def trusted(self) -> WindowScan:
        """Return the fit with B free.

        Raises
        ------
        GaugeError
            If it cannot be trusted; the sentence says why.
        """
        if self.free is None:
            raise GaugeError(next(iter(self.refused), "There is no fit of V(R)."))
        return self.free

    @property
    def cautions(self) -> list[str]:
        """Cautions about these results, one sentence each."""
        tau_int = self.configurations / (2 * self.independent)
        found = [*self.refused, *caution_short(self.configurations, tau_int), *self.notes]
        if self.left_out and self.source == CORRELATORS:
            found.append(
                "Distances left out, because C(R) is negative or known to less than "
                f"{LOOP_PRECISION:.0%}: {', '.join(self.left_out)}."
            )
        elif self.left_out:
            found.append(
                f"Distances without a plateau of at least two t: {', '.join(self.left_out)}; "
                "--single includes plateaus of one t."
            )
        alone = [one for one in self.points if one.t_min == one.t_max and self.source == LOOPS]
        if alone:
            names = ", ".join(f"{one.path} R = {one.distance:.4g}" for one in alone)
            found.append(f"Plateaus of a single t, which cannot be seen to be level: {names}.")
        fit = self.free.fit if self.free else None
        if fit and not fit.correlated:
            found.append(
                "The fits weight each V(R) by its error alone, because the inverse covariance "
                f"matrix of {len(self.points)} points needs more configurations; the errors of the "
                "results include all correlations."
            )
        if not self.correlated_plateaus:
            found.append(
                "The plateaus weight each t by its error alone, for all R alike, because the "
                "inverse covariance matrices need more configurations."
            )
        shifted = [one for one in self.points if one.contaminated]
        if shifted:
            found.append(
                "Excited states may shift V(R) by more than half of its error at "
                f"{', '.join(f'{one.path} R = {one.distance:.4g}' for one in shifted)}; measure "
                "larger t, smear more, or analyse several smearing levels with --levels."
            )
        if fit and fit.p_value < POOR:
            found.append(
                f"The fit is poor (p = {fit.p_value:.1g}): try a larger r_min, or plateaus from a "
                "larger t_min."
            )
        if fit and fit.dof < TRUSTED_DISTANCES - 3:
            found.append(
                "The fit with B free has a single degree of freedom, so that chi2 hardly tells "
                "whether the form fits; choose a wider window."
            )
        if fit and fit.r0.value > self.points[-1].distance:
            found.append(
                f"r0/a = {fit.r0.value:.3g} is beyond the largest distance with a plateau, "
                f"R = {self.points[-1].distance:.4g}: it rests on the form of the fit."
            )
        return found


def short_chi2(chi2: float) -> str:
    """Return chi2 or its expectation with one decimal place, or one digit if it is below 1.

    That of a fit with weights by errors alone can be far below 1.
    """
    return f"{chi2:.1f}" if chi2 >= 1 else f"{chi2:.1g}"


def static_potential(
    loops: Sequence[Loops | EffectiveEnergies],
    t_min: int | None = None,
    t_max: int | None = None,
    r_min: float | None = None,
    r_max: float | None = None,
    ensemble: Mapping[str, str] | None = None,
    single: bool = False,
    average: bool = False,
    coulomb: str = CONTINUUM,
) -> StaticPotential:
    """Determine V(R) from Wilson loops and fit it.

    Parameters
    ----------
    loops : sequence of Loops or EffectiveEnergies
        Loops along each path, measured on the same configurations at the same smearing level, or
        the lowest energies of a variational analysis.
    t_min, t_max : int, optional
        First and last t of the plateaus of all R; see `find_plateaus` for the default.
    r_min, r_max : float, optional
        Window of distances to fit, in lattice units; see `WINDOW` for the default.
    ensemble : mapping of str to str, optional
        Group, beta and lattice of the ensemble, which are passed on to the result.
    single : bool
        Whether a plateau may consist of one t.
    average : bool
        Whether to average over ranges of t and over windows in R with Akaike weights.
    coulomb : str
        ``"continuum"`` or ``"lattice"``; see `WindowFit`.

    Returns
    -------
    StaticPotential

    Raises
    ------
    GaugeError
        If there are too few configurations, plateaus or distances, if the loops have different
        smearing levels, or if SciPy is not installed.
    UsageError
        If a window is outside the data or contains too few points.
    """
    plateaus = potential_plateaus(loops, t_min, t_max, single, average)
    return fit_potential(plateaus, loops, r_min, r_max, ensemble, average, coulomb)


def potential_plateaus(
    loops: Sequence[Loops | EffectiveEnergies],
    t_min: int | None = None,
    t_max: int | None = None,
    single: bool = False,
    average: bool = False,
) -> Plateaus:
    """Return the plateaus of loops at one smearing level; see `find_plateaus`.

    If they are too few for a fit, excited states may shift them by their whole error, so that they
    begin earlier.

    Raises
    ------
    GaugeError
        If the loops have different smearing levels.
    """
    if len({one.smearing for one in loops if isinstance(one, Loops)}) > 1:
        raise GaugeError("The paths have Wilson loops at different smearing levels; choose one.")
    found = find_plateaus(loops, t_min, t_max, single, average)
    if t_min is None and _usable(found).size < TRUSTED_DISTANCES:
        more = find_plateaus(loops, t_min, t_max, single, average, LARGEST_SHIFT)
        if _usable(more).size > _usable(found).size:
            found = more
    if average:
        found = replace(found, single=potential_plateaus(loops, t_min, t_max, single))
    return found


def fit_potential(
    plateaus: Plateaus,
    loops: Sequence[Loops | EffectiveEnergies],
    r_min: float | None = None,
    r_max: float | None = None,
    ensemble: Mapping[str, str] | None = None,
    average: bool = False,
    coulomb: str = CONTINUUM,
) -> StaticPotential:
    """Fit V(R) of plateaus; see `static_potential`."""
    free = string = nambu_goto = None
    averaged: dict[str, RangeAverage] = {}
    refused: list[str] = []
    try:
        low, high = choose_window(plateaus, r_min, r_max, coulomb)
    except UntrustedError as error:
        window = "none"
        refused.append(str(error))
    else:
        window = f"from R = {low:.4g} to {high:.4g}{f' ({WINDOW})' * (r_min is None)}"
        scans = [_scan_cornell(plateaus, b_free, low, high, coulomb) for b_free in (True, False)]
        reasons = [_distrust(one) if r_min is None else "" for one in scans]
        refused += filter(None, reasons)
        free, string = (None if reason else one for one, reason in zip(scans, reasons, strict=True))
    if free:
        nambu_goto = _scan_nambu_goto(plateaus, free.fit.r0.value, high)
        averaged = average_windows(plateaus, low, high, coulomb) if average else {}
    of_force = plateaus.single or plateaus
    force = forces(of_force)
    notes = [
        sentence
        for one in loops[:1]
        if isinstance(one, Loops)
        for sentence in caution_series(one.sweeps, *one.values[:, :, 0].T)
    ]
    return StaticPotential(
        smearing=next((one.smearing for one in loops if isinstance(one, Loops)), 0),
        configurations=int(plateaus.sweeps.size),
        independent=plateaus.independent,
        plateau=plateaus.rule,
        window=window,
        points=plateaus.points,
        free=free,
        string=string,
        ensemble=dict(ensemble or {}),
        correlated_plateaus=plateaus.correlated,
        left_out=plateaus.left_out,
        nambu_goto=nambu_goto,
        force=tuple(point for point, _ in force),
        force_scales=force_scales(force, of_force),
        averaged=averaged,
        notes=tuple(notes),
        t_step=next((one.t_step for one in loops if isinstance(one, Loops)), 1),
        refused=tuple(refused),
    )


REMEDY = "measure more configurations, smear more, or take a larger lattice"
"""Advice for potentials to which no fit can be trusted."""


def _distrust(scan: WindowScan) -> str:
    """Return why a fit to a window that was not asked for is not trusted, or nothing."""
    start = f"No string tension with {'B free' if scan.fit.b_free else 'B = −π/12'}:"
    if scan.fit.p_value < POOR:
        return (
            f"{start} the form does not fit from R = {scan.fit.r_min:.4g} on (p = "
            f"{scan.fit.p_value:.1g}); {REMEDY}, or name a window with --r-min."
        )
    if not scan.fit.sigma.value > KNOWN * scan.error("sigma"):
        return (
            f"{start} statistical and systematic errors of σa² together exceed a third of it; "
            f"{REMEDY}."
        )
    return ""


def choose_window(
    plateaus: Plateaus,
    r_min: float | None = None,
    r_max: float | None = None,
    coulomb: str = CONTINUUM,
) -> tuple[float, float]:
    """Return the smallest and the largest distance to fit, in lattice units.

    Parameters
    ----------
    plateaus : Plateaus
    r_min, r_max : float, optional
        Requested window. By default it is chosen by the rule `WINDOW`, with r0 from a fit that
        starts at R = 2.
    coulomb : str
        See `WindowFit`.

    Raises
    ------
    UntrustedError
        If there are plateaus at fewer than four distances, or at fewer than `TRUSTED_DISTANCES`
        from `SMALLEST_R` on if no `r_min` is requested.
    UsageError
        If the requested window contains fewer than four distances with a plateau.
    """
    known = _distances(plateaus)
    inside = known[_between(known, r_min or 0.0, math.inf if r_max is None else r_max)]
    if inside.size < LEAST_DISTANCES <= known.size:
        raise UsageError(
            f"The window contains {inside.size} distances with a plateau, but a fit needs at least "
            f"{LEAST_DISTANCES}; choose a wider one between R = {known[0]:.4g} and {known[-1]:.4g}."
        )
    least, start = LEAST_DISTANCES, 0.0
    if r_min is None:
        least, start = TRUSTED_DISTANCES, SMALLEST_R
    inside = inside[_between(inside, start, math.inf)]
    if inside.size < least:
        span = f" from R = {start:g} on" if start else ""
        span += f" up to R = {r_max:g}" if r_max is not None else ""
        instead = ", or name a window with --r-min" if known.size >= LEAST_DISTANCES else ""
        raise UntrustedError(
            f"No string tension: V(R) is known at {inside.size} distances{span}, but a fit of "
            f"A + B/R + σR needs {least}; {REMEDY}{instead}."
        )
    if r_min is None:
        last = float(inside[-TRUSTED_DISTANCES])
        scale = fit_window(plateaus, True, float(inside[0]), float(inside[-1]), coulomb).r0.value
        start = min(scale / 3, last) if math.isfinite(scale) else SMALLEST_R
        inside = inside[_between(inside, start, math.inf)]
        inside = inside[_between(inside, _first_good(plateaus, inside, coulomb), math.inf)]
    return float(inside[0]), float(inside[-1])


def _first_good(plateaus: Plateaus, inside: Array, coulomb: str) -> float:
    """Return the first distance from where on the fit with B free has r0 and is not poor.

    If there is none, or if already the whole fit is not poor, it is the first distance.
    """
    first, *others = map(float, inside[: 1 - TRUSTED_DISTANCES])
    if fit_window(plateaus, True, first, float(inside[-1]), coulomb).p_value < POOR:
        for low in others:
            fit = fit_window(plateaus, True, low, float(inside[-1]), coulomb)
            if fit.p_value >= POOR and math.isfinite(fit.r0.value):
                return low
    return first


Fitted = tuple["WindowFit", dict[str, "_Derived"]]
"""A fit with its quantities."""


def scan_windows(
    plateaus: Plateaus,
    fit: Callable[[Plateaus, float, float], Fitted],
    r_min: float,
    r_max: float,
    other: Callable[[Plateaus, float, float], Fitted] | None = None,
) -> WindowScan:
    """Fit a window of distances, and all windows that differ from it in one end.

    Parameters
    ----------
    plateaus : Plateaus
    fit : callable
        Fits a window, given the plateaus and its ends. A GaugeError leaves a window out.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.
    other : callable, optional
        Fits another form, whose results are a further measure of the systematic error.

    Raises
    ------
    GaugeError
        If the window itself cannot be fitted.
    """
    known = _distances(plateaus)
    below = known[known <= r_max + 1e-9][: 1 - LEAST_DISTANCES]
    above = known[known >= r_min - 1e-9][LEAST_DISTANCES - 1 :]
    chosen, quantities = fit(plateaus, r_min, r_max)
    from_r = _those_that_fit(fit, plateaus, [(float(low), r_max) for low in below])
    to_r = _those_that_fit(fit, plateaus, [(r_min, float(high)) for high in above])
    near = [one for one in (*from_r, *to_r) if 1e-9 < _distance(one[0], chosen) < 1 + 1e-9]
    others = _those_that_fit(other, plateaus, [(r_min, r_max)]) if other else []
    window: dict[str, float] = {}
    for some, share in ((near, 1.0), (others, BETWEEN)):
        for found, changed in some:
            if found.p_value < POOR <= chosen.p_value:
                continue
            for name in quantities.keys() & changed.keys():
                series = changed[name].series(plateaus) - quantities[name].series(plateaus)
                window[name] = max(window.get(name, 0.0), share * excess(series))
    if plateaus.later:
        later = fit(plateaus.later, r_min, r_max)[1]
        systematic = {
            name: excess(later[name].series(plateaus.later) - one.series(plateaus))
            for name, one in quantities.items()
            if name in later
        }
        chosen = replace(chosen, systematic=systematic)
    below_it, above_it = (tuple(one for one, _ in some) for some in (from_r, to_r))
    return WindowScan(chosen, below_it, above_it, window)


BETWEEN = 1 / math.sqrt(3)
"""Standard deviation, from one end, of a value that lies anywhere between two ends. The truth lies
between the two forms of 1/R as far as it is known."""


def _distance(one: WindowFit, other: WindowFit) -> float:
    """Return by how much the ends of two windows differ, in lattice units."""
    return abs(one.r_min - other.r_min) + abs(one.r_max - other.r_max)


def _those_that_fit(
    fit: Callable[[Plateaus, float, float], Fitted],
    plateaus: Plateaus,
    windows: Sequence[tuple[float, float]],
) -> list[Fitted]:
    """Return the fits to windows, without those that cannot be fitted."""
    found = []
    for low, high in windows:
        with suppress(GaugeError):
            found.append(fit(plateaus, low, high))
    return found


def _scan_cornell(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str
) -> WindowScan:
    """Fit A + B/R + sigma R to a window and its neighbours, with the other form of 1/R as well."""
    other = CONTINUUM if coulomb == LATTICE else LATTICE

    def form(coulomb: str) -> Callable[[Plateaus, float, float], Fitted]:
        return lambda some, low, high: _fit_window(some, b_free, low, high, coulomb)

    return scan_windows(plateaus, form(coulomb), r_min, r_max, form(other))


def fit_window(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str = CONTINUUM
) -> WindowFit:
    """Fit V(R) = A + B/R + sigma R to the points with r_min <= R <= r_max.

    The errors are computed from the linearised time series of the parameters by the Gamma method.
    So they include autocorrelations and all correlations among the points.

    Parameters
    ----------
    plateaus : Plateaus
    b_free : bool
        Whether B is fitted or set to -pi/12.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.
    coulomb : str
        ``"continuum"`` or ``"lattice"``: 1/R is that of the geometric distance, or the Coulomb
        potential on the lattice.
    """
    return _fit_window(plateaus, b_free, r_min, r_max, coulomb)[0]


@dataclass(frozen=True)
class _Derived:
    """A quantity that is derived from V(R), and its derivatives by the V(R) of all points."""

    value: float
    gradient: Array

    def series(self, plateaus: Plateaus) -> Array:
        """Return the linearised time series."""
        change = plateaus.series - plateaus.series.mean(axis=0)
        return np.asarray(self.value + change @ self.gradient)


def _fit_window(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str
) -> Fitted:
    """Return a fit with its quantities."""
    r, used = _window(plateaus, r_min, r_max)
    series = plateaus.series[:, used]
    inverse = 1 / r
    if coulomb == LATTICE:
        inverse = 1 / np.array([one.improved for one in plateaus.points])[used]
    design = np.stack([np.ones_like(r), inverse, r], axis=1)
    # The choice is the same for all windows, so that differences among them are not due to it.
    correlated = can_invert(len(plateaus.points), plateaus.independent)
    if b_free:
        fit = fit_linear(design, series, plateaus.tau_int, correlated)
        values, projection = fit.projection @ series.mean(axis=0), fit.projection
    else:
        series = series - LUSCHER * inverse
        fit = fit_linear(design[:, ::2], series, plateaus.tau_int, correlated)
        values = np.insert(fit.projection @ series.mean(axis=0), 1, LUSCHER)
        projection = np.insert(fit.projection, 1, 0.0, axis=0)
    gradients = _of_all_points(projection, used)
    quantities = {
        name: _Derived(float(value), gradient)
        for name, value, gradient in zip(("A", "B", "sigma"), values, gradients, strict=True)
    }
    _, B, sigma = values
    for name, target in FORCES.items():
        square = (target + B) / sigma
        if sigma > 0 and square > 0:
            root = math.sqrt(square)
            by_parameter = np.array([0, 1 / (2 * root * sigma), -root / (2 * sigma)])
            quantities[name] = _Derived(root, by_parameter @ gradients)
    return _window_fit(plateaus, quantities, fit, r, CORNELL, b_free, coulomb), quantities


def _of_all_points(gradients: Array, used: NDArray[np.bool_]) -> Array:
    """Return derivatives by the V(R) of all points, given those by the points of a window."""
    found = np.zeros((len(gradients), used.size))
    found[:, used] = gradients
    return found


def _window_fit(
    plateaus: Plateaus,
    quantities: dict[str, _Derived],
    fit: LinearFit,
    r: Array,
    form: str,
    b_free: bool,
    coulomb: str,
) -> WindowFit:
    """Return a fit, and complete its quantities by those that sigma determines."""
    sigma = quantities["sigma"]
    if sigma.value > 0:
        root = math.sqrt(sigma.value)
        gradient = sigma.gradient / (2 * root)
        fm = HBAR_C / ROOT_SIGMA
        quantities["root_sigma"] = _Derived(root, gradient)
        quantities["spacing"] = _Derived(root * fm, gradient * fm)
    unknown = replace(UNKNOWN, samples=len(plateaus.series))
    names = ("A", "B", "sigma", "spacing", "root_sigma", *FORCES)
    series = {name: one.series(plateaus) for name, one in quantities.items()}
    found = {name: estimate(series[name]) if name in series else unknown for name in names}
    parameters = np.stack([series[name] for name in ("A", "B", "sigma")], axis=1)
    errors = np.array([found[name].error for name in ("A", "B", "sigma")])
    return WindowFit(
        b_free=b_free,
        r_min=float(r[0]),
        r_max=float(r[-1]),
        points=r.size,
        **found,
        covariance=tuple(map(tuple, covariance_of(parameters, errors).tolist())),
        chi2=fit.chi2,
        chi2_expected=fit.chi2_expected,
        dof=fit.dof,
        correlated=fit.correlated,
        form=form,
        coulomb=coulomb,
        systematic={
            name: plateaus.systematic_error(one.gradient) for name, one in quantities.items()
        }
        if plateaus.averaged
        else {},
        p_value=fit.p_value,
    )


def fit_nambu_goto(plateaus: Plateaus, r_min: float, r_max: float) -> WindowFit:
    """Fit V(R) = A + sigma R sqrt(1 - pi / (6 sigma R^2)) to the points of a window.

    This is the ground state of the Nambu-Goto string in four dimensions with fixed ends (J. F.
    Arvis, Phys. Lett. B 127 (1983) 106). The fit is iterated with the derivative by sigma.

    Parameters
    ----------
    plateaus : Plateaus
    r_min, r_max : float
        Ends of the window in lattice units.

    Raises
    ------
    GaugeError
        If there is no such sigma: the window contains distances where the string is unstable.
    """
    return _fit_nambu_goto(plateaus, r_min, r_max)[0]


def _fit_nambu_goto(plateaus: Plateaus, r_min: float, r_max: float) -> Fitted:
    """Return a fit of the string with its quantities."""
    r, used = _window(plateaus, r_min, r_max)
    series = plateaus.series[:, used]
    correlated = can_invert(len(plateaus.points), plateaus.independent)
    start = np.stack([np.ones_like(r), r], axis=1)
    fit = fit_linear(start, series - LUSCHER / r, plateaus.tau_int, correlated)
    parameters = fit.projection @ (series - LUSCHER / r).mean(axis=0)
    for _ in range(STRING_STEPS):
        sigma = float(parameters[1])
        if not sigma * r[0] ** 2 > STRING_BOUND * (1 + 1e-6):
            raise GaugeError("The Nambu-Goto string is unstable at the smallest R of the window.")
        level, slope = _string(r, sigma)
        shifted = series - level + slope * sigma
        design = np.stack([np.ones_like(r), slope], axis=1)
        fit = fit_linear(design, shifted, plateaus.tau_int, correlated)
        parameters = fit.projection @ shifted.mean(axis=0)
        if abs(parameters[1] - sigma) < 1e-12 * sigma:
            break
    constant, sigma = map(float, parameters)
    by_constant, by_sigma = _of_all_points(fit.projection, used)
    quantities = {
        "A": _Derived(constant, by_constant),
        "B": _Derived(LUSCHER, np.zeros_like(by_constant)),
        "sigma": _Derived(sigma, by_sigma),
    }
    for name, target in FORCES.items():
        # r^2 F = u / sqrt(1 - pi / (6 u)) with u = sigma r^2
        roots = np.roots([1, 0, -(target**2), target**2 * STRING_BOUND])
        real = [one.real for one in roots if abs(one.imag) < 1e-12 and one.real > STRING_BOUND]
        if real:
            scale = math.sqrt(max(real) / sigma)
            quantities[name] = _Derived(scale, -scale / (2 * sigma) * by_sigma)
    found = _window_fit(plateaus, quantities, fit, r, NAMBU_GOTO, False, CONTINUUM)
    return found, quantities


STRING_BOUND = math.pi / 6
"""sigma R^2 below which the Nambu-Goto string is unstable."""

STRING_STEPS = 50
"""Maximum number of iterations of the fit of a string, of which five or so are needed."""


def _string(r: Array, sigma: float) -> tuple[Array, Array]:
    """Return the energy of the Nambu-Goto string, and its derivative by sigma."""
    root = np.sqrt(np.maximum((sigma * r) ** 2 - STRING_BOUND * sigma, 1e-300))
    return root, (2 * sigma * r**2 - STRING_BOUND) / (2 * root)


def _scan_nambu_goto(plateaus: Plateaus, r0: float, r_max: float) -> WindowScan | None:
    """Fit the Nambu-Goto string to the distances from r0 to r_max, if there are enough."""
    known = _distances(plateaus)
    inside = known[_between(known, r0, r_max)] if math.isfinite(r0) else known[:0]
    if inside.size < LEAST_DISTANCES:
        return None
    with suppress(GaugeError):
        return scan_windows(plateaus, _fit_nambu_goto, float(inside[0]), r_max)
    return None


def average_windows(
    plateaus: Plateaus, r_min: float, r_max: float, coulomb: str = CONTINUUM
) -> dict[str, RangeAverage]:
    """Average the quantities of fits with B free over windows within one, by Akaike weights.

    The windows have at least half the points of the whole one, since a fit to fewer says little.

    Parameters
    ----------
    plateaus : Plateaus
    r_min, r_max : float
        Ends of the largest window in lattice units.
    coulomb : str
        See `fit_window`.

    Returns
    -------
    dict of str to RangeAverage
        Averages by the name of the quantity; those that some likely window lacks are missing.
    """
    form = CONTINUUM if coulomb == LATTICE else LATTICE
    others = _average_windows(plateaus, r_min, r_max, form)
    averages = {}
    for name, (mean, spread) in _average_windows(plateaus, r_min, r_max, coulomb).items():
        series = mean.series(plateaus)
        other = others[name][0].series(plateaus) if name in others else series
        form_error = BETWEEN * excess(other - series)
        systematic = math.hypot(spread, plateaus.systematic_error(mean.gradient), form_error)
        averages[name] = RangeAverage(estimate(series), systematic)
    return averages


def _average_windows(
    plateaus: Plateaus, r_min: float, r_max: float, coulomb: str
) -> dict[str, tuple[_Derived, float]]:
    """Return the averages over windows with one form of 1/R, and their scatter."""
    known = _distances(plateaus)
    known = known[_between(known, r_min, r_max)]
    ends = [
        (float(known[i]), float(known[j]))
        for i in range(known.size)
        for j in range(i + LEAST_DISTANCES - 1, known.size)
    ]
    fits = [_fit_window(plateaus, True, *pair, coulomb) for pair in ends]
    most = max(one.points for one, _ in fits)
    fits = [pair for pair in fits if pair[0].points >= most / 2]
    weights = akaike_weights([one.chi2 for one, _ in fits], [one.chi2_expected for one, _ in fits])
    likely = [(w, found) for w, (_, found) in zip(weights, fits, strict=True) if w > NEGLIGIBLE]
    used = np.array([w for w, _ in likely]) / sum(w for w, _ in likely)
    averages = {}
    for name in likely[0][1]:
        if all(name in one for _, one in likely):
            several = [one[name] for _, one in likely]
            values = np.array([one.value for one in several])
            gradient = used @ np.stack([one.gradient for one in several])
            mean = _Derived(float(used @ values), gradient)
            averages[name] = mean, scatter(used, values)
    return averages


NEGLIGIBLE = 1e-6
"""Weight below which a window is left out of an average."""


def forces(plateaus: Plateaus) -> list[tuple[ForcePoint, Array]]:
    """Return the forces between neighbouring distances on each path, sorted by distance.

    They are at tree-level improved distances r_I, each with its derivatives by all V(R).
    """
    index = {(one.path, one.steps): i for i, one in enumerate(plateaus.points)}
    found = []
    for (path, steps), i in index.items():
        j = index.get((path, steps - 1))
        if j is None:
            continue
        gradient = np.zeros(len(index))
        gradient[[i, j]] = 1 / step_length(path), -1 / step_length(path)
        series, r = plateaus.series @ gradient, force_distance(path, steps)
        point = ForcePoint(path, steps, r, estimate(series), estimate(r**2 * series))
        found.append((point, gradient))
    return sorted(found, key=lambda pair: pair[0].distance)


def force_scales(
    force: Sequence[tuple[ForcePoint, Array]], plateaus: Plateaus
) -> dict[str, ForceScale]:
    """Return r0/a, r1/a and r_c/a from the force on axis, as far as it brackets them.

    The force is interpolated by F = f1 + f2/r^2 between the two nearest points (S. Necco and R.
    Sommer, hep-lat/0108008).

    Parameters
    ----------
    force : sequence of (ForcePoint, ndarray)
        The forces with their derivatives, from `forces`.
    plateaus : Plateaus
        The potential from which they are.
    """
    axis = [pair for pair in force if pair[0].path == AXIS]
    found = {}
    for name, target in FORCES.items():
        i = _bracketed(axis, target, plateaus) - 1
        if i < 0:
            continue
        scale = _interpolated(axis[i : i + 2], target)
        if scale is None:
            continue
        further = [axis[n : n + 3] for n in (i - 1, i) if 0 <= n <= len(axis) - 3]
        others = [_interpolated(points, target, scale.value) for points in further]
        found[name] = ForceScale(
            estimate(scale.series(plateaus)),
            _largest_change(scale, [one for one in others if one], plateaus),
            axis[i][0].distance,
            axis[i + 1][0].distance,
            _ranges(name, scale, plateaus),
        )
    return found


def _ranges(name: str, scale: _Derived, plateaus: Plateaus) -> float:
    """Return the systematic error of a scale from the force, from the range of t."""
    if plateaus.later:
        axis = [pair for pair in forces(plateaus.later) if pair[0].path == AXIS]
        later = _bracketed(axis, FORCES[name], plateaus.later)
        found = later and _interpolated(axis[later - 1 : later + 1], FORCES[name])
        if not found:
            return math.nan
        return excess(found.series(plateaus.later) - scale.series(plateaus))
    return plateaus.systematic_error(scale.gradient) if plateaus.averaged else math.nan


def _bracketed(axis: Sequence[tuple[ForcePoint, Array]], target: float, plateaus: Plateaus) -> int:
    """Return the index of the first force at which r^2 F has risen to a value, or 0 without any.

    It is also 0 if r^2 F is not known to rise there, by `RISE` standard deviations: the noise of
    neighbouring forces would decide where it crosses the value.
    """
    for i, ((one, before), (other, after)) in enumerate(pairwise(axis)):
        if one.scaled.value < target <= other.scaled.value:
            gradient = other.distance**2 * after - one.distance**2 * before
            rise = estimate(plateaus.series @ gradient)
            return i + 1 if rise.value > RISE * rise.error else 0
    return 0


RISE = 3.0
"""Least rise of r^2 F between two forces, in standard deviations, between which a scale is
interpolated."""


def _interpolated(
    points: Sequence[tuple[ForcePoint, Array]], target: float, near: float = math.inf
) -> _Derived | None:
    """Return the r at which r^2 F = target, for F = f1 + f2/r^2 + f3/r^4 + … through all points.

    Of several it is the one nearest to `near`; None if there is none.
    """
    r = np.array([point.distance for point, _ in points])
    powers = -2.0 * np.arange(r.size)
    inverse = np.linalg.inv(r[:, None] ** powers)
    f = inverse @ [point.force.value for point, _ in points]
    polynomial = f - target * (np.arange(r.size) == 1)  # in r^2
    roots = [
        math.sqrt(one.real)
        for one in np.roots(polynomial)
        if abs(one.imag) < 1e-12 and one.real > 0
    ]
    if not roots:
        return None
    value = min(roots, key=lambda one: abs(one - near))
    terms = value ** (powers + 2)
    slope = float(terms @ (f * (powers + 2))) / value
    by_force = -(terms @ inverse) / slope
    gradients = np.stack([gradient for _, gradient in points])
    return _Derived(value, np.asarray(by_force @ gradients))


def _largest_change(scale: _Derived, others: Sequence[_Derived], plateaus: Plateaus) -> float:
    """Return the largest deviation of other results that statistical errors do not explain."""
    squares = []
    for one in others:
        change = _Derived(one.value - scale.value, one.gradient - scale.gradient)
        squares.append(change.value**2 - estimate(change.series(plateaus)).error ** 2)
    return math.sqrt(max(0.0, *squares)) if squares else math.nan


def _window(plateaus: Plateaus, r_min: float, r_max: float) -> tuple[Array, NDArray[np.bool_]]:
    """Return the distances of a window, and which points they are."""
    distances = np.array([one.distance for one in plateaus.points])
    used = _between(distances, r_min, r_max)
    return distances[used], used


def _distances(plateaus: Plateaus) -> Array:
    """Return the distances that have a plateau, without duplicates, ascending."""
    return np.unique([one.distance for one in plateaus.points])


def _usable(plateaus: Plateaus) -> Array:
    """Return the distances that may be fitted if no window is asked for."""
    known = _distances(plateaus)
    return known[_between(known, SMALLEST_R, math.inf)]


def _between(r: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Mark the distances from low to high; 1e-9 allows for the rounding of their square roots."""
    return np.asarray((r >= low - 1e-9) & (r <= high + 1e-9))
