"""The chiral condensate and its susceptibility, by stochastic sources.

With the trace T = Tr S / V of one flavour on a configuration, the condensate is -<T> per flavour.
The derivative of <T> by the mass is V (<T^2> - <T>^2) from the weight, for every flavour that has
the mass there, and -<Tr S S> / V from the trace. Products of different sources alone estimate T^2
without the square of their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis import timeseries
from gauge_mc.analysis.fitting import fit_line
from gauge_mc.analysis.table_series import read_series
from gauge_mc.arrays import Array, Integers
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.diagonal import LARGEST
from gauge_mc.extensions.quarks.modes.chirality import CombineChiralities
from gauge_mc.extensions.quarks.noise import (
    DILUTIONS,
    NOISES,
    NUMBER_BITS,
    UNDILUTED,
    NoiseSource,
    dilution_of,
    source_parts,
)
from gauge_mc.extensions.quarks.operators import INVERSE
from gauge_mc.extensions.quarks.spectroscopy import propagators
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark, describe_quarks
from gauge_mc.extensions.quarks.spectroscopy.observables import OPERATOR, SOLVES, QuarkObservable
from gauge_mc.extensions.quarks.spectroscopy.quarks import (
    MOMENTA,
    PROPAGATORS,
    SMEAR_SINK,
    SOURCE,
    Quarks,
    quark_options,
    quark_owners,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import LinePoint
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import MULTIPLY_SPINORS, Multiply
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import PLAQUETTE, lattice_sums
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, quoted_field, table_of
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Record, SecondaryTable
from gauge_mc.observables.noise_reduction import digest_of
from gauge_mc.options import Option, check_options
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols, look, typeset
from gauge_mc.plots.runs import TablePlot
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP

SOURCE_NUMBER = "source"
"""Name of the column with the number of the source."""

COLUMNS = TableColumns(
    Column("kappa", float, "hopping parameter of the quark", index=True),
    Column("mu", float, "twisted mass of the quark", index=True),
    Column("m", float, "mass of the quark", index=True, optional=True),
    Column(SOURCE_NUMBER, int, "number of the source, from 0", index=True),
    Column("scalar", float, "estimate of Re Tr S / V"),
    Column("scalar_im", float, "estimate of Im Tr S / V, 0 without a twisted mass", rounding=True),
    Column("pseudoscalar", float, "estimate of Re Tr γ₅S / V"),
    Column(
        "pseudoscalar_im",
        float,
        "estimate of Im Tr γ₅S / V, 0 without a twisted mass",
        rounding=True,
    ),
    Column("connected", float, "estimate of Re Tr S S / V"),
    Column("pion", float, "estimate of Tr S†S / V"),
)
"""Columns of the table."""

CONDENSATE_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that all tables have."""

WHAT = "condensates"
"""Content of the tables, for messages."""


NOISE_OPTION = Option(
    "noise",
    str,
    f"Noise of the sources: {'; '.join(f'{name}, {x.summary}' for name, x in NOISES.items())}.",
    default=defaults.NOISE,
    choices=tuple(NOISES),
)

SOURCES_OPTION = Option(
    "sources",
    int,
    "Number of sources per configuration.",
    usual=4,
    least=1,
    most=2**NUMBER_BITS - 1,
)

DILUTE = Option(
    "dilute",
    str,
    f"The parts by which each source is divided, besides chirality: {', '.join(DILUTIONS)}.",
    default=UNDILUTED,
    metavar="NAME[,NAME...]",
    choices=(*DILUTIONS, UNDILUTED),
    separator=",",
)

NOISE_SEED = Option(
    "noise_seed", int, "Seed of the noise.", usual=defaults.SEED, least=0, most=2**63 - 1
)

OWN_OPTIONS = (NOISE_OPTION, SOURCES_OPTION, DILUTE, NOISE_SEED)

LEFT_OUT = (SOURCE, SMEAR_SINK, MOMENTA, PROPAGATORS)
"""Options of measurements with quarks that are for hadrons only."""


def _of_quarks(options: Sequence[Option]) -> tuple[Option, ...]:
    return tuple(option for option in options if option not in LEFT_OUT)


