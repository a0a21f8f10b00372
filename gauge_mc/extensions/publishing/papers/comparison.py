"""Comparisons of results with published numbers: entries, pulls, and their files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.table import Table

from gauge_mc.analysis.timeseries import with_error
from gauge_mc.errors import GaugeError
from gauge_mc.files.atomic import FileKind, write_file
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import json_with, parse_json, typed
from gauge_mc.fits.shared.files import without_nan
from gauge_mc.quoting import CommandLine
from gauge_mc.results import documented, result_field

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
    ours: float | None = result_field("Our value; None if there is none.", None)
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
            known = math.isfinite(self.published)
            return with_error(self.published, self.published_error) if known else "—"
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
    paper: str = result_field("Number at arXiv, or another address.")
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
        return [one.pull for one in self.entries if one.counted and one.pull is not None]

    @property
    def chi2(self) -> float:
        """The sum of the squares of the pulls."""
        return sum(one**2 for one in self.pulls)

    @property
    def spread(self) -> float:
        """The root of the mean square of the pulls, 1 if all errors are right."""
        return math.sqrt(self.chi2 / len(self.pulls)) if self.pulls else math.nan

    @property
    def wrong(self) -> list[ComparedEntry]:
        """The entries that differ by more than `WRONG_PULL`, and whose card does not explain it."""
        counted = [one for one in self.entries if one.counted and not one.note]
        return [one for one in counted if abs(one.pull or 0) > WRONG_PULL]

    def values(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        entries = [{**asdict(one), "pull": one.pull} for one in self.entries]
        totals = {"chi2": self.chi2, "spread": self.spread}
        plain: dict[str, Any] = without_nan({**asdict(self), "entries": entries, **totals})
        return plain

    def report(self) -> list[Any]:
        """Return the table and the sentences that show the comparison on a terminal, for Rich."""
        table = Table(title=f"{self.paper}, {self.where}: {self.title}", title_justify="left")
        table.add_column("quantity", no_wrap=False)
        for heading in ("ours", "published", "pull"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in self.entries:
            pull = "" if one.pull is None else f"{one.pull:+.1f}"
            table.add_row(one.name, one.text or "—", one.published_text, pull)
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
        for one in self.entries:
            if one.note:
                lines.append(f"{one.name}: {one.note}")
            elif one.counted and abs(one.pull or 0) > LARGE_PULL:
                lines.append(
                    f"{one.name} differs by {abs(one.pull or 0):.1f} errors, which the card does "
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
        if unread := [one.name for one in self.entries if not one.known]:
            names = "; ".join(unread)
            lines.append(f"Published numbers that were not read, and do not count in χ²: {names}")
        for other in dict.fromkeys(one.against for one in self.entries if one.against):
            names = "; ".join(one.name for one in self.entries if one.against == other)
            lines.append(f"Compared with our ensemble {other} in place of the paper: {names}")
        sources = dict.fromkeys(one.read for one in self.entries if one.read is not None)
        return [*lines, *(f"Published numbers: {one}" for one in sources)]

    def write(self, folder: Path) -> list[Path]:
        """Write the comparison as JSON and as a table in CSV; return the files.

        Raises
        ------
        GaugeError
            If a file cannot be written.
        UsageError
            If there are other files of these names.
        """
        document, table = folder / f"{self.card}.json", folder / f"{self.card}.csv"
        content = self.values()
        for one in content["ensembles"]:  # beside the comparison, wherever the folder goes
            one["path"] = one["path"] if one["kept"] else os.path.relpath(one["path"], folder)
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
    """Return a comparison that `Comparison.write` has written.

    Raises
    ------
    GaugeError
        If the file cannot be read, or is not a comparison.
    """
    derived = ("pull", "chi2", "spread")
    try:
        content = parse_json(read_text(path, MAX_FILE))
        for one in (content, *content["entries"]):
            for key in derived:
                one.pop(key, None)
        for one in content["ensembles"]:
            one["parameters"] = {key: str(value) for key, value in one["parameters"].items()}
        shared = {"read": content.pop("read")} if "read" in content else {}  # as of version 0.2
        for one in content["entries"]:  # those of ensembles that could not be compared
            for key in ("published", "published_error"):
                one[key] = math.nan if one[key] is None else one[key]
        entries = [typed({**shared, **one}, ComparedEntry) for one in content.pop("entries")]
        used = [UsedEnsemble(**one) for one in content.pop("ensembles")]
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
    exponents = [Decimal(repr(one)).normalize().as_tuple().exponent for one in (value, error)]
    digits = max(0, *(-int(one) for one in exponents))
    return f"{value:.{digits}f}({int(Decimal(repr(error)).scaleb(digits))})"


def value_at(result: Any, keys: str) -> Any:
    """Return what is at the end of a chain of keys in the result of a fit.

    Parameters
    ----------
    result : object
        Tables and lists.
    keys : str
        Keys with dots between them; an element of a list is chosen by its number, ``[0]``, or by
        the value of one of its keys, ``[method=equal weights]``.

    Raises
    ------
    GaugeError
        If a key does not exist, or the result is null before the end.
    """
    found, end = result, 0
    while end < len(keys):
        step = STEP.match(keys, end)
        if not step:
            raise GaugeError(f"'{keys}' is not a chain of keys.")
        end = step.end()
        try:
            found = _next(found, *step.groups())
        except (KeyError, IndexError, StopIteration, TypeError, ValueError):
            raise GaugeError(f"The result has no '{keys[:end]}'.") from None
    return found


def _next(found: Any, key: str | None, choice: str | None, wanted: str | None) -> Any:
    """Return the element of a table or a list that a step names."""
    if key is not None:
        return found[key]
    if wanted is None:
        return found[int(choice or "")]
    return next(one for one in found if str(one[choice]) == wanted)


def number_with_error(result: Any, keys: str) -> tuple[float, float]:
    """Return a value with its error from the result of a fit.

    Raises
    ------
    GaugeError
        If there is none, or it is not known.
    """
    found = value_at(result, keys)
    if not isinstance(found, Mapping) or not {"value", "error"} <= found.keys():
        raise GaugeError(f"'{keys}' is not a value with an error.")
    if found["value"] is None or found["error"] is None:
        raise GaugeError(f"The fit does not know '{keys}'.")
    return plain_number(found["value"], keys), plain_number(found["error"], keys)


def plain_number(found: Any, keys: str) -> float:
    """Return what is at the end of a chain of keys as a number.

    Raises
    ------
    GaugeError
        If it is not one.
    """
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise GaugeError(f"'{keys}' is not a number in the result.")
    return float(found)


def result_file(folder: Path, stem: str, choices: Sequence[str]) -> Path:
    """Return the file of a fit in a folder of results, whatever levels its name states.

    Raises
    ------
    GaugeError
        If there is not exactly one.
    """
    longer = tuple(one.replace("-", "_") for one in choices if one.startswith(f"{stem}-"))
    paths = sorted(folder.glob(f"{stem}*.json"))
    paths = [path for path in paths if not path.stem.startswith(longer)]
    if len(paths) != 1:
        raise GaugeError(f"{folder} has {len(paths)} results of the fit {stem}, not one.")
    return paths[0]
