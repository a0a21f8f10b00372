"""Masses of baryons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import TableColumns
from gauge_mc.fits import FITS
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.quantities.hadrons.analysis.baryons import baryon_series
from gauge_mc.quantities.hadrons.analysis.chiral import chiral_fits
from gauge_mc.quantities.hadrons.analysis.correlators import (
    BARYON_COLUMNS,
    BARYONS,
    HadronCorrelators,
)
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import Ranges
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit
from gauge_mc.quantities.hadrons.fits.mesons import MesonFit
from gauge_mc.quantities.hadrons.fits.parts.hadron_fit import HadronFit


class BaryonFit(HadronFit):
    """Masses of baryons of both parities, extrapolated with the pions of the same run."""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "masses of baryons of both parities"
    columns: ClassVar[tuple[str, ...]] = BARYON_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = MesonFit.content
    correlators: ClassVar[TableColumns] = BARYONS
    result: ClassVar[str] = "masses of baryons from A exp(-m t)"

    def series(self, correlators: HadronCorrelators, ranges: Ranges) -> MassSeries:
        """Fit the baryons; see `HadronFit.series`."""
        return baryon_series(correlators, ranges)

    def chiral(
        self, folder: Path, found: HadronCorrelators, series: MassSeries, options: Mapping[str, Any]
    ) -> list[ChiralFit]:
        """Extrapolate with the pions that were measured in the same folder.

        Nothing is returned if there are no pions from the same configurations.
        """
        try:
            pions, mesons = MesonFit().fitted(
                find_table_by_columns(folder, MesonFit.columns), options
            )
        except GaugeError:
            return []
        if not np.array_equal(pions.sweeps, found.sweeps):
            return []
        names = {state.name for state in series.masses}
        return [one for one in chiral_fits(mesons, series) if one.quantity.rstrip("+-") in names]


FITS.register(BaryonFit())
