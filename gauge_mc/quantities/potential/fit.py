"""`fit potential`: V(R), the string tension and r0 from Wilson loops or Polyakov correlators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.analysis.fitting import covariance_of
from gauge_mc.analysis.states import EffectiveEnergies
from gauge_mc.analysis.table_series import TableSeries
from gauge_mc.analysis.timeseries import bin_length, jackknife, with_error
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import bracketed
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.exports.tables import hdf5_file, hdf5_kind, write_array
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json, typed
from gauge_mc.files.table import read_heading
from gauge_mc.fits import FITS, Fit, FitResult, files
from gauge_mc.fits.quoted import (
    LEVEL,
    REDUCED,
    T_MAX,
    T_MIN,
    Goal,
    QuotedNumber,
    empty_table,
    quoted_number,
    reduced,
    tag_of_levels,
)
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.quantities.polyakov import observables
from gauge_mc.quantities.potential import loop_tables, static_potential
from gauge_mc.quantities.potential.forms import FORMS, ROOT_SIGMA, StaticGluons
from gauge_mc.quoting import CommandLine, as_typed, shortened
from gauge_mc.run.thermalisation import SKIP

OBSERVABLE = "static potential V(R) = A + B/R + sigma R"

UNITS = f"lattice units; spacing in fm, from sqrt(sigma) = {ROOT_SIGMA:g} MeV"

LEVELS = Option(
    "levels",
    str,
    "Smearing levels of the variational analysis of a table with the loops between all of them.",
    default="all of the table",
    metavar="N,N[,N...]",
    least=0,
    each=int,
)

SAMPLES = Option(
    "samples", bool, "Also write samples of V(R) and their covariance to potential.h5."
)

SOURCE = Option(
    "source",
    str,
    "What V(R) is from: Wilson loops, or correlators of Polyakov loops.",
    default=f"{static_potential.LOOPS} if the run has a table of them",
    choices=(static_potential.LOOPS, static_potential.CORRELATORS),
)

R_MIN = Option("r_min", float, "Smallest distance of all windows.", default="the smallest one")
R_MAX = Option("r_max", float, "Largest distance of all windows.", default="the largest one")

TABLES = {
    static_potential.LOOPS: loop_tables.LOOP_COLUMNS,
    static_potential.CORRELATORS: observables.CORRELATOR_COLUMNS,
}
"""Columns of the tables, by the source of V(R)."""

OF_LOOPS = (T_MIN, T_MAX, LEVEL, LEVELS)
"""Options that correlators do not have."""

SYMBOLS = {
    "sigma": "σ a²",
    "root_sigma": "√σ a",
    "r0": "r₀/a",
    "r1": "r₁/a",
    "rc": "r_c/a",
    "spacing": "a",
}
"""Symbols of the scales by name."""

UNIT = {"spacing": "fm"}
"""Units of those that are not in lattice units."""

QUOTED = ("root_sigma", "r0", "spacing")
"""Names of the scales that one quotes."""


def columns_of(source: str) -> tuple[str, ...]:
    """Return the columns of the table from which V(R) is determined."""
    if source not in TABLES:
        raise UsageError(f"{SOURCE.flag} is '{shortened(source)}'; choose {' or '.join(TABLES)}.")
    return TABLES[source]


@dataclass(frozen=True)
class PotentialSamples:
    """Time series of V(R) and of the scales, which results of fits do not keep."""

    series: static_potential.PotentialSeries
    """V(R)."""
    sweeps: Integers
    """Numbers (updates) of the configurations, of shape (configurations,)."""
    histories: Mapping[str, Array]
    """Linearised time series of the scales, by name."""


@dataclass(frozen=True, repr=False)
class PotentialResult(FitResult):
    """The result of a fit of the static potential."""

    potential: static_potential.StaticPotential
    """V(R) and its scales."""
    samples: PotentialSamples
    """Their time series."""
    tag: str = ""
    """The smearing levels, if the table has several."""
    exported: bool = False
    """Whether the samples are written to an HDF5 file as well."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        fields = {**asdict(self.potential), "cautions": self.potential.cautions}
        return {"observable": OBSERVABLE, "units": UNITS, **fields}

    def report(self) -> list[Any]:
        """Return a table of the scales, and how, on what, and what to doubt, one sentence each."""
        return [scale_table(self.potential), *sentences(self.potential)]

    def further_report(self) -> list[Any]:
        """Return tables of V(R), the force and the most probable fits, and all cautions."""
        potential = self.potential
        tables = [point_table(potential), force_table(potential), form_table(potential)]
        return [*tables, *potential.cautions[1:]]

    def quoted(self) -> list[QuotedNumber]:
        """Return the string tension, r0, and the spacing in fm."""
        scales = self.potential.scales
        return [
            quoted_number(SYMBOLS[x], scales[x].value, scales[x].systematic, UNIT.get(x, ""))
            for x in QUOTED
            if x in scales
        ]

    def unquoted(self) -> str:
        """Return why there is neither a string tension nor r0; see `FitResult.unquoted`."""
        if "sigma" in self.potential.scales:
            return "σ is not positive"
        return "V(R) is known at too few distances"

    def histories(self) -> Mapping[str, tuple[Integers, Array]]:
        """Return the time series of the numbers that one quotes; see `FitResult.histories`."""
        series = self.samples.histories
        return {SYMBOLS[x]: (self.samples.sweeps, series[x]) for x in QUOTED & series.keys()}

    def _chart(self) -> str:
        from gauge_mc.reports.figures import potential_cell

        return potential_cell(self.potential)

    def write(self, path: Path) -> None:
        """Write the result to a JSON file, and samples to an HDF5 file beside it if wanted."""
        super().write(path)
        if self.exported:
            write_samples(path.with_suffix(".h5"), self.potential, self.samples)


