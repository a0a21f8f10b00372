"""Cautions about time series, in sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gauge_mc.analysis.timeseries.estimates import Estimate, caution_growth
from gauge_mc.analysis.timeseries.gamma_method import growth
from gauge_mc.analysis.timeseries.transients import transient_end


def caution_spacing(sweeps: ArrayLike) -> list[str]:
    """Return a caution if measurements are not equally spaced in the chain; otherwise nothing.

    Parameters
    ----------
    sweeps : array_like of int, shape (rows,)
        Numbers of the updates that were measured, each as often as there are rows.
    """
    steps = np.diff(np.unique(sweeps))
    if not steps.size or np.ptp(steps) == 0:
        return []
    return [
        "The configurations are not equally spaced in the Markov chain, so that autocorrelation "
        "times and errors are approximate."
    ]


def caution_slow(*series: ArrayLike) -> list[str]:
    """Return a caution if the error of any series grows with the length of bins; otherwise nothing.

    Parameters
    ----------
    *series : array_like of float, shape (samples,)
        Values along each chain.
    """
    return caution_growth(max(map(growth, series), default=1.0))


def caution_slower(mode: Estimate, every: int, averages: float, of: str, remedy: str) -> list[str]:
    """Return a caution if a mode is slower than all averages by twice its error; else nothing.

    Parameters
    ----------
    mode : Estimate
        A quantity that is known to change slowly.
    every : int
        Updates between its measurements.
    averages : float
        Largest tau_int of the averages, or that of the tails that their errors contain, in updates.
    of : str
        Name of the mode, such as ``squared topological charge``.
    remedy : str
        Advice beside a longer run, which begins with a comma.
    """
    if not (mode.tau_int - 2 * mode.tau_int_error) * every > averages:
        return []
    return [
        f"The {of} has τ_int = {mode.format_tau(every)} updates, more than all averages. What "
        f"depends on it may fluctuate as slowly, unseen: make the run much longer{remedy}."
    ]


def caution_series(sweeps: ArrayLike, *series: ArrayLike) -> list[str]:
    """Return cautions about series that are not thermalised, or have slow modes, or nothing.

    The parameters are those of `transient_end`. Slow modes are looked for only in series without a
    transient, which has the same effect.
    """
    return caution_transient(sweeps, *series) or caution_slow(*series)


def caution_transient(sweeps: ArrayLike, *series: ArrayLike) -> list[str]:
    """Return a caution if the beginning of any series deviates from its rest; otherwise nothing.

    The parameters are those of `transient_end`.
    """
    return caution_skip(transient_end(sweeps, *series))


def caution_skip(last: int) -> list[str]:
    """Return the caution that measurements up to an update deviate; nothing if it is 0."""
    if not last:
        return []
    return [
        f"The measurements up to update {last} deviate from the later ones, as if the chain had "
        f"not thermalised; leave them out with --skip {last}, or with --skip auto."
    ]
