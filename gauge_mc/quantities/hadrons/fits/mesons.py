"""Masses of mesons, the PCAC mass, and the critical hopping parameter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.files.columns import TableColumns
from gauge_mc.fits import FITS
from gauge_mc.quantities.hadrons.analysis.chiral import chiral_fits
from gauge_mc.quantities.hadrons.analysis.correlators import (
    MESON_COLUMNS,
    MESONS,
    HadronCorrelators,
)
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import Ranges
from gauge_mc.quantities.hadrons.analysis.mesons import meson_series
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit, Spectrum
from gauge_mc.quantities.hadrons.fits.parts.hadron_fit import HadronFit


class MesonFit(HadronFit):
    """Masses from cosh fits, PCAC masses, and their extrapolations in the quark mass."""

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "masses of mesons, the PCAC mass, and κ_c"
    columns: ClassVar[tuple[str, ...]] = MESON_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (Spectrum,)
    correlators: ClassVar[TableColumns] = MESONS
    result: ClassVar[str] = "masses of mesons from A [exp(-m t) + exp(-m (T - t))]"

    def series(self, correlators: HadronCorrelators, ranges: Ranges) -> MassSeries:
        """Fit the mesons; see `HadronFit.series`."""
        return meson_series(correlators, ranges)

    def chiral(
        self, folder: Path, found: HadronCorrelators, series: MassSeries, options: Mapping[str, Any]
    ) -> list[ChiralFit]:
        """Extrapolate with the pions of the same table; see `HadronFit.chiral`."""
        return chiral_fits(series, series)


FITS.register(MesonFit())
