"""The choice of the distances that are fitted."""

from __future__ import annotations

import math

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.numbers import counted
from gauge_mc.quantities.potential.analysis.cornell import fit_window
from gauge_mc.quantities.potential.analysis.distances import (
    LEAST_DISTANCES,
    SMALLEST_R,
    TRUSTED_DISTANCES,
    between,
    known_distances,
)
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM

WINDOW = (
    "from R of at least 2 and at least r0/3, and from where on the fit with B free is not poor, to "
    "the largest R with a plateau, with at least five distances"
)
"""Default window of a fit, in words. R >= 2 avoids lattice artefacts, and R >= r0/3 (0.17 fm) the
perturbative region, where B depends on R. Precise data see both at larger R, too."""


class UntrustedError(GaugeError):
    """V(R) is known, but no fit to it can be trusted."""


REMEDY = "measure more configurations, smear more, or take a larger lattice"
"""Advice for potentials to which no fit can be trusted."""


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
        V(R) at all distances.
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
    known = known_distances(plateaus)
    inside = known[between(known, r_min or 0.0, math.inf if r_max is None else r_max)]
    if inside.size < LEAST_DISTANCES <= known.size:
        raise UsageError(
            f"The window contains {counted(inside.size, 'distance')} with a plateau, but a fit "
            f"needs at least {LEAST_DISTANCES}; choose a wider one between R = {known[0]:.4g} and "
            f"{known[-1]:.4g}."
        )
    least, start = LEAST_DISTANCES, 0.0
    if r_min is None:
        least, start = TRUSTED_DISTANCES, SMALLEST_R
    inside = inside[between(inside, start, math.inf)]
    if inside.size < least:
        span = f" from R = {start:g} on" if start else ""
        span += f" up to R = {r_max:g}" if r_max is not None else ""
        instead = ", or name a window with --r-min" if known.size >= LEAST_DISTANCES else ""
        raise UntrustedError(
            f"No string tension: V(R) is known at {counted(inside.size, 'distance')}{span}, but a "
            f"fit of A + B/R + σR needs {least}; {REMEDY}{instead}."
        )
    if r_min is None:
        last = float(inside[-TRUSTED_DISTANCES])
        scale = fit_window(plateaus, True, float(inside[0]), float(inside[-1]), coulomb).r0.value
        start = min(scale / 3, last) if math.isfinite(scale) else SMALLEST_R
        inside = inside[between(inside, start, math.inf)]
        inside = inside[between(inside, _first_good(plateaus, inside, coulomb), math.inf)]
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
