"""Ensembles of stored configurations: those of a run, or single files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gauge_mc.configurations.reading import (
    STATED_KIND,
    Configuration,
    LinkKind,
    open_configuration,
)
from gauge_mc.domain.device_pool import Devices
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.formats import FORMATS, is_configuration
from gauge_mc.observables import AGAIN_SUFFIX, CONFIGS_SUFFIX, Observable, table_name
from gauge_mc.run.chain import provenance
from gauge_mc.run.chains import only_newest_run
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import NO_FORMAT, Parameters
from gauge_mc.run.regeneration import updates_to_measure
from gauge_mc.storage.header import Header

WHOLE = "[0-9]{1,18}"
"""Form of the number of a configuration."""


@dataclass(frozen=True)
class Ensemble:
    """Configurations with the same group and lattice."""

    files: dict[int, Path]
    """Configuration files by number, in ascending order. In a run, the number is the update; for
    other files it is the sequence number in the header, or else the last number in the name,
    unless a regular expression says where in the name it is.
    """
    group: str
    """Gauge group."""
    lattice: Lattice
    """Extents of the lattice."""
    precision: str
    """Precision of the links in the files."""
    metadata: dict[str, str]
    """Metadata that identify the ensemble, for the headers of tables."""
    folder: Path
    """Default folder of the tables."""
    measured: tuple[str, ...] = ()
    """Observables that the run itself measures."""
    kind: LinkKind = STATED_KIND
    """Extents and group, if the files themselves do not state them."""

    @property
    def measured_lattice(self) -> Lattice:
        """Lattice of the fields: that of the files, or of their copies if an extent is odd."""
        return self.lattice.copies if isinstance(self.lattice, OddLattice) else self.lattice

    def strictly(self, observable: Observable) -> bool:
        """Return whether an observable is measured with the same bits on all machines."""
        strict = observable.strict and not observable.loose
        return strict and self.metadata.get("strict") == str(True)

    def table(self, observable: str) -> Path:
        """Return the default path of a table. It differs from the tables that the run writes."""
        plain = self.folder / f"{table_name(observable)}.csv"
        other = self.folder / f"{table_name(observable)}{CONFIGS_SUFFIX}.csv"
        return other if observable in self.measured or other.exists() else plain

    def table_again(self, observable: str) -> Path:
        """Return the default path of a table of configurations that were not kept."""
        return self.folder / f"{table_name(observable)}{AGAIN_SUFFIX}.csv"

    def open(self, number: int) -> Configuration:
        """Open a configuration and read its header; for the errors see `open_configuration`."""
        return open_configuration(self.files[number], *self.kind)

    def load(self, number: int, precision: str, device: Devices) -> tuple[Field, str]:
        """Read a configuration, and return it with the digest of its links in the file.

        If an extent is odd, there are periodic copies of it in the field.

        Raises
        ------
        GaugeError
            If the configuration cannot be read, is damaged, or has another group or lattice than
            the ensemble.
        """
        configuration = self.open(number)
        header = configuration.header
        if (header.group, header.lattice) != (self.group, self.lattice):
            raise GaugeError(
                f"{configuration.path} contains {header.group} on {header.lattice}, but the others "
                f"contain {self.group} on {self.lattice}; move it to another folder."
            )
        return configuration.load_identified(precision, device)


def find_ensemble(
    targets: Sequence[Path], kind: LinkKind = STATED_KIND, number: str | None = None
) -> Ensemble:
    """Find the configurations to measure on.

    Parameters
    ----------
    targets : sequence of Path
        A run directory, a folder of configurations, or configuration files. If it is empty, the
        newest run in ``runs/`` is taken.
    kind : LinkKind
        Extents and group, if configuration files themselves do not state them.
    number : str, optional
        Regular expression whose first group, in the name of a file, is its number; see
        `Ensemble.files` for what it is otherwise.

    Raises
    ------
    UsageError
        If the run does not exist, or two of the given files have the same number; if `number` is
        not a regular expression with a group that is a whole number in the names of all files; or
        if a kind or `number` is given for a run.
    GaugeError
        If there are no configurations, a file cannot be read or has another group or lattice than
        the others, or two configurations of the run have the same number.
    """
    if targets and not any(target.is_dir() for target in targets):
        return _ensemble_of_files(targets, kind, number)
    if len(targets) > 1:
        raise UsageError("Several targets include a directory; name one run, or only files.")
    run = Run(targets[0]) if targets else only_newest_run()
    if not run.exists() and (files := configurations_in(run.path)):
        return _ensemble_of_files(files, kind, number)
    kind.refuse(str(run.path))
    refuse_number(number, str(run.path))
    return _ensemble_of_run(run)


def configurations_in(folder: Path) -> list[Path]:
    """Return the files in a folder, hidden ones left out, that are configurations."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [one for one in found if one.is_file() and not one.name.startswith(".")]
    return [one for one in files if is_configuration(one)]


