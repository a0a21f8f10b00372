"""Cards of papers: ensembles, what is taken from them, and the published numbers.

A card looks like this; ``[shared]`` and the tables of ensembles have the keys of run cards, and
those of scans also the values of the grid::

    paper = "hep-lat/0108008"
    title = "r0/a of SU(3) with the Wilson action"
    where = "interpolation"
    read = "the coefficients in the source of another program"

    [shared]
    group = "su3"
    lattice = "16x16x16x32"

    [ensembles."b5.8"]
    beta = 5.8
    results = "../results/su3_b5.8"

    [[entries]]
    name = "r0/a at beta = 5.8"
    ensemble = "b5.8"
    fit = "potential"
    value = "scales.r0.value"
    systematic = "scales.r0.systematic"
    published = 3.665
    error = 0.018

An entry with ``against``, the name of another ensemble, in place of a published number says that
both must have the same value, such as those of single and double precision.

``read`` says where the published numbers were read, in the card for all entries or in one entry.
A number without it was not read; it is shown, and not counted in χ².
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.table import Table

from gauge_mc.analysis.timeseries import with_error
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind, write_file
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import json_with, parse_json, parse_toml, typed
from gauge_mc.fits import FITS
from gauge_mc.fits.files import without_nan
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import within
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import entry_points, in_words, nearest
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import MAX_CARD, flat, named_values
from gauge_mc.run.measurement import options_of_observable
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.request import ScanRequest

HERE = Path("runs/papers")
"""Folder of cards in the working directory."""

RESULTS, CARDS = "results", "cards"
"""Key of the folder of kept results in the table of an ensemble; folder of cards in the package."""

ENSEMBLES, SCANS = "ensembles", "scans"
"""Tables of single runs and of scans."""

NAME = re.compile(r"[\w.+-]+")
"""Form of the name of an ensemble, which becomes a part of the names of files."""


@dataclass(frozen=True)
class Entry:
    """A published number, and what it is compared with."""

    name: str
    """The quantity, as the table shows it."""
    ensemble: str
    """Name of the ensemble or the scan."""
    published: float = math.nan
    """The published value."""
    error: float = math.nan
    """The error of the published value."""
    against: str = ""
    """In place of a published value: name of another ensemble, whose value must be the same."""
    against_options: dict[str, Any] = field(default_factory=dict)
    """Options of the fit for that ensemble, if they differ."""
    average: str = ""
    """Label of the average of a run that is compared; or empty."""
    fit: str = ""
    """Name of the fit whose result is compared; or empty."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the fit."""
    value: str = ""
    """Keys to the value in the result of the fit, such as ``critical[method=equal weights].beta``.
    """
    systematic: str = ""
    """Keys to a further error in the result of the fit; or empty."""
    at: float | None = None
    """Abscissa in the figure."""
    note: str = ""
    """Explanation of a difference, which is shown with the comparison."""
    read: str | None = None
    """The text in which the published number was read; None if it was not read."""


