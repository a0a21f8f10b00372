"""Publications: a run in a folder for a data repository, and the checks of such a folder."""

from __future__ import annotations

import io
import math
import os
import random
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.errors import DamagedError, GaugeError, UsageError
from gauge_mc.extensions.publishing import qcdml, record
from gauge_mc.files.atomic import complete_folder, replacing, write_file
from gauge_mc.files.input import is_missing, make_folder, open_regular, read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.fits import FITS
from gauge_mc.fits.files import MAX_RESULT, RESULT
from gauge_mc.inspection.verify import Check, CheckedFolder, refused
from gauge_mc.progress import duration
from gauge_mc.quoting import CommandLine, counted
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.checkpoint import ChainState, parse_state, read_state
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.signatures import checks_types
from gauge_mc.stored.regenerate import Regeneration, StoredChain

ENSEMBLE, DOCUMENTS = Path("ensemble.xml"), Path("configurations-qcdml.tar.xz")
"""QCDml of the ensemble, and of all configurations."""

WHOLE = 2
"""Usual number of whole configurations in the folder."""


@documented
@dataclass(frozen=True)
class PublicationReport:
    """Report on a published run."""

    run: str = result_field("Run directory.")
    folder: str = result_field("Folder that was written.")
    configurations: int = result_field("Number of configurations in the list.")
    whole: Sequence[int] = result_field("Updates of the configurations that are in the folder.")
    bytes: int = result_field("Size of the folder without configurations, in bytes.")
    notes: Sequence[str] = result_field("What could not be described, in sentences.")


@checks_types
def publish(
    run: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    authors: Sequence[str],
    institution: str = record.UNKNOWN,
    title: str = "",
    project: str = "gauge-mc",
    license: str = record.LICENSE,
    whole: int = WHOLE,
    progress: Callable[[int, int], object] = lambda x, total: None,
) -> PublicationReport:
    """Write a run into a folder for a data repository, from which it can be made again and checked.

    The folder has the parameters as a run card, the tables, the SHA-256 of every configuration and
    of the kernels' sources, versions of compilers and packages, a few configurations, the results
    of fits, an RO-Crate description, QCDml documents, CITATION.cff and a README. Every
    configuration is checked first.

    Parameters
    ----------
    run : path
        Run directory. Nothing in it is changed.
    folder : path
        Folder to write; it must not exist, or be empty.
    authors : sequence of str
        Authors, each as ``Family, Given``.
    institution : str
        Institution of the first author.
    title : str
        Title of the data; by default says what the ensemble is.
    project : str
        Project or collaboration.
    license : str
        Licence, an SPDX identifier.
    whole : int
        Number of configurations to copy into the folder. They are the first, the last, and some in
        equal distances.
    progress : callable
        Function that is called after every configuration with its number and the total.

    Returns
    -------
    PublicationReport
        The folder with its content.

    Raises
    ------
    UsageError
        If there is no run, it has not begun or exchanges couplings with others, the folder is not
        empty, or a value is invalid.
    GaugeError
        If a file of the run is damaged, a process is at work on the run, or the folder cannot be
        written.
    """
    source, target = Run(Path(run)), Path(folder)
    parameters, sessions = source.read()
    if not source.checkpoint.exists():
        raise UsageError(f"The run {run} has no checkpoint yet; generate some updates.")
    _refuse_changing(source)
    state = read_state(source.checkpoint)
    if parameters.tempering:
        raise UsageError(
            f"The run {run} exchanges couplings with other runs, so that it cannot be made again "
            "from a folder of its own; copy its tables with "
            f"`{CommandLine('export', run, 'tables.h5')}`."
        )
    _refuse_filled(target)
    if target.exists() and target.samefile(Path()):
        raise UsageError(f"{target} is the current folder; name a folder in it.")
    if whole < 0:
        raise UsageError(f"whole is {whole}; choose a number of configurations, at least 0.")
    configs = source.own_configs(parameters.format).items()
    files = {update: path for update, path in configs if update <= state.sweep}
    named = title or record.title_of(parameters)
    people = tuple(map(record.Author.parse, authors))
    publisher = record.Publisher(people, institution, named, project, license)
    rows = []
    for number, (update, path) in enumerate(files.items(), 1):
        rows.append(record.PublishedConfiguration.of(source, update, path))
        progress(number, len(files))
    copies = _spread(list(files), whole)
    plan = _Contents(source, parameters, sessions, state, publisher, rows, copies)
    with complete_folder(target) as temporary:
        plan.write(temporary)
        _refuse_filled(target)
        _refuse_changing(source)
        if read_state(source.checkpoint).entries() != state.entries():
            raise GaugeError(f"The run {run} has gone on meanwhile; publish it once more.")
    return plan.report(target)