def scale_table(potential: static_potential.StaticPotential) -> Table:
    """Return a table of the scales."""
    table = empty_table("Scales of the static potential", ["quantity"], ["value"])
    for name, symbol in SYMBOLS.items():
        if scale := potential.scales.get(name):
            table.add_row(symbol, f"{scale}{f' {UNIT[name]}' if name in UNIT else ''}")
    return table


def sentences(potential: static_potential.StaticPotential) -> list[str]:
    """Return how the scales were determined, on what, and the first caution."""
    levels = ", ".join(map(str, potential.levels))
    source = {
        0: "V(R) from correlators of Polyakov loops",
        1: f"Loops at smearing level {levels}, fits of one and two states from all t on",
    }.get(
        len(potential.levels),
        f"Variational analysis of smearing levels {levels}, fits of one and two states from all t "
        "on",
    )
    lines = f", lines of {potential.lines} links" if potential.lines else ""
    ends = f"{potential.points[0].distance:.4g} to {potential.points[-1].distance:.4g}"
    cautions = potential.cautions
    more = f" ({len(cautions) - 1} more with --all)" if len(cautions) > 1 else ""
    return [
        f"{source}, and {len(FORMS)} forms of V(R) in all windows of R; errors: statistical, and "
        "the scatter of the fits.",
        f"{potential.configurations} configurations, {potential.independent:.0f} independent; "
        f"{len(potential.points)} points from R = {ends}{lines}; a from √σ = {ROOT_SIGMA:g} MeV.",
        *(words + more for words in cautions[:1]),
    ]


def point_table(potential: static_potential.StaticPotential) -> Table:
    """Return a table of V(R), with the range of t and the quality of the most probable fit."""
    excited = {(point.path, point.steps): point for point in potential.excited}
    names = ["path", "R/a", "a V(R)", "τ_int", "t", "states", REDUCED]
    table = empty_table("V(R)", (), names + ["excited"] * bool(excited))
    for point in potential.points:
        value = point.potential
        state = excited.get((point.path, point.steps))
        table.add_row(
            bracketed(point.path),
            f"{point.distance:.4g}",
            with_error(value.value, value.error, point.systematic),
            with_error(value.tau_int, value.tau_int_error),
            f"{point.t_min} to {point.t_max}",
            str(point.states),
            reduced(point.chi2, point.chi2_expected),
            *[str(state.potential) if state else ""][: bool(excited)],
        )
    return table


def force_table(potential: static_potential.StaticPotential) -> Table:
    """Return a table of the force at improved distances."""
    title = "Force F = [V(R) − V(R − d)]/d at tree-level improved distances"
    table = empty_table(title, (), ("path", "r_I/a", "F a²", "r_I² F"))
    for point in potential.force:
        if point.scaled.error < abs(point.scaled.value):
            row = f"{point.distance:.4f}", str(point.force), str(point.scaled)
            table.add_row(bracketed(point.path), *row)
    return table


def form_table(potential: static_potential.StaticPotential) -> Table:
    """Return a table of the most probable forms and windows."""
    title = "Most probable forms of V(R); [1/R] is the Coulomb potential of the lattice"
    heads = ("R/a", "points", "weight", REDUCED, "p")
    table = empty_table(title, ["form"], heads)
    for fit in potential.fits:
        quality = reduced(fit.chi2, fit.chi2_expected), f"{fit.p_value:.2g}"
        window = f"{fit.r_min:.4g} to {fit.r_max:.4g}"
        table.add_row(fit.form, window, str(fit.points), f"{fit.weight:.2f}", *quality)
    return table


