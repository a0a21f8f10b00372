"""The runs that a command works on: those that are named, or the newest ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gauge_mc.errors import UsageError
from gauge_mc.run.chains import chains_of
from gauge_mc.run.directory import RUNS, is_of_no_run
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.scan import Scan, newest_run_or_scan


def named_or_newest(named: Sequence[Path] | None, root: Path = RUNS) -> list[Path]:
    """Return the paths that were named, or else the newest run or scan.

    If the newest run is one of several chains of an ensemble, all of them are returned.

    Raises
    ------
    UsageError
        If nothing was named, and there are neither runs nor scans.
    """
    return [*named] if named else chains_of(newest_run_or_scan(root))


def runs_of(paths: Sequence[Path]) -> list[Path]:
    """Return run directories: those of scans, and of folders of runs, in place of the folder.

    Other paths are returned as they are.

    Raises
    ------
    UsageError
        If no run of a scan has begun.
    GaugeError
        If the scan.toml of a scan is damaged.
    """
    runs: list[Path] = []
    for path in paths:
        if Scan(path, Parameters()).exists():
            begun = [one.run.path for one in Scan.read(path).members() if one.run.begun()]
            if not begun:
                raise UsageError(f"No run of the scan {path} has begun; continue the scan.")
            runs += begun
        else:
            runs += runs_in(path) or [path]
    return runs


def runs_in(folder: Path) -> list[Path]:
    """Return the runs in a folder that is itself no run and has no tables, chain 2 before 10."""
    if not folder.is_dir() or not is_of_no_run(folder):
        return []
    return sorted((one.parent for one in folder.glob("*/run.toml")), key=_natural_order)


def _natural_order(path: Path) -> list[str | int]:
    """Return a key that sorts names by the numbers in them, such as chain 2 before chain 10."""
    parts = re.split("([0-9]+)", path.name)
    return [int(one) if one.isdecimal() else one for one in parts]
