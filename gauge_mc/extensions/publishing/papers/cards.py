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

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_toml, typed
from gauge_mc.fits import FITS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import within
from gauge_mc.registry import entry_points, in_words, nearest
from gauge_mc.run.cards import MAX_CARD, flat, named_values
from gauge_mc.run.functions import options_of_observable
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
    """Options of the fit for that ensemble, if they are others."""
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
        """Return the values, with whatever measurements write besides tables in a folder.

        Raises
        ------
        UsageError
            If a measurement names a folder elsewhere.
        """
        found = []
        for one in self.parameters.measure:
            known = options_of_observable(one.observable)
            advice = "name a folder relative to that of the output, without '..'"
            options = within(folder, known, one.options, one.observable, advice)
            found.append(replace(one, options=options))
        return {**self.values, "measure": found}

    @property
    def folder(self) -> str:
        """Name of its run directory, which depends on nothing but the parameters."""
        if self.scan:
            content: Any = {key: str(one) for key, one in sorted(self.values.items())}
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
    """Number at arXiv, or another address."""
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


def read_paper(path: Path) -> PaperCard:
    """Read a card and check it.

    Raises
    ------
    UsageError
        If the card cannot be read, a key is missing or unknown, or an entry names an ensemble or a
        fit that does not exist.
    """
    try:
        content = parse_toml(read_text(path, MAX_CARD))
    except (GaugeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"The card {path} cannot be read: {reason}.") from error
    words = {"paper", "title", "where"}
    known = {*words, "read", "about", "shared", ENSEMBLES, SCANS, "entries"}
    if unknown := content.keys() - known:
        raise UsageError(f"Unknown key '{min(unknown)}' in {path}{nearest(min(unknown), known)}")
    if missing := {*words, "entries"} - content.keys():
        raise UsageError(f"The card {path} lacks {in_words(sorted(missing))}.")
    shared = {key: content[key] for key in ("read",) if key in content}
    try:
        entries = content["entries"]
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise ValueError("entries is no list of tables")
        found = PaperCard(
            path=path,
            paper=str(content["paper"]),
            title=str(content["title"]),
            where=str(content["where"]),
            entries=[_entry(one if "against" in one else {**shared, **one}) for one in entries],
            ensembles=_ensembles(content, path),
            about=str(content.get("about", "")),
        )
        _check(found)
    except (TypeError, ValueError) as error:
        reason = str(error).removeprefix("Entry.__init__() ").rstrip(".")
        raise UsageError(f"The card {path} is not sound: {reason}.") from error
    except GaugeError as error:
        raise UsageError(f"The card {path}: {error}") from error
    return found


def _entry(content: Mapping[str, Any]) -> Entry:
    """Return an entry; the types of the options of its fit are checked by the fit."""
    known = [one.name for one in fields(Entry)]
    if unknown := content.keys() - {*known}:
        raise ValueError(f"Unknown key '{min(unknown)}' of an entry{nearest(min(unknown), known)}")
    tables = {key: content[key] for key in ("options", "against_options") if key in content}
    plain = {key: one for key, one in content.items() if key not in tables}
    entry: Entry = typed(plain, Entry)
    if not all(isinstance(one, dict) for one in tables.values()):
        raise ValueError(f"the options of '{entry.name}' are no table")
    return replace(entry, **tables)


def _ensembles(content: Mapping[str, Any], path: Path) -> dict[str, PaperEnsemble]:
    shared = flat(_table(content, "shared"))
    found: dict[str, PaperEnsemble] = {}
    for kind in (ENSEMBLES, SCANS):
        for name, own in _table(content, kind).items():
            if not isinstance(own, Mapping) or not NAME.fullmatch(name) or name in found:
                raise ValueError(f"the ensemble '{name}' is no table, or its name is not possible")
            folder = path.parent / str(own[RESULTS]) if own.get(RESULTS) is not None else None
            values = shared | flat({key: one for key, one in own.items() if key != RESULTS})
            scan = kind == SCANS
            values = values if scan else named_values(values, {})
            found[name] = PaperEnsemble(name, values, scan, folder)
    return found


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = content.get(key, {})
    if not isinstance(found, Mapping):
        raise ValueError(f"{key} is no table")
    return found


