"""The static potential from Wilson loops, or from correlators of Polyakov loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table
from rich.text import Text

from gauge_mc.analysis.potential import potential as analysis
from gauge_mc.analysis.potential.gevp import (
    HALF,
    MOST_LEVELS,
    last_references,
    reference_time,
    variational,
)
from gauge_mc.analysis.potential.loops import (
    LOOP_COLUMNS,
    LoopMatrices,
    Loops,
    read_loops,
    read_matrices,
)
from gauge_mc.analysis.potential.plateau import EffectiveEnergies, Plateaus, find_plateaus
from gauge_mc.analysis.potential.polyakov_correlators import (
    CORRELATOR_COLUMNS,
    caution_images,
    correlator_potential,
    read_correlators,
)
from gauge_mc.analysis.potential.potential import (
    CONTINUUM,
    CORRELATORS,
    LATTICE,
    LOOPS,
    ROOT_SIGMA,
    StaticPotential,
    WindowScan,
    fit_potential,
    potential_plateaus,
    short_chi2,
)
from gauge_mc.analysis.timeseries import (
    bin_length,
    caution_series,
    jackknife,
    with_error,
)
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.exports.hdf5_files.writing import hdf5_file, hdf5_kind, write_array
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json, typed
from gauge_mc.files.table import read_heading
from gauge_mc.fits import (
    AVERAGE,
    FITS,
    LEVEL,
    MAX_RESULT,
    SKIP,
    T_MAX,
    T_MIN,
    Fit,
    FitResult,
    find_table_by_columns,
    tables_with_columns,
    tag_of_levels,
)
from gauge_mc.libraries import load
from gauge_mc.options import Option, flag_of
from gauge_mc.quoting import shortened
from gauge_mc.results import headings

OBSERVABLE = "static potential V(R) = A + B/R + sigma R"
UNITS = f"lattice units; spacing in fm, from sqrt(sigma) = {ROOT_SIGMA:g} MeV"
LABELS = headings(analysis.WindowFit)
"""The fitted quantities by the names of their attributes, and their symbols in tables."""

LEVELS = Option(
    "levels",
    str,
    "Smearing levels of a variational analysis, such as 0,5,10,25, of a table with the loops "
    "between all of them.",
    "one level",
    "N,N[,N...]",
    least=0,
    each=int,
)
REFERENCE = Option(
    "t0",
    str,
    f"Reference time of the variational analysis: a number, or {HALF} for t0 = t/2, as far as the "
    "matrix there is known to 10 %.",
    HALF,
    f"N|{HALF}",
    least=1,
    each=int,
)
SINGLE = Option("single", bool, "Include plateaus of a single t.")
COULOMB = Option(
    "coulomb",
    str,
    "The term 1/R of the fits: with the geometric distance, or that of the lattice at tree level.",
    CONTINUUM,
    choices=(CONTINUUM, LATTICE),
)
SAMPLES = Option(
    "samples", bool, "Write the samples of V(R) and their covariance to potential.h5 as well."
)
SOURCE = Option(
    "source",
    str,
    "What V(R) is from: Wilson loops, or correlators of Polyakov loops.",
    f"{LOOPS} if the run has a table of them",
    choices=(LOOPS, CORRELATORS),
)

TABLES = {LOOPS: LOOP_COLUMNS, CORRELATORS: CORRELATOR_COLUMNS}
"""Columns of the tables, by what V(R) is from."""

OF_LOOPS = ("t_min", "t_max", "level", "levels", "t0", "single")
"""Names of the options that correlators do not have."""


def columns_of(source: str) -> tuple[str, ...]:
    """Return the columns of the table from which V(R) is.

    Raises
    ------
    UsageError
        If there is no such source.
    """
    if source not in TABLES:
        raise UsageError(f"{SOURCE.flag} is '{shortened(source)}'; choose {' or '.join(TABLES)}.")
    return TABLES[source]


def _source_of(table: Path) -> str:
    """Return what V(R) is from, given a table."""
    correlators = set(TABLES[CORRELATORS]) <= set(read_heading(table)[1])
    return CORRELATORS if correlators else LOOPS


@dataclass(frozen=True, repr=False)
class PotentialResult(FitResult):
    """The result of a fit of the static potential.

    Attributes
    ----------
    potential : StaticPotential
        V(R) and its fits.
    tag : str
        The smearing levels, if the table has several.
    plateaus : Plateaus or None
        V(R) with its samples, to be written to an HDF5 file; None if that was not asked for.
    """

    potential: StaticPotential
    tag: str = ""
    plateaus: Plateaus | None = None

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.potential)}

    def report(self) -> list[Any]:
        """Return tables of the plateaus, of fits to other windows, and of the main results."""
        result = self.potential
        return [
            plateau_table(result),
            *([force_table(result)] if result.force else []),
            *([window_table(result.free)] if result.free else []),
            *filter(None, [further_table(result)]),
            fit_table(result) if result.fits else Text(_caption(result)),
        ]

    def write(self, path: Path) -> None:
        """Write the result to a JSON file, and samples to an HDF5 file beside it if wanted."""
        super().write(path)
        if self.plateaus:
            write_samples(path.with_suffix(".h5"), self.potential, self.plateaus)


class PotentialFit(Fit):
    """V(R) = A + B/R + sigma R, fitted to plateaus of ln [W(R,T)/W(R,T+d)]/d or to ln C(R)."""

    name: ClassVar[str] = "potential"
    isotropic: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "V(R) from Wilson loops or correlators of Polyakov loops, with A + B/R + σR fitted to it"
    )
    columns: ClassVar[tuple[str, ...]] = LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (StaticPotential,)
    options: ClassVar[tuple[Option, ...]] = (
        T_MIN,
        T_MAX,
        Option("r_min", float, "Smallest distance fitted.", "2, r₀/3, or where it fits"),
        Option("r_max", float, "Largest distance fitted.", "the largest with a plateau"),
        LEVEL,
        LEVELS,
        REFERENCE,
        SINGLE,
        AVERAGE,
        COULOMB,
        SAMPLES,
        SKIP,
        SOURCE,
    )

    def find_table(self, folder: Path, options: Mapping[str, Any]) -> Path:
        """Return the table of the chosen source, or else of the first one; see `Fit.find_table`."""
        chosen = options.get(SOURCE.name)
        if chosen is None:
            known = [one for one, columns in TABLES.items() if tables_with_columns(folder, columns)]
            chosen = next(iter(known), LOOPS)
        return find_table_by_columns(folder, columns_of(chosen))

    def carry_out(self, table: Path, **options: Any) -> PotentialResult:
        """Fit V(R) from the loops or the correlators of a table; see `Fit.carry_out`."""
        options = dict(options)
        columns = columns_of(options.pop(SOURCE.name, None) or _source_of(table))
        if options.get(COULOMB.name, CONTINUUM) not in (CONTINUUM, LATTICE):
            raise UsageError(
                f"{COULOMB.flag} is '{options[COULOMB.name]}'; choose {CONTINUUM} or {LATTICE}."
            )
        if options.get(SAMPLES.name):
            load("h5py")  # so that it is refused before anything is computed
        if columns == TABLES[CORRELATORS]:
            return self._from_correlators(table, options)
        return self._from_loops(table, options)

    def _from_correlators(self, table: Path, options: Mapping[str, Any]) -> PotentialResult:
        """Fit -ln [N^2 C(R)] / N_t."""
        for one in OF_LOOPS:
            if options.get(one) is not None and options[one] is not False:
                raise UsageError(f"{flag_of(one)} is for Wilson loops; leave it out.")
        skip, average = options.get(SKIP.name, 0), options.get(AVERAGE.name, False)
        correlators, ensemble = read_correlators(table, skip)
        plateaus = correlator_potential(correlators)
        window = options.get("r_min"), options.get("r_max")
        coulomb = options.get(COULOMB.name, CONTINUUM)
        result = fit_potential(plateaus, [], *window, ensemble, average, coulomb)
        notes = [
            *caution_series(correlators.sweeps, *correlators.values.T),
            *caution_images(plateaus, ensemble["lattice"]),
        ]
        result = replace(result, skip=skip, source=CORRELATORS, notes=tuple(notes))
        samples = plateaus if options.get(SAMPLES.name) else None
        return PotentialResult(result, f"_{CORRELATORS}", samples)

    def _from_loops(self, table: Path, options: dict[str, Any]) -> PotentialResult:
        """Fit the plateaus of loops along all paths."""
        level, levels, t0 = (options.pop(one.name, None) for one in (LEVEL, LEVELS, REFERENCE))
        skip, samples = options.pop(SKIP.name, 0), options.pop(SAMPLES.name, False)
        average = options.get(AVERAGE.name, False)
        ranges: dict[str, Any] = {one: options.get(one) for one in ("t_min", "t_max")}
        ranges |= {SINGLE.name: options.get(SINGLE.name, False), AVERAGE.name: average}
        coulomb = options.get(COULOMB.name, CONTINUUM)
        states: list[list[EffectiveEnergies]] = []
        loops: list[Loops] = []
        chosen: list[int] = []
        if levels is None:
            if t0 is not None:
                raise UsageError(f"{REFERENCE.flag} has no effect without {LEVELS.flag}; add it.")
            loops, ensemble = read_loops(table, level, skip)
            tag = tag_of_levels([loops[0].smearing], loops[0].levels)
        else:
            if level is not None:
                raise UsageError(f"{LEVEL.flag} and {LEVELS.flag} exclude each other; name one.")
            chosen = parse_levels(levels)
            matrices, ensemble = read_matrices(table, chosen, skip)
            time = reference_time(t0 or HALF)
            states = [
                list(one) for one in zip(*(variational(m, time) for m in matrices), strict=True)
            ]
            tag = tag_of_levels(chosen, chosen)
        ground: list[Any] = states[0] if states else list(loops)
        plateaus = potential_plateaus(ground, **ranges)
        window = options.get("r_min"), options.get("r_max")
        result = fit_potential(plateaus, ground, *window, ensemble, average, coulomb)
        result = replace(result, skip=skip)
        if states:
            result = replace(
                result,
                smearing=chosen[-1],
                levels=tuple(chosen),
                reference=_reference(matrices) if time is None else f"t0 = {time}",
                **_excited(states[1], ranges),
            )
        return PotentialResult(result, tag, plateaus if samples else None)


def _excited(energies: list[EffectiveEnergies], ranges: dict[str, Any]) -> dict[str, Any]:
    """Return the first excited energies, or a note that they are not known."""
    try:
        return {"excited": find_plateaus(energies, **ranges).points}
    except GaugeError as error:
        return {"notes": (f"The excited energies are not known: {error}",)}


def _reference(matrices: list[LoopMatrices]) -> str:
    """Return the reference times by the default rule, in words."""
    latest = np.concatenate([last_references(one) for one in matrices])
    ends = " to ".join(map(str, sorted({latest.min(), latest.max()})))
    return f"t0 = t/2, rounded up, at most {ends} (up to which all states are known to 10 %)"


def parse_levels(text: str | tuple[int, ...]) -> list[int]:
    """Parse smearing levels, such as ``0,5,10,25``.

    Raises
    ------
    UsageError
        If the text is not of this form, or there are fewer than two or more than `MOST_LEVELS`.
    """
    levels = sorted({*text} if isinstance(text, tuple) else _levels_of(text))
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise UsageError(f"{LEVELS.flag} has {len(levels)} levels; give 2 to {MOST_LEVELS}.")
    return levels


def _levels_of(text: str) -> set[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UsageError(f"{LEVELS.flag} is '{shortened(text)}'; give numbers, such as 0,5,10,25.")
    return {int(word) for word in words}


FITS.register(PotentialFit())


def write_samples(path: Path, result: StaticPotential, plateaus: Plateaus) -> None:
    """Write V(R) with its samples and its covariance matrix to an HDF5 file.

    Raises
    ------
    GaugeError
        If h5py is not installed, or the file cannot be written.
    """
    length = bin_length(len(plateaus.series), plateaus.tau_int)
    points = plateaus.points
    content = {
        "path": np.array([one.path for one in points]),
        **{name: np.array([getattr(one, name) for one in points]) for name in POINT_COLUMNS},
        "potential": np.array([one.potential.value for one in points]),
        "error": np.array([one.potential.error for one in points]),
        "covariance": plateaus.covariance,
        "jackknife": jackknife(plateaus.series, length),
        "series": plateaus.series,
        "sweep": plateaus.sweeps,
    }
    facts = {
        "description": SAMPLES_NOTE,
        "plateau": result.plateau,
        "source": result.source,
        "smearing": ",".join(map(str, result.levels or [result.smearing])),
        "bin": length,
        **result.ensemble,
    }
    with hdf5_file(path, SAMPLES_FILE) as h5:
        h5.attrs.update(facts)
        for name, values in content.items():
            write_array(h5, name, values)


POINT_COLUMNS = ("steps", "distance", "improved", "t_min", "t_max", "systematic")
"""Attributes of the points that are written to the file of samples."""

SAMPLES_NOTE = (
    "a V(R) in lattice units. series: linearised time series, a row per configuration (sweep). "
    "jackknife: means without each bin of neighbouring configurations. covariance: of potential, "
    "by the Gamma method, to be used as it is."
)

SAMPLES_FILE = hdf5_kind("samples of V(R)", ("description", "plateau"))
"""Kind of the file of samples."""


def read_result(path: Path) -> StaticPotential:
    """Read a result from its JSON file.

    Raises
    ------
    GaugeError
        If the file does not exist or is damaged.
    """
    try:
        content = parse_json(read_text(path, MAX_RESULT))
        del content["observable"], content["units"]
        result: StaticPotential = typed(content, StaticPotential)
        return result
    except GaugeError as error:
        sentence = str(error).partition(":")[0]
        raise GaugeError(f"{sentence}; make it with gauge-mc fit potential.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is damaged or not the result of a fit; make it again with gauge-mc fit "
            "potential."
        ) from error


def fit_table(result: StaticPotential) -> Table:
    """Return a table of all fits, and of the scales from the force."""
    table = Table(title="V(R) = A + B/R + σR", caption=_caption(result), caption_justify="left")
    columns: dict[str, list[str]] = {"quantity": [*LABELS.values(), "χ²/dof"]}
    for heading, scan in (("B free", result.free), ("B = −π/12", result.string)):
        if scan is None:
            continue
        columns[heading] = [*(_value(scan.fit, name) for name in LABELS), _quality(scan.fit)]
        if scan.fit.systematic:
            columns[f"± range of {heading}"] = [_range(scan.fit, name) for name in LABELS]
        columns[f"± window of {heading}"] = [_shift(scan, name) for name in LABELS]
    for name in columns:
        heading = name.partition(" of ")[0]
        table.add_column(heading, justify="left" if name == "quantity" else "right")
    for label, *row in zip_longest(*columns.values(), fillvalue=""):
        if any(row):
            table.add_row(label, *row)
    return table


def further_table(result: StaticPotential) -> Table | None:
    """Return a table of the scales from the force and of further fits, or None without any."""
    columns: dict[str, list[str]] = {}
    if result.force_scales:
        scales = [result.force_scales.get(name) for name in LABELS]
        columns["force"] = [str(one.value) if one else "" for one in scales]
        columns["± f₃"] = [_rounded(one.systematic) if one else "" for one in scales]
        if any(one and math.isfinite(one.ranges) for one in scales):
            columns["± range of force"] = [_rounded(one.ranges) if one else "" for one in scales]
    if result.nambu_goto:
        fit = result.nambu_goto.fit
        columns["Nambu–Goto"] = [_value(fit, name) for name in LABELS]
        if fit.systematic:
            columns["± range of string"] = [_range(fit, name) for name in LABELS]
        columns["± window"] = [_shift(result.nambu_goto, name) for name in LABELS]
    if result.averaged:
        means = [result.averaged.get(name) for name in LABELS]
        columns["B free, AIC"] = [str(one.value) if one else "" for one in means]
        columns["± AIC"] = [_rounded(one.systematic) if one else "" for one in means]
    if not columns:
        return None
    string = result.nambu_goto.fit if result.nambu_goto else None
    lines = {
        "force": "force: on axis at improved distances; ± f₃: largest change with a further term "
        "f₃/r⁴, beyond its statistical error.",
        "Nambu–Goto": f"Nambu–Goto: from R = {string.r_min:.4g} on, χ²/dof {_quality(string)}."
        if string
        else "",
        "B free, AIC": "AIC: averages over windows in R; ± AIC: their scatter, the change with the "
        f"other form of 1/R{', and ± range' * bool(result.free and result.free.fit.systematic)}.",
    }
    caption = "\n".join(line for name, line in lines.items() if name in columns)
    table = Table(title="Other determinations", caption=caption, caption_justify="left")
    table.add_column("quantity")
    for name in columns:
        table.add_column(name.partition(" of ")[0], justify="right")
    for label, *row in zip(LABELS.values(), *columns.values(), strict=True):
        if any(row):
            table.add_row(label, *row)
    return table


def force_table(result: StaticPotential) -> Table:
    """Return a table of the force at improved distances."""
    table = Table(title="Force F = [V(R) − V(R − d)]/d at tree-level improved distances")
    for name in ("path", "r_I/a", "F a²", "r_I² F"):
        table.add_column(name, justify="right")
    for one in result.force:
        if one.scaled.error < abs(one.scaled.value):
            table.add_row(one.path, f"{one.distance:.4f}", str(one.force), str(one.scaled))
    return table


def plateau_table(result: StaticPotential) -> Table:
    """Return a table of V(R) with the plateau from which each value was determined."""
    if result.source == CORRELATORS:
        return _correlator_table(result)
    excited = {(one.path, one.steps): one for one in result.excited}
    averaged = any(math.isfinite(one.systematic) for one in result.points)
    title = "Plateaus of V(R, t) = ln W(R, t) / W(R, t + 1)"
    if result.t_step > 1:
        title = f"Plateaus of V(R, t) = ln [W(R, t) / W(R, t + {result.t_step})] / {result.t_step}"
    if result.levels:
        title = f"Plateaus of the energies of levels {', '.join(map(str, result.levels))}"
    table = Table(title=title)
    names = ["path", "R/a", "a V(R)", "τ_int", "t", "χ²/expected"]
    names += ["± range"] * averaged + ["excited"] * bool(excited)
    for name in names:
        table.add_column(name, justify="right")
    for one in result.points:
        more = [f"{one.systematic:.1g}"] if averaged else []
        if excited:
            state = excited.get((one.path, one.steps))
            more.append(state.potential.format() if state else "")
        table.add_row(
            one.path,
            f"{one.distance:.4g}",
            one.potential.format(),
            with_error(one.potential.tau_int, one.potential.tau_int_error),
            f"{one.t_min} to {one.t_max}",
            f"{one.chi2:.1f}/{one.chi2_expected:.1f}",
            *more,
        )
    return table


def _correlator_table(result: StaticPotential) -> Table:
    """Return a table of V(R) from correlators."""
    table = Table(title="V(R) = −ln[N² C(R)]/N_t")
    for name in ("path", "R/a", "a V(R)", "τ_int"):
        table.add_column(name, justify="right")
    for one in result.points:
        tau = with_error(one.potential.tau_int, one.potential.tau_int_error)
        table.add_row(one.path, f"{one.distance:.4g}", one.potential.format(), tau)
    return table


def window_table(scan: WindowScan) -> Table:
    """Return a table of fits with free B to other windows, which have at least half the points."""
    table = Table(title="V(R) = A + B/R + σR in other windows")
    for name in ("R/a", "B", "σ a²", "r₀/a", "χ²/dof"):
        table.add_column(name, justify="right")
    others = [one for one in scan.to_r if one.r_max != scan.fit.r_max]
    for one in (*scan.from_r, *others):
        if one.points < scan.fit.points / 2:  # fits to few points say little
            continue
        style = "bold" if (one.r_min, one.r_max) == (scan.fit.r_min, scan.fit.r_max) else None
        row = (_value(one, "B"), _value(one, "sigma"), _value(one, "r0"), _quality(one))
        table.add_row(f"{one.r_min:.4g} to {one.r_max:.4g}", *row, style=style)
    return table


def _caption(result: StaticPotential) -> str:
    lines = [
        f"{result.configurations} configurations{_levels(result)}.",
        f"{'Plateaus in t: ' if result.source == LOOPS else ''}{result.plateau}.",
    ]
    for scan in list(result.fits.values())[:1]:
        lines += [
            f"Fits: {result.window}.",
            f"Term 1/R: {_coulomb(scan.fit)}.",
            f"Errors in brackets are statistical. {RANGE_NOTE * bool(scan.fit.systematic)}"
            "± window: largest change when one end of the window moves by up to one lattice unit, "
            "or 1/√3 of it when 1/R takes its other form, among fits that are not poor. Both are "
            "what the statistical error of the change does not explain.",
            f"a is from √σ = {ROOT_SIGMA:g} MeV.",
        ]
    return "\n".join([*lines, *result.cautions])


RANGE_NOTE = (
    "± range: change when all plateaus begin one step later, or scatter among averaged ranges of "
    "t. "
)
"""Explanation of systematic errors from the range of t."""


def _levels(result: StaticPotential) -> str:
    if result.source == CORRELATORS:
        return ""
    if not result.levels:
        return f", {result.smearing} smearing iterations"
    levels = ", ".join(map(str, result.levels))
    return f", variational analysis of {levels} smearing iterations, {result.reference}"


def _coulomb(fit: analysis.WindowFit) -> str:
    lattice = "the Coulomb potential on the lattice at tree level"
    return lattice if fit.coulomb == LATTICE else "geometric distances"


def _value(fit: analysis.WindowFit, name: str) -> str:
    if name == "B" and not fit.b_free:
        return "−π/12"
    found = getattr(fit, name)
    return str(found) if math.isfinite(found.value) else ""


def _range(fit: analysis.WindowFit, name: str) -> str:
    known = not (name == "B" and not fit.b_free)
    return _rounded(fit.systematic.get(name, math.nan)) if known else ""


def _shift(scan: WindowScan, name: str) -> str:
    return _rounded(scan.window.get(name, math.nan))


def _rounded(number: float) -> str:
    return f"{number:.1g}" if math.isfinite(number) else ""


def _quality(fit: analysis.WindowFit) -> str:
    if fit.correlated:
        return f"{fit.chi2:.1f}/{fit.dof}"
    return f"{short_chi2(fit.chi2)}/{short_chi2(fit.chi2_expected)} expected"
