"""The static potential: plateaus of Wilson loops, and fits of V(R) to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.cornell import scan_cornell
from gauge_mc.quantities.potential.analysis.distances import TRUSTED_DISTANCES, usable_distances
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.forces import force_scales, forces
from gauge_mc.quantities.potential.analysis.loops import PathLoops
from gauge_mc.quantities.potential.analysis.nambu_goto import scan_nambu_goto
from gauge_mc.quantities.potential.analysis.plateau_search import LARGEST_SHIFT, find_plateaus
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential
from gauge_mc.quantities.potential.analysis.window_averages import average_windows
from gauge_mc.quantities.potential.analysis.window_choice import (
    REMEDY,
    WINDOW,
    UntrustedError,
    choose_window,
)
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM, RangeAverage, WindowScan

KNOWN = 3.0
"""Least size of sigma, in units of its statistical and systematic errors, with which a fit to a
window that is not asked for is trusted."""


def potential_plateaus(
    loops: Sequence[PathLoops | EffectiveEnergies],
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
    if len({one.smearing for one in loops if isinstance(one, PathLoops)}) > 1:
        raise GaugeError("The paths have Wilson loops at different smearing levels; choose one.")
    found = find_plateaus(loops, t_min, t_max, single, average)
    if t_min is None and usable_distances(found).size < TRUSTED_DISTANCES:
        more = find_plateaus(loops, t_min, t_max, single, average, LARGEST_SHIFT)
        if usable_distances(more).size > usable_distances(found).size:
            found = more
    if average:
        found = replace(found, single=potential_plateaus(loops, t_min, t_max, single))
    return found


def fit_potential(
    plateaus: Plateaus,
    loops: Sequence[PathLoops | EffectiveEnergies],
    r_min: float | None = None,
    r_max: float | None = None,
    ensemble: Mapping[str, str] | None = None,
    average: bool = False,
    coulomb: str = CONTINUUM,
) -> StaticPotential:
    """Fit V(R) of plateaus.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    loops : sequence of PathLoops or EffectiveEnergies
        Origin of the plateaus: loops along each path at one smearing level, or the lowest energies
        of a variational analysis; empty for correlators.
    r_min, r_max : float, optional
        Window of distances to fit, in lattice units; see `WINDOW` for the default.
    ensemble : mapping of str to str, optional
        Group, beta and lattice of the ensemble, which are passed on to the result.
    average : bool
        Whether to average over ranges of t and over windows in R with Akaike weights.
    coulomb : str
        ``"continuum"`` or ``"lattice"``; see `WindowFit`.

    Returns
    -------
    StaticPotential
        V(R) with its fits and scales.

    Raises
    ------
    GaugeError
        If SciPy is not installed.
    UsageError
        If a window is outside the data or contains too few points.
    """
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
        scans = [scan_cornell(plateaus, b_free, low, high, coulomb) for b_free in (True, False)]
        reasons = [_distrust(one) if r_min is None else "" for one in scans]
        refused += filter(None, reasons)
        free, string = (None if reason else one for one, reason in zip(scans, reasons, strict=True))
    if free:
        nambu_goto = scan_nambu_goto(plateaus, free.fit.r0.value, high)
        averaged = average_windows(plateaus, low, high, coulomb) if average else {}
    of_force = plateaus.single or plateaus
    force = forces(of_force)
    notes = [
        sentence
        for one in loops[:1]
        if isinstance(one, PathLoops)
        for sentence in caution_series(one.sweeps, *one.values[:, :, 0].T)
    ]
    return StaticPotential(
        smearing=next((one.smearing for one in loops if isinstance(one, PathLoops)), 0),
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
        t_step=next((one.t_step for one in loops if isinstance(one, PathLoops)), 1),
        refused=tuple(refused),
    )


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
