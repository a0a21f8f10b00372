"""Advice after a measurement on fewer configurations than the fits of its table need."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import TableData
from gauge_mc.fits import FITS
from gauge_mc.observables import AGAIN_SUFFIX
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.run.directory import Run
from gauge_mc.run.results import RunView, open_run
from gauge_mc.scans.scan import is_scan


def caution_few(table: TableData, path: Path, folder: Path | None) -> list[str]:
    """Return a sentence if fits of a table need more configurations than it has; else nothing."""
    if SWEEP not in table:
        return []
    number = np.unique(table[SWEEP]).size
    bounds = {name: fewest for name, fewest in _bounds(table).items() if fewest > number}
    if not bounds:
        return []
    most = max(bounds.values())
    names = [name for name, fewest in bounds.items() if fewest == most]
    subject = f"The fits {in_words(names)} need" if len(names) > 1 else f"The fit {names[0]} needs"
    advice = "measure on more"
    if folder is not None and Run(folder).exists():
        again = path.stem.endswith(AGAIN_SUFFIX)
        adviser = _measure_others if again else _make_more
        advice = adviser(open_run(folder), most if again else most - number)
    return [f"{subject} at least {most} configurations, and {path.name} has {number}; {advice}."]


def _bounds(table: TableData) -> dict[str, int]:
    """Return the minimum numbers of configurations of the fits that one table suffices for."""
    bounds = {}
    for name in FITS:
        try:
            fit = FITS[name]
        except GaugeError:  # of a package that cannot be imported
            continue
        if not fit.of_scans and {*fit.columns} <= {*table.columns}:
            bounds[name] = fit.fewest
    return bounds


def _make_more(run: RunView, lacking: int) -> str:
    """Return the advice that leads to further configurations of a run, which are then measured."""
    return f"make more with {_continued(run, _made(run) + lacking)}, and repeat the command"


def _measure_others(run: RunView, configs: int) -> str:
    """Return the advice that measures a number of configurations made again."""
    p = run.parameters
    at = (
        f"--at {p.thermalize + p.separation}:{p.thermalize + configs * p.separation}:{p.separation}"
    )
    if _made(run) >= configs:
        return f"measure more with {at}"
    return f"continue the run with {_continued(run, configs)}, and measure more with {at}"


def _made(run: RunView) -> int:
    """Return the number of configurations after which a run has come, removed ones included."""
    p = run.parameters
    return max(0, run.sweep - p.thermalize) // p.separation


def _continued(run: RunView, configs: int) -> str:
    """Return the command that continues a run, or the scan of a run, up to some configurations."""
    scan = run.path.parent
    command, path = ("scan", scan) if is_scan(scan) else ("generate", run.path)
    more = configs if configs > run.parameters.configs else None
    return f"`{CommandLine(command, output=path, configs=more)}`"
