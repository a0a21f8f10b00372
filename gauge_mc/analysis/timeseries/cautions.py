"""Cautions about time series, in sentences."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gauge_mc.analysis.timeseries.bins import growth
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.transients import transient_end


def caution_slow(*series: ArrayLike, tau_exp: float | None = None) -> list[str]:
    """Return a caution if the error of any series grows with the length of bins; otherwise nothing.

    Parameters
    ----------
    *series : array_like of float, shape (samples,)
        Values along each chain.
    tau_exp : float, optional
        Exponential autocorrelation time in samples, whose tail the errors contain.
    """
    return caution_growth(max((growth(one, tau_exp) for one in series), default=1.0))


def caution_growth(factor: float, of: str = "", remedy: str = "") -> list[str]:
    """Return the caution that long bins show errors larger by a factor; nothing if it is 1.

    Parameters
    ----------
    factor : float
        Error of the mean from long bins, divided by that of `estimate`.
    of : str
        Name of the quantity.
    remedy : str
        Further advice, which begins with a comma.
    """
    if factor == 1:
        return []
    return [
        f"Long bins show errors{f' of the {of}' if of else ''} that are larger by a factor of "
        f"{factor:.1f}, as if there were slow modes that τ_int misses; make the run longer, or "
        f"multiply the errors by it{remedy}."
    ]


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