def _ensemble_of_run(run: Run) -> Ensemble:
    parameters = run.read()[0]
    files = run.unambiguous_configs()
    if not files and not parameters.keeps_configs:
        at = updates_to_measure(run)
        again = f"repeat the command with --at {at}, which makes them again"
        other = "generate another run with --measure, which measures along the way, or --format"
        raise GaugeError(
            f"The run {run.path} keeps no configurations, because its format is {NO_FORMAT}; "
            f"{again if at else other}."
        )
    if not files:
        raise GaugeError(f"The run {run.path} has no configurations yet; generate some first.")
    return ensemble_of(run, parameters, files)


def ensemble_of(run: Run, parameters: Parameters, files: dict[int, Path]) -> Ensemble:
    """Return files with configurations of a run, by update, as its ensemble."""
    p = parameters
    metadata = {name: value for name, value in provenance(p).items() if name != "version"}
    measured = tuple(item.observable for item in p.measure)
    return Ensemble(files, p.group, p.lattice, p.precision, metadata, run.path, measured)


def _ensemble_of_files(paths: Sequence[Path], kind: LinkKind, number: str | None) -> Ensemble:
    headers = [open_configuration(path, *kind).header for path in paths]
    first = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if (header.group, header.lattice) != (first.group, first.lattice):
            raise GaugeError(
                f"{path} contains {header.group} on {header.lattice}, but {paths[0]} contains "
                f"{first.group} on {first.lattice}; measure on them separately."
            )
    files = _numbered_by_pattern(paths, number) if number is not None else _numbered(paths, headers)
    metadata = {"group": first.group, "lattice": str(first.lattice)}
    metadata |= {
        key: first.provenance[key] for key in ("beta", "strict") if key in first.provenance
    }
    if isinstance(first.lattice, OddLattice):
        metadata["measured on"] = f"periodic copies, {first.lattice.copies}"
    files = dict(sorted(files.items()))
    return Ensemble(files, first.group, first.lattice, first.precision, metadata, Path(), kind=kind)


def _numbered(paths: Sequence[Path], headers: Sequence[Header]) -> dict[int, Path]:
    """Return files by the number that their header or their name states."""
    files: dict[int, Path] = {}
    for path, header in zip(paths, headers, strict=True):
        number = _number_of(path, header)
        if number in files:
            raise UsageError(
                f"{files[number]} and {path} both have the number {number} (the sequence number in "
                "the header, or else the last number in the name), which must identify a "
                "configuration; say with --number where it is in the names, or measure on them "
                "separately, with another --output."
            )
        files[number] = path
    return files


def _numbered_by_pattern(paths: Sequence[Path], text: str) -> dict[int, Path]:
    """Return files by the first group of a regular expression in their names."""
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"--number '{text}' is not a regular expression ({error}); put a backslash before "
            "letters that stand for themselves, and close what is opened."
        ) from None
    if not pattern.groups:
        raise UsageError(
            f"--number '{text}' has no group; put parentheses around the number, as in "
            "'cfg([0-9]+)'."
        )
    files: dict[int, Path] = {}
    for path in paths:
        match = pattern.search(path.name)
        if not match:
            raise UsageError(
                f"--number '{text}' does not match the name of {path}; give one that matches the "
                "names of all files, or name the others only."
            )
        if not re.fullmatch(WHOLE, match[1] or ""):
            raise UsageError(
                f"--number '{text}' finds '{match[1] or ''}' in the name of {path}, which is not a "
                "whole number; put the first parentheses around digits, as in '([0-9]+)'."
            )
        number = int(match[1])
        if number in files:
            raise UsageError(
                f"--number '{text}' finds {number} in the names of both {files[number]} and "
                f"{path}, but the number must identify a configuration; choose another part of "
                "the names, or measure on them separately, with another --output."
            )
        files[number] = path
    return files


def refuse_number(number: str | None, what: str) -> None:
    """Refuse the place of numbers in names for something that has no such names.

    Raises
    ------
    UsageError
        If there is one.
    """
    if number is not None:
        raise UsageError(
            f"{what} has no files whose names are to be numbered; leave --number out, which is "
            "for files of other programs."
        )


def _number_of(path: Path, header: Header) -> int:
    """Return the sequence number in the header of a configuration, or else that in its name.

    Programs that do not count configurations state the number 0 or 1, which is used only if there
    is no number in the name.
    """
    stated = header.provenance.get("sequence_number", "")
    number = int(stated) if re.fullmatch(WHOLE, stated) else 0
    return number if number > 1 else number_in_name(path, number)


def number_in_name(path: Path, otherwise: int = 0) -> int:
    """Return the last number in the name of a file, such as 4000 for ``ckpoint_lat.4000``.

    The ending of a format, such as ``.h5``, does not count.
    """
    suffixes = {one.suffix for one in FORMATS.values()}
    name = path.stem if path.suffix in suffixes else path.name
    numbers = re.findall(WHOLE, name)
    return int(numbers[-1]) if numbers else otherwise
