"""Condensates and chiral susceptibilities from the tables of traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis import timeseries
from gauge_mc.analysis.fitting import fit_line
from gauge_mc.analysis.table_series import read_series
from gauge_mc.arrays import Array, Integers
from gauge_mc.extensions.quarks.condensate import (
    COLUMNS,
    CONDENSATE_COLUMNS,
    SOURCE_NUMBER,
    WHAT,
)
from gauge_mc.extensions.quarks.diagonal import LARGEST
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark, describe_quarks
from gauge_mc.extensions.quarks.spectroscopy.spectrum import LinePoint
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, quoted_field, table_of
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols, look, typeset
from gauge_mc.plots.runs import TablePlot
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP

METADATA = (*ensemble_keys(), "quarks", "csw", "operator", "boundary", "imaginary_mu", "sources")
"""Keys of the header that identify the ensemble, its quarks and the sources."""

NOISY = 0.5
"""Part of the squared error that is noise from which on more sources are advised."""


@documented
@dataclass(frozen=True)
class MeasuredQuark:
    """A quark whose condensate was measured."""

    kappa: float = result_field("Hopping parameter.", symbol="κ")
    mu: float | None = result_field("Twisted mass; null if it is 0.", symbol="μ")
    m: float | None = result_field("Mass; null for operators without one.", symbol="m")

    @property
    def quark(self) -> Quark:
        """The quark, as in the table."""
        return Quark(self.kappa, self.mu or 0.0, self.m or 0.0)

    @property
    def where(self) -> str:
        """The quark in words."""
        return describe_quarks(self.quark, self.quark)

    @property
    def heaviness(self) -> tuple[float, float, float]:
        """Numbers that are the smallest for the lightest quark."""
        return (self.m or 0.0, -self.kappa, abs(self.mu or 0.0))


@documented
@dataclass(frozen=True)
class CondensateResult(MeasuredQuark):
    """The condensate of a quark."""

    condensate: timeseries.Estimate = result_field("⟨Tr S⟩ / V, which is −⟨ψ̄ψ⟩.", symbol="−⟨ψ̄ψ⟩")
    noise_error: float | None = result_field(
        "Part of its error that the noise of the sources makes; null with one source.",
        symbol="noise",
    )
    link_error: float | None = result_field(
        "Part of its error that fluctuations of the links make; null with one source.",
        symbol="links",
    )
    twisted: timeseries.Estimate | None = result_field(
        "−Im⟨Tr γ₅S⟩ / V, which is −⟨iψ̄γ₅τ₃ψ⟩ per flavour; null without a twisted mass.",
        symbol="−⟨iψ̄γ₅τ₃ψ⟩",
    )


@documented
@dataclass(frozen=True)
class ChiralSusceptibility(MeasuredQuark):
    """The parts of the susceptibility of a quark."""

    disconnected: timeseries.Estimate | None = result_field(
        "Disconnected susceptibility V (⟨T²⟩ − ⟨T⟩²) of T = Tr S / V, by products of different "
        "sources; null with one source.",
        symbol="χ_disc",
    )
    connected: timeseries.Estimate = result_field(
        "Connected susceptibility −⟨Tr S S⟩ / V of one flavour.", symbol="χ_conn"
    )
    total: timeseries.Estimate | None = result_field(
        "Derivative of −⟨ψ̄ψ⟩ of n flavours by their mass, n² χ_disc + n χ_conn; null with one "
        "source.",
        symbol="χ",
    )
    pion: timeseries.Estimate = result_field(
        "Susceptibility ⟨Tr S†S⟩ / V of charged pions.", symbol="χ_π"
    )


@documented
@dataclass(frozen=True)
class CondensateLine:
    """A straight line through condensates at several quark masses."""

    mu: float | None = result_field("Twisted mass of all quarks; null if it is 0.", symbol="μ")
    intercept: timeseries.Estimate = result_field("Value where the mass is 0.", symbol="at m = 0")
    slope: timeseries.Estimate = result_field("Slope.", symbol="slope")
    chi2: float | None = result_field("chi2 of the fit; null for two points.", symbol="χ²")
    chi2_expected: float | None = result_field("Expectation of chi2.", symbol="⟨χ²⟩")
    p_value: float | None = result_field(
        "Probability of a larger chi2 if the condensates are on a line.", symbol="p"
    )
    points: tuple[LinePoint, ...] = result_field(
        "The points of the fit; x is the mass of the quark, 1/(2κ) − 1/(2κ_c) or m."
    )


@documented
@dataclass(frozen=True)
class CondensateResults:
    """The condensates of an ensemble."""

    ensemble: Mapping[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, quarks, boundary conditions and sources."
    )
    configurations: int = result_field("Number of configurations.")
    sources: int = result_field("Number of sources on every configuration.")
    flavours: int = result_field("Number n of flavours in the whole susceptibility.")
    skip: int = result_field("Last update that was left out.")
    quarks: tuple[CondensateResult, ...] = result_field("The condensate of every quark.")
    susceptibilities: tuple[ChiralSusceptibility, ...] = result_field("Their susceptibilities.")
    lines: tuple[CondensateLine, ...] = result_field("Straight lines in the quark mass.")
    cautions: tuple[str, ...] = result_field("Cautions about the errors, one sentence each.")


@dataclass(frozen=True)
class CondensateTable:
    """Estimates by every source on every configuration of an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble, its quarks and the sources."""
    volume: int
    """Number of sites."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending."""
    values: Mapping[Quark, Mapping[str, Array]]
    """Columns by name, of shape (configurations, sources), for every quark."""


