"""Effective masses of mesons and baryons with the masses that were fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.pictures import BandEntry, Mark, Picture, Stroke, Symbols
from gauge_mc.plots.runs.labels import labels_of, one_run
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.states import HadronState
from gauge_mc.quantities.hadrons.fits.baryons import BaryonFit
from gauge_mc.quantities.hadrons.fits.mesons import MesonFit
from gauge_mc.quantities.hadrons.plots.mesons import (
    HADRONS,
    ErrorBars,
    chosen_hadrons,
    frames_of,
    picture_of_frames,
    symbol,
)

LARGEST_ERROR = 0.25
"""Maximum relative error of an effective mass that is drawn; larger ones would hide the others."""

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
        picture = effective_masses_picture(fitted(run, options), chosen)
        replace(picture, title=labels_of([run])[0]).draw(file)
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


def effective_masses_picture(fits: Sequence[MassSeries], chosen: Sequence[str] = ()) -> Picture:
    """Return effective masses and, over the times that were fitted, the masses with their errors.

    Parameters
    ----------
    fits : sequence of MassSeries
        Fitted correlators.
    chosen : sequence of str
        Names of the hadrons to draw; all if there are none.

    Raises
    ------
    UsageError, GaugeError
        See `frames_of` and `picture_of_frames`.
    """
    found = frames_of(fits, _points, chosen)
    frames = {rf"$a\,m_{{{symbol(name)}}}$": pairs for name, pairs in found.items()}
    return picture_of_frames(
        frames, _marks, key=[BandEntry(text="fitted mass, at the t of the fit")]
    )


def _points(correlator: Correlator) -> ErrorBars:
    """Return the effective masses that are known well enough to be drawn."""
    energies = correlator.effective()
    found = [estimate(one) for one in energies.series[:, 0].T]
    return [
        (energies.start + n, one.value, one.error)
        for n, one in enumerate(found)
        if one.error < LARGEST_ERROR * abs(one.value)
    ]


def _marks(
    series: MassSeries, state: HadronState, own: dict[str, Any], shift: float
) -> Iterator[Mark]:
    """Yield an effective mass, and the fitted mass if there is one."""
    t, value, error = np.transpose(_points(series.correlators[state]))
    yield Symbols(t + shift, value, error, style=own)
    if state in series.masses:
        fit = series.masses[state][0]
        yield Stroke.plateau((fit.t_min, fit.t_max), fit.mass, {"color": own["color"]})
