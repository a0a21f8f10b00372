"""Contents of configuration files, runs and scans, as facts by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.files.averages import Averages
from gauge_mc.files.header import Header
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thinning import removed_from
from gauge_mc.scans.grid import AXES, Grid
from gauge_mc.scans.report import MemberReport
from gauge_mc.scans.scan import Scan

Facts = dict[str, Any]
"""Facts by name; a group of facts is a nested dictionary or a list of dictionaries."""


@dataclass(frozen=True)
class ConfigurationFacts(Header):
    """The facts about a configuration.

    Attributes
    ----------
    file : str
        File that was written or read.
    bytes : int
        Size of the file in bytes.
    lattice : str
        Extents of the lattice.
    stated : mapping of str to float
        Averages that the header states: ``plaquette`` and ``link_trace``.
    recomputed : Averages
        Averages over the links.
    """

    file: str = ""
    bytes: int = 0
    stated: Mapping[str, float] = dataclasses.field(default_factory=dict)
    recomputed: Averages | None = None


@dataclass(frozen=True)
class RunFacts:
    """The facts about a run; those about its newest configuration follow.

    Attributes
    ----------
    run : str
        Run directory.
    parameters : mapping of str to str, int or float
        Parameters of the run, as in ``run.toml``.
    sessions : sequence of SessionRecord
        Processes that have worked on the run.
    tables : mapping of str to str
        Number of records and columns of each table, in words, by the name of the file.
    configurations : int
        Number of configurations.
    configurations_removed : int
        Number of configurations that were removed on purpose.
    """

    run: str
    parameters: Mapping[str, object]
    sessions: Sequence[SessionRecord]
    tables: Mapping[str, str]
    configurations: int
    configurations_removed: int


@dataclass(frozen=True)
class ScanFacts:
    """The facts about a scan.

    Attributes
    ----------
    scan : str
        Scan directory.
    parameters : mapping of str to str, int or float
        Parameters that all runs share, as in ``scan.toml``.
    grids : sequence of Grid
        Grids of couplings and lattices.
    runs : sequence of MemberReport
        Runs.
    """

    scan: str
    parameters: Mapping[str, object]
    grids: Sequence[Grid]
    runs: Sequence[MemberReport]


def facts_of(path: Path) -> Iterator[Facts]:
    """Yield the facts about a configuration file, a run or a scan, in several parts.

    Raises
    ------
    UsageError
        If the path is a directory without a run or a scan.
    GaugeError
        If a file is damaged, or two configurations of a run have the same number.
    """
    if not path.is_dir():
        return configuration_facts(path)
    if Scan(path, Parameters()).exists():
        return scan_facts(Scan.read(path))
    return run_facts(Run(path))


def configuration_facts(path: Path) -> Iterator[Facts]:
    """Yield the facts in the header of a configuration file, then averages over its links.

    Raises
    ------
    GaugeError
        If the header is damaged (before the first part), or the links are (before the second part).
    """
    configuration = open_configuration(path)
    header = dataclasses.asdict(configuration.header)
    lattice = str(configuration.header.lattice)
    stated = {name: header.pop(name) for name in ("plaquette", "link_trace")}
    header["checksum"] = header["checksum"] or None
    header["warning"] = header["warning"] or None
    provenance = header.pop("provenance")
    size = path.stat().st_size
    yield {
        "file": str(path),
        "bytes": size,
        **header,
        "lattice": lattice,
        "stated": stated,
        "provenance": provenance,
    }
    yield {"recomputed": dataclasses.asdict(configuration.check())}


def run_facts(run: Run) -> Iterator[Facts]:
    """Yield the facts about a run, then those about its newest configuration.

    Raises
    ------
    UsageError
        If the directory contains no run.
    GaugeError
        If files of the run are damaged, or two configurations have the same number.
    """
    parameters, sessions = run.read()
    configs = run.configs()
    tables = {path.name: read_table(path) for path in run.tables()}
    yield {
        "run": str(run.path),
        "parameters": parameters.values(),
        "sessions": [dataclasses.asdict(session) for session in sessions],
        "tables": {
            name: f"{len(table)} rows: {', '.join(table.columns)}" for name, table in tables.items()
        },
        "configurations": len(configs),
        "configurations_removed": removed_from(run, parameters),
    }
    if configs:
        yield from configuration_facts(run.unambiguous_configs()[max(configs)])


def scan_facts(scan: Scan) -> Iterator[Facts]:
    """Yield the facts about a scan."""
    shared = scan.parameters.values()
    yield {
        "scan": str(scan.path),
        "parameters": {k: v for k, v in shared.items() if k not in AXES},
        "grids": [grid.values() for grid in scan.grids],
        "runs": [MemberReport.of(member) for member in scan.members()],
    }