def read_condensates(path: Path, skip: int = 0) -> CondensateTable:
    """Read a table of condensates."""
    table = read_series(path, COLUMNS, WHAT, skip)
    index = table.index
    masses = index.get("m", np.zeros(index["mu"].size))
    numbers = (x.tolist() for x in (index["kappa"], index["mu"], masses))
    quarks = [*map(Quark, *numbers)]
    order, values = np.argsort(index[SOURCE_NUMBER], kind="stable"), {}
    for quark in dict.fromkeys(quarks):
        places = [place for place in order if quarks[place] == quark]
        values[quark] = {name: column[:, places] for name, column in table.values.items()}
    return CondensateTable(table.stated(METADATA), table.lattice.sites, table.sweeps, values)


def pairs_of_sources(values: Array) -> Array:
    """Return the mean of the products of different sources, which has no square of their noise."""
    sources = values.shape[1]
    total, squares = values.sum(axis=1), (values**2).sum(axis=1)
    return np.asarray((total**2 - squares) / (sources * (sources - 1)))


def disconnected(*chains: Array, volume: int) -> tuple[timeseries.Estimate, list[Array]]:
    """Return V (<T^2> - <T>^2) without bias, and the series of its linear change.

    The square of the mean exceeds <T>^2 by its squared error, with that of the noise. The error is
    that of the linear change by `estimate`, or that of the jackknife, whichever is larger.
    """
    origin = np.concatenate(chains).mean()
    pairs = [pairs_of_sources(chain - origin) for chain in chains]
    single = [(chain - origin).mean(axis=1) for chain in chains]
    mean = timeseries.estimate(*single)
    both = [*zip(pairs, single, strict=True)]
    series = [volume * (pair - 2 * mean.value * x) for pair, x in both]
    change = timeseries.estimate(*series)
    bias = mean.error**2 if math.isfinite(mean.error) else 0.0
    length = timeseries.bin_length(sum(map(len, chains)), max(mean.tau_int, change.tau_int))

    def variance(means: Array) -> Array:
        return np.asarray(volume * (means[..., 0] - means[..., 1] ** 2))

    value, error = timeseries.jackknifed([np.stack(x, axis=1) for x in both], length, variance)
    larger = max(error, change.error) if math.isfinite(error) else change.error
    return replace(change, value=value + volume * bias, error=larger), series


def condensates(
    table: CondensateTable, flavours: int, kappa_c: float | None = None, skip: int = 0
) -> CondensateResults:
    """Determine the condensate of every quark of a table, and straight lines in their mass."""
    quarks = tuple(_condensate(*item) for item in table.values.items())
    chi = tuple(_susceptibility(*item, table.volume, flavours) for item in table.values.items())
    scalars = [values["scalar"] for values in table.values.values()]
    number, sources = scalars[0].shape
    tau = max(quark.condensate.tau_int + quark.condensate.tau_int_error for quark in quarks)
    short = timeseries.caution_short(number, tau, "the condensates")
    slow = timeseries.caution_series(table.sweeps, *(scalar.mean(axis=1) for scalar in scalars))
    words = dict(table.ensemble), number, sources, flavours, skip
    cautions = *short, *slow, *_cautions(quarks, sources)
    return CondensateResults(*words, quarks, chi, tuple(_lines(table, kappa_c)), cautions)


