"""Carrying out a card: ensembles within a time, fits, and the comparison."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.folders import make_folder, remove_empty
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.fits import FITS, fit_all
from gauge_mc.fits.shared.files import MAX_RESULT
from gauge_mc.papers.cards import Entry, PaperCard, PaperEnsemble
from gauge_mc.papers.comparison import (
    ComparedEntry,
    Comparison,
    UsedEnsemble,
    number_with_error,
    plain_number,
    result_file,
    value_at,
)
from gauge_mc.run.directory import Run
from gauge_mc.run.generate import generate
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import parse_duration
from gauge_mc.run.view import open_run
from gauge_mc.scans.carry_out import scan
from gauge_mc.scans.request import ScanRequest

OUTPUT = Path("runs/reproduced")
"""Usual folder of the runs and the comparisons."""

LEAST_SECONDS = 1.0
"""Shortest time that a run is given."""

TIME_LIMIT = "the time limit"
"""Reason that a run states if it has stopped because its time was over."""

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
"""Units of a budget in seconds."""

BUDGET = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(s|min|h)")
"""Form of a budget."""

IGNORED = {"chain_version", "configs", "format", "seed"}
"""Parameters that may differ between the card and the run whose results are kept."""


def parse_budget(text: str) -> float:
    """Return a time such as ``30min``, ``2h``, ``90s`` or ``0:30:00`` in seconds.

    Raises
    ------
    UsageError
        If it is none, or not positive.
    """
    found = BUDGET.fullmatch(text.strip())
    try:
        seconds = float(found[1]) * UNITS[found[2]] if found else parse_duration(text)
    except (ValueError, UsageError):
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"--budget is '{text[:40]}'; give a time such as 30min, 2h or 0:30:00.")
    return seconds


@dataclass
class _Work:
    """One call of `reproduce`."""

    card: PaperCard
    folder: Path
    execution: Mapping[str, Any]
    progress: bool
    deadline: float | None
    used: dict[str, UsedEnsemble] = field(default_factory=dict)
    results: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    stopped: str | None = None

    def carry_out(self) -> None:
        """Carry out the ensembles, each within its share of the time that is left."""
        left = [*self.card.ensembles.values()]
        while left and not self.stopped:
            first = left[0]
            share = _cost(first) / sum(map(_cost, left))
            limit = None
            if self.deadline is not None:
                limit = max(LEAST_SECONDS, share * (self.deadline - time.monotonic()))
            begin = self._scan if first.scan else self._run
            self.used[first.name], reason = begin(left.pop(0), limit)
            if reason not in (None, TIME_LIMIT):
                self.stopped = reason

    def _options(self, one: PaperEnsemble, limit: float | None) -> dict[str, Any]:
        """Return how and where an ensemble is carried out."""
        options = {**self.execution, "output": str(self.path(one))}
        if limit is not None:
            options["time_limit"] = _words(limit)
        return options

    def _run(self, one: PaperEnsemble, limit: float | None) -> tuple[UsedEnsemble, str | None]:
        options = self._options(one, limit)
        found = generate(one.values_within(self.folder), progress=self.progress, **options)
        done = UsedEnsemble(
            one.name,
            str(found.path),
            found.parameters.values(),
            False,
            found.sweep,
            found.parameters.updates,
        )
        return done, found.stopped

    def _scan(self, one: PaperEnsemble, limit: float | None) -> tuple[UsedEnsemble, str | None]:
        """Carry out a scan, smaller lattices first, each within its share of the time."""
        output = {**one.values, "output": str(self.path(one))}
        members = ScanRequest.of(output).scan().members()
        costs: dict[str, float] = {}
        for each in sorted(members, key=lambda member: member.parameters.lattice.sites):
            lattice = str(each.parameters.lattice)
            costs[lattice] = costs.get(lattice, 0.0) + _links(each.parameters)
        end = None if limit is None else time.monotonic() + limit
        stopped = None
        for lattice in [*costs]:
            share = None
            if end is not None:
                left = costs[lattice] / sum(costs.values())
                share = max(LEAST_SECONDS, left * (end - time.monotonic()))
            del costs[lattice]
            options = self._options(one, share)
            given = {**one.values_within(self.folder), "lattice": lattice}
            found = scan(given, progress=self.progress, **options)
            stopped = found.stopped or stopped
            if found.stopped not in (None, TIME_LIMIT):
                break
        wanted = sum(each.parameters.updates for each in members)
        done = sum(_sweep(each.run) for each in members)
        values = one.parameters.values()
        used = UsedEnsemble(one.name, str(self.path(one)), values, False, done, wanted)
        return used, stopped

    def path(self, one: PaperEnsemble) -> Path:
        """Return the run directory of an ensemble, which all cards share."""
        return ensemble_path(self.folder, one)

    def compared(self, entry: Entry) -> ComparedEntry:
        """Return an entry beside our value; its note says why there is none."""
        try:
            ours, error, systematic = self.number(entry)
            if entry.against:
                options = entry.against_options or entry.options
                other = replace(entry, ensemble=entry.against, options=options)
                value, *errors = self.number(other)
                entry = replace(entry, published=value, error=math.hypot(*errors))
        except GaugeError as problem:
            note = " ".join([str(problem), entry.note]).strip()
            return _beside(entry, None, None, 0.0, note)
        return _beside(entry, ours, error, systematic, entry.note)

    def number(self, entry: Entry) -> tuple[float, float, float]:
        """Return our value with its errors."""
        one = self.card.ensembles[entry.ensemble]
        if entry.ensemble not in self.used:
            raise GaugeError(f"The ensemble {entry.ensemble} was not begun.")
        if entry.average:
            found = open_run(self.path(one)).averages
            if entry.average not in found:
                raise GaugeError(f"The run has no average '{entry.average}' yet.")
            average = found[entry.average]
            if not math.isfinite(average.error):
                raise GaugeError(f"The error of '{entry.average}' is not known yet.")
            return average.value, average.error, 0.0
        return _of_result(self._fitted(one, entry), entry)

    def _fitted(self, one: PaperEnsemble, entry: Entry) -> Any:
        """Return the result of a fit, which is carried out once for all entries that need it."""
        key = (one.name, entry.fit, repr(sorted(entry.options.items())))
        if key not in self.results:
            file = self.folder / f"{self.card.name}_{one.name}_{entry.fit}_{len(self.results)}.json"
            try:
                next(fit_all(entry.fit, [self.path(one)], entry.options, file))
                self.results[key] = _result(file)
            except GaugeError as error:
                self.results[key] = error
        if isinstance(self.results[key], GaugeError):
            raise self.results[key]
        return self.results[key]


ENSEMBLE_FOLDER = "ensembles"
"""Folder of the run directories in the folder of comparisons."""


def ensemble_path(output: Path, one: PaperEnsemble) -> Path:
    """Return the run directory of an ensemble in the folder of comparisons."""
    return output / ENSEMBLE_FOLDER / one.folder


def reproduce(
    card: PaperCard,
    *,
    output: Path = OUTPUT,
    budget: float | None = None,
    progress: bool = True,
    **execution: Any,
) -> Comparison:
    """Carry out the ensembles and fits of a card, and compare with the published numbers.

    Ensembles that are there, with the same parameters, are continued or used as they are. The
    comparison is written into the folder as JSON and CSV, and drawn if Matplotlib is installed.

    Parameters
    ----------
    card : PaperCard
        The card.
    output : Path
        Folder of the runs and the comparisons.
    budget : float, optional
        Time in seconds for all ensembles that are not complete. Those whose time is over are fitted
        as far as they are.
    progress : bool
        Whether to show progress and summaries of the runs.
    **execution : object
        Fields of `Execution` by name, such as ``backend`` and ``threads``.

    Returns
    -------
    Comparison
        The comparison.

    Raises
    ------
    UsageError, GaugeError
        If a run or a scan cannot be carried out, or a file cannot be written. A fit that fails
        leaves its entries without a value.
    """
    made = make_folder(output / ENSEMBLE_FOLDER)
    given = {name: value for name, value in execution.items() if value is not None}
    deadline = None if budget is None else time.monotonic() + budget
    work = _Work(card, output, given, progress, deadline)
    try:
        work.carry_out()
    except BaseException:
        remove_empty(made)
        raise
    found = Comparison(
        card.name,
        card.paper,
        card.title,
        card.where,
        card.about,
        [work.compared(one) for one in card.entries],
        [*work.used.values()],
        budget,
        work.stopped,
    )
    _write(found, output)
    return found


def compare_kept(card: PaperCard) -> Comparison:
    """Compare the results of long runs that are kept beside a card, without generating anything.

    A kept result counts only if it is of the ensemble that the card describes: its ``run.toml`` is
    compared, or, for a scan, what the result says of its ensemble.

    Raises
    ------
    UsageError
        If no ensemble of the card has kept results, or they are of another ensemble.
    """
    used = {one.name: _kept(one) for one in card.ensembles.values() if one.results and _there(one)}
    if not used:
        raise UsageError(
            f"The card {card.name} has no kept results here; leave out --kept to carry it out."
        )
    entries = []
    for entry in card.entries:
        one = card.ensembles[entry.ensemble]
        try:
            if entry.ensemble not in used or not entry.fit:
                raise GaugeError("There is no kept result.")
            file = result_file(_folder(one), Path(FITS[entry.fit].file).stem, [*FITS])
            result = _result(file)
            _check_ensemble(result, one)
            entries.append(_beside(entry, *_of_result(result, entry), entry.note))
        except UsageError:
            raise
        except GaugeError as problem:
            note = " ".join([str(problem), entry.note]).strip()
            entries.append(_beside(entry, None, None, 0.0, note))
    words = (card.name, card.paper, card.title, card.where, card.about)
    return Comparison(*words, entries, [*used.values()])


def _result(file: Path) -> Any:
    """Read the result of a fit."""
    try:
        return parse_json(read_text(file, MAX_RESULT))
    except ValueError as error:
        raise GaugeError(f"{file} is damaged or not the result of a fit.") from error


def _of_result(result: Any, entry: Entry) -> tuple[float, float, float]:
    """Return the value of an entry with its errors from the result of a fit."""
    value, error = number_with_error(result, entry.value)
    further = value_at(result, entry.systematic) if entry.systematic else 0.0
    return value, error, abs(plain_number(further or 0.0, entry.systematic))


def _beside(
    entry: Entry, ours: float | None, error: float | None, systematic: float, note: str
) -> ComparedEntry:
    names = (entry.name, entry.ensemble, entry.published, entry.error)
    return ComparedEntry(*names, ours, error, systematic, entry.at, note, entry.read, entry.against)


def _folder(one: PaperEnsemble) -> Path:
    assert one.results is not None
    return one.results


def _there(one: PaperEnsemble) -> bool:
    return _folder(one).is_dir()


def _kept(one: PaperEnsemble) -> UsedEnsemble:
    """Return the use of kept results, after a check that they are of this ensemble."""
    folder = _folder(one)
    name = f"results/{folder.name}"
    run = Run(folder)
    if not run.exists():
        return UsedEnsemble(one.name, name, one.parameters.values(), True)
    there = run.read()[0]
    mine, theirs = _fixed(one.parameters), _fixed(there)
    if different := sorted(key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)):
        raise UsageError(
            f"The results in {folder} are of another ensemble than the card's {one.name}: "
            f"{', '.join(different)} differ."
        )
    return UsedEnsemble(one.name, name, there.values(), True)


def _fixed(parameters: Parameters) -> dict[str, Any]:
    return {key: one for key, one in parameters.fixed().items() if key not in IGNORED}


def _check_ensemble(result: Any, one: PaperEnsemble) -> None:
    """Refuse a result that says that it is of another ensemble."""
    said = result.get("ensemble") if isinstance(result, dict) else None
    mine = {key: str(value) for key, value in one.parameters.values().items()}
    said = said if isinstance(said, dict) else {}
    shared = [key for key in said if key in mine and not (one.scan and key in VARYING)]
    for key in shared:
        if str(said[key]) != mine[key]:
            raise UsageError(
                f"The results in {one.results} are of {key} = {said[key]}, and the card's "
                f"{one.name} has {mine[key]}."
            )


VARYING = ("beta", "lattice")
"""Parameters that differ between the runs of a scan."""


def _cost(one: PaperEnsemble) -> float:
    """Return a rough measure of the time that the rest of an ensemble takes: links and colours."""
    if one.scan:
        members = ScanRequest.of(one.values).scan().members()
        return 1.0 + sum(_links(each.parameters) for each in members)
    return 1.0 + _links(one.parameters)


def _links(parameters: Parameters) -> float:
    return float(parameters.updates * parameters.links_per_update)


def _sweep(run: Run) -> int:
    return open_run(run.path).sweep if run.exists() else 0


def _words(seconds: float) -> str:
    """Return a time as ``HH:MM:SS``, at least a second."""
    whole = max(1, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _write(found: Comparison, output: Path) -> None:
    """Write a comparison, and draw it if Matplotlib is there and there is anything to draw."""
    found.write(output)
    if find_spec("matplotlib") and any(one.pull is not None for one in found.entries):
        from gauge_mc.papers.figure import draw_comparison

        draw_comparison(found, output / f"{found.card}.pdf")
