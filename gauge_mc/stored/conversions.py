"""Conversion of many configuration files at once, which can be interrupted and repeated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock

from gauge_mc import errors
from gauge_mc.configurations.reading import Configuration, LinkKind, open_configuration
from gauge_mc.configurations.writing import GOOD, OTHER, FileComparison, compare
from gauge_mc.console import Console
from gauge_mc.devices.choice import available_threads, check_threads, host_threads
from gauge_mc.domain.slab import real_type
from gauge_mc.files.input import Paths, make_folder, paths_of
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.progress import Progress
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.convert import write_converted, written_precision
from gauge_mc.signatures import checks_types
from gauge_mc.storage.links import Block
from gauge_mc.stored import configurations_of, runs_of

CONVERTED, THERE, FAILED = "converted", "already there", "failed"
"""States of a file at the end."""


@documented
@dataclass(frozen=True)
class Conversion:
    """The result for one of several files that were to be converted."""

    source: str = result_field("File that was read.")
    file: str = result_field("File that was written, or was there before with the same links.")
    state: str = result_field("``converted``, ``already there`` or ``failed``.")
    failure: str = result_field("Why it could not be converted, in one sentence; or empty.", "")
    warning: str = result_field("What the source lacks to be checked, in words; or empty.", "")
    comparison: FileComparison | None = result_field(
        "Comparison of the file with the source, if it was read back: with `verify`, or if it was "
        "there before.",
        None,
    )
    moved: float | None = result_field(
        "Largest change of an entry of a link by `project`, if that was wanted.", None
    )


@documented
@dataclass(frozen=True)
class Conversions:
    """The results for several files that were to be converted, for JSON."""

    files: Sequence[Conversion] = result_field("Result for each file.")
    converted: int = result_field("Number of files that were converted.")
    there: int = result_field("Number of files that had been converted before.")
    failed: int = result_field("Number of files that could not be converted.")

    @classmethod
    def of(cls, files: Sequence[Conversion]) -> Conversions:
        """Count what has become of the files."""
        states = [file.state for file in files]
        return cls(files, *(states.count(x) for x in (CONVERTED, THERE, FAILED)))


@checks_types
def convert_all(
    sources: Paths,
    folder: str | Path,
    format: str,
    precision: str | None = None,
    *,
    verify: bool = False,
    project: bool = False,
    threads: int | None = None,
    progress: bool = True,
    lattice: str | None = None,
    group: str | None = None,
) -> list[Conversion]:
    """Write several configurations in another format or precision, and keep their provenance.

    Each file appears complete or not at all, and one that cannot be converted does not stop the
    others. A repeated call converts what is missing: a file that is already there is read and
    compared with its source, link by link, and is a failure if it is anything else.

    Parameters
    ----------
    sources : path or sequence of paths
        Configuration files, runs, scans, and folders of configurations or runs.
    folder : path
        Folder of the new files, which is made if necessary. They have the names of the sources,
        with the ending of the format.
    format : str
        Format of the new files.
    precision : str, optional
        Precision of the links in the new files; by default that of each source, if the format
        supports it.
    verify : bool
        Read what was written back, and compare the links. See `gauge_mc.convert`.
    project : bool
        Bring the links into the group, and say by how much they change. See `gauge_mc.convert`.
    threads : int, optional
        Number of CPU threads; by default all. As many files are converted at a time.
    progress : bool
        Whether to show progress.
    lattice, group : str, optional
        Extents and group of links of which the files themselves say nothing; see
        `open_configuration`.

    Returns
    -------
    list of Conversion
        Results for all files, in the order of the sources.

    Raises
    ------
    UsageError
        If a value is invalid, or two sources would become the same file.
    GaugeError
        If there are no configurations in a folder, or the folder cannot be made.
    """
    if not FORMATS[format].suffix:
        raise errors.UsageError(
            f"{FORMATS[format].title} files can be read but not written: choose "
            f"{in_words(writable_formats(), 'or')}."
        )
    if precision:
        real_type(precision)  # which refuses an unknown one
    check_threads(threads)
    console = Console(stderr=True, quiet=not progress)
    targets = _targets(_files_of(paths_of(sources), console), Path(folder), format)
    if os.path.lexists(folder) and not Path(folder).is_dir():
        raise errors.UsageError(f"{folder} is not a folder; choose another --output.")
    if Path(folder).is_dir() and Path(folder).samefile("/"):
        raise errors.UsageError(f"{folder} is the root directory; name a folder in it.")
    make_folder(Path(folder))
    most = threads or available_threads()
    jobs, kind = min(most, len(targets)), LinkKind(lattice, group)
    stop, results = Event(), dict[Path, Conversion]()
    sizes = {source: _size(source) for source in targets}
    with Progress(console, sum(sizes.values())) as bar:
        shown = _ConversionProgress(sizes, bar)
        settings = (format, precision, verify, project, kind)
        work = _FileConversions(*settings, most // jobs, stop, shown)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                tasks = [pool.submit(work.carry_out, *pair) for pair in targets.items()]
                for task in as_completed(tasks):
                    results[Path(task.result().source)] = task.result()
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)
    return [results[source] for source in targets]


def _files_of(paths: Sequence[Path], console: Console) -> list[Path]:
    """Return configuration files, with those of scans, runs and folders in place of these."""
    files: list[Path] = []
    for path in runs_of(paths):
        if not path.is_dir():
            files.append(path)
            continue
        folder = configurations_of(path)
        if folder.passed_over:
            console.print(folder.passed_over, soft_wrap=True)
        if not folder.files:
            raise errors.GaugeError(f"There are no configurations in {path}; name another folder.")
        files += folder.files
    if not files:
        raise errors.UsageError("There is nothing to convert; name at least one configuration.")
    return files


def _targets(sources: Sequence[Path], folder: Path, format: str) -> dict[Path, Path]:
    """Return the file that each source becomes."""
    suffixes = {x.suffix for x in FORMATS.values()} - {""}
    paths: dict[Path, Path] = {}
    for source in sources:
        stem = source.stem if source.suffix in suffixes else source.name
        target = folder / f"{stem}{FORMATS[format].suffix}"
        if target in paths:
            raise errors.UsageError(
                f"{paths[target]} and {source} would both become {target}; convert them "
                "separately, each with another --output."
            )
        paths[target] = source
    return {source: target for target, source in paths.items()}


@dataclass(frozen=True)
class _FileConversions:
    """The work on every file; its methods are called by several threads."""

    format: str
    precision: str | None
    verify: bool
    project: bool
    kind: LinkKind
    threads: int
    stop: Event
    shown: _ConversionProgress

    def carry_out(self, source: Path, target: Path) -> Conversion:
        """Convert a file unless it has been converted before."""
        try:
            with host_threads(self.threads):
                return self._converted(source, target)
        except errors.StoppedError:
            raise
        except errors.GaugeError as error:
            return _failed(source, target, error, getattr(error, "comparison", None))
        finally:
            self.shown.end(source)

    def _converted(self, source: Path, target: Path) -> Conversion:
        self._refuse_stopped()
        configuration = open_configuration(source, *self.kind)
        warning = configuration.header.warning
        configuration = configuration.projected() if self.project else configuration
        width = written_precision(configuration, self.format, self.precision)

        def result(state: str, comparison: FileComparison | None) -> Conversion:
            paths = str(source), str(target)
            return Conversion(*paths, state, "", warning, comparison, configuration.moved)

        if os.path.lexists(target):  # or a link that leads nowhere
            existing = self._compared(configuration, target, width)
            if existing.verdict == GOOD:
                return result(THERE, existing)
            error = errors.UsageError(
                f"{target} already exists and is not what {source} becomes "
                f"({existing.difference}); remove it, or choose another --output."
            )
            return _failed(source, target, error, existing)
        wrap = partial(self._watched, source)
        _, comparison = write_converted(
            configuration, target, width, self.format, wrap, self.verify
        )
        return result(CONVERTED, comparison)

    def _compared(self, source: Configuration, target: Path, precision: str) -> FileComparison:
        """Compare a file that is already there with the source in the requested form."""
        try:
            configuration = open_configuration(target)
        except (errors.DamagedError, errors.UnsupportedError) as error:
            return FileComparison.of(error)
        have = configuration.header
        if (have.format, have.precision) != (self.format, precision):
            return FileComparison(OTHER, f"it is {have.format} in {have.precision} precision")
        return compare(source, configuration)

    def _watched(self, source: Path, blocks: Iterable[Block], count: int) -> Iterator[Block]:
        """Pass on the blocks of a file, note the progress, and end if the work is stopped."""
        for block in blocks:
            self._refuse_stopped()
            self.shown.advance(source, block.nbytes)
            yield block

    def _refuse_stopped(self) -> None:
        if self.stop.is_set():
            raise errors.StoppedError("The conversion was stopped; the same command continues it.")


def _failed(
    source: Path, target: Path, error: errors.GaugeError, comparison: FileComparison | None = None
) -> Conversion:
    """Return the result for a file that could not be converted; the sentence names the source."""
    words = str(error) if str(source) in str(error) else f"{source}: {error}"
    return Conversion(str(source), str(target), FAILED, words, comparison=comparison)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it will be a failure
        return 0


class _ConversionProgress:
    """The progress of all files in bytes, given their sizes; several threads advance it."""

    def __init__(self, sizes: Mapping[Path, int], progress: Progress) -> None:
        self._left, self._progress, self._lock = {**sizes}, progress, Lock()
        self._bytes = self._files = 0

    def advance(self, source: Path, nbytes: int) -> None:
        """Note that a part of a file is done."""
        with self._lock:
            amount = min(nbytes, self._left[source])
            self._left[source] -= amount
            self._bytes += amount
            self._show()

    def end(self, source: Path) -> None:
        """Note that a file is done."""
        with self._lock:
            self._bytes += self._left.pop(source)
            self._files += 1
            self._show()

    def _show(self) -> None:
        line = f"{self._files} of {len(self._left) + self._files} files"
        self._progress.update(self._bytes, line, f"converting {line}")
