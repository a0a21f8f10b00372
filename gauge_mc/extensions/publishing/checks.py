"""Checks of a published folder: its files, and configurations that are made again at random."""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.errors import DamagedError, GaugeError, UsageError
from gauge_mc.extensions.publishing import record
from gauge_mc.files.input import is_missing, read_text
from gauge_mc.inspection.verify import Check, CheckedFolder, refused
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.registry import in_words
from gauge_mc.run.checkpoint import parse_state
from gauge_mc.run.directory import Run
from gauge_mc.stored.regenerate import Regeneration, StoredChain

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
    return f"caution: {len(sources)} sources of kernels are others in this version"


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
                        "other links; use the version and the kind of device in its run.toml."
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