@dataclass(frozen=True)
class PaperEnsemble:
    """An ensemble of a card: a run, or a scan."""

    name: str
    """Name in the card."""
    values: Mapping[str, object]
    """Keys of a run card, or of the card of a scan."""
    scan: bool
    """Whether it is a scan."""
    results: Path | None
    """Folder of the results of a long run that are kept."""

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of the run; of a scan, those that its runs share."""
        if self.scan:
            return ScanRequest.of(self.values).scan().parameters
        return Parameters.from_values(self.values)

    def values_within(self, folder: Path) -> dict[str, object]:
        """Return the values, with whatever measurements write besides tables in a folder."""
        measurements = []
        for measurement in self.parameters.measure:
            declared = options_of_observable(measurement.observable)
            advice = "name a folder relative to that of the output, without '..'"
            options = within(folder, declared, measurement.options, measurement.observable, advice)
            measurements.append(replace(measurement, options=options))
        return {**self.values, "measure": measurements}

    @property
    def folder(self) -> str:
        """Name of its run directory, which depends on nothing but the parameters."""
        if self.scan:
            content: Any = {key: str(x) for key, x in sorted(self.values.items())}
            label = SCANS
        else:
            content, label = self.parameters.fixed(), self.parameters.name
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        return f"{label}_{digest[:12]}"


@dataclass(frozen=True)
class PaperCard:
    """A card whose keys, ensembles and entries have been checked."""

    path: Path
    """The file."""
    paper: str
    """arXiv number, or another address."""
    title: str
    """The quantity that is compared, in words."""
    where: str
    """Table or figure of the paper."""
    entries: Sequence[Entry]
    """The published numbers."""
    ensembles: Mapping[str, PaperEnsemble]
    """The ensembles by name."""
    about: str = ""
    """Differences from the paper, in sentences."""

    @property
    def name(self) -> str:
        """Name of the card, that of its file."""
        return self.path.stem

    @property
    def words(self) -> tuple[str, str, str, str, str]:
        """The texts with which a `Comparison` begins."""
        return self.name, self.paper, self.title, self.where, self.about


def read_paper(path: Path) -> PaperCard:
    """Read a card and check it."""
    try:
        content = parse_toml(read_text(path, MAX_CARD))
    except (GaugeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"The card {path} cannot be read: {reason}.") from error
    words = {"paper", "title", "where"}
    keys = {*words, "read", "about", "shared", ENSEMBLES, SCANS, "entries"}
    if unknown := content.keys() - keys:
        raise UsageError(f"Unknown key '{min(unknown)}' in {path}{nearest(min(unknown), keys)}")
    if missing := {*words, "entries"} - content.keys():
        raise UsageError(f"The card {path} lacks {in_words(sorted(missing))}.")
    shared = {key: content[key] for key in ("read",) if key in content}
    try:
        entries = content["entries"]
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError("entries is not a list of tables")
        paper = PaperCard(
            path=path,
            paper=str(content["paper"]),
            title=str(content["title"]),
            where=str(content["where"]),
            entries=[
                _entry(entry if "against" in entry else {**shared, **entry}) for entry in entries
            ],
            ensembles=_ensembles(content, path),
            about=str(content.get("about", "")),
        )
        _check(paper)
    except (TypeError, ValueError) as error:
        reason = str(error).removeprefix("Entry.__init__() ").rstrip(".")
        raise UsageError(f"The card {path} is not valid: {reason}.") from error
    except GaugeError as error:
        raise UsageError(f"The card {path}: {error}") from error
    return paper


def _entry(content: Mapping[str, Any]) -> Entry:
    """Return an entry; the types of the options of its fit are checked by the fit."""
    names = [field.name for field in fields(Entry)]
    if unknown := content.keys() - {*names}:
        raise ValueError(f"Unknown key '{min(unknown)}' of an entry{nearest(min(unknown), names)}")
    tables = {key: content[key] for key in ("options", "against_options") if key in content}
    plain = {key: x for key, x in content.items() if key not in tables}
    entry: Entry = typed(plain, Entry)
    if not all(isinstance(table, dict) for table in tables.values()):
        raise ValueError(f"the options of '{entry.name}' are not a table")
    return replace(entry, **tables)


def _ensembles(content: Mapping[str, Any], path: Path) -> dict[str, PaperEnsemble]:
    shared = flat(_table(content, "shared"))
    ensembles: dict[str, PaperEnsemble] = {}
    for kind in (ENSEMBLES, SCANS):
        for name, table in _table(content, kind).items():
            if not isinstance(table, Mapping) or not NAME.fullmatch(name) or name in ensembles:
                raise ValueError(f"the ensemble '{name}' is not a table, or its name is not valid")
            folder = path.parent / str(table[RESULTS]) if table.get(RESULTS) is not None else None
            values = shared | flat({key: x for key, x in table.items() if key != RESULTS})
            scan = kind == SCANS
            values = values if scan else named_values(values, {})
            ensembles[name] = PaperEnsemble(name, values, scan, folder)
    return ensembles


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{key} is not a table")
    return table


def _check(card: PaperCard) -> None:
    """Refuse entries that cannot be compared, and parameters with which no run could begin."""
    for entry in card.entries:
        if entry.ensemble not in card.ensembles:
            raise ValueError(f"'{entry.name}' belongs to '{entry.ensemble}', an unknown ensemble")
        if bool(entry.average) == bool(entry.fit) or bool(entry.fit) != bool(entry.value):
            raise ValueError(f"'{entry.name}' needs either an average, or a fit with a value")
        if entry.against:
            _check_against(entry, card)
        elif not (
            math.isfinite(entry.published) and entry.error >= 0 and math.isfinite(entry.error)
        ):
            raise ValueError(
                f"'{entry.name}' has a published value or an error that is not a number"
            )
        if entry.read is not None and not entry.read.strip():
            raise ValueError(f"'{entry.name}' has an empty 'read'; leave it out if it was not read")
        if entry.fit:
            FITS.check(entry.fit, "fit")
        if card.ensembles[entry.ensemble].scan and not (entry.fit and FITS[entry.fit].of_scans):
            raise ValueError(f"'{entry.name}' belongs to a scan, and needs a fit of scans")
        if entry.average and entry.average not in (
            labels := _labels(card.ensembles[entry.ensemble])
        ):
            raise ValueError(
                f"'{entry.name}' needs the average '{entry.average}', which its ensemble does not "
                f"measure{nearest(entry.average, labels)}".rstrip(".")
            )
    for each in card.ensembles.values():
        each.values_within(Path())
    if not card.entries:
        raise ValueError("it has no entries")


def _check_against(entry: Entry, card: PaperCard) -> None:
    """Refuse an entry that cannot be compared with another ensemble of the card.

    Their random numbers must be independent, since the pull takes errors to be.
    """
    if math.isfinite(entry.published) or entry.read is not None:
        raise ValueError(f"'{entry.name}' has both 'against' and a published value or 'read'")
    if entry.against not in card.ensembles:
        raise ValueError(f"'{entry.name}' is against '{entry.against}', which is not an ensemble")
    seeds = {card.ensembles[x].parameters.seed for x in (entry.ensemble, entry.against)}
    if len(seeds) < 2:
        raise ValueError(f"'{entry.name}' compares ensembles of one seed; give each its own")


def _labels(ensemble: PaperEnsemble) -> list[str]:
    """Return the labels of the averages of an ensemble."""
    parameters = ensemble.parameters
    parameters.check_observables()
    columns = [OBSERVABLES[item.observable].columns for item in parameters.measure]
    columns.append(parameters.algorithm.columns)
    return [column.average for each in columns if each for column in each.averaged]


def known_cards(folder: Path | None = None) -> dict[str, Path]:
    """Return the files of all cards by name.

    They are those of gauge-mc, of its extensions and other packages, of ``runs/papers`` in the
    working directory, and of the given folder; a later card replaces an earlier one of the same
    name.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(f"There is no folder {folder} with cards of papers.")
    package = Path(__file__).resolve().parent
    inside = package / CARDS
    shipped = inside if inside.is_dir() else package.parents[3] / "runs" / "papers"  # of a checkout
    modules = [entry.load() for entry in entry_points(__name__)]
    plugins = [Path(place) / CARDS for module in modules for place in module.__path__]
    places = [shipped, *plugins, HERE, *([folder] if folder else [])]
    cards = {path.stem: path for place in places for path in sorted(place.glob("*.toml"))}
    return dict(sorted(cards.items()))


