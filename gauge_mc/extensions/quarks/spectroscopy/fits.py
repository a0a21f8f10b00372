"""Fits to tables of hadrons: masses, PCAC masses, chiral limits, residual mass and Z_A."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from rich.table import Table

from gauge_mc.analysis.fitting import POOR
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    BARYON_COLUMNS,
    BARYONS,
    MESON_COLUMNS,
    MESONS,
    HadronCorrelators,
    HadronState,
    MassFit,
    Ranges,
    describe,
    describe_quarks,
    quarks_of,
    read_hadron_correlators,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import (
    MASS_KEY,
    RESIDUAL_COLUMNS,
    ChiralFit,
    HadronMass,
    MassSeries,
    PcacMass,
    ResidualMasses,
    ResidualTable,
    Spectrum,
    baryon_series,
    chiral_fits,
    meson_series,
    read_residual_table,
    residual_masses,
    spectrum,
)
from gauge_mc.files.columns import TableColumns
from gauge_mc.fits import FITS, DataResult, Fit, FitResult
from gauge_mc.fits.files import find_table_by_columns
from gauge_mc.fits.quoted import (
    AVERAGE,
    REDUCED,
    T_MAX,
    T_MIN,
    QuotedNumber,
    empty_table,
    quoted_number,
    reduced,
)
from gauge_mc.options import Option
from gauge_mc.run.thermalisation import SKIP

IN_KAPPA = "1/κ, which vanish at 1/κ_c"
"""Where the lines of quarks with a hopping parameter vanish, in words."""


def _table(title: str, headings: Sequence[str], lines: Iterable[str], left: int = 1) -> Table:
    """Return a table without rows, whose first columns are aligned at the left, and lines below."""
    below = {"caption": "\n".join(lines), "caption_justify": "left"}
    return empty_table(title, headings[:left], headings[left:], **below)


def mass_table(spectrum: Spectrum) -> Table:
    """Return a table of all masses."""
    reasons: dict[str, list[str]] = {}
    for missing in spectrum.left_out:
        reasons.setdefault(missing.reason, []).append(missing.name)
    lines = [f"{spectrum.configurations} configurations. τ_int is in configurations."]
    lines += [f"Left out: {'; '.join(names)}. {reason}" for reason, names in reasons.items()]
    averaged = any(math.isfinite(mass.fit.systematic) for mass in spectrum.masses)
    headings = "hadron", "source", "a m", "τ_int", "t", REDUCED, *["± range"] * averaged
    table = _table("Masses a m", headings, [*lines, *spectrum.cautions])
    for mass in spectrum.masses:
        state = HadronState(*(getattr(mass, name) for name in HadronState._fields))
        scatter = [f"{mass.fit.systematic:.1g}"] * averaged
        table.add_row(describe(state), mass.source, *_cells(mass.fit), *scatter)
    return table


def _cells(fit: MassFit | PcacMass) -> tuple[str, ...]:
    times, chi2 = f"{fit.t_min} to {fit.t_max}", reduced(fit.chi2, fit.chi2_expected)
    return str(fit.mass), fit.mass.format_tau(), times, chi2


def pcac_table(spectrum: Spectrum) -> Table:
    """Return a table of the PCAC masses."""
    headings = "quarks", "source", "a m", "τ_int", "t", REDUCED
    table = _table("PCAC masses", headings, ["Neither renormalised nor improved."], left=0)
    for mass in spectrum.pcac:
        table.add_row(describe_quarks(*quarks_of(vars(mass))), mass.source, *_cells(mass))
    return table


def chiral_table(spectrum: Spectrum) -> Table:
    """Return a table of the extrapolations in the quark mass."""
    massive = any(x.m_c for x in spectrum.chiral)
    critical, where = ("m_c", "m, which vanish at m_c") if massive else ("κ_c", IN_KAPPA)
    lines = [f"pion^2 and pcac: lines in {where}. Hadrons: lines in the squared mass of the pion."]
    if poor := dict.fromkeys(x.quantity for x in spectrum.chiral if x.p_value < POOR):
        lines.append(f"Not on a line (p < {POOR:g}): {', '.join(poor)}; use lighter quarks alone.")
    twisted = any(x.mu for x in spectrum.chiral)
    headings = "quantity", "source", *["μ"] * twisted, critical, "at x = 0", "slope", REDUCED
    table = _table("Extrapolations", headings, lines)
    for fit in spectrum.chiral:
        line = str(fit.kappa_c or fit.m_c or ""), str(fit.intercept), str(fit.slope)
        quality = reduced(fit.chi2, fit.chi2_expected) if fit.dof else "exact"
        table.add_row(fit.quantity, fit.source, *[f"{fit.mu:g}"] * twisted, *line, quality)
    return table


UNITS = "lattice units; tau_int in configurations"

SYMBOLS = {"pion": "π", "rho": "ρ", "nucleon": "N", "delta": "Δ"}
"""Symbols of the hadrons that one quotes."""

Hadron = TypeVar("Hadron", HadronMass, PcacMass)


@dataclass(frozen=True, repr=False)
class SpectrumResult(FitResult):
    """Masses of hadrons of an ensemble."""

    observable: str
    """Description of the result."""
    spectrum: Spectrum
    """The masses with their fits."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        left_out = [str(x) for x in self.spectrum.left_out]
        fields = asdict(self.spectrum) | {"left_out": left_out}
        return {"observable": self.observable, "units": UNITS, **fields}

    def report(self) -> list[Any]:
        """Return tables of the masses and of their dependence on the quark mass."""
        spectrum = self.spectrum
        tables = [mass_table(spectrum), *([pcac_table(spectrum)] if spectrum.pcac else [])]
        return [*tables, *([chiral_table(spectrum)] if spectrum.chiral else [])]

    def quoted(self) -> list[QuotedNumber]:
        """Return the masses of the lightest quarks, and where that of the pion vanishes.

        The source with the smallest error of a mass is taken.
        """
        spectrum = self.spectrum
        at_rest = [mass for mass in spectrum.masses if not any(mass.momentum) and mass.parity >= 0]
        proper = [x for x in at_rest if x.name in SYMBOLS] or at_rest
        where = _where([*proper, *spectrum.pcac])
        masses: dict[str, HadronMass] = {}
        for hadron in sorted(_of_lightest_quarks(proper), key=lambda quark: quark.fit.mass.error):
            masses.setdefault(SYMBOLS.get(hadron.name, hadron.name), hadron)
        symbols = [symbol for symbol in SYMBOLS.values() if symbol in masses] or [*masses][:2]
        fits = [(symbol, masses[symbol].fit) for symbol in symbols]
        pcac = sorted(_of_lightest_quarks(spectrum.pcac), key=lambda quark: quark.mass.error)
        critical = [x for x in spectrum.chiral if x.kappa_c or x.m_c][:1]
        return [
            *(quoted_number(f"a m_{x}{where}", fit.mass, fit.systematic) for x, fit in fits),
            *(quoted_number(f"a m_PCAC{where}", x.mass) for x in pcac[:1]),
            *(quoted_number("κ_c", x.kappa_c) for x in critical if x.kappa_c),
            *(quoted_number("m_c", x.m_c) for x in critical if not x.kappa_c),
        ]

    def unquoted(self) -> str:
        """Return why there is no mass; see `FitResult.unquoted`."""
        return "no mass of a hadron at rest could be determined"