def _condensate(quark: Quark, values: Mapping[str, Array]) -> CondensateResult:
    scalar = values["scalar"]
    mean, noise, links = timeseries.estimate(scalar.mean(axis=1)), None, None
    if scalar.shape[1] > 1:
        spread = float((scalar.var(axis=1, ddof=1) / scalar.shape[1]).mean())
        noise = math.sqrt(spread / len(scalar))
        links = math.sqrt(max(mean.error**2 - noise**2, 0.0))
    twisted = timeseries.estimate(-values["pseudoscalar_im"].mean(axis=1)) if quark.mu else None
    return CondensateResult(*_measured(quark), mean, noise, links, twisted)


def _susceptibility(
    quark: Quark, values: Mapping[str, Array], volume: int, flavours: int
) -> ChiralSusceptibility:
    connected, total, apart = -values["connected"].mean(axis=1), None, None
    if values["scalar"].shape[1] > 1:
        apart, (series,) = disconnected(values["scalar"], volume=volume)
        total = timeseries.estimate(flavours**2 * series + flavours * connected)
        # The error of the jackknife counts as much as in the disconnected part.
        error = max(total.error, flavours**2 * apart.error)
        value = flavours**2 * apart.value + flavours * float(connected.mean())
        total = replace(total, value=value, error=error)
    pion = timeseries.estimate(values["pion"].mean(axis=1))
    return ChiralSusceptibility(
        *_measured(quark), apart, timeseries.estimate(connected), total, pion
    )


def _measured(quark: Quark) -> tuple[float, float | None, float | None]:
    return quark.kappa, quark.mu or None, quark.m or None


def _lines(table: CondensateTable, kappa_c: float | None) -> list[CondensateLine]:
    """Return a straight line in the mass for every twisted mass with several quarks.

    Without a mass of the operator, it is 1/(2 kappa) - 1/(2 kappa_c), if kappa_c is known.
    """
    lines = []
    for mu in dict.fromkeys(value.mu for value in table.values):
        quarks = [value for value in table.values if value.mu == mu]
        massive = any(x.m for x in quarks)
        if len(quarks) < 2 or not (massive or kappa_c):
            continue
        zero = 0 if massive or not kappa_c else 1 / (2 * kappa_c)
        x = np.array([x.m if massive else 1 / (2 * x.kappa) - zero for x in quarks])
        data = np.stack([table.values[x]["scalar"].mean(axis=1) for x in quarks], axis=1)
        fit, points = fit_line(x, data), LinePoint.several(x, data)
        intercept, slope = map(timeseries.estimate, (data @ fit.projection.T).T)
        chi2, expected, p = fit.quality if fit.dof else (None, None, None)
        lines.append(CondensateLine(mu or None, intercept, slope, chi2, expected, p, points))
    return lines


def _cautions(results: Sequence[CondensateResult], sources: int) -> list[str]:
    """Return cautions about the number of sources."""
    if sources == 1:
        return [
            "With one source the noise cannot be told from the fluctuations of the links, and the "
            "disconnected susceptibility is not known; measure with more --sources."
        ]
    if any((x.noise_error or 0) ** 2 > NOISY * x.condensate.error**2 for x in results):
        return [
            "Most of the error of the condensate is noise of the sources: measure with more "
            "--sources, or divide them by more with --dilute."
        ]
    return []


FLAVOURS = Option(
    "flavours", int, "Flavours of this mass in the susceptibility.", usual=2, least=1, most=100
)

KAPPA_C = Option(
    "kappa_c",
    float,
    "Critical hopping parameter, from which the masses of straight lines are counted.",
    default="no line without masses",
    least=1 / LARGEST,
    most=1,
)

DIGITS = 3
"""Number of digits of numbers without an error."""