def find_card(word: str, folder: Path | None = None) -> PaperCard:
    """Return the card with a name, of a paper, or at a path."""
    cards = known_cards(folder)
    if word in cards:
        return read_paper(cards[word])
    if word.endswith(".toml"):
        return read_paper(Path(word))
    number = word.removeprefix("arXiv:").removeprefix("https://arxiv.org/abs/")
    matches = [x for x in map(read_paper, cards.values()) if x.paper == number]
    if len(matches) > 1:
        names = in_words([x.name for x in matches], "or")
        raise UsageError(f"There are several cards of {number}; name one: {names}.")
    if not matches:
        raise UsageError(f"There is no card of a paper '{word}'{nearest(word, cards)}")
    return matches[0]


LARGE_PULL = 2.5
"""Pull above which an entry is pointed out; one of 80 is larger by chance."""

WRONG_PULL = 5.0
"""Pull above which something is wrong; one in two million is larger by chance."""

UNREAD = "unread"
"""Word beside a published number that was not read."""

MAX_FILE = 2**22
"""Maximum size of the file of a comparison in bytes."""

COMPARISON = FileKind("a comparison", json_with(("paper", "entries", "chi2"), MAX_FILE))
"""Kind of the files of comparisons."""

TABLE_HEADING = "name,ensemble,ours,error,systematic,published,published_error,pull,read"
"""First line of the table of a comparison."""