def _of_lightest_quarks(hadrons: Sequence[Hadron]) -> list[Hadron]:
    """Return the masses of hadrons, or PCAC masses, with the lightest quarks."""
    lightest = min(map(_heaviness, hadrons), default=None)
    return [x for x in hadrons if _heaviness(x) == lightest]


def _heaviness(hadron: HadronMass | PcacMass) -> tuple[float, ...]:
    """Return numbers that grow with the masses of the quarks of a hadron."""
    h = hadron
    return h.m1 + h.m2, 1 / h.kappa1 + 1 / h.kappa2, abs(h.mu1) + abs(h.mu2)


def _where(hadrons: Sequence[HadronMass | PcacMass]) -> str:
    """Return the parameters of the lightest quarks in words; nothing if there are no others."""
    if len({*map(_heaviness, hadrons)}) < 2:
        return ""
    lightest = min(hadrons, key=_heaviness)
    return f" ({describe_quarks(*quarks_of(vars(lightest)))})"


def ranges_of(options: Mapping[str, Any]) -> Ranges:
    """Return the times that options choose."""
    return Ranges(
        options.get(T_MIN.name), options.get(T_MAX.name), options.get(AVERAGE.name, False)
    )


Fitted = tuple[HadronCorrelators, MassSeries]
"""The correlators of a table, and the fits to them."""


class HadronFit(Fit):
    """Masses of hadrons from the correlators of a table."""

    joins: ClassVar[bool] = False
    correlators: ClassVar[TableColumns]
    """Columns of the table."""
    result: ClassVar[str]
    """Description of the result."""
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    series: Callable[[HadronCorrelators, Ranges], MassSeries]
    """Function that fits the masses of all hadrons."""

    def chiral(self, table: Path, fitted: Fitted, options: Mapping[str, Any]) -> list[ChiralFit]:
        """Extrapolate in the quark mass, given a table and the fits to it, with its own pions."""
        return chiral_fits(fitted[1], fitted[1])

    def fitted(self, table: Path, options: Mapping[str, Any]) -> Fitted:
        """Return the correlators of a table and the fits to them."""
        ranges = ranges_of(options)  # which refuses times before a table is read
        correlators = read_hadron_correlators(table, self.correlators, options.get(SKIP.name, 0))
        return correlators, self.series(correlators, ranges)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> SpectrumResult:
        """Fit all hadrons of a table; see `Fit.carry_out`."""
        fitted = self.fitted(tables[0], options)
        chiral = self.chiral(tables[0], fitted, options)
        return SpectrumResult(self.result, spectrum(*fitted, chiral, options.get(SKIP.name, 0)))


