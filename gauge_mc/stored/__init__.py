"""Scans, runs, folders and files that commands work on, and what is done to them on disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gauge_mc.errors import UsageError
from gauge_mc.formats import ConfigurationFolder
from gauge_mc.run.directory import Run, chains_of, missing_run, newest
from gauge_mc.scans.scan import Scan, is_scan


def named_or_newest(named: Sequence[Path] | None, of_scans: bool = False) -> list[Path]:
    """Return the paths that were named, or else the newest run or scan, or the newest scan.

    If the newest run is one of several chains of an ensemble, all of them are returned.
    """
    if named:
        return [*named]
    return [newest("scan")] if of_scans else chains_of(newest("run", "scan"))


def folders(paths: list[Path]) -> list[Path]:
    """Return paths that are all folders; another one is refused."""
    for path in paths:
        if not path.is_dir():
            raise missing_run(path)
    return paths


def runs_of(paths: Sequence[Path]) -> list[Path]:
    """Return run directories in place of folders: scans, folders of runs, ``configs`` of a run.

    Other paths are returned as they are.
    """
    runs: list[Path] = []
    for path in paths:
        if is_scan(path):
            begun = [member.run.path for member in Scan.read(path).members() if member.run.begun()]
            if not begun:
                raise UsageError(f"No run of the scan {path} has begun; continue the scan.")
            runs += begun
        else:
            runs += runs_in(path) or [run_of(path)]
    return runs


def runs_in(folder: Path) -> list[Path]:
    """Return the runs in a folder that is itself no run and has no tables, chain 2 before 10."""
    if not folder.is_dir() or not is_of_no_run(folder):
        return []
    return sorted((path.parent for path in folder.glob("*/run.toml")), key=_natural_order)


def is_of_no_run(folder: Path) -> bool:
    """Return whether a folder contains neither a run nor tables, as they are copied from runs."""
    return not Run(folder).exists() and not any(folder.glob("*.csv"))


def _natural_order(path: Path) -> list[str | int]:
    """Return a key that sorts names by the numbers in them, such as chain 2 before chain 10."""
    parts = re.split("([0-9]+)", path.name)
    return [int(part) if part.isdecimal() else part for part in parts]


def run_of(folder: Path) -> Path:
    """Return the run whose ``configs`` a folder is, or else the folder itself."""
    above = folder.parent if folder.name else folder.resolve().parent
    return above if folder.resolve().name == "configs" and Run(above).exists() else folder


def configurations_of(path: Path) -> ConfigurationFolder:
    """Return the configurations of a run, which have different numbers, or those in a folder."""
    run = Run(run_of(path))
    if run.exists():
        return ConfigurationFolder(run.path, [*run.unambiguous_configs().values()], [])
    return ConfigurationFolder.of(path)