def _check(card: PaperCard) -> None:
    """Refuse entries that cannot be compared, and parameters with which no run could begin."""
    for one in card.entries:
        if one.ensemble not in card.ensembles:
            raise ValueError(f"'{one.name}' is of the ensemble '{one.ensemble}', which it lacks")
        if bool(one.average) == bool(one.fit) or bool(one.fit) != bool(one.value):
            raise ValueError(f"'{one.name}' needs either an average, or a fit with a value")
        if one.against:
            _check_against(one, card)
        elif not (math.isfinite(one.published) and one.error >= 0 and math.isfinite(one.error)):
            raise ValueError(f"'{one.name}' has a published value or an error that is no number")
        if one.read is not None and not one.read.strip():
            raise ValueError(f"'{one.name}' has an empty 'read'; leave it out if it was not read")
        if one.fit:
            FITS.check(one.fit, "fit")
        if card.ensembles[one.ensemble].scan and not (one.fit and FITS[one.fit].of_scans):
            raise ValueError(f"'{one.name}' is of a scan, and needs a fit of scans")
        if one.average and one.average not in (known := _labels(card.ensembles[one.ensemble])):
            raise ValueError(
                f"'{one.name}' needs the average '{one.average}', which its ensemble does not "
                f"measure{nearest(one.average, known)}".rstrip(".")
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
        raise ValueError(f"'{entry.name}' is against '{entry.against}', which is no ensemble")
    seeds = {card.ensembles[one].parameters.seed for one in (entry.ensemble, entry.against)}
    if len(seeds) < 2:
        raise ValueError(f"'{entry.name}' compares ensembles of one seed; give each its own")


def _labels(one: PaperEnsemble) -> list[str]:
    """Return the labels of the averages of an ensemble."""
    parameters = one.parameters
    parameters.check_observables()
    columns = [OBSERVABLES[item.observable].columns for item in parameters.measure]
    columns.append(parameters.algorithm.columns)
    return [column.average for each in columns if each for column in each.averaged]


def known_cards(folder: Path | None = None) -> dict[str, Path]:
    """Return the files of all cards by name.

    They are those of gauge-mc, of its extensions and other packages, of ``runs/papers`` in the
    working directory, and of the given folder; a later card replaces an earlier one of the same
    name.

    Raises
    ------
    UsageError
        If the given folder does not exist.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(f"There is no folder {folder} with cards of papers.")
    package = Path(__file__).resolve().parent
    inside = package / CARDS
    own = inside if inside.is_dir() else package.parents[3] / "runs" / "papers"  # of a checkout
    modules = [entry.load() for entry in entry_points(__name__.rpartition(".")[0])]
    others = [Path(place) / CARDS for module in modules for place in module.__path__]
    places = [own, *others, HERE, *([folder] if folder else [])]
    found = {path.stem: path for place in places for path in sorted(place.glob("*.toml"))}
    return dict(sorted(found.items()))


def find_card(word: str, folder: Path | None = None) -> PaperCard:
    """Return the card with a name, of a paper, or at a path.

    Raises
    ------
    UsageError
        If there is none, or the paper has several; see also `read_paper`.
    """
    known = known_cards(folder)
    if word in known:
        return read_paper(known[word])
    if word.endswith(".toml"):
        return read_paper(Path(word))
    number = word.removeprefix("arXiv:").removeprefix("https://arxiv.org/abs/")
    same = [one for one in map(read_paper, known.values()) if one.paper == number]
    if len(same) > 1:
        names = in_words([one.name for one in same], "or")
        raise UsageError(f"There are several cards of {number}; name one: {names}.")
    if not same:
        raise UsageError(f"There is no card of a paper '{word}'{nearest(word, known)}")
    return same[0]
