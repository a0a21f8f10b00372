"""Results of a study of a transition, with their errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gauge_mc.actions import Coupling, LengthScale
from gauge_mc.analysis.fitting import POOR, exceedance
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.arrays import Array
from gauge_mc.groups import Group
from gauge_mc.quantities.transition.reweighting import (
    ISING_COLOURS,
    CurveZero,
    ThermalCurve,
    ThermalVolume,
    bootstrapped,
    curve_zero,
    root_of,
)
from gauge_mc.results import documented, result_field

ISING_NU, ISING_OMEGA, ISING_ETA = 0.629971, 0.82968, 0.0362978
"""Exponents of the Ising model in three dimensions (F. Kos, D. Poland, D. Simmons-Duffin and A.
Vichi, arXiv:1603.04436; omega: D. Simmons-Duffin, arXiv:1612.08471)."""


@dataclass(frozen=True)
class StraightLine:
    """A straight line through values with errors, with its bootstrap samples.

    The next term, relative to the slope times x, is a number that is 0 within 1 before anything is
    known about it, times `next`: the form is part of the error.
    """

    x: Array
    """Abscissae, of shape (points,)."""
    values: Array
    """Values and their bootstrap samples, of shape (1 + replicas, points)."""
    next: Array
    """Size of the next term relative to the slope times x, of shape (points,); 0 for none."""
    least: float = 0.0
    """Slope that counts for the next term if that of the points is smaller."""

    @property
    def errors(self) -> Array:
        """Errors of the points, which weight them."""
        return np.asarray(np.nanstd(self.values[1:], axis=0, ddof=1))

    @cached_property
    def design(self) -> Array:
        """Derivatives of the points by value at x = 0, slope and next term, (points, 3)."""
        unit = max(self.least, self.slope)
        return np.column_stack([np.ones(self.x.size), self.x, unit * self.x * self.next])

    @cached_property
    def slope(self) -> float:
        """The slope without a next term, and its error, in quadrature."""
        line = np.stack([np.ones(self.x.size), self.x], axis=1)
        inverse = np.linalg.pinv(line / self.errors[:, None])[1]
        return math.hypot(inverse @ (self.values[0] / self.errors), *inverse)

    @cached_property
    def _weighted(self) -> Array:
        """Derivatives in units of the errors, and below them that of the datum for the next."""
        return np.vstack([self.design / self.errors[:, None], [0, 0, 1]])

    @property
    def parameters(self) -> Array:
        """Value at x = 0, slope and next term of all samples, of shape (1 + replicas, 3)."""
        inverse = np.linalg.pinv(self._weighted)[:, :-1]
        return np.asarray((self.values / self.errors) @ inverse.T)

    @property
    def systematic(self) -> float:
        """Error of the value at x = 0 from the next term, which is not determined by the points."""
        return float(abs(np.linalg.pinv(self._weighted)[0, -1]))

    @property
    def chi2(self) -> float:
        """Sum of the squares of the deviations in units of the errors; 0 for two points."""
        if not self.dof:
            return 0.0
        first = self.parameters[0]
        deviations = (self.values[0] - self.design @ first) / self.errors
        return float(np.sum(deviations**2) + first[2] ** 2)

    @property
    def dof(self) -> int:
        """Number of points minus 2."""
        return self.x.size - 2

    @property
    def p_value(self) -> float:
        """Probability of a larger chi2 if the points lie on a line; NaN without freedom.

        Points that are correlated, as crossings that share a volume, have correlated residuals.
        """
        if not self.dof:
            return math.nan
        samples = self.values[1:][np.isfinite(self.values[1:]).all(axis=1)]
        rest = np.eye(self.x.size + 1) - self._weighted @ np.linalg.pinv(self._weighted)
        correlation = np.eye(self.x.size + 1)
        correlation[:-1, :-1] = np.corrcoef(samples, rowvar=False)
        residuals = rest @ correlation @ rest.T
        return exceedance(self.chi2, np.asarray(np.linalg.eigvalsh(residuals)))

    @property
    def quality(self) -> tuple[int, float, int, float]:
        """Number of points, and the three above."""
        return self.x.size, self.chi2, self.dof, self.p_value


def shift(volume: ThermalVolume) -> float:
    """Return the distance of a pseudo-critical coupling from beta_c, up to a constant factor.

    It is (N_t/N_s)^3 at a transition of first order, and (N_t/N_s)^(1/nu) for SU(2).
    """
    ratio = volume.lattice.t / volume.size
    return float(ratio ** (1 / ISING_NU if volume.colours == ISING_COLOURS else 3))


def next_term(volume: ThermalVolume) -> float:
    """Return the size of the next term of such a distance relative to the first one.

    It is (N_t/N_s)^omega for SU(2), the leading correction to scaling. At a transition of first
    order corrections decrease faster in large volumes, but not in those in which the phases are
    hardly separated; N_t/N_s is taken.
    """
    ratio = volume.lattice.t / volume.size
    return float(ratio ** (ISING_OMEGA if volume.colours == ISING_COLOURS else 1))


def crossing_shift(small: ThermalVolume, large: ThermalVolume) -> float:
    """Return the distance of the crossing of two Binder cumulants from beta_c, up to a factor.

    With U = U_c + a (beta - beta_c) N_s^(1/nu) + c N_s^-omega for SU(2) it is proportional to
    (s^-omega - l^-omega) / (l^(1/nu) - s^(1/nu)) of the two sizes in units of N_t, s and l. At a
    transition of first order corrections decrease as the volume.
    """
    s, l = (x.size / x.lattice.t for x in (small, large))
    if small.colours != ISING_COLOURS:
        return float(s**-3)
    scaling = s**-ISING_OMEGA - l**-ISING_OMEGA
    return float(scaling / (l ** (1 / ISING_NU) - s ** (1 / ISING_NU)))


def crossing(small: ThermalVolume, large: ThermalVolume) -> CurveZero:
    """Return the coupling at which the Binder cumulants of two volumes are equal.

    If there are several, the one nearest to the middle of the peaks of the susceptibilities is
    taken.
    """
    binder, larger = small.binder, large.binder
    begin, end = max(binder.beta[0], larger.beta[0]), min(binder.beta[-1], larger.beta[-1])
    if begin >= end:
        return curve_zero(binder.beta, binder.samples, math.nan)
    beta = np.linspace(begin, end, 4 * max(binder.beta.size, larger.beta.size))
    difference = _on(binder, beta) - _on(larger, beta)
    peaks = [volume.peak[0][0] for volume in (small, large)]
    middle = float(np.mean(peaks)) if np.isfinite(peaks).all() else (begin + end) / 2
    return curve_zero(beta, difference, root_of(beta, difference[0], middle))


def _on(curve: ThermalCurve, beta: Array) -> Array:
    """Return the samples of a curve at other couplings."""
    return np.array([np.interp(beta, curve.beta, row) for row in curve.samples])


def line_of(
    x: Sequence[float], samples: Sequence[Array], next_terms: Sequence[float] = ()
) -> StraightLine | None:
    """Return the line through the points that are known; None if there are fewer than two."""
    finite = np.isfinite([row[0] for row in samples])
    every = np.array(x), np.array(samples), np.array(next_terms or np.zeros(len(x)))
    at, values, terms = (array[finite] for array in every)
    return StraightLine(at, values.T, terms) if np.unique(at).size > 1 else None


def extrapolations(volumes: Sequence[ThermalVolume]) -> dict[str, StraightLine]:
    """Return the extrapolations to infinite volume that are possible.

    They are that of the peaks of the susceptibility, and that of the crossings of the Binder
    cumulants for SU(2), of the couplings of equal weights else.
    """
    shifts, terms = [shift(volume) for volume in volumes], [next_term(volume) for volume in volumes]
    peak = line_of(shifts, [volume.peak[0] for volume in volumes], terms)
    if volumes[0].colours == ISING_COLOURS:
        pairs = [*itertools.pairwise(volumes)]
        crossed = [crossing(*pair).samples for pair in pairs]
        line = line_of([crossing_shift(*pair) for pair in pairs], crossed, terms[:-1])
        lines = {"crossings of U": line, "peak of χ": peak}
    else:
        weights = line_of(shifts, [volume.equal_weights for volume in volumes], terms)
        if peak and weights:  # their distance decreases in another way, and may be small by chance
            weights = replace(weights, least=peak.slope)
        lines = {"peak of χ": peak, "equal weights": weights}
    return {name: line for name, line in lines.items() if line is not None}


def jump_of_variances(volumes: Sequence[ThermalVolume]) -> StraightLine | None:
    """Return the line through the variances of the action per site against the inverse volume.

    At the peak the confined and the deconfined phases have equal weights, so that the variance
    tends to a quarter of the square of the jump of the action, and that of a single phase decreases
    as 1/V (M. S. S. Challa, D. P. Landau and K. Binder, Phys. Rev. B 34 (1986) 1841). No
    measurement has to be assigned to a phase, which is ambiguous where the peaks of histograms
    overlap. None for SU(2), or with fewer than two volumes.
    """
    if volumes[0].colours == ISING_COLOURS:
        return None
    return line_of([shift(volume) for volume in volumes], [volume.variance for volume in volumes])


def exponent(volumes: Sequence[ThermalVolume]) -> Array | None:
    """Return the exponent of N_s with which the peak of the susceptibility grows, of all samples.

    It is gamma/nu at a transition of second order, and 3 at one of first order. None if fewer than
    two volumes have a peak.
    """
    points = [(math.log(volume.size), np.log(volume.peak[1])) for volume in volumes]
    line = line_of([a for a, _ in points], [b for _, b in points])
    return None if line is None else np.asarray(line.parameters[:, 1])


@documented
@dataclass(frozen=True)
class ThermalRunResult:
    """The runs at one coupling on one lattice."""

    beta: float = result_field("Coupling.", symbol="β")
    measurements: int = result_field("Measurements of all its chains.", symbol="measurements")
    tau_int: float = result_field(
        "Longest tau_int of the action and of the Polyakov loop, in measurements.", symbol="τ_int"
    )
    overlap: float | None = result_field(
        "Overlap of the histogram of the action with that at the next coupling.",
        None,
        symbol="overlap",
    )
    sectors: Sequence[float] = result_field(
        "Fractions of the measurements in the sectors of the centre, beginning with that of 1.",
        list,
    )
    sector_changes: int = result_field("How often the sector changes.", 0, symbol="sector changes")
    tunnelling: int | None = result_field(
        "How often the chains go from one phase to the other; null without two peaks.", None
    )
    tunnelling_time: float | None = result_field(
        "Mean number of updates from one such passage to the next; null if there is none.",
        None,
        symbol="τ_tunnel",
    )


@documented
@dataclass(frozen=True)
class VolumeTransition:
    """The transition on one lattice."""

    lattice: str = result_field("Extents.", symbol="lattice")
    beta_peak: Estimate = result_field("Position of the peak of the susceptibility.", symbol="β_χ")
    peak: Estimate = result_field("Height of the peak of the susceptibility.", symbol="χ_max")
    beta_weights: Estimate | None = result_field(
        "Coupling at which the deconfined fraction is N / (N + 1); null for SU(2).",
        None,
        symbol="β_w",
    )
    peaks_of_modulus: Sequence[float] = result_field(
        "Lower peak, minimum and upper peak of the histogram of the modulus of the Polyakov loop "
        "at the peak, and the minimum divided by the lower of the two; empty with one peak.",
        list,
    )
    jump: Estimate | None = result_field(
        "Difference of the action per site divided by beta between the two phases; null with one "
        "peak.",
        None,
        symbol="Δs",
    )
    interface: Estimate | None = result_field(
        "Tension of the interface between the phases divided by T_c^3, from the depth of the "
        "minimum between the peaks; null with one peak.",
        None,
    )
    runs: Sequence[ThermalRunResult] = result_field("The runs, by coupling.", list)


@documented
@dataclass(frozen=True)
class BinderCrossing:
    """The crossing of the Binder cumulants of two lattices."""

    small: str = result_field("The smaller lattice.", symbol="lattice")
    large: str = result_field("The larger lattice.", symbol="and lattice")
    beta: Estimate = result_field("Coupling of the crossing.", symbol="β_U")
    cumulant: Estimate = result_field("The cumulant there.", symbol="U")


@documented
@dataclass(frozen=True)
class CriticalCoupling:
    """A critical coupling in an infinite volume, by extrapolation."""

    method: str = result_field("What is extrapolated.", symbol="from")
    beta: Estimate = result_field("The critical coupling.", symbol="β_c")
    systematic: float = result_field(
        "Systematic error: the next term of the extrapolation, and the scatter of the methods.",
        symbol="±",
    )
    points: int = result_field("Number of values.", symbol="points")
    chi2: float = result_field("chi2 of the straight line.", symbol="χ²")
    dof: int = result_field("Degrees of freedom.", symbol="dof")
    p_value: float = result_field(
        "Probability of a larger chi2 for values on the line.", symbol="p"
    )


@documented
@dataclass(frozen=True)
class LatentHeat:
    """The latent heat, from one of two methods."""

    method: str = result_field(
        "The variance of the action, extrapolated to infinite volume, or the jump of the action in "
        "one volume.",
        symbol="from",
    )
    value: Estimate = result_field("Latent heat divided by T_c^4.", symbol="L/T_c⁴")
    points: int = result_field("Number of volumes.", symbol="points")
    chi2: float = result_field("chi2 of the straight line.", symbol="χ²")
    dof: int = result_field("Degrees of freedom.", symbol="dof")
    p_value: float = result_field(
        "Probability of a larger chi2 if the variances lie on the line.", symbol="p"
    )


@documented
@dataclass(frozen=True)
class CriticalTemperature:
    """The critical temperature in units of a length."""

    length: str = result_field("The length.")
    value: float = result_field("T_c times the length.")
    error: float = result_field("Error from that of the critical coupling, with systematic ones.")
    scale_error: float = result_field("Error of the length.")
    source: str = result_field("Publication that the length is from.")

    @property
    def product(self) -> str:
        """The product of both in symbols, such as ``T_c r₀`` and ``T_c/√σ``."""
        return f"T_c {self.length}".replace(" 1/", "/")


@documented
@dataclass(frozen=True)
class TransitionResult:
    """A transition at finite temperature."""

    ensemble: Mapping[str, str] = result_field("Group and action.")
    extent: int = result_field("Number of links N_t along t.")
    volumes: Sequence[VolumeTransition] = result_field("The lattices, smaller ones first.")
    crossings: Sequence[BinderCrossing] = result_field("Crossings of neighbouring volumes.")
    critical: Sequence[CriticalCoupling] = result_field("Critical couplings, the best one first.")
    exponent: Estimate | None = result_field(
        "Exponent of N_s with which the peak of the susceptibility grows: gamma/nu at a transition "
        "of second order, 3 at one of first order; null with one volume.",
        None,
    )
    latent_heats: Sequence[LatentHeat] = result_field(
        "The latent heat where the scale is known; empty for SU(2).", list
    )
    temperatures: Sequence[CriticalTemperature] = result_field(
        "The critical temperature in units of lengths that are known at the coupling.", list
    )
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def transition(
    volumes: Sequence[ThermalVolume], group: Group, coupling: Coupling, ensemble: Mapping[str, str]
) -> TransitionResult:
    """Return the results of a study, smaller volumes first.

    Errors are from the bootstrap of every volume, through all steps.
    """
    pairs = [*itertools.pairwise(volumes)]
    crossed = [crossing(*pair) for pair in pairs]
    lines = extrapolations(volumes)
    limits = [line.parameters[:, 0] for line in lines.values()]
    critical = [
        CriticalCoupling(
            name,
            bootstrapped(limit),
            math.hypot(line.systematic, *(_disagreement(limit, x) for x in limits)),
            *line.quality,
        )
        for (name, line), limit in zip(lines.items(), limits, strict=True)
    ]
    order = np.argsort([math.hypot(x.beta.error, x.systematic) for x in critical])
    every = [volume.peak[0] for volume in volumes] + [x.samples for x in crossed]
    last = [np.full(2, math.nan), *(x for x in every if math.isfinite(x[0]))][-1]
    best = last
    if lines:  # samples that scatter by the systematic error as well
        limit, systematic = limits[order[0]], critical[order[0]].systematic
        ratio = systematic / bootstrapped(limit).error
        wider = math.hypot(1, ratio) if math.isfinite(ratio) else 1
        best = limit[0] + wider * (limit - limit[0])
    size = sum(volume.reweighting.measured.size for volume in volumes)
    grown = exponent(volumes)
    action, beta = coupling.action, float(best[0])
    scales = action.scales_at(group, beta) if math.isfinite(beta) else []
    temperatures = []
    for scale in scales:  # T_c = 1 / (N_t a)
        lengths = [scale.length(float(x)) for x in best[np.isfinite(best)]]
        t = bootstrapped(np.array(lengths) / volumes[0].lattice.t)
        error = t.value * scale.error
        temperatures.append(CriticalTemperature(scale.name, t.value, t.error, error, scale.source))
    return TransitionResult(
        dict(ensemble),
        volumes[0].lattice.t,
        [_volume(volume) for volume in volumes],
        [_crossing(pair, x) for pair, x in zip(pairs, crossed, strict=True)],
        [critical[n] for n in order],
        None if grown is None else bootstrapped(grown, size),
        _latent_heat(volumes, scales[0]) if scales else [],
        temperatures,
        cautions_of(volumes),
    )


def _disagreement(samples: Array, reference: Array) -> float:
    """Return half of what two methods differ by beyond the error of the difference."""
    difference = bootstrapped(samples - reference)
    return math.sqrt(max(0.0, difference.value**2 - np.nan_to_num(difference.error) ** 2)) / 2


def _volume(volume: ThermalVolume) -> VolumeTransition:
    every = volume.reweighting
    size, has_peak = every.measured.size, math.isfinite(volume.peak[0][0])
    ising = volume.colours == ISING_COLOURS
    jump = volume.jump if has_peak else None
    return VolumeTransition(
        str(volume.lattice),
        bootstrapped(volume.peak[0], size),
        bootstrapped(volume.peak[1], size),
        None if ising else bootstrapped(volume.equal_weights, size),
        list(volume.phases or ()) if has_peak else [],
        None if jump is None else bootstrapped(jump, size),
        bootstrapped(volume.interface, size) if has_peak and volume.interface is not None else None,
        [_run(volume, state, has_peak) for state in range(every.beta.size)],
    )


def _run(volume: ThermalVolume, state: int, has_peak: bool) -> ThermalRunResult:
    every = volume.reweighting
    beta = float(every.beta[state])
    chains = [chain for chain in volume.chains if chain.beta == beta]
    sectors = [volume.sectors(chain) for chain in chains]
    sizes = np.array([chain.loop.size for chain in chains])
    fractions = sizes @ np.array([x for x, _ in sectors]) / sizes.sum()
    crossed = [volume.tunnelling(chain) for chain in chains] if has_peak else [None]
    tunnellings = [x for x in crossed if x is not None]
    lengths = [int(chain.sweeps[-1] - chain.sweeps[0]) for chain in chains]  # in updates
    return ThermalRunResult(
        beta,
        int(sizes.sum()),
        max(chain.tau_int for chain in chains),
        float(every.overlap[state]) if state < every.beta.size - 1 else None,
        fractions.tolist(),
        sum(changes for _, changes in sectors),
        sum(tunnellings) if tunnellings else None,
        sum(lengths) / sum(tunnellings) if tunnellings and sum(tunnellings) else None,
    )


def _crossing(pair: tuple[ThermalVolume, ThermalVolume], zero: CurveZero) -> BinderCrossing:
    small, large = pair
    curve, at = large.binder, zero.samples[0]
    slope = np.interp(at, curve.beta, np.gradient(curve.value, curve.beta))
    cumulants = np.array([np.interp(at, curve.beta, row) for row in curve.samples])
    cumulant = cumulants + slope * (zero.samples - at)
    names = str(small.lattice), str(large.lattice)
    return BinderCrossing(*names, bootstrapped(zero.samples), bootstrapped(cumulant))


def _latent_heat(volumes: Sequence[ThermalVolume], scale: LengthScale) -> list[LatentHeat]:
    """Return N_t^4 (-d beta / d ln a) times the jump of the action per site divided by beta.

    As the pressure is continuous, the latent heat is the jump of epsilon - 3 p.
    """
    heats = []
    last = next((volume for volume in reversed(volumes) if math.isfinite(volume.peak[0][0])), None)
    if last is None:
        return []
    factor = last.lattice.t**4 / scale.slope(float(last.peak[0][0]))
    line = jump_of_variances(volumes)
    if line is not None:
        first = line.parameters[:, 0]
        jump = 2 * np.sqrt(np.where(first > 0, first, math.nan))
        heat = bootstrapped(factor * jump)
        heats.append(LatentHeat("variance of s", heat, *line.quality))
    for box in reversed(volumes):
        split = box.jump if math.isfinite(box.peak[0][0]) else None
        if split is not None:
            heat = bootstrapped(factor * split)
            heats.append(LatentHeat(f"Δs on {box.lattice}", heat, 1, 0.0, 0, math.nan))
            break
    return heats


def cautions_of(volumes: Sequence[ThermalVolume]) -> list[str]:
    """Return cautions about all volumes, their extrapolations and their crossings."""
    lines = extrapolations(volumes)
    cautions = [c for volume in volumes for c in _cautions_of(volume)]
    for name, line in lines.items():
        if line.dof > 0 and line.p_value < POOR:
            cautions.append(
                f"The values from the {name} do not lie on a line (p = {line.p_value:.2g}): leave "
                "out the smallest volume."
            )
    if not lines:
        cautions.append("There is no extrapolation to infinite volume, which needs two volumes.")
    crossed = [(*pair, crossing(*pair)) for pair in itertools.pairwise(volumes)]
    return cautions + [
        f"The cumulants of {small.lattice} and {large.lattice} agree within their errors from "
        f"β = {at.begin:.6g} to {at.end:.6g}, where one of the curves ends, so that the error of "
        "their crossing may be larger: make the runs longer, or add runs beyond them."
        for small, large, at in crossed
        if at.open
    ]


def _cautions_of(volume: ThermalVolume) -> list[str]:
    """Return cautions about one volume: missing runs, and peaks at an end."""
    every, where = volume.reweighting, f"On {volume.lattice}"
    cautions = [
        f"{where} the histograms at β = {a:.12g} and {b:.12g} hardly overlap ({o:.2g}): add a run "
        f"at β = {(a + b) / 2:.6g}{volume.refined}."
        for a, b, o in every.gaps
    ]
    if not math.isfinite(volume.peak[0][0]):
        sides = (every.beta[0], "smaller"), (every.beta[-1], "larger")
        beta, side = sides[volume.confined]
        cautions.append(
            f"{where} the susceptibility has no peak between the runs: add runs at β {side} than "
            f"{beta:.12g}{volume.refined}."
        )
    elif volume.peak_zero.open:
        begin, end = volume.peak_zero.begin, volume.peak_zero.end
        cautions.append(
            f"{where} the susceptibility is level within its error from β = {begin:.6g} to "
            f"{end:.6g}, where the curve ends, so that the error of the position of its peak may "
            "be larger: make the runs longer, or add runs beyond it."
        )
    return cautions