class PotentialFit(Fit):
    """V(R) from ln [W(R,T)/W(R,T+d)]/d or ln C(R), and averages over forms of V(R)."""

    name: ClassVar[str] = "potential"
    isotropic: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "V(R) from Wilson loops or correlators of Polyakov loops, the string tension and r₀"
    )
    columns: ClassVar[tuple[str, ...]] = loop_tables.LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (static_potential.StaticPotential,)
    options: ClassVar[tuple[Option, ...]] = (*OF_LOOPS, R_MIN, R_MAX, SAMPLES, SKIP, SOURCE)

    goals: ClassVar[tuple[Goal, ...]] = tuple(
        Goal(
            name=name,
            summary=f"{symbol} from the static potential",
            symbols=(symbol,),
            measure="wilson-loops:10",
            separation=10,
            configs=40,
        )
        for name, symbol in (("r0", "r₀/a"), ("sqrt-sigma", "√σ a"))
    )

    def find_table(self, folder: Path, options: Mapping[str, Any]) -> Path:
        """Return the table of the chosen source, or else of the first one; see `Fit.find_table`."""
        source = options.get(SOURCE.name)
        if source is None:
            names = (
                name
                for name, columns in TABLES.items()
                if files.tables_with_columns(folder, columns)
            )
            source = next(names, static_potential.LOOPS)
        return files.find_table_by_columns(folder, columns_of(source))

    def carry_out(self, tables: Sequence[Path], **options: Any) -> PotentialResult:
        """Fit V(R) from the loops or the correlators of tables; see `Fit.carry_out`."""
        correlators = TABLES[static_potential.CORRELATORS]
        present = {*correlators} <= {*read_heading(tables[0])[1]}
        usual = static_potential.CORRELATORS if present else static_potential.LOOPS
        columns = columns_of(options.get(SOURCE.name, usual))
        if options.get(SAMPLES.name):
            load("h5py")  # so that it is refused before anything is computed
        find = _of_correlators if columns == correlators else _of_loops
        series, header, sweeps, tag, more = find(tables, options)
        skip = options.get(SKIP.name, 0)
        potential, histories = series.potential(
            options.get(R_MIN.name),
            options.get(R_MAX.name),
            StaticGluons.of(header),
            ensemble=loop_tables.ensemble_of(header),
            skip=skip if isinstance(skip, int) else max(skip),
            **more,
        )
        samples = PotentialSamples(series, sweeps, histories)
        return PotentialResult(potential, samples, tag, bool(options.get(SAMPLES.name)))


Energies = tuple[static_potential.PotentialSeries, Mapping[str, str], Integers, str, dict[str, Any]]
"""V(R), the header of its table, its configurations, the tag, and further fields of the result."""


def _of_correlators(tables: Sequence[Path], options: Mapping[str, Any]) -> Energies:
    """Return -ln [N^2 C(R)] / N_t."""
    for option in OF_LOOPS:
        if options.get(option.name) is not None:
            raise UsageError(f"{option.flag} is for Wilson loops; leave it out.")
    correlators, header = observables.read_correlators(tables, options.get(SKIP.name, 0))
    series = observables.correlator_potential(correlators)
    notes = [
        *correlators.replicas.cautions(correlators.sweeps, *correlators.values.T),
        *observables.caution_images(series.points, header["lattice"]),
    ]
    more = {"source": static_potential.CORRELATORS, "notes": tuple(notes), "levels": ()}
    tag = f"_{static_potential.CORRELATORS}"
    return series, header, correlators.sweeps, tag, more


def _of_loops(tables: Sequence[Path], options: Mapping[str, Any]) -> Energies:
    """Return the energies of loops along all paths."""
    loops = loop_tables.read_loops(tables, options.get(SKIP.name, 0))
    states, levels = states_of(loops, options.get(LEVEL.name), options.get(LEVELS.name))
    ranges = options.get(T_MIN.name), options.get(T_MAX.name), len(levels) == 1
    series = static_potential.potential_of(states[0], loops.replicas, *ranges)
    shortest = loop_tables.select_loops(loops, loop_tables.paths_of(loops)[0], levels[-1])
    notes = [*loops.replicas.cautions(loops.sweeps, *shortest.values[:, :, 0].T)]
    excited: tuple[static_potential.PotentialPoint, ...] = ()
    if len(states) > 1:
        try:
            excited = static_potential.potential_of(states[1], loops.replicas, *ranges).points
        except GaugeError as error:
            notes.append(f"The excited energies are not known: {error}")
    more = {
        "levels": levels,
        "excited": excited,
        "notes": tuple(notes),
        "t_step": shortest.t_step,
        "lines": loop_tables.lines_of(loops.header),
    }
    every = loop_tables.smearing_levels(loops)
    tag = tag_of_levels(levels, every) if levels != tuple(every) else ""
    return series, loops.header, loops.sweeps, tag, more


