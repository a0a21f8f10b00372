"""Results of a study of a transition, with their errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.actions import Coupling, LengthScale
from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.arrays import Array
from gauge_mc.groups import Group
from gauge_mc.quantities.transition.analysis.infinite_volume import (
    ISING_COLOURS,
    StraightLine,
    crossing,
    exponent,
    extrapolations,
    jump_of_variances,
)
from gauge_mc.quantities.transition.analysis.volume import ThermalChain, ThermalVolume, bootstrapped
from gauge_mc.quantities.transition.analysis.zeros import CurveZero
from gauge_mc.results import documented, result_field


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
    points: int = result_field("Number of values.", symbol="points")
    chi2: float = result_field("chi2 of the straight line.", symbol="χ²")
    dof: int = result_field("Degrees of freedom.", symbol="dof")
    p_value: float = result_field(
        "Probability of a larger chi2 if the values lie on the line.", symbol="p"
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
    error: float = result_field("Statistical error.")
    scale_error: float = result_field("Error of the length.")
    source: str = result_field("Publication that the length is from.")


@documented
@dataclass(frozen=True)
class TransitionResult:
    """A transition at finite temperature."""

    ensemble: Mapping[str, str] = result_field("Group and action.")
    extent: int = result_field("Number of links N_t along t.")
    volumes: Sequence[VolumeTransition] = result_field("The lattices, smaller ones first.")
    crossings: Sequence[BinderCrossing] = result_field("Crossings of neighbouring volumes.")
    critical: Sequence[CriticalCoupling] = result_field("Critical couplings.")
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
    critical = [_critical(name, line) for name, line in lines.items()]
    best = next(iter(lines.values())).parameters[:, 0] if lines else _single(volumes, crossed)
    size = sum(one.reweighting.measured.size for one in volumes)
    grown = exponent(volumes)
    action, beta = coupling.action, float(best[0])
    known = action.scales_at(group, beta) if math.isfinite(beta) else []
    return TransitionResult(
        dict(ensemble),
        volumes[0].lattice.t,
        [_volume(one) for one in volumes],
        [_crossing(pair, one) for pair, one in zip(pairs, crossed, strict=True)],
        critical,
        None if grown is None else bootstrapped(grown, size),
        _latent_heat(volumes, known[0]) if known else [],
        [_temperature(one, best, volumes[0].lattice.t) for one in known],
        [*_cautions(volumes, lines), *_cautions_of_crossings(pairs, crossed)],
    )


def _single(volumes: Sequence[ThermalVolume], crossed: Sequence[CurveZero]) -> Array:
    """Return the best estimate of beta_c without an extrapolation: the last one that is known."""
    every = [one.peak[0] for one in volumes] + [one.samples for one in crossed]
    known = [one for one in every if math.isfinite(one[0])]
    return known[-1] if known else np.full(2, math.nan)


def _critical(name: str, line: StraightLine) -> CriticalCoupling:
    beta = bootstrapped(line.parameters[:, 0])
    return CriticalCoupling(name, beta, line.x.size, line.chi2, line.dof, line.p_value)


def _volume(volume: ThermalVolume) -> VolumeTransition:
    every = volume.reweighting
    size, seen = every.measured.size, math.isfinite(volume.peak[0][0])
    weights = None
    if volume.colours != ISING_COLOURS:
        weights = bootstrapped(volume.equal_weights, size)
    jump = volume.jump if seen else None
    return VolumeTransition(
        str(volume.lattice),
        bootstrapped(volume.peak[0], size),
        bootstrapped(volume.peak[1], size),
        weights,
        list(volume.phases or ()) if seen else [],
        None if jump is None else bootstrapped(jump, size),
        bootstrapped(volume.interface, size) if seen and volume.interface is not None else None,
        [_run(volume, state, seen) for state in range(every.beta.size)],
    )


def _run(volume: ThermalVolume, state: int, seen: bool) -> ThermalRunResult:
    every = volume.reweighting
    beta = float(every.beta[state])
    chains = [one for one in volume.chains if one.beta == beta]
    sectors = [volume.sectors(one) for one in chains]
    sizes = np.array([one.loop.size for one in chains])
    fractions = sizes @ np.array([one for one, _ in sectors]) / sizes.sum()
    crossed = [volume.tunnelling(one) for one in chains] if seen else [None]
    known = [one for one in crossed if one is not None]
    return ThermalRunResult(
        beta,
        int(sizes.sum()),
        max(one.tau_int for one in chains),
        float(every.overlap[state]) if state < every.beta.size - 1 else None,
        fractions.tolist(),
        sum(changes for _, changes in sectors),
        sum(known) if known else None,
        _updates(chains) / sum(known) if known and sum(known) else None,
    )


def _updates(chains: Sequence[ThermalChain]) -> int:
    """Return the number of updates between the first and the last measurement of all chains."""
    return sum(int(one.sweeps[-1] - one.sweeps[0]) for one in chains)


def _crossing(pair: tuple[ThermalVolume, ThermalVolume], found: CurveZero) -> BinderCrossing:
    small, large = pair
    curve, at = large.binder, found.samples[0]
    slope = np.interp(at, curve.beta, np.gradient(curve.value, curve.beta))
    here = np.array([np.interp(at, curve.beta, row) for row in curve.samples])
    cumulant = here + slope * (found.samples - at)
    names = str(small.lattice), str(large.lattice)
    return BinderCrossing(*names, bootstrapped(found.samples), bootstrapped(cumulant))


def _latent_heat(volumes: Sequence[ThermalVolume], scale: LengthScale) -> list[LatentHeat]:
    """Return N_t^4 (-d beta / d ln a) times the jump of the action per site divided by beta.

    As the pressure is continuous, the latent heat is the jump of epsilon - 3 p.
    """
    found = []
    last = next((one for one in reversed(volumes) if math.isfinite(one.peak[0][0])), None)
    if last is None:
        return []
    factor = last.lattice.t**4 / scale.slope(float(last.peak[0][0]))
    line = jump_of_variances(volumes)
    if line is not None:
        first = line.parameters[:, 0]
        jump = 2 * np.sqrt(np.where(first > 0, first, math.nan))
        heat = bootstrapped(factor * jump)
        found.append(
            LatentHeat("variance of s", heat, line.x.size, line.chi2, line.dof, line.p_value)
        )
    for one in reversed(volumes):
        split = one.jump if math.isfinite(one.peak[0][0]) else None
        if split is not None:
            heat = bootstrapped(factor * split)
            found.append(LatentHeat(f"Δs on {one.lattice}", heat, 1, 0.0, 0, math.nan))
            break
    return found


def _temperature(scale: LengthScale, beta: Array, extent: int) -> CriticalTemperature:
    """Return T_c in units of a length, with T_c = 1 / (N_t a)."""
    inside = beta[np.isfinite(beta)]
    samples = np.array([scale.length(float(one)) / extent for one in inside])
    found = bootstrapped(samples)
    error = found.value * scale.error
    return CriticalTemperature(scale.name, found.value, found.error, error, scale.source)


def _cautions(volumes: Sequence[ThermalVolume], lines: Mapping[str, StraightLine]) -> list[str]:
    found = [one for volume in volumes for one in _cautions_of(volume)]
    for name, line in lines.items():
        if line.dof > 0 and line.p_value < POOR:
            found.append(
                f"The values from the {name} do not lie on a line (p = {line.p_value:.2g}): leave "
                "out the smallest volume."
            )
    if not lines:
        found.append("There is no extrapolation to infinite volume, which needs two volumes.")
    return found


def _cautions_of_crossings(
    pairs: Sequence[tuple[ThermalVolume, ThermalVolume]], crossed: Sequence[CurveZero]
) -> list[str]:
    """Return cautions about crossings whose error ends where the curves end."""
    return [
        f"The cumulants of {small.lattice} and {large.lattice} agree within their errors from "
        f"β = {at.begin:.6g} to {at.end:.6g}, where one of the curves ends, so that the error of "
        "their crossing may be larger: make the runs longer, or add runs beyond them."
        for (small, large), at in zip(pairs, crossed, strict=True)
        if at.open
    ]


def _cautions_of(volume: ThermalVolume) -> list[str]:
    """Return cautions about one volume: missing runs, peaks at an end, short chains."""
    every, where = volume.reweighting, f"On {volume.lattice}"
    found = [
        f"{where} the histograms at β = {a:.12g} and {b:.12g} hardly overlap ({o:.2g}): add a run "
        f"at β = {(a + b) / 2:.6g}."
        for a, b, o in every.gaps
    ]
    positions = volume.peak[0]
    if not math.isfinite(positions[0]):
        sides = (every.beta[0], "smaller"), (every.beta[-1], "larger")
        beta, side = sides[volume.confined]
        found.append(
            f"{where} the susceptibility has no peak between the runs: add runs at β {side} than "
            f"{beta:.12g}."
        )
    elif volume.peak_zero.open:
        begin, end = volume.peak_zero.begin, volume.peak_zero.end
        found.append(
            f"{where} the susceptibility is level within its error from β = {begin:.6g} to "
            f"{end:.6g}, where the curve ends, so that the error of the position of its peak may "
            "be larger: make the runs longer, or add runs beyond it."
        )
    lengths = [one.loop.size / one.tau_int for one in volume.chains]
    if short := [one for one in lengths if one < SHORT]:
        found.append(
            f"{where} {len(short)} of {len(lengths)} chains are shorter than {SHORT} τ_int, the "
            f"shortest has {min(short):.3g}: errors are uncertain."
        )
    return found


SHORT = 50
"""Length of a chain in units of tau_int below which its errors are uncertain."""
