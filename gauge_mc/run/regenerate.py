"""Making configurations again that a run has not kept, into files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gauge_mc import defaults
from gauge_mc.arguments import checks_types
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.errors import UsageError
from gauge_mc.files.folders import make_folder
from gauge_mc.formats import FORMATS
from gauge_mc.numbers import counted, whole_number
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run
from gauge_mc.run.display import PLAIN_SECONDS, announced_compilation, duration
from gauge_mc.run.regeneration import Regeneration, StoredChain
from gauge_mc.run.run_output import is_due

MOST = 10**6
"""Largest number of updates in one command, to catch typing errors."""

TOGETHER = 64
"""Number of files after which the writer is waited for."""

Updates = str | int | Iterable[int]
"""Updates as text such as ``1050,1100:2000:10``, or as numbers."""


@documented
@dataclass(frozen=True)
class RegenerationReport:
    """Report on configurations that were made again."""

    run: str = result_field("Run directory.")
    made: Sequence[int] = result_field("Updates of the configurations that were made.")
    there: Sequence[int] = result_field("Updates of those that were there already.")
    updates: int = result_field("Number of updates that it took, with those of the comparison.")
    compared: int | None = result_field(
        "Update of the stored configuration that was made again first and has the same links; None "
        "if nothing was stored with which to compare."
    )
    folder: str = result_field("Folder with the configurations.")


@checks_types
def regenerate(
    run: str | os.PathLike[str],
    at: Updates,
    *,
    output: str | os.PathLike[str] | None = None,
    format: str | None = None,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
    dry_run: bool = False,
    progress: bool = True,
) -> RegenerationReport:
    """Make configurations that a run has not kept, with the bytes that it would have written.

    They are made from the nearest configuration before them that the run has, or from its start if
    there is none or the random number generator has states. First a stored configuration is made
    again from the one before it; if its links differ, nothing is written. Repeating a call that
    was interrupted makes the rest.

    Parameters
    ----------
    run : path
        Run directory.
    at : str, int or iterable of int
        Updates, such as ``1050``, ``[1050, 1060]`` or ``"1050,1100:2000:10"``; a range includes its
        last number. None may be later than the last checkpoint.
    output : path, optional
        Folder for the configurations; it is made if it does not exist. By default they become
        configurations of the run, if they are some of those after every `separation` updates.
    format : str, optional
        File format; by default that of the run, or ``ildg`` if the run keeps no configurations.
    backend, devices, threads
        See `gauge_mc.generate`.
    dry_run : bool
        Whether only to return what would be made.
    progress : bool
        Whether to show progress.

    Returns
    -------
    RegenerationReport
        The configurations that were made, or would be with `dry_run`.

    Raises
    ------
    UsageError
        If there is no run, or an update cannot be made.
    GaugeError
        If files of the run are damaged, other links were made than those stored, or a file cannot
        be written.
    """
    chain = StoredChain.of(Run(Path(run)))
    plan = _WantedFiles.of(chain, update_numbers(at), Path(output) if output else None, format)
    report = plan.report
    if dry_run or not report.made:
        return report
    console = Console(quiet=not progress)
    with ExitStack() as stack:
        if not output:
            lock = stack.enter_context(chain.run.locked())
            lock.record(replace(lock.holder, sweep=chain.state.sweep))
        group = stack.enter_context(
            closing(open_device_group(devices, backend, threads, lattice=chain.parameters.lattice))
        )
        stack.enter_context(announced_compilation(console))
        plan.carry_out(group, stack.enter_context(updates_shown(console, report.updates)))
    return report


def update_numbers(text: Updates) -> tuple[int, ...]:
    """Read updates: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Raises
    ------
    UsageError
        If the text has another form, or a number is not positive.
    """
    words = str(text).split(",") if isinstance(text, str | int) else map(str, text)
    found = sorted({one for word in words for one in _range(word.strip())})
    if not found:
        raise UsageError("No updates are given; name some, as in 1050,1100:2000:10.")
    return tuple(found)


def _range(word: str) -> range:
    try:
        numbers = [whole_number(part) for part in word.split(":")]
    except ValueError as error:
        raise UsageError(f"{error} Give updates as in 1050,1100:2000:10.") from None
    if len(numbers) == 1:
        numbers = [*numbers, *numbers, 1]
    if len(numbers) != 3:
        raise UsageError(f"'{word}' is not of the form FIRST:LAST:STEP, as in 1100:2000:10.")
    first, last, step = numbers
    if not 0 < first <= last or step < 1 or (last - first) % step:
        raise UsageError(
            f"'{word}' is not a range of updates; its numbers and its step are positive, and a "
            "whole number of steps leads from the first to the last."
        )
    if (last - first) // step >= MOST:
        raise UsageError(f"'{word}' has more than {MOST} updates.")
    return range(first, last + 1, step)


@contextmanager
def updates_shown(console: Console, total: int) -> Iterator[Callable[[], object]]:
    """Show the progress of a number of updates; yield what is called after each."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    if console.is_terminal or console.quiet or not total:
        columns = (TextColumn("updates"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        hidden = console.quiet or not total
        with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
            yield partial(bar.advance, bar.add_task("", total=total))
        return
    yield _PlainLines(console, total).advance


class _PlainLines:
    """Lines about updates in a log file: the first one, and others now and then."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total, self._done = console, total, 0
        self._began = self._shown = time.monotonic()
        console.print(f"making {counted(total, 'update')} again")

    def advance(self) -> None:
        """Note that an update is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._shown >= PLAIN_SECONDS:
            self._shown = now
            left = (now - self._began) / self._done * (self._total - self._done)
            self._console.print(f"update {self._done} of {self._total}  ETA {duration(left)}")


@dataclass(frozen=True)
class _WantedFiles:
    """The configurations to make, and where they go."""

    chain: StoredChain
    numbers: tuple[int, ...]
    format: str
    folder: Path

    @classmethod
    def of(
        cls, chain: StoredChain, numbers: tuple[int, ...], output: Path | None, format: str | None
    ) -> _WantedFiles:
        """Check what is wanted."""
        p, path = chain.parameters, chain.run.path
        chain.refuse_later(numbers)
        if not output:
            _refuse_irregular(chain, numbers)
        if format is not None:
            FORMATS.check(format)
        named = format or (p.format if p.keeps_configs else defaults.FORMAT)
        if not output and named != p.format:
            raise UsageError(
                f"The run {path} has configurations in the format {p.format}; give --output for "
                f"others in {named}."
            )
        return cls(chain, numbers, named, output or path / "configs")

    def file(self, number: int) -> Path:
        """Return the file of a configuration."""
        return self.folder / f"{number:07d}{FORMATS[self.format].suffix}"

    @property
    def left(self) -> tuple[int, ...]:
        """The updates whose configurations are not there."""
        return tuple(one for one in self.numbers if not self.file(one).exists())

    @property
    def report(self) -> RegenerationReport:
        """The report, before anything is made."""
        left, chain = self.left, self.chain
        there = tuple(one for one in self.numbers if one not in left)
        return RegenerationReport(
            str(chain.run.path), left, there, chain.work(left), chain.compared, str(self.folder)
        )

    def carry_out(self, devices: DeviceGroup, advance: Callable[[], object]) -> None:
        """Compare a stored configuration, then make and write what is left."""
        making = Regeneration(self.chain, devices, advance)
        making.compare_first()
        make_folder(self.folder)
        for _ in making.files(self.left, self.folder, self.format, TOGETHER):
            pass


def _refuse_irregular(chain: StoredChain, numbers: Iterable[int]) -> None:
    """Refuse updates after which the run does not keep a configuration."""
    p, path = chain.parameters, chain.run.path
    if not p.keeps_configs:
        raise UsageError(
            f"The run {path} keeps no configurations, because its format is {p.format}; give a "
            "folder for them with --output."
        )
    for number in numbers:
        if not is_due(number - p.thermalize, p.separation):
            raise UsageError(
                f"The run {path} keeps no configuration after update {number}, but after every "
                f"{p.separation} updates from {p.thermalize + p.separation} on; give a folder for "
                "others with --output."
            )