TABLE = FileKind(
    "the table of a comparison",
    lambda path: read_text(path, MAX_FILE).startswith(TABLE_HEADING.removesuffix(",read")),
)
"""Kind of the tables of comparisons."""

STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]=]+)(?:=([^\[\]]*))?\]")
"""A step on the way to a value in a result: a key, or the number or a property of an element."""


@documented
@dataclass(frozen=True)
class ComparedEntry:
    """A published number beside ours."""

    name: str = result_field("The quantity.")
    ensemble: str = result_field("Name of the ensemble in the card.")
    published: float = result_field("The published value.")
    published_error: float = result_field("The error of the published value.")
    ours: float | None = result_field("Our value; None if it is not known.", None)
    error: float | None = result_field("Its statistical error.", None)
    systematic: float = result_field("Its systematic error, 0 if the card names none.", 0.0)
    at: float | None = result_field("Abscissa in the figure.", None)
    note: str = result_field("Explanation of a difference, or of a missing value.", "")
    read: str | None = result_field(
        "Where the published number was read; None if it was not, and then it is not counted.", None
    )

    against: str = result_field(
        "Name of another ensemble of the card, whose value stands in place of a published one; "
        "empty for published ones.",
        "",
    )

    @property
    def known(self) -> bool:
        """Whether the number beside ours was read, or is that of another ensemble."""
        return self.read is not None or bool(self.against)

    @property
    def counted(self) -> bool:
        """Whether there is a pull, and the number beside ours is known, so that χ² contains it."""
        return self.known and self.pull is not None

    @property
    def pull(self) -> float | None:
        """The difference in units of all errors together; None if there is no value."""
        if self.ours is None or self.error is None:
            return None
        together = math.hypot(self.error, self.systematic, self.published_error)
        return (self.ours - self.published) / together if together > 0 else None

    @property
    def published_text(self) -> str:
        """The published value with its error in brackets, with the digits of the card."""
        if self.against:
            finite = math.isfinite(self.published)
            return with_error(self.published, self.published_error) if finite else "—"
        text = as_published(self.published, self.published_error)
        return text if self.known else f"{text}, {UNREAD}"

    @property
    def text(self) -> str:
        """Our value with its error in brackets."""
        if self.ours is None or self.error is None:
            return ""
        return with_error(self.ours, math.hypot(self.error, self.systematic))


@documented
@dataclass(frozen=True)
class UsedEnsemble:
    """An ensemble of a comparison, as far as it was carried out."""

    name: str = result_field("Name of the ensemble in the card.")
    path: str = result_field("Run directory or scan directory, or folder of results.")
    parameters: dict[str, str | int | float] = result_field("Parameters of the run by name.")
    kept: bool = result_field("Whether kept results of a long run were compared.")
    updates: int | None = result_field("Number of updates done; None if it is not known.", None)
    wanted: int | None = result_field("Number of updates of the whole run.", None)

    @property
    def reduced(self) -> bool:
        """Whether the run has fewer updates than the card says."""
        return None not in (self.updates, self.wanted) and self.updates != self.wanted


