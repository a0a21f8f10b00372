"""Effective masses of mesons and baryons with the masses that were fitted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.hadrons.folded import Correlator
from gauge_mc.analysis.hadrons.mass_series import MassSeries
from gauge_mc.analysis.hadrons.states import HadronState
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.fits.baryons import BaryonFit
from gauge_mc.fits.mesons import MesonFit
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.looks import GREY
from gauge_mc.plots.mesons import HADRONS, ErrorBars, chosen_hadrons, draw_frames, frames_of, symbol
from gauge_mc.plots.runs.labels import labels_of, one_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_ERROR = 0.25
"""Maximum relative error of an effective mass that is drawn; larger ones would hide the others."""

BAND = 0.25
"""Opacity of the bands of fitted masses."""

HADRON_FITS = (MesonFit(), BaryonFit())
"""The fits whose tables a run may have."""


class EffectiveMassPlot(Plot):
    """Effective masses of hadrons at rest with fitted masses as bands; a frame for each hadron."""

    name = "effective-mass"
    summary = "effective masses of mesons and baryons with the fitted masses"
    options: ClassVar[tuple[Option, ...]] = (*MesonFit.options, HADRONS)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all hadrons that one run has measured; see `Plot.draw`."""
        chosen = chosen_hadrons(options)
        run = one_run(runs, "The effective mass")
        plot_effective_masses(fitted(run, options), file, labels_of([run])[0], chosen)
        return []


PLOTS.register(EffectiveMassPlot())


def fitted(run: Path, options: dict[str, Any]) -> list[MassSeries]:
    """Return the fits to all tables of hadrons in a run.

    Raises
    ------
    GaugeError
        If the run has no such table, or one is damaged or contains too little data.
    """
    found, missing = [], []
    for one in HADRON_FITS:
        try:
            table = find_table_by_columns(run, one.columns)
        except GaugeError as error:
            missing.append(error)
            continue
        found.append(one.fitted(table, options)[1])
    if not found:
        raise missing[0]
    return found


def plot_effective_masses(
    fits: Sequence[MassSeries], path: Path, title: str = "", chosen: Sequence[str] = ()
) -> None:
    """Plot effective masses and, over the times that were fitted, the masses with their errors.

    Parameters
    ----------
    fits : sequence of MassSeries
        Fitted correlators.
    path, title
        See `draw_frames`.
    chosen : sequence of str
        Names of the hadrons to draw; all if there are none.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file` and `frames_of`.
    """
    frames = {
        rf"$a\,m_{{{symbol(name)}}}$": pairs
        for name, pairs in frames_of(fits, _points, chosen).items()
    }
    patch = load("matplotlib.patches").Patch
    key = [(patch(color=GREY, alpha=BAND, linewidth=0), "fitted mass, at the t of the fit")]
    draw_frames(frames, _draw, path, title, key=key)


def _points(correlator: Correlator) -> ErrorBars:
    """Return the effective masses that are known well enough to be drawn."""
    energies = correlator.effective()
    found = [estimate(one) for one in energies.series[:, 0].T]
    return [
        (energies.start + n, one.value, one.error)
        for n, one in enumerate(found)
        if one.error < LARGEST_ERROR * abs(one.value)
    ]


def _draw(
    axes: Axes, series: MassSeries, state: HadronState, own: dict[str, Any], shift: float
) -> None:
    """Draw an effective mass, and the fitted mass if there is one."""
    t, value, error = np.transpose(_points(series.correlators[state]))
    axes.errorbar(t + shift, value, error, **own, linestyle="none")
    if state not in series.masses:
        return
    fit = series.masses[state][0]
    ends = np.array([fit.t_min, fit.t_max])
    mass, error = fit.mass.value, fit.mass.error
    axes.plot(ends, [mass, mass], color=own["color"])
    axes.fill_between(ends, mass - error, mass + error, color=own["color"], alpha=BAND, linewidth=0)
