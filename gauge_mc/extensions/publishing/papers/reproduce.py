"""Carrying out a card: ensembles within a time, fits, and the comparison."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.publishing import papers
from gauge_mc.files.input import make_folder, read_text, remove_empty
from gauge_mc.files.structured import parse_json
from gauge_mc.fits import FITS, fit_all
from gauge_mc.fits.files import MAX_RESULT
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.pictures import GREY, SHADE, WIDTH, look, typeset
from gauge_mc.run.directory import Run
from gauge_mc.run.generate import generate
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.results import open_run
from gauge_mc.run.state import TIME_LIMIT
from gauge_mc.scans.carry_out import scan
from gauge_mc.scans.request import ScanRequest

LONGEST = 34
"""Number of characters after which the name of an entry is cut at an axis."""


def draw_comparison(comparison: papers.Comparison, path: Path) -> None:
    """Draw the entries that have a value, one below the other, and their pulls beside them.

    If all have an abscissa, values are drawn against it, and the pulls below; otherwise every entry
    has a line with our value relative to the published one.
    """
    drawn = [entry for entry in comparison.entries if entry.pull is not None]
    if not drawn:
        raise GaugeError(f"The comparison {comparison.card} has no value to draw yet.")
    title = typeset(f"{comparison.paper}, {comparison.where}")
    if all(x.at is not None for x in drawn) and len({x.at for x in drawn}) > 1:
        _draw_against(drawn, path, title)
    else:
        _draw_lines(drawn, path, title)


def _draw_against(drawn: list[papers.ComparedEntry], path: Path, title: str) -> None:
    x = np.array([x.at for x in drawn], float)
    with figure_file(path, (WIDTH, 5.0)) as figure:
        above, below = figure.subplots(2, sharex=True, height_ratios=(3, 1.4))
        published = _column(drawn, "published"), _column(drawn, "published_error")
        above.errorbar(x, *published, **look(0), linestyle="none", label="published")
        ours = _column(drawn, "ours"), _errors(drawn)
        above.errorbar(x, *ours, **look(1), linestyle="none", label="gauge-mc")
        above.set_title(title, fontsize="medium")
        above.legend(loc="best")
        pulls = [x.pull for x in drawn]
        below.axhspan(-1, 1, color=SHADE)
        below.axhline(0, color=GREY, linewidth=0.8)
        below.plot(x, pulls, **look(1), linestyle="none")
        most = max(papers.LARGE_PULL, *(abs(pull or 0) for pull in pulls)) * 1.15
        below.set_ylim(-most, most)
        below.set_ylabel("pull")


def _draw_lines(drawn: list[papers.ComparedEntry], path: Path, title: str) -> None:
    y = np.arange(len(drawn))[::-1]
    published = _column(drawn, "published")
    scale = np.where(published == 0, 1.0, np.abs(published))
    with figure_file(path, (WIDTH, 1.6 + 0.32 * len(drawn))) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1.4))
        shift = 0.12
        left.axvline(0, color=GREY, linewidth=0.8)
        errors = 100 * _column(drawn, "published_error") / scale, 100 * _errors(drawn) / scale
        theirs, ours = ({**look(n), "xerr": errors[n], "linestyle": "none"} for n in range(2))
        left.errorbar(np.zeros(len(drawn)), y + shift, **theirs, label="published")
        differences = 100 * (_column(drawn, "ours") - published) / scale
        left.errorbar(differences, y - shift, **ours, label="gauge-mc")
        left.set_yticks(y, [typeset(_short(x.name)) for x in drawn], fontsize="small")
        left.tick_params(axis="y", which="minor", left=False, right=False)
        left.set_xlabel("difference from the published value [%]")
        left.set_title(title, fontsize="medium")
        left.legend(loc="best")
        right.axvspan(-1, 1, color=SHADE)
        right.axvline(0, color=GREY, linewidth=0.8)
        pulls = [x.pull or 0.0 for x in drawn]
        right.plot(pulls, y, **look(1), linestyle="none")
        most = max(papers.LARGE_PULL, *map(abs, pulls)) * 1.15
        right.set_xlim(-most, most)
        right.set_ylim(-0.6, len(drawn) - 0.4)
        right.set_xlabel("pull")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _column(drawn: list[papers.ComparedEntry], name: str) -> np.ndarray:
    return np.array([getattr(x, name) for x in drawn], float)


def _errors(drawn: list[papers.ComparedEntry]) -> np.ndarray:
    return np.array([math.hypot(x.error or 0.0, x.systematic) for x in drawn])


OUTPUT = Path("runs/reproduced")
"""Usual folder of the runs and the comparisons."""

LEAST_SECONDS = 1.0
"""Shortest time that a run is given."""

IGNORED = {"chain_version", "configs", "format", "seed"}
"""Parameters that may differ between the card and the run whose results are kept."""


@dataclass
class _Work:
    """One call of `reproduce`."""

    card: papers.PaperCard
    folder: Path
    execution: Mapping[str, Any]
    progress: bool
    deadline: float | None
    used: dict[str, papers.UsedEnsemble] = field(default_factory=dict)
    results: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    stopped: str | None = None

    def carry_out(self) -> None:
        """Carry out the ensembles, each within its share of the time that is left."""
        pending = [*self.card.ensembles.values()]
        while pending and not self.stopped:
            limit = _seconds_of(_cost(pending[0]), sum(map(_cost, pending)), self.deadline)
            ensemble = pending.pop(0)
            begin = self._scan if ensemble.scan else self._run
            self.used[ensemble.name], reason = begin(ensemble, limit)
            if reason not in (None, TIME_LIMIT):
                self.stopped = reason

    def _options(self, ensemble: papers.PaperEnsemble, limit: float | None) -> dict[str, Any]:
        """Return how and where an ensemble is carried out."""
        time_limit = {} if limit is None else {"time_limit": f"0:0:{max(1, round(limit))}"}
        return {**self.execution, "output": self.path(ensemble), **time_limit}

    def _run(
        self, ensemble: papers.PaperEnsemble, limit: float | None
    ) -> tuple[papers.UsedEnsemble, str | None]:
        options = self._options(ensemble, limit)
        run = generate(ensemble.values_within(self.folder), progress=self.progress, **options)
        values, updates = run.parameters.values(), run.parameters.updates
        used = papers.UsedEnsemble(ensemble.name, str(run.path), values, False, run.sweep, updates)
        return used, run.stopped

    def _scan(
        self, ensemble: papers.PaperEnsemble, limit: float | None
    ) -> tuple[papers.UsedEnsemble, str | None]:
        """Carry out a scan, smaller lattices first, each within its share of the time."""
        path = self.path(ensemble)
        members = ScanRequest.of({**ensemble.values, "output": path}).scan().members()
        costs: Counter[str] = Counter()
        for each in sorted(members, key=lambda member: member.parameters.lattice.sites):
            costs[str(each.parameters.lattice)] += _links(each.parameters)
        end = None if limit is None else time.monotonic() + limit
        stopped = None
        for lattice in [*costs]:
            total = costs.total()
            options = self._options(ensemble, _seconds_of(costs.pop(lattice), total, end))
            values = {**ensemble.values_within(self.folder), "lattice": lattice}
            result = scan(values, progress=self.progress, **options)
            stopped = result.stopped or stopped
            if result.stopped not in (None, TIME_LIMIT):
                break
        updates = sum(each.parameters.updates for each in members)
        sweeps = [open_run(each.run.path).sweep for each in members if each.run.exists()]
        parameters = ensemble.parameters.values()
        used = papers.UsedEnsemble(ensemble.name, path, parameters, False, sum(sweeps), updates)
        return used, stopped

    def path(self, ensemble: papers.PaperEnsemble) -> str:
        """Return the run directory of an ensemble, which all cards share."""
        return str(ensemble_path(self.folder, ensemble))

    def compared(self, entry: papers.Entry) -> papers.ComparedEntry:
        """Return an entry beside our value; its note says why there is none."""
        try:
            ours, error, systematic = self.number(entry)
            if entry.against:
                options = entry.against_options or entry.options
                reference = replace(entry, ensemble=entry.against, options=options)
                value, *errors = self.number(reference)
                entry = replace(entry, published=value, error=math.hypot(*errors))
        except GaugeError as problem:
            return _beside(entry, problem=problem)
        return _beside(entry, ours, error, systematic)

    def number(self, entry: papers.Entry) -> tuple[float, float, float]:
        """Return our value with its errors."""
        ensemble = self.card.ensembles[entry.ensemble]
        if entry.ensemble not in self.used:
            raise GaugeError(f"The ensemble {entry.ensemble} was not begun.")
        if entry.average:
            averages = open_run(self.path(ensemble)).averages
            if entry.average not in averages:
                raise GaugeError(f"The run has no average '{entry.average}' yet.")
            average = averages[entry.average]
            if not math.isfinite(average.error):
                raise GaugeError(f"The error of '{entry.average}' is not known yet.")
            return average.value, average.error, 0.0
        return _of_result(self._fitted(ensemble, entry), entry)

    def _fitted(self, ensemble: papers.PaperEnsemble, entry: papers.Entry) -> Any:
        """Return the result of a fit, which is carried out once for all entries that need it."""
        key = (ensemble.name, entry.fit, repr(sorted(entry.options.items())))
        if key not in self.results:
            name = f"{self.card.name}_{ensemble.name}_{entry.fit}_{len(self.results)}.json"
            file = self.folder / name
            try:
                next(fit_all(entry.fit, [Path(self.path(ensemble))], entry.options, file))
                self.results[key] = _result(file)
            except GaugeError as error:
                self.results[key] = error
        if isinstance(self.results[key], GaugeError):
            raise self.results[key]
        return self.results[key]


ENSEMBLE_FOLDER = "ensembles"
"""Folder of the run directories in the folder of comparisons."""


def ensemble_path(output: Path, ensemble: papers.PaperEnsemble) -> Path:
    """Return the run directory of an ensemble in the folder of comparisons."""
    return output / ENSEMBLE_FOLDER / ensemble.folder


def reproduce(
    card: papers.PaperCard,
    *,
    output: Path = OUTPUT,
    budget: float | None = None,
    progress: bool = True,
    **execution: Any,
) -> papers.Comparison:
    """Carry out the ensembles and fits of a card, and compare with the published numbers.

    Ensembles that are there, with the same parameters, are continued or used as they are. The
    comparison is written into the folder as JSON and CSV, and drawn if Matplotlib is installed.
    """
    folder = make_folder(output / ENSEMBLE_FOLDER)
    settings = {name: value for name, value in execution.items() if value is not None}
    deadline = None if budget is None else time.monotonic() + budget
    work = _Work(card, output, settings, progress, deadline)
    try:
        work.carry_out()
    except BaseException:
        remove_empty(folder)
        raise
    entries = [work.compared(entry) for entry in card.entries]
    used = [*work.used.values()]
    comparison = papers.Comparison(*card.words, entries, used, budget, work.stopped)
    comparison.write(output)
    if find_spec("matplotlib") and any(entry.pull is not None for entry in comparison.entries):
        draw_comparison(comparison, output / f"{comparison.card}.pdf")
    return comparison


def compare_kept(card: papers.PaperCard) -> papers.Comparison:
    """Compare the results of long runs that are kept beside a card, without generating anything.

    A kept result counts only if it is of the ensemble that the card describes: its ``run.toml`` is
    compared, or, for a scan, what the result says of its ensemble.
    """
    folders = {name: e.results for name, e in card.ensembles.items() if e.results}
    folders = {name: folder for name, folder in folders.items() if folder.is_dir()}
    used = {name: _kept(card.ensembles[name], folder) for name, folder in folders.items()}
    if not used:
        raise UsageError(
            f"The card {card.name} has no kept results here; leave out --kept to carry it out."
        )
    entries = []
    for entry in card.entries:
        ensemble = card.ensembles[entry.ensemble]
        try:
            if entry.ensemble not in used or not entry.fit:
                raise GaugeError("There is no kept result.")
            stem = Path(FITS[entry.fit].file).stem
            file = papers.result_file(folders[ensemble.name], stem, [*FITS])
            result = _result(file)
            _check_ensemble(result, ensemble)
            entries.append(_beside(entry, *_of_result(result, entry)))
        except UsageError:
            raise
        except GaugeError as problem:
            entries.append(_beside(entry, problem=problem))
    return papers.Comparison(*card.words, entries, [*used.values()])


def _result(file: Path) -> Any:
    """Read the result of a fit."""
    try:
        return parse_json(read_text(file, MAX_RESULT))
    except ValueError as error:
        raise GaugeError(f"{file} is damaged or not the result of a fit.") from error


def _of_result(result: Any, entry: papers.Entry) -> tuple[float, float, float]:
    """Return the value of an entry with its errors from the result of a fit."""
    value, error = papers.number_with_error(result, entry.value)
    further = papers.value_at(result, entry.systematic) if entry.systematic else 0.0
    return value, error, abs(papers.plain_number(further or 0.0, entry.systematic))


def _beside(
    entry: papers.Entry,
    ours: float | None = None,
    error: float | None = None,
    systematic: float = 0.0,
    problem: GaugeError | str = "",
) -> papers.ComparedEntry:
    """Return an entry beside our value, or with the problem because of which there is none."""
    names = (entry.name, entry.ensemble, entry.published, entry.error)
    note = f"{problem} {entry.note}".strip()
    numbers = ours, error, systematic, entry.at
    return papers.ComparedEntry(*names, *numbers, note, entry.read, entry.against)


def _kept(ensemble: papers.PaperEnsemble, folder: Path) -> papers.UsedEnsemble:
    """Return the use of kept results, after a check that they are of this ensemble."""
    run = Run(folder)
    parameters = run.read()[0] if run.exists() else ensemble.parameters
    mine, theirs = ensemble.parameters.fixed(), parameters.fixed()
    fixed = {*mine, *theirs} - IGNORED
    if different := sorted(key for key in fixed if mine.get(key) != theirs.get(key)):
        raise UsageError(
            f"The results in {folder} are from another ensemble than the card's {ensemble.name}: "
            f"{', '.join(different)} differ."
        )
    return papers.UsedEnsemble(ensemble.name, f"results/{folder.name}", parameters.values(), True)


def _check_ensemble(result: Any, ensemble: papers.PaperEnsemble) -> None:
    """Refuse a result that says that it is of another ensemble."""
    stated = result.get("ensemble") if isinstance(result, dict) else None
    stated = stated if isinstance(stated, dict) else {}
    for key, value in ensemble.parameters.values().items():
        if not (ensemble.scan and key in VARYING) and str(stated.get(key, value)) != str(value):
            raise UsageError(
                f"The results in {ensemble.results} are from {key} = {stated[key]}, and the card's "
                f"{ensemble.name} has {value}."
            )


VARYING = ("beta", "lattice")
"""Parameters that differ between the runs of a scan."""


def _cost(ensemble: papers.PaperEnsemble) -> float:
    """Return a rough measure of the time that the rest of an ensemble takes: links and colours."""
    if ensemble.scan:
        members = ScanRequest.of(ensemble.values).scan().members()
        return 1.0 + sum(_links(each.parameters) for each in members)
    return 1.0 + _links(ensemble.parameters)


def _links(parameters: Parameters) -> int:
    return parameters.updates * parameters.links_per_update


def _seconds_of(cost: float, total: float, end: float | None) -> float | None:
    """Return the share of a cost in the time that is left until an end; None without an end."""
    return None if end is None else max(LEAST_SECONDS, cost / total * (end - time.monotonic()))