@documented
@dataclass(frozen=True)
class Comparison:
    """A paper compared with results of this program."""

    card: str = result_field("Name of the card.")
    paper: str = result_field("arXiv number, or another address.")
    title: str = result_field("What is compared.")
    where: str = result_field("Table or figure of the paper.")
    about: str = result_field("What differs from the paper, in sentences.")
    entries: list[ComparedEntry] = result_field("The published numbers beside ours.")
    ensembles: list[UsedEnsemble] = result_field("The ensembles.")
    budget: float | None = result_field("Time that was given, in seconds; None if all.", None)
    stopped: str | None = result_field("Reason why the session stopped early, or None.", None)

    @property
    def pulls(self) -> list[float]:
        """The pulls that are known, of the published numbers that were read."""
        return [entry.pull for entry in self.entries if entry.counted and entry.pull is not None]

    @property
    def chi2(self) -> float:
        """The sum of the squares of the pulls."""
        return sum(pull**2 for pull in self.pulls)

    @property
    def spread(self) -> float:
        """The root of the mean square of the pulls, 1 if all errors are right."""
        return math.sqrt(self.chi2 / len(self.pulls)) if self.pulls else math.nan

    @property
    def wrong(self) -> list[ComparedEntry]:
        """The entries that differ by more than `WRONG_PULL`, and whose card does not explain it."""
        counted = [entry for entry in self.entries if entry.counted and not entry.note]
        return [x for x in counted if abs(x.pull or 0) > WRONG_PULL]

    def values(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        entries = [{**asdict(entry), "pull": entry.pull} for entry in self.entries]
        totals = {"chi2": self.chi2, "spread": self.spread}
        plain: dict[str, Any] = without_nan({**asdict(self), "entries": entries, **totals})
        return plain

    def report(self) -> list[Any]:
        """Return the table and the sentences that show the comparison on a terminal, for Rich."""
        table = Table(title=f"{self.paper}, {self.where}: {self.title}", title_justify="left")
        table.add_column("quantity", no_wrap=False)
        for heading in ("ours", "published", "pull"):
            table.add_column(heading, justify="right", no_wrap=True)
        for entry in self.entries:
            pull = "" if entry.pull is None else f"{entry.pull:+.1f}"
            table.add_row(entry.name, entry.text or "—", entry.published_text, pull)
        return [table, *self.sentences()]

    def sentences(self) -> list[str]:
        """Return the summary of the pulls, and what restricts the comparison."""
        lines = []
        if self.pulls:
            largest = max(self.pulls, key=abs)
            lines.append(
                f"χ² = {self.chi2:.1f} for {len(self.pulls)} entries; spread of the pulls "
                f"{self.spread:.2f}, largest {largest:+.1f}"
            )
        for row in self.entries:
            if row.note:
                lines.append(f"{row.name}: {row.note}")
            elif row.counted and abs(row.pull or 0) > LARGE_PULL:
                lines.append(
                    f"{row.name} differs by {abs(row.pull or 0):.1f} errors, which the card does "
                    "not explain"
                )
        for used in self.ensembles:
            if used.kept:
                lines.append(f"{used.name}: kept results of {used.path}")
            elif used.reduced:
                lines.append(
                    f"{used.name}: reduced statistics, {used.updates} of {used.wanted} updates; "
                    "the same command without --budget, or with another one, goes on"
                )
        if self.about:
            lines.append(self.about)
        if unread := "; ".join(entry.name for entry in self.entries if not entry.known):
            lines.append(f"Published numbers that were not read, and do not count in χ²: {unread}")
        for ensemble in dict.fromkeys(entry.against for entry in self.entries if entry.against):
            names = "; ".join(entry.name for entry in self.entries if entry.against == ensemble)
            lines.append(f"Compared with our ensemble {ensemble} in place of the paper: {names}")
        sources = dict.fromkeys(entry.read for entry in self.entries if entry.read is not None)
        return [*lines, *(f"Published numbers: {source}" for source in sources)]

    def write(self, folder: Path) -> list[Path]:
        """Write the comparison as JSON and as a table in CSV; return the files."""
        document, table = folder / f"{self.card}.json", folder / f"{self.card}.csv"
        content = self.values()
        for ensemble in content["ensembles"]:  # beside the comparison, wherever the folder goes
            if not ensemble["kept"]:
                ensemble["path"] = os.path.relpath(ensemble["path"], folder)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_file(document, f"{text}\n", COMPARISON)
        rows = io.StringIO()
        writer = csv.writer(rows, lineterminator="\n")
        writer.writerow(TABLE_HEADING.split(","))
        for e in self.entries:
            numbers = (e.ours, e.error, e.systematic, e.published, e.published_error, e.pull)
            cells = ("" if n is None else repr(n) for n in numbers)
            writer.writerow([e.name, e.ensemble, *cells, e.read or e.against or UNREAD])
        write_file(table, rows.getvalue(), TABLE)
        return [document, table]


def read_comparison(path: Path) -> Comparison:
    """Return a comparison that `Comparison.write` has written."""
    derived = ("pull", "chi2", "spread")
    try:
        content = parse_json(read_text(path, MAX_FILE))
        for record in (content, *content["entries"]):
            for key in derived:
                record.pop(key, None)
        for record in content["ensembles"]:
            record["parameters"] = {key: str(value) for key, value in record["parameters"].items()}
        shared = {"read": content.pop("read")} if "read" in content else {}  # as of version 0.2
        for record in content["entries"]:  # those of ensembles that could not be compared
            for key in ("published", "published_error"):
                record[key] = math.nan if record[key] is None else record[key]
        entries = [typed({**shared, **x}, ComparedEntry) for x in content.pop("entries")]
        used = [UsedEnsemble(**x) for x in content.pop("ensembles")]
        return Comparison(**content, entries=entries, ensembles=used)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is not a comparison; make it again with "
            f"`{CommandLine('paper', path.stem, output=path.parent)}`."
        ) from error


