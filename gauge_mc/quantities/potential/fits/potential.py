"""The static potential from Wilson loops, or from correlators of Polyakov loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import numpy as np
from rich.text import Text

from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json, typed
from gauge_mc.files.table import read_heading
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.files import BESIDE, MAX_RESULT
from gauge_mc.fits.shared.options import AVERAGE, LEVEL, T_MAX, T_MIN, tag_of_levels
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field, quoted_number
from gauge_mc.fits.shared.tables import find_table_by_columns, tables_with_columns
from gauge_mc.libraries import load
from gauge_mc.numbers import counted
from gauge_mc.options import Option, flag_of
from gauge_mc.quantities.polyakov.analysis.polyakov_correlators import (
    CORRELATOR_COLUMNS,
    caution_images,
    correlator_potential,
    read_correlators,
)
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.fit import fit_potential, potential_plateaus
from gauge_mc.quantities.potential.analysis.gevp import (
    HALF,
    MOST_LEVELS,
    last_references,
    reference_time,
    variational,
)
from gauge_mc.quantities.potential.analysis.loop_tables import (
    LOOP_COLUMNS,
    read_loops,
    read_matrices,
)
from gauge_mc.quantities.potential.analysis.loops import LoopMatrices, PathLoops
from gauge_mc.quantities.potential.analysis.plateau_search import find_plateaus
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.static_potential import (
    CORRELATORS,
    LOOPS,
    StaticPotential,
)
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM, LATTICE, ROOT_SIGMA
from gauge_mc.quantities.potential.exports.samples import write_samples
from gauge_mc.quantities.potential.fits.parts.report import (
    caption,
    fit_table,
    force_table,
    further_table,
    plateau_table,
    window_table,
)
from gauge_mc.quoting import shortened
from gauge_mc.run.thermalisation import SKIP

OBSERVABLE = "static potential V(R) = A + B/R + sigma R"

UNITS = f"lattice units; spacing in fm, from sqrt(sigma) = {ROOT_SIGMA:g} MeV"

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
"""Columns of the tables, by the source of V(R)."""

OF_LOOPS = ("t_min", "t_max", "level", "levels", "t0", "single")
"""Names of the options that correlators do not have."""


def columns_of(source: str) -> tuple[str, ...]:
    """Return the columns of the table from which V(R) is determined.

    Raises
    ------
    UsageError
        If there is no such source.
    """
    if source not in TABLES:
        raise UsageError(f"{SOURCE.flag} is '{shortened(source)}'; choose {' or '.join(TABLES)}.")
    return TABLES[source]


def _source_of(table: Path) -> str:
    """Return the source of V(R) that a table has."""
    correlators = set(TABLES[CORRELATORS]) <= set(read_heading(table)[1])
    return CORRELATORS if correlators else LOOPS


@dataclass(frozen=True, repr=False)
class PotentialResult(FitResult):
    """The result of a fit of the static potential."""

    potential: StaticPotential
    """V(R) and its fits."""
    tag: str = ""
    """The smearing levels, if the table has several."""
    plateaus: Plateaus | None = None
    """V(R) with its samples, to be written to an HDF5 file; None if that was not asked for."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.potential)}

    def report(self) -> list[Any]:
        """Return tables of V(R) with its plateaus, and of the fits."""
        found = self.potential
        fits = fit_table(found) if found.fits else Text(caption(found))
        return [plateau_table(found), fits]

    def further_report(self) -> list[Any]:
        """Return tables of the force, of fits to other windows, and of other determinations."""
        found = self.potential
        return [
            *([force_table(found)] if found.force else []),
            *([window_table(found.free)] if found.free else []),
            *filter(None, [further_table(found)]),
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the string tension and r0, of the fit with B free if it can be trusted."""
        found = self.potential
        scan = found.free or found.string
        if scan is None:
            return []
        where = "" if found.free else "B = −π/12"
        numbers = []
        for name in ("root_sigma", "r0", "spacing"):
            number = quoted_field(scan.fit, name, scan.known_systematic(name), where)
            average = found.averaged.get(name) if found.free else None
            if average:
                number = quoted_number(number.name, average.value, average.systematic, number.unit)
            numbers.append(number)
        return numbers

    def unquoted(self) -> str:
        """Return why there is neither a string tension nor r0; see `FitResult.unquoted`."""
        if self.potential.free or self.potential.string:
            return "σ is not positive"
        return "no fit of V(R) can be trusted"

    def _chart(self) -> str:
        from gauge_mc.reports.cells import potential_cell

        return potential_cell(self.potential)

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
        loops: list[PathLoops] = []
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
        raise UsageError(
            f"{LEVELS.flag} has {counted(len(levels), 'level')}; give 2 to {MOST_LEVELS}."
        )
    return levels


def _levels_of(text: str) -> set[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UsageError(f"{LEVELS.flag} is '{shortened(text)}'; give numbers, such as 0,5,10,25.")
    return {int(word) for word in words}


FITS.register(PotentialFit())


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
        for key in BESIDE:
            content.pop(key, None)
        result: StaticPotential = typed(content, StaticPotential)
        return result
    except GaugeError as error:
        sentence = str(error).partition(":")[0]
        command = f"gauge-mc fit potential {quote(str(path.parent))}"
        raise GaugeError(f"{sentence}; make it with {command}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is damaged or not the result of a fit; make it again with gauge-mc fit "
            f"potential {quote(str(path.parent))}."
        ) from error