def _refuse_filled(folder: Path) -> None:
    """Refuse a folder that is not empty, also because another process has published into it."""
    if (folder / record.CRATE).is_file():
        raise UsageError(
            f"{folder} is a complete publication already, which `{CommandLine('verify', folder)}` "
            "checks; choose another folder, or remove it first."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder; choose another one.")


def _refuse_changing(run: Run) -> None:
    """Refuse a run at which a process is at work, so that its files change."""
    holder, at_work = run.holder()
    if at_work:
        raise GaugeError(
            f"The run {run.path} is in use by {holder}, so that its files change; publish it when "
            "that has ended."
        )


def _spread(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """Return some of the numbers: the first, the last, and others in equal distances."""
    if count < 2 or count >= len(numbers):
        return tuple(numbers[:count])
    places = [round(k * (len(numbers) - 1) / (count - 1)) for k in range(count)]
    return tuple(numbers[place] for place in places)


@dataclass(frozen=True)
class _Contents:
    """The content of a published folder."""

    run: Run
    parameters: Parameters
    sessions: Sequence[SessionRecord]
    state: ChainState
    publisher: record.Publisher
    rows: Sequence[record.PublishedConfiguration]
    whole: tuple[int, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what could not be described."""
        return tuple(filter(None, (qcdml.reason_for_none(self.parameters),)))

    def write(self, folder: Path) -> None:
        """Write everything into a folder that exists; its description last."""
        originals = (self.run.toml, self.run.thinned, *self.run.tables(), *results_of(self.run))
        for path in originals:
            if path.exists():
                _copy(path, folder / path.name)
        for name, text in self._texts():
            write_file(folder / name, text)
        if not qcdml.reason_for_none(self.parameters):
            write_file(folder / ENSEMBLE, qcdml.ensemble(self.parameters, self.publisher))
            if self.rows:
                write_file(folder / DOCUMENTS, _archive(self._documents()))
        make_folder(folder / "configs")
        for row in self.rows:
            if row.update in self.whole:
                _copy(self.run.path / row.file, folder / row.file)
        description = record.describe(self.parameters, len(self.rows))
        text = record.crate_text(folder, self.publisher, description, self.sessions)
        write_file(folder / record.CRATE, text)

    def report(self, folder: Path) -> PublicationReport:
        """Return the report on the folder."""
        paths = [path for path in folder.rglob("*") if path.is_file()]
        described = sum(path.stat().st_size for path in paths if path.parent.name != "configs")
        numbers = len(self.rows), self.whole, described
        return PublicationReport(str(self.run.path), str(folder), *numbers, self.notes)

    def _texts(self) -> Iterable[tuple[Path, str]]:
        p = self.parameters
        yield record.CARD, p.to_toml()
        yield record.CONFIGURATIONS, record.configurations_text(self.rows)
        yield record.KERNELS, record.kernels_text()
        yield record.CHAIN, record.chain_text(self.state)
        yield record.MACHINE, record.machine_text()
        yield record.CITATION, record.citation_text(self.publisher)
        counts = (len(self.rows), len(self.whole))
        yield record.README, record.readme_text(p, self.publisher, *counts, self.notes)

    def _documents(self) -> Iterable[tuple[str, bytes]]:
        for row in self.rows:
            begun = [s for s in self.sessions if s.sweep < row.update]
            checksum = qcdml.posix_checksum(self.run.path / row.file)
            text = qcdml.configuration(self.parameters, self.publisher, row, checksum, begun[-1])
            yield f"{row.update:07d}.xml", text


def results_of(run: Run) -> list[Path]:
    """Return the files with results of fits in a run, in the order of their names."""
    stems = tuple(Path(x.file).stem for x in FITS.values())
    paths = (path for path in run.path.glob("*.json") if path.stem.startswith(stems))
    results = [path for path in sorted(paths) if RESULT.recognises(path) and not path.is_symlink()]
    for path in results:
        try:
            parse_json(read_text(path, MAX_RESULT))
        except ValueError as error:
            raise GaugeError(f"{path} is damaged: repeat the fit, or remove the file.") from error
    return results


def _archive(documents: Iterable[tuple[str, bytes]]) -> bytes:
    """Return an archive of documents, in which those that are alike take little space."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as archive:
        for name, content in documents:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _copy(source: Path, path: Path) -> None:
    with open_regular(source) as file, replacing(path) as out:
        shutil.copyfileobj(file, out)


LONGEST = 24 * 3600.0
"""Seconds that making configurations again may take unless another time is given."""

TRIAL_SECONDS = 1.0
"""Seconds after which the time of all updates is known well enough."""

MOST_HOURS = 10**9 - 1
"""Largest number of hours that a time may have as an option."""

YEAR = 365.25 * 24 * 3600


class PublicationFolder(CheckedFolder):
    """A folder that `gauge_mc.publish` has written."""

    name = "publication"

    def holds(self, folder: Path) -> bool:
        """Return whether a folder is a published run."""
        return (folder / record.CRATE).is_file() and (folder / record.CHAIN).is_file()

    def checks(self, folder: Path, regenerate: int, longest: float | None) -> list[Check]:
        """Return the checks of a published run; see `CheckedFolder.checks`."""
        if regenerate < 0:
            raise UsageError(f"--regenerate is {regenerate}; choose a number of configurations.")
        try:
            files = record.published_files(folder)
        except GaugeError as error:
            return [Check(folder / record.CRATE, partial(refused, error))]
        checks = [
            Check(folder / name, partial(check_file, folder, name, digest))
            for name, digest in files.items()
        ]
        checks.append(Check(folder / record.CHAIN, partial(check_chain, folder)))
        checks.append(Check(folder / record.KERNELS, partial(check_kernels, folder)))
        if regenerate:
            limit = LONGEST if longest is None else longest
            again = partial(make_again, folder, regenerate, longest=limit)
            checks.append(Check(folder / record.CONFIGURATIONS, again))
        return checks


PUBLICATION = PublicationFolder()


def check_file(
    folder: Path, name: str, digest: str, advance: Callable[[float], object] = lambda share: None
) -> str:
    """Compare a file with the description of the folder."""
    path = folder / name
    if is_missing(path):
        raise DamagedError(f"{path} is missing; get the publication again.")
    if record.sha256(path) != digest:
        raise DamagedError(f"{path} is not the file that was published; get the publication again.")
    return "as published"


def check_kernels(folder: Path, advance: Callable[[float], object] = lambda share: None) -> str:
    """Return whether this version has the sources of the kernels that made the run."""
    sources = record.other_sources(folder)
    if not sources:
        return "the sources of the kernels are those of this version"
    return f"caution: {len(sources)} sources of kernels differ in this version"


@dataclass
class _Trial:
    """The first updates of many, from which it is known how long all of them take."""

    total: int
    """Number of updates."""
    longest: float
    """Seconds that all of them may take."""
    what: str
    """The configurations that they make, and the device, in words."""
    advance: Callable[[float], object]
    """Function that is called with the fraction of the work that each update is."""
    done: int = 0
    """Number of updates done."""
    began: float | None = None
    """Time after the first update; None before it, and once the time is known."""

    def __call__(self) -> None:
        """Note that an update is done; refuse the others once if they take too long."""
        self.advance(1 / self.total)
        now, self.done = time.monotonic(), self.done + 1
        if self.done == 1:  # it may have chosen the number of threads
            self.began = now
        elif self.began is not None and now - self.began >= TRIAL_SECONDS:
            seconds = (now - self.began) / (self.done - 1) * self.total
            self.began = None
            if seconds > self.longest:
                raise GaugeError(
                    f"Making {self.what} takes {self.total} updates, {_rough(seconds)}, and "
                    f"{_rough(self.longest)} are allowed; give more time with --time-limit "
                    f"{min(MOST_HOURS, math.ceil(1.5 * seconds / 3600))}:00:00."
                )


def _rough(seconds: float) -> str:
    """Return a time that may be absurdly long."""
    for unit, name in ((YEAR, "years"), (3600, "hours")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return duration(seconds)


def make_again(
    folder: Path, number: int, advance: Callable[[float], object], longest: float = LONGEST
) -> str:
    """Make some configurations again, chosen at random, and compare their links with the list."""
    chain, rows = published_chain(folder), record.read_configurations(folder)
    if not rows:
        raise UsageError(f"{folder} lists no configurations that could be made again.")
    _check_made(folder, chain, rows)
    updates = sorted(random.SystemRandom().sample(sorted(rows), min(number, len(rows))))
    total = chain.distance(updates)
    with (
        tempfile.TemporaryDirectory() as temporary,
        closing(open_device_group(lattice=chain.parameters.lattice)) as devices,
    ):
        title = f"{counted(len(updates), 'configuration')} of {folder} again on {devices.name}"
        making = Regeneration(chain, devices, _Trial(total, longest, title, advance))
        for files in making.files(updates, Path(temporary), chain.parameters.format, 1, {}):
            for update, path in files.items():
                if open_configuration(path).digest() != rows[update].links:
                    raise DamagedError(
                        f"Made again on {devices.name}, configuration {update} of {folder} has "
                        "different links; use the version and the kind of device in its run.toml."
                    )
                path.unlink()
        return f"made again on {devices.name}, with the same links: {in_words(map(str, updates))}"


def check_chain(folder: Path, advance: Callable[[float], object] = lambda share: None) -> str:
    """Compare the parameters of a publication with the state of its chain and its list."""
    chain = published_chain(folder)
    _check_made(folder, chain, record.read_configurations(folder))
    if chain.state.sweep > chain.parameters.updates:
        raise DamagedError(
            f"{folder / record.CHAIN} has {chain.state.sweep} updates, but the run in {folder} has "
            f"at most {chain.parameters.updates}; get the publication again."
        )
    return f"after update {chain.state.sweep}, as run.toml and the list of configurations say"


def _check_made(folder: Path, chain: StoredChain, updates: Iterable[int]) -> None:
    """Refuse a list with configurations that the chain has not made."""
    if foreign := [update for update in updates if update not in chain.due]:
        raise DamagedError(
            f"{folder / record.CONFIGURATIONS} lists a configuration after update {max(foreign)}, "
            f"which the run in {folder} has not made; get the publication again."
        )


def published_chain(folder: Path) -> StoredChain:
    """Return the chain of a published folder."""
    path = folder / record.CHAIN
    try:
        state = parse_state(read_text(path, record.MOST_BYTES))
    except (ValueError, TypeError) as error:
        raise DamagedError(f"{path} is damaged: {error}; get the publication again.") from error
    return StoredChain.at(Run(folder), state)
