"""Contents of configuration files, runs and scans, by name."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc.configurations.reading import STATED_KIND, LinkKind, open_configuration
from gauge_mc.files.columns import Averages
from gauge_mc.files.table import TableData, read_table
from gauge_mc.formats import ConfigurationFolder
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run, SessionRecord, newest
from gauge_mc.scans.carry_out import MemberState, member_states
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.ladders import LadderReport, ladder_reports
from gauge_mc.scans.scan import Scan, is_scan
from gauge_mc.signatures import checks_types
from gauge_mc.storage.links import STATED, Header
from gauge_mc.stored import configurations_of, run_of, runs_in
from gauge_mc.stored.measurement_table import number_in_name, rows_of_others
from gauge_mc.stored.thinning import removed_from

InfoPart = dict[str, Any]
"""Contents by name; a group of them is a nested dictionary or a list of dictionaries."""


@documented
@dataclass(frozen=True)
class ConfigurationInfo(Header):
    """Contents of a configuration."""

    file: str = result_field("File that was written or read.", "")
    bytes: int = result_field("Size of the file in bytes.", 0)
    stated: Mapping[str, float] = result_field(
        "Averages that the header states: ``plaquette`` and ``link_trace``.", dict
    )
    recomputed: Averages | None = result_field("Averages over the links.", None)
    cautions: Sequence[str] = result_field(
        "Cautions about links that are good all the same, one clause each.", ()
    )


@documented
@dataclass(frozen=True)
class RunInfo:
    """Contents of a run."""

    run: str = result_field("Run directory.")
    parameters: Mapping[str, str | int | float] = result_field(
        "Parameters of the run, as in ``run.toml``."
    )
    sessions: Sequence[SessionRecord] = result_field("Processes that have worked on the run.")
    tables: Mapping[str, str] = result_field(
        "Number of records and columns of each table, in words, by the name of the file."
    )
    configurations: int = result_field("Number of configurations.")
    configurations_removed: int = result_field(
        "Number of configurations that were removed on purpose."
    )


@documented
@dataclass(frozen=True)
class ScanInfo:
    """Contents of a scan."""

    scan: str = result_field("Scan directory.")
    parameters: Mapping[str, str | int | float] = result_field(
        "Parameters that all runs share, as in ``scan.toml``."
    )
    grids: Sequence[Grid] = result_field("Grids of couplings and lattices.")
    runs: Sequence[MemberState] = result_field("Runs.")
    removed: Sequence[str] = result_field("Names of runs that were taken out.")
    ladders: Sequence[LadderReport] = result_field("Runs that exchange their couplings.")


@documented
@dataclass(frozen=True)
class FolderInfo:
    """Contents of a folder of runs or of configurations."""

    folder: str = result_field("The folder.")
    runs: Sequence[str] = result_field("Runs in it.")
    configurations: int = result_field("Number of configurations that are not those of runs.")
    configurations_bytes: int = result_field("Size of these configurations in bytes.")
    passed_over: str = result_field("Sentence about other files; empty if there are none.")


@checks_types
def info(
    path: str | os.PathLike[str] | None = None,
    *,
    lattice: str | None = None,
    group: str | None = None,
) -> ConfigurationInfo | RunInfo | ScanInfo | FolderInfo:
    """Return the contents of a configuration file, a run, a scan or a folder of them.

    Parameters
    ----------
    path : path, optional
        Configuration file, run, scan, or folder of them; by default running or last generated in
        ``runs/``.
    lattice, group : str, optional
        Extents and group of links of which a configuration file itself says nothing; see
        `open_configuration`.

    Returns
    -------
    ConfigurationInfo, RunInfo, ScanInfo or FolderInfo
        What ``gauge-mc info --json`` prints. The newest configuration of a run or a folder, which
        the command shows as well, is not read.

    Raises
    ------
    UsageError
        If the path is a directory without any of these.
    GaugeError
        If a file is damaged.
    """
    place = newest("run", "scan") if path is None else Path(path)
    kind = LinkKind(lattice, group)
    if not place.is_dir():
        fields = {name: x for part in configuration_info(place, kind) for name, x in part.items()}
        stated = {name: x for name, x in fields.items() if x is not None} | fields["stated"]
        return ConfigurationInfo(**stated | {"recomputed": Averages(**fields["recomputed"])})
    return _of_directory(place, kind)[0]


def _of_directory(
    path: Path, kind: LinkKind
) -> tuple[RunInfo | ScanInfo | FolderInfo, Sequence[Path]]:
    """Return the contents of a directory, and the configurations of one that is not a run."""
    if is_scan(path):
        kind.refuse(str(path))
        return _of_scan(Scan.read(path)), []
    run, runs = Run(run_of(path)), [*map(str, runs_in(path))]
    folder = None if run.exists() else ConfigurationFolder.of(path)
    if runs or not folder or not folder.files:
        kind.refuse(str(path))
    if not folder or not (runs or folder.files):
        return _of_run(run), []
    size = sum(file.stat().st_size for file in folder.files)
    contents = FolderInfo(str(path), runs, len(folder.files), size, folder.passed_over)
    return contents, folder.files


def info_parts(path: Path, kind: LinkKind = STATED_KIND) -> Iterator[InfoPart]:
    """Yield the contents of a configuration file, a run, a scan or a folder, in several parts.

    Those of a run or a folder are followed by those of its newest configuration.
    """
    if not path.is_dir():
        yield from configuration_info(path, kind)
        return
    contents, files = _of_directory(path, kind)
    part = {**vars(contents)}
    if isinstance(contents, ScanInfo):
        part |= {"grids": [grid.values() for grid in contents.grids]}
    elif isinstance(contents, RunInfo):
        part |= {"sessions": [dataclasses.asdict(session) for session in contents.sessions]}
    yield part
    if isinstance(contents, RunInfo):
        files = configurations_of(path).files
    if files:
        yield from configuration_info(max(files, key=number_in_name), kind)


def configuration_info(path: Path, kind: LinkKind = STATED_KIND) -> Iterator[InfoPart]:
    """Yield the header of a configuration file, then averages over its links."""
    configuration = open_configuration(path, *kind)
    header = dataclasses.asdict(configuration.header)
    lattice = str(configuration.header.lattice)
    stated = {key: header.pop(key) for key in (name.replace(" ", "_") for name in STATED)}
    header["checksum"] = header["checksum"] or None
    header["warning"] = header["warning"] or None
    provenance = header.pop("provenance")
    about = {"file": str(path), "bytes": path.stat().st_size, **header, "lattice": lattice}
    yield {**about, "stated": stated, "provenance": provenance}
    averages = dataclasses.asdict(configuration.check())
    yield {"recomputed": averages, "cautions": configuration.cautions}


def _of_run(run: Run) -> RunInfo:
    parameters, sessions = run.read()
    tables = {path.name: read_table(path) for path in run.tables()}
    words = {name: _in_words(run.path / name, table) for name, table in tables.items()}
    count, removed = len(run.configs()), removed_from(run, parameters)
    return RunInfo(str(run.path), parameters.values(), sessions, words, count, removed)


def _in_words(path: Path, table: TableData) -> str:
    """Return the number of rows and the columns of a table, and whether other sources made rows."""
    words = f"{counted(len(table), 'row')}: {', '.join(table.columns)}"
    rows = rows_of_others(path, table)
    return f"{words}; {rows} by another version" if rows else words


def _of_scan(scan: Scan) -> ScanInfo:
    runs, ladders = member_states(scan.members()), ladder_reports(scan)
    return ScanInfo(str(scan.path), scan.shared(), scan.grids, runs, scan.removed, ladders)
