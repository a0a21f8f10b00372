"""Progress display of measurements on stored configurations."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gauge_mc.notebook_bar import NotebookBar
from gauge_mc.numbers import counted
from gauge_mc.run.convert import warning_of
from gauge_mc.run.display import AT_FIRST, PLAIN_LEAST_SECONDS, PLAIN_SECONDS, duration
from gauge_mc.run.log import command_line
from gauge_mc.run.measurement_table import MeasurementTask

if TYPE_CHECKING:
    from gauge_mc.console import Console

WARNINGS = 3
"""Maximum number of configurations with warnings that are named."""

KEPT = "The table of before is kept as {}."
"""Line shown if all configurations are measured again."""


def opening(work: MeasurementTask, devices: str, advice: str | None) -> list[str]:
    """Return the lines shown at the beginning: configurations, devices, options, and a hint."""
    ensemble, header, total = work.ensemble, work.observable.header, len(work.done) + len(work.left)
    fields = ensemble.measured_lattice
    copies = f" (periodic copies, {fields})" if fields != ensemble.lattice else ""
    lines = [
        f"{work.observable.name} on {total} configuration{'s' * (total != 1)}, {ensemble.group} on "
        f"{ensemble.lattice}{copies}, {len(work.done)} already measured, on {devices}"
    ]
    known = {"observable", "normalisation", "units"}
    again = len({*work.unknown} & ensemble.files.keys())
    trusted = (
        f"{again} of them by an earlier version, which did not record their links: they are taken "
        "to be those of these files"
    )
    details = [f"{key}: {value}" for key, value in header.items() if key not in known]
    more = ["; ".join(details)] if details else []
    more += [trusted] if again else []
    more += of_others(work.table.path, work.observable.name, len(work.others), len(work.done))
    more += [KEPT.format(work.kept)] if work.kept else []
    return [*lines, *more, *([advice] if advice else []), *shortest(warnings_of(work))]


def of_others(path: Path, observable: str, others: int, done: int) -> list[str]:
    """Return a sentence about what other sources have measured, if they have measured anything.

    Parameters
    ----------
    path : Path
        Table.
    observable : str
        Name of the observable.
    others, done : int
        Number of configurations that other sources have measured, and of all in the table.
    """
    command = command_line()
    how = f"{command} --again" if command.startswith("gauge-mc ") else "measure(..., again=True)"
    sentence = (
        f"Another version of the sources of {observable} has measured {others} of "
        f"{counted(done, 'configuration')} in the table {path}; this measures them again and keeps "
        f"the table beside the new one: {how}"
    )
    return [sentence] * bool(others)


def warnings_of(work: MeasurementTask) -> list[str]:
    """Return the warnings in the headers of the configurations to be measured."""
    left = {*work.left}
    files = (path for number, path in work.ensemble.files.items() if number in left)
    found = (
        f"{path}: {warning}" for path in files if (warning := warning_of(path, *work.ensemble.kind))
    )
    return list(dict.fromkeys(found))


def shortest(warnings: Sequence[str]) -> list[str]:
    """Return the first warnings, and how many there are more."""
    more = len(warnings) - WARNINGS
    return [*warnings[:WARNINGS], *([f"and {more} more such files"] if more > 0 else [])]


def show_progress(
    numbers: Iterator[int], work: MeasurementTask, console: Console, devices: int
) -> Iterator[int]:
    """Pass on the numbers, and show progress: live where that is possible, else in plain lines."""
    from rich.progress import track

    if console.is_jupyter and not console.quiet:
        yield from _in_notebook(numbers, len(work.left))
        return
    if console.is_terminal or console.quiet:
        total = len(work.left)
        yield from track(
            numbers, "measuring", total, console=console, transient=True, disable=console.quiet
        )
        return
    yield from _plain_lines(numbers, len(work.left), console, devices)


def _in_notebook(numbers: Iterator[int], total: int) -> Iterator[int]:
    """Pass on the numbers, and show a bar in a notebook."""
    bar = NotebookBar(total, "configurations", AT_FIRST)
    for done, number in enumerate(numbers, 1):
        bar.show(done, f"configuration {number}")
        yield number


def _plain_lines(
    numbers: Iterator[int], total: int, console: Console, devices: int
) -> Iterator[int]:
    """Pass on the numbers, and show lines whose ETA leaves out the first round of all devices.

    In that round kernels are compiled.
    """
    shown, since, tenth = time.monotonic(), math.inf, 0
    for done, number in enumerate(numbers, 1):
        now = time.monotonic()
        since = now if done == devices else since
        silence = now - shown
        new_tenth = 10 * done // total > tenth
        if silence >= PLAIN_SECONDS or (new_tenth and silence >= PLAIN_LEAST_SECONDS):
            shown, tenth = now, 10 * done // total
            later = done - devices
            rest = (now - since) / later * (total - done) if later > 0 else math.nan
            console.print(f"configuration {number}, {done} of {total}  ETA {duration(rest)}")
        yield number