@OBSERVABLES.register
@dataclass(frozen=True)
class Condensate(QuarkObservable):
    """Estimates of traces of a quark propagator, with one record for each quark and source.

    The propagator S is the inverse of D + m0, or of D_c + m. A source eta is solved for by its
    chiral parts. As S^dagger = gamma_5 S gamma_5, where a twisted mass changes its sign, the
    solutions S eta also are estimates of Tr S S and of Tr S^dagger S.

    Attributes
    ----------
    quarks : Quarks
        The quarks.
    noise : str
        Name of a registered noise.
    sources : int
        Number of sources on every configuration.
    dilution : tuple of str
        The parts by which each source is divided, besides chirality.
    seed : int
        Seed of the noise.
    colours : int
        Number of colours; 0 if it is not known yet.
    """

    noise: str = defaults.NOISE
    sources: int = SOURCES_OPTION.usual
    dilution: tuple[str, ...] = ()
    seed: int = NOISE_SEED.usual
    colours: int = 0

    name: ClassVar[str] = "condensate"
    summary: ClassVar[str] = "the chiral condensate and its susceptibility, by stochastic sources"
    columns: ClassVar[TableColumns] = COLUMNS
    strict: ClassVar[bool] = True
    smears: ClassVar[bool] = False
    normalisation: ClassVar[str] = (
        "traces over sites, spins and colours for one flavour, divided by the number V of sites, "
        f"{INVERSE}; the condensate <psibar psi> is -<scalar>"
    )
    main_kernel: ClassVar[Kernel | None] = MULTIPLY_SPINORS
    secondary_tables: ClassVar[tuple[SecondaryTable, ...]] = (
        replace(SOLVES, records=lambda x: x.solutions),
        OPERATOR,
    )
    options: ClassVar[tuple[Option, ...]] = (*_of_quarks(quark_options()), *OWN_OPTIONS)
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12", "sources": 1}

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Condensate:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options(cls.options, options, cls.name)
        settings = {x.name: values.pop(x.name, x.usual) for x in OWN_OPTIONS}
        noise = settings[NOISE_OPTION.name] or defaults.NOISE
        NOISES.check(noise, NOISE_OPTION.flag)
        dilution = dilution_of(settings[DILUTE.name] or UNDILUTED)
        numbers = settings[SOURCES_OPTION.name], dilution, settings[NOISE_SEED.name]
        return cls(Quarks.of_options(lattice, cls.name, values), noise, *numbers)

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options; see `Observable.owners`."""
        shared = [(name, _of_quarks(options)) for name, options in quark_owners()]
        return [*shared, (cls.name, OWN_OPTIONS)]

    def for_group(self, group: str) -> Condensate:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        super().for_group(group)
        return replace(self, colours=GROUPS[group].colours)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        divided = ", ".join(("chirality", *self.dilution))
        return {
            **super().header,
            "sources": f"{self.sources} of {self.noise} noise, divided by {divided}",
            NOISE_SEED.name: str(self.seed),
        }

    @property
    def records(self) -> int:
        """Number of records per field."""
        self.quarks.check()
        return len(self.quarks.kinds) * self.sources

    @property
    def warm_up(self) -> Condensate:
        """The same for a heavy quark and one source; see `Observable.warm_up`."""
        return replace(super().warm_up, sources=1)

    @property
    def rehearsed(self) -> Condensate | None:
        """The same with one source, for whose solutions memory is needed; see `rehearsed`."""
        rehearsal = super().rehearsed
        return replace(rehearsal, sources=1) if rehearsal else None

    def _noise_sources(self, digest: int) -> list[NoiseSource]:
        """Return the sources on a configuration, with as many vectors as a point has at most."""
        parts = source_parts(self.dilution, self.colours, self.quarks.lattice.t)
        most = SPINS * self.colours
        return [
            NoiseSource(self.noise, n, self.seed, digest, tuple(parts[first : first + most]), first)
            for n in range(self.sources)
            for first in range(0, len(parts), most)
        ]

    @property
    def solved(self) -> Quarks:
        """The quarks with both signs of their twisted masses, for adjoint propagators."""
        both = {sign * x + 0.0 for x in self.quarks.mus for sign in (1, -1)}  # 0.0, not -0.0
        return replace(self.quarks, mus=tuple(sorted(both)))

    @property
    def solutions(self) -> int:
        """Number of times that solutions are found on a configuration."""
        return len(self.solved.kinds) * len(self._noise_sources(0))

    def _records(self, field: Field, solves: propagators.SolveRecords) -> Iterator[Record]:
        digest = digest_of(lattice_sums(field, PLAQUETTE, values=2))
        sources = self._noise_sources(digest)
        totals = {
            (n, quark): np.zeros(len(COLUMNS) - len(COLUMNS.indices))
            for n in range(self.sources)
            for quark in self.quarks.kinds
        }
        quarks = replace(self.solved, sources=tuple(sources))
        each = zip(sources, propagators.solutions(quarks, field, solves), strict=True)
        for source, (_, solved) in each:
            sums = _traces(source, solved, field)
            for quark in self.quarks.kinds:
                totals[source.number, quark] += sums[quark] / field.lattice.sites
        for (n, quark), values in totals.items():
            numbers = quark if self.quarks.massive else quark[:-1]
            yield (*numbers, n, *values.tolist())


def _traces(
    source: NoiseSource, solved: Mapping[Quark, propagators.QuarkSolution], field: Field
) -> dict[Quark, Array]:
    """Return estimates of the traces, as in the columns of the table, from parts of a source."""
    eta = SpinorField.empty(field, propagators.PRECISION, len(source.parts))
    source.fill(eta, field)
    signs, traces = np.array([part.chirality for part in source.parts]), {}
    turned = eta.like()  # gamma_5 psi
    for quark, solution in solved.items():
        psi, scale = solution.propagator.columns, solution.propagator.normalisation
        CombineChiralities(turned, psi)(0, 0, 0, 1)
        first = Multiply(psi, eta)()
        adjoint = solved[quark._replace(mu=-quark.mu + 0.0)].propagator.columns
        squared = Multiply(turned, adjoint)().mixed.real
        real, imaginary = first.mixed.real, first.mixed.imag
        linear = (real, imaginary, signs * real, signs * imaginary)
        square = scale * scale
        # Sums that are rounded once do not depend on the order of NumPy.
        traces[quark] = np.array(
            [scale * math.fsum(x) for x in linear]
            + [square * math.fsum(sign) for sign in (signs * squared, first.norm2)]
        )
    return traces


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