class MesonFit(HadronFit):
    """Masses from cosh fits, PCAC masses, and their extrapolations in the quark mass."""

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "masses of mesons, the PCAC mass, and κ_c"
    columns: ClassVar[tuple[str, ...]] = MESON_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (Spectrum,)
    correlators: ClassVar[TableColumns] = MESONS
    result: ClassVar[str] = "masses of mesons from A [exp(-m t) + exp(-m (T - t))]"

    series = staticmethod(meson_series)


FITS.register(MesonFit())


class BaryonFit(HadronFit):
    """Masses of baryons of both parities, extrapolated with the pions of the same run."""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "masses of baryons of both parities"
    columns: ClassVar[tuple[str, ...]] = BARYON_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = MesonFit.content
    correlators: ClassVar[TableColumns] = BARYONS
    result: ClassVar[str] = "masses of baryons from A exp(-m t)"

    series = staticmethod(baryon_series)

    def chiral(self, table: Path, fitted: Fitted, options: Mapping[str, Any]) -> list[ChiralFit]:
        """Extrapolate with the pions that were measured in the same folder.

        Nothing is returned if there are no pions from the same configurations.
        """
        correlators, series = fitted
        try:
            of_mesons = find_table_by_columns(table.parent, MesonFit.columns)
            pions, mesons = MesonFit().fitted(of_mesons, options)
        except GaugeError:
            return []
        if not np.array_equal(pions.sweeps, correlators.sweeps):
            return []
        names = {state.name for state in series.masses}
        return [fit for fit in chiral_fits(mesons, series) if fit.quantity.rstrip("+-") in names]


FITS.register(BaryonFit())


class ResidualMassResult(DataResult[ResidualMasses]):
    """Residual masses of domain-wall quarks of an ensemble, and Z_A."""

    observable: ClassVar[str] = "residual mass of domain-wall quarks, and Z_A"
    units: ClassVar[str] = UNITS

    def report(self) -> list[Any]:
        """Return a table of the residual masses."""
        summary = self.found
        lines = [f"{summary.configurations} configurations."]
        if MASS_KEY in summary.ensemble:
            lines.append(f"{MASS_KEY} = {summary.ensemble[MASS_KEY]}.")
        lines += [*(f"Left out: {x}" for x in summary.left_out), *summary.cautions]
        headings = "m", "source", "m_res", "t", REDUCED, "from sums", "Z_A", "t"
        table = _table("Residual masses", headings, lines, left=0)
        for mass in summary.masses:
            chi2 = reduced(mass.chi2, mass.chi2_expected)
            times = f"{mass.t_min}–{mass.t_max}", f"{mass.z_a_t_min}–{mass.z_a_t_max}"
            m_res = (str(mass.m_res), times[0], chi2) if mass.m_res else ("", "", "")
            z_a = (str(mass.z_a), times[1]) if mass.z_a else ("", "")
            table.add_row(f"{mass.m:g}", mass.source, *m_res, str(mass.summed), *z_a)
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return the residual mass of the lightest quark and Z_A; that from sums if need be."""
        masses = self.found.masses
        light = [m for m in masses if m.m == min(mass.m for mass in masses)]
        several = len(light) < len(masses)
        where = f" (m = {light[0].m:g})" if light and several else ""
        residual = [(x.m_res, "m_res") for x in light if x.m_res]
        residual += [(x.summed, "m_res from sums") for x in light]
        z_a = [(x.z_a, "Z_A") for x in light if x.z_a]
        return [quoted_number(name + where, x) for x, name in residual[:1] + z_a[:1]]


class ResidualMassFit(Fit):
    """Plateaus of m_res(t) and Z_A(t)."""

    joins: ClassVar[bool] = False
    name: ClassVar[str] = "residual-mass"
    summary: ClassVar[str] = "residual mass and Z_A of domain-wall quarks"
    columns: ClassVar[tuple[str, ...]] = RESIDUAL_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (ResidualMasses,)
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ResidualMassResult:
        """Fit the plateaus of all quarks; see `Fit.carry_out`."""
        return ResidualMassResult(self.fitted(tables[0], options)[1])

    def fitted(
        self, path: Path, options: Mapping[str, Any]
    ) -> tuple[ResidualTable, ResidualMasses]:
        """Return the sums of a table, and the plateaus that are fitted to them."""
        skip = options.get(SKIP.name, 0)
        table = read_residual_table(path, skip)
        return table, residual_masses(table, ranges_of(options), skip)


FITS.register(ResidualMassFit())