def states_of(
    loops: TableSeries, level: int | None, levels: str | tuple[int, ...] | None
) -> tuple[list[list[EffectiveEnergies]], tuple[int, ...]]:
    """Return the effective energies of each state along all paths, and the levels used."""
    if level is not None and levels is not None:
        raise UsageError(f"{LEVEL.flag} and {LEVELS.flag} exclude each other; name one.")
    if levels is None and (level is not None or not loop_tables.has_correlations(loops)):
        single = loop_tables.all_loops(loops, level)
        return [[loop_tables.effective_energies(path) for path in single]], (single[0].smearing,)
    basis = loop_tables.smearing_levels(loops) if levels is None else parse_levels(levels)
    paths = [
        static_potential.variational(loop_tables.select_matrices(loops, path, basis))
        for path in loop_tables.paths_of(loops)
    ]
    states = [
        [loop_tables.effective_energies(path) for path in x] for x in zip(*paths, strict=False)
    ]
    return states, tuple(basis)


def parse_levels(text: str | tuple[int, ...]) -> list[int]:
    """Parse smearing levels, such as ``0,5,10,25``."""
    if isinstance(text, str):
        words = [word.strip() for word in text.split(",")]
        if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
            wrong = f"{LEVELS.flag} is '{shortened(text)}'"
            raise UsageError(f"{wrong}; give numbers, such as 0,5,10,25.")
        text = tuple(map(int, words))
    levels = sorted({*text})
    if len(levels) < 2:
        raise UsageError(f"{LEVELS.flag} has a single level; give several, or {LEVEL.flag}.")
    return levels


FITS.register(PotentialFit())


def read_result(path: Path) -> static_potential.StaticPotential:
    """Read a result from its JSON file."""
    try:
        content = parse_json(read_text(path, files.MAX_RESULT))
        del content["observable"], content["units"]
        for key in files.BESIDE:
            content.pop(key, None)
        result: static_potential.StaticPotential = typed(content, static_potential.StaticPotential)
        return result
    except GaugeError as error:
        sentence = str(error).partition(":")[0]
        command = CommandLine("fit", "potential", as_typed(path.parent))
        raise GaugeError(f"{sentence}; make it with `{command}`.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is damaged or not the result of a fit; make it again with "
            f"`{CommandLine('fit', 'potential', path.parent)}`."
        ) from error


def write_samples(
    path: Path, potential: static_potential.StaticPotential, samples: PotentialSamples
) -> None:
    """Write V(R) with its samples and its covariance matrix to an HDF5 file."""
    series, points = samples.series.series, potential.points
    tau_int = float(np.mean([point.potential.tau_int for point in points]))
    length = bin_length(len(series), tau_int)
    errors = np.array([point.potential.error for point in points])
    content = {
        "path": np.array([point.path for point in points]),
        **{name: np.array([getattr(point, name) for point in points]) for name in POINT_COLUMNS},
        "potential": np.array([point.potential.value for point in points]),
        "error": errors,
        "covariance": covariance_of(series, errors),
        "jackknife": jackknife(series, length),
        "series": series,
        "sweep": samples.sweeps,
    }
    metadata = {
        "description": SAMPLES_NOTE,
        "source": potential.source,
        "smearing": ",".join(map(str, potential.levels)),
        "bin": length,
        **potential.ensemble,
    }
    with hdf5_file(path, SAMPLES_FILE) as h5:
        h5.attrs.update(metadata)
        for name, values in content.items():
            write_array(h5, name, values)


POINT_COLUMNS = ("steps", "distance", "improved", "t_min", "t_max", "systematic")
"""Attributes of the points that are written to the file of samples."""

SAMPLES_NOTE = (
    "a V(R) in lattice units. series: linearised time series, a row per configuration (sweep). "
    "jackknife: means without each bin of neighbouring configurations. covariance: of potential, "
    "by the Gamma method, to be used as it is."
)

SAMPLES_FILE = hdf5_kind("samples of V(R)", ("description", "source"))
"""Kind of the file of samples."""