def as_published(value: float, error: float) -> str:
    """Return a value with its error in brackets, both with all digits that they were given."""
    if not error or not math.isfinite(value) or not math.isfinite(error):
        return f"{value:.12g}"
    exponents = [Decimal(repr(x)).normalize().as_tuple().exponent for x in (value, error)]
    digits = max(0, *(-int(e) for e in exponents))
    return f"{value:.{digits}f}({int(Decimal(repr(error)).scaleb(digits))})"


def value_at(result: Any, keys: str) -> Any:
    """Return what is at the end of a chain of keys in the result of a fit."""
    value, end = result, 0
    while end < len(keys):
        step = STEP.match(keys, end)
        if not step:
            raise GaugeError(f"'{keys}' is not a chain of keys.")
        end = step.end()
        try:
            value = _next(value, *step.groups())
        except (KeyError, IndexError, StopIteration, TypeError, ValueError):
            raise GaugeError(f"The result has no '{keys[:end]}'.") from None
    return value


def _next(node: Any, key: str | None, choice: str | None, value: str | None) -> Any:
    """Return the element of a table or a list that a step names."""
    if key is not None:
        return node[key]
    if value is None:
        return node[int(choice or "")]
    return next(x for x in node if str(x[choice]) == value)


def number_with_error(result: Any, keys: str) -> tuple[float, float]:
    """Return a value with its error from the result of a fit."""
    value = value_at(result, keys)
    if not isinstance(value, Mapping) or not {"value", "error"} <= value.keys():
        raise GaugeError(f"'{keys}' is not a value with an error.")
    if value["value"] is None or value["error"] is None:
        raise GaugeError(f"The fit has not determined '{keys}'.")
    return plain_number(value["value"], keys), plain_number(value["error"], keys)


def plain_number(value: Any, keys: str) -> float:
    """Return what is at the end of a chain of keys as a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise GaugeError(f"'{keys}' is not a number in the result.")
    return float(value)


def result_file(folder: Path, stem: str, choices: Sequence[str]) -> Path:
    """Return the file of a fit in a folder of results, whatever levels its name states."""
    longer = tuple(choice.replace("-", "_") for choice in choices if choice.startswith(f"{stem}-"))
    paths = sorted(folder.glob(f"{stem}*.json"))
    paths = [path for path in paths if not path.stem.startswith(longer)]
    if len(paths) != 1:
        raise GaugeError(f"{folder} has {len(paths)} results of the fit {stem}, not one.")
    return paths[0]
