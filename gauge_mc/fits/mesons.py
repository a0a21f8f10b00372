"""Masses of mesons, the PCAC mass, and the critical hopping parameter."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.hadrons.correlators import (
    MESON_COLUMNS,
    MESON_LABELS,
    HadronCorrelators,
    Quark,
    describe_quarks,
    read_hadron_correlators,
)
from gauge_mc.analysis.hadrons.masses import MassFit, Ranges
from gauge_mc.analysis.hadrons.spectrum import (
    ChiralFit,
    Series,
    Spectrum,
    State,
    chiral_fits,
    describe,
    meson_series,
    spectrum,
)
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.fits import AVERAGE, FITS, SKIP, T_MAX, T_MIN, Fit, FitResult
from gauge_mc.options import Option

UNITS = "lattice units; tau_int in configurations"


@dataclass(frozen=True, repr=False)
class SpectrumResult(FitResult):
    """Masses of hadrons of an ensemble.

    Attributes
    ----------
    observable : str
        Description of the result.
    spectrum : Spectrum
        The masses with their fits.
    """

    observable: str
    spectrum: Spectrum

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        left_out = [str(one) for one in self.spectrum.left_out]
        found = asdict(self.spectrum) | {"left_out": left_out}
        return {"observable": self.observable, "units": UNITS, **found}

    def report(self) -> list[Any]:
        """Return tables of the masses and of their dependence on the quark mass."""
        found = self.spectrum
        return [
            mass_table(found),
            *([pcac_table(found)] if found.pcac else []),
            *([chiral_table(found)] if found.chiral else []),
        ]


def mass_table(found: Spectrum) -> Table:
    """Return a table of all masses."""
    lines = [f"{found.configurations} configurations. τ_int is in configurations."]
    lines += [*_left_out(found), *found.cautions]
    table = Table(title="Masses a m", caption="\n".join(lines), caption_justify="left")
    averaged = any(math.isfinite(one.fit.systematic) for one in found.masses)
    table.add_column("hadron")
    names = ["source", "a m", "τ_int", "t", "χ²/expected", *["± range"] * averaged]
    for name in names:
        table.add_column(name, justify="right")
    for one in found.masses:
        state = State(*(getattr(one, name) for name in State._fields))
        table.add_row(describe(state), one.source, *_cells(one.fit, averaged))
    return table


def _left_out(found: Spectrum) -> list[str]:
    """Return a line for each reason why hadrons have no mass."""
    reasons: dict[str, list[str]] = {}
    for one in found.left_out:
        reasons.setdefault(one.reason, []).append(one.name)
    return [f"Left out: {'; '.join(names)}. {reason}" for reason, names in reasons.items()]


def _cells(fit: MassFit, averaged: bool) -> list[str]:
    return [
        str(fit.mass),
        fit.mass.format_tau(),
        f"{fit.t_min} to {fit.t_max}",
        quality(fit.chi2, fit.chi2_expected),
        *[f"{fit.systematic:.1g}"] * averaged,
    ]


def quality(chi2: float, expected: float) -> str:
    """Return chi2 and its expectation as text."""
    return f"{chi2:.1f}/{expected:.1f}"


def pcac_table(found: Spectrum) -> Table:
    """Return a table of the PCAC masses."""
    caption = "Neither renormalised nor improved."
    table = Table(title="PCAC masses", caption=caption, caption_justify="left")
    for name in ("quarks", "source", "a m", "τ_int", "t", "χ²/expected"):
        table.add_column(name, justify="right")
    for one in found.pcac:
        quarks = Quark(one.kappa1, one.mu1), Quark(one.kappa2, one.mu2)
        table.add_row(
            describe_quarks(*quarks),
            one.source,
            str(one.mass),
            one.mass.format_tau(),
            f"{one.t_min} to {one.t_max}",
            quality(one.chi2, one.chi2_expected),
        )
    return table


def chiral_table(found: Spectrum) -> Table:
    """Return a table of the extrapolations in the quark mass."""
    lines = [
        "pion^2 and pcac: lines in 1/κ, which vanish at 1/κ_c. Hadrons: lines in the squared mass "
        "of the pion."
    ]
    if poor := dict.fromkeys(one.quantity for one in found.chiral if one.p_value < POOR):
        lines.append(f"Not on a line (p < {POOR:g}): {', '.join(poor)}; use lighter quarks alone.")
    table = Table(title="Extrapolations", caption="\n".join(lines), caption_justify="left")
    twisted = any(one.mu for one in found.chiral)
    names = ["source", *["μ"] * twisted, "κ_c", "at x = 0", "slope", "χ²/expected"]
    table.add_column("quantity")
    for name in names:
        table.add_column(name, justify="right")
    for one in found.chiral:
        kappa_c: Estimate | str = one.kappa_c or ""
        fit = quality(one.chi2, one.chi2_expected) if one.dof else "exact"
        row = (
            one.quantity,
            one.source,
            *[f"{one.mu:g}"] * twisted,
            str(kappa_c),
            str(one.intercept),
            str(one.slope),
            fit,
        )
        table.add_row(*row)
    return table


def ranges_of(options: Mapping[str, Any]) -> Ranges:
    """Return the times that options choose.

    Raises
    ------
    UsageError
        If they leave too few times.
    """
    parts = options.get(T_MIN.name), options.get(T_MAX.name), options.get(AVERAGE.name, False)
    return Ranges(*parts)


class HadronFit(Fit):
    """Masses of hadrons from the correlators of a table.

    Attributes
    ----------
    labels : tuple of str
        Columns that say which correlator a row belongs to.
    result : str
        Description of the result.
    """

    labels: ClassVar[tuple[str, ...]]
    result: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    @abstractmethod
    def series(self, correlators: HadronCorrelators, ranges: Ranges) -> Series:
        """Fit the masses of all hadrons."""

    @abstractmethod
    def chiral(
        self, folder: Path, found: HadronCorrelators, series: Series, options: Mapping[str, Any]
    ) -> list[ChiralFit]:
        """Extrapolate in the quark mass, given the folder of the table and its correlators."""

    def fitted(self, table: Path, options: Mapping[str, Any]) -> tuple[HadronCorrelators, Series]:
        """Return the correlators of a table and the fits to them."""
        ranges = ranges_of(options)
        found = read_hadron_correlators(table, self.labels, options.get(SKIP.name, 0))
        return found, self.series(found, ranges)

    def carry_out(self, table: Path, **options: Any) -> SpectrumResult:
        """Fit all hadrons of a table; see `Fit.carry_out`."""
        correlators, series = self.fitted(table, options)
        chiral = self.chiral(table.parent, correlators, series, options)
        found = spectrum(correlators, series, chiral, options.get(SKIP.name, 0))
        return SpectrumResult(self.result, found)


class MesonFit(HadronFit):
    """Masses from cosh fits, PCAC masses, and their extrapolations in the quark mass."""

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "masses of mesons, the PCAC mass, and κ_c"
    columns: ClassVar[tuple[str, ...]] = MESON_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (Spectrum,)
    labels: ClassVar[tuple[str, ...]] = MESON_LABELS
    result: ClassVar[str] = "masses of mesons from A [exp(-m t) + exp(-m (T - t))]"

    def series(self, correlators: HadronCorrelators, ranges: Ranges) -> Series:
        """Fit the mesons; see `HadronFit.series`."""
        return meson_series(correlators, ranges)

    def chiral(
        self, folder: Path, found: HadronCorrelators, series: Series, options: Mapping[str, Any]
    ) -> list[ChiralFit]:
        """Extrapolate with the pions of the same table; see `HadronFit.chiral`."""
        return chiral_fits(series, series)


FITS.register(MesonFit())