class CondensateFitResult(DataResult[CondensateResults]):
    """Condensates of an ensemble."""

    observable: ClassVar[str] = "chiral condensate and its susceptibility"
    units: ClassVar[str] = "lattice units, not renormalised; tau_int in configurations"

    def report(self) -> list[Any]:
        """Return tables of the condensates and of their lines."""
        f = self.found
        title = "Lines in the quark mass"
        return [
            table_of("Condensates", CondensateResult, f.quarks, DIGITS),
            table_of("Susceptibilities", ChiralSusceptibility, f.susceptibilities, DIGITS),
            *([table_of(title, CondensateLine, f.lines, DIGITS)] if f.lines else []),
            f"{counted(f.configurations, 'configuration')} with {counted(f.sources, 'source')} "
            f"each, χ of {f.flavours} flavours.",
            *f.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the condensate of the lightest quark, and its susceptibility."""
        every = zip(self.found.quarks, self.found.susceptibilities, strict=True)
        first, second = min(every, key=lambda pair: pair[0].heaviness)
        where = first.where if len(self.found.quarks) > 1 else ""
        names = ("condensate", "twisted") if first.twisted else ("condensate",)
        return [
            *(quoted_field(first, name, None, where) for name in names),
            *(quoted_field(second, name, None, where) for name in ("disconnected", "total")),
        ]


class CondensateFit(Fit):
    """Averages of estimates by stochastic sources, with the noise apart."""

    joins: ClassVar[bool] = False
    name: ClassVar[str] = "condensate"
    summary: ClassVar[str] = CondensateFitResult.observable
    columns: ClassVar[tuple[str, ...]] = CONDENSATE_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CondensateResults,)
    options: ClassVar[tuple[Option, ...]] = (FLAVOURS, KAPPA_C, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> CondensateFitResult:
        """Determine the condensates of all quarks; see `Fit.carry_out`."""
        return CondensateFitResult(self.fitted(tables[0], options)[1])

    def fitted(
        self, path: Path, options: Mapping[str, Any]
    ) -> tuple[CondensateTable, CondensateResults]:
        """Return the estimates of a table, and the condensates that follow from them."""
        skip, flavours = options.get(SKIP.name, 0), options.get(FLAVOURS.name, FLAVOURS.usual)
        table = read_condensates(path, skip)
        return table, condensates(table, flavours, options.get(KAPPA_C.name), skip)


FITS.register(CondensateFit())


class CondensatePlot(TablePlot):
    """The condensate of every configuration, and for several quarks against their mass."""

    name = "condensate"
    summary = "chiral condensate: history, and dependence on the quark mass"
    subject: ClassVar[str] = "The condensate"
    columns: ClassVar[tuple[str, ...]] = CondensateFit.columns
    options: ClassVar[tuple[Option, ...]] = CondensateFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the condensate; see `condensate_picture`."""
        return condensate_picture(*CondensateFit().fitted(table, options))


PLOTS.register(CondensatePlot())


def condensate_picture(table: CondensateTable, fitted: CondensateResults) -> Picture:
    """Return the series of the condensate with its average, and lines in the quark mass if any.

    The bars of a configuration are the errors by its sources alone.
    """
    marks: list[Mark] = []
    for n, quark in enumerate(fitted.quarks):
        values, style = table.values[quark.quark]["scalar"], look(n)
        sources = values.shape[1]
        error = values.std(axis=1, ddof=1) / np.sqrt(sources) if sources > 1 else None
        y, text = values.mean(axis=1), typeset(quark.where)
        marks.append(Symbols(table.sweeps, y, error, style=style, text=text))
        ends = float(table.sweeps[0]), float(table.sweeps[-1])
        marks.append(Stroke.plateau(ends, quark.condensate, {"color": style["color"]}))
    quantity = r"$-\langle\bar\psi\psi\rangle$"
    frames = [Frame(marks, "update", quantity)]
    for n, line in enumerate(fitted.lines):
        x, y, error = np.transpose([(point.x, point.value, point.error) for point in line.points])
        at = np.array([0.0, x.max()])
        straight = line.intercept.value + line.slope.value * at
        colour = {"color": look(n)["color"]}
        both = [Symbols(x, y, error, style=look(n)), Stroke(at, straight, style=colour)]
        frames.append(Frame(both, r"$a\,m$", quantity))
    return Picture(frames, 2.8 * len(frames), columns=2, layout={"nrows": len(frames)})
