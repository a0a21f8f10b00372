"""Masses of baryons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.hadron_correlators import (
    BARYON_COLUMNS,
    BARYON_LABELS,
    HadronCorrelators,
    read_hadron_correlators,
)
from gauge_mc.analysis.spectrum import (
    ChiralFit,
    Series,
    baryon_series,
    chiral_fits,
    spectrum,
)
from gauge_mc.errors import GaugeError
from gauge_mc.fits import AVERAGE, FITS, SKIP, T_MAX, T_MIN, Fit, find_table_by_columns
from gauge_mc.fits.mesons import MesonFit, SpectrumResult, fit_mesons, ranges_of
from gauge_mc.options import Option


def fit_baryons(table: Path, options: Mapping[str, Any]) -> tuple[HadronCorrelators, Series]:
    """Fit the correlators of baryons of a table with the options of `BaryonFit`."""
    ranges = ranges_of(options)
    correlators = read_hadron_correlators(table, BARYON_LABELS, options.get(SKIP.name, 0))
    return correlators, baryon_series(correlators, ranges)


class BaryonFit(Fit):
    """Masses of baryons of both parities, extrapolated with the pions of the same run."""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "masses of baryons of both parities"
    columns: ClassVar[tuple[str, ...]] = BARYON_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    def carry_out(self, table: Path, **options: Any) -> SpectrumResult:
        """Fit all baryons of a table; see `Fit.carry_out`."""
        correlators, series = fit_baryons(table, options)
        chiral = extrapolated(table.parent, correlators, series, options)
        found = spectrum(correlators, series, chiral, options.get(SKIP.name, 0))
        return SpectrumResult("masses of baryons from A exp(-m t)", found)


FITS.register(BaryonFit())


def extrapolated(
    folder: Path, correlators: HadronCorrelators, series: Series, options: Mapping[str, Any]
) -> list[ChiralFit]:
    """Extrapolate the masses of baryons with the pions that were measured in the same folder.

    Nothing is returned if there are no pions from the same configurations.
    """
    try:
        table, pions = fit_mesons(find_table_by_columns(folder, MesonFit.columns), options)
    except GaugeError:
        return []
    if not np.array_equal(table.sweeps, correlators.sweeps):
        return []
    names = {state.name for state in series.masses}
    return [one for one in chiral_fits(pions, series) if one.quantity.rstrip("+-") in names]
