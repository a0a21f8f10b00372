"""Configurations that a run has not kept, made again from those that it has.

Random numbers are a function of seed, site and update, so that a chain can be taken up at any
stored configuration. If the generator has states, it is taken up at its start. Another device or
compiler may round differently. Before anything is made, a configuration that is stored is
therefore made again from the one before it, and both must have the same links.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from gauge_mc import defaults
from gauge_mc.configurations.writing import BackgroundWriter
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.input import make_folder
from gauge_mc.formats import FORMATS
from gauge_mc.progress import Progress
from gauge_mc.quoting import CommandLine, as_typed, counted, whole_number
from gauge_mc.random import GENERATORS
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Batch, Chain, is_configuration
from gauge_mc.run.checkpoint import ChainState, read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import is_due
from gauge_mc.run.open_run import compile_kernels
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.state import announced_compilation
from gauge_mc.signatures import checks_types

START = 0
"""Number of updates at the start of a chain."""


@dataclass(frozen=True)
class StoredChain:
    """A chain with the places at which it can be taken up again."""

    run: Run
    """Run directory."""
    parameters: Parameters
    """Parameters of the run."""
    state: ChainState
    """Position of the chain at the last checkpoint."""
    files: dict[int, Path]
    """Configurations that the run has written, by update, in ascending order."""

    @classmethod
    def of(cls, run: Run) -> StoredChain:
        """Return the chain of a run, with its stored configurations."""
        run.read()
        if not run.checkpoint.exists():
            raise UsageError(f"The run {run.path} has no checkpoint yet; generate some updates.")
        return cls.at(run, read_state(run.checkpoint))

    @classmethod
    def at(cls, run: Run, state: ChainState) -> StoredChain:
        """Return the chain of a run that is in some state; see `of`."""
        p = run.read()[0]
        if p.tempering:
            raise UsageError(
                f"The run {run.path} exchanges couplings with other runs, so that its "
                "configurations cannot be made again by itself; repeat the scan with another "
                "--output."
            )
        if state.step != state.sweep * p.algorithm.draws:
            raise GaugeError(
                f"The run {run.path} has drawn other random numbers than this version draws in "
                f"{state.sweep} updates; use the version that made it."
            )
        configs = run.own_configs(p.format).items()
        chain = cls(run, p, state, {})
        return replace(chain, files={n: path for n, path in configs if n in chain.due})

    def without(self, numbers: Iterable[int]) -> StoredChain:
        """Return the chain as it is without some of its configurations."""
        remaining = self.files.keys() - {*numbers}
        return replace(self, files={number: self.files[number] for number in sorted(remaining)})

    @property
    def due(self) -> range:
        """Updates after which the run has written a configuration, as its card and state say."""
        p = self.parameters
        end = min(self.state.sweep, p.updates) + 1
        return range(p.thermalize + p.separation, end, p.separation)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Updates at which the chain can be taken up, ascending, with the start."""
        if GENERATORS[self.parameters.rng].state_words:
            return (START,)
        # After thermalisation, the numbers that an algorithm chooses are those of the checkpoint.
        return (START, *self.files)

    def place_before(self, update: int) -> int:
        """Return the last place from which an update can be made; it is not the update itself."""
        return max(place for place in self.places if place < update)

    def distance(self, numbers: Iterable[int]) -> int:
        """Return the number of updates that it takes to make some configurations."""
        at, total = -1, 0
        for number in sorted({*numbers}):
            at = max(at, self.place_before(number))
            total += number - at
            at = number
        return total

    @property
    def compared(self) -> int | None:
        """The stored configuration that takes the fewest updates to make again, if there is any."""
        return self.nearest(self.files)

    def work(self, numbers: Sequence[int]) -> int:
        """Return the number of updates to make configurations, after one that is compared."""
        if not numbers:
            return 0
        comparison = [] if self.compared is None else [self.compared]
        return self.distance(numbers) + self.distance(comparison)

    def refuse_later(self, numbers: Sequence[int]) -> None:
        """Refuse updates that the run has not done."""
        if max(numbers) > self.state.sweep:
            raise UsageError(
                f"The run {self.run.path} has done {self.state.sweep} updates, so that update "
                f"{max(numbers)} cannot be made again; continue the run."
            )

    def nearest(self, numbers: Iterable[int]) -> int | None:
        """Return that of some configurations that takes the fewest updates, if there is any."""
        return min(
            numbers, key=lambda number: (number - self.place_before(number), number), default=None
        )

    def taken_up(self, place: int, devices: DeviceGroup) -> Chain:
        """Return the chain as it was at one of its places."""
        p = self.parameters
        if place == START:
            return Chain.begin(p, devices)
        self.check(place)
        devices.compute(p.strict)
        field = Field.load(self.files[place], p.precision, devices)
        random = Random.for_field(field, p.rng, p.seed, p.luxury)
        random.step = place * p.algorithm.draws
        return Chain(p, field, random, place, self.state.tuning)

    def check(self, number: int) -> None:
        """Refuse a file whose header does not say that it is a configuration of the run."""
        path = self.files[number]
        if not is_configuration(path, self.parameters, number):
            raise GaugeError(
                f"{path} does not seem to be what the run has after update {number}; move it to "
                f"another folder, or check it with `{CommandLine('verify', path)}`."
            )


@dataclass(frozen=True)
class Regeneration:
    """The making of configurations on some devices, whose kernels are compiled first."""

    chain: StoredChain
    """The chain."""
    devices: DeviceGroup
    """Devices that share the lattice."""
    advance: Callable[[], object] = lambda: None
    """Function that is called after every update."""

    def files(
        self,
        numbers: Sequence[int],
        folder: Path,
        format: str,
        together: int,
        stored: Mapping[int, Path],
    ) -> Iterator[dict[int, Path]]:
        """Make and write configurations, except those that are stored."""
        with BackgroundWriter() as writer:
            paths: dict[int, Path] = {}
            chains = self.made(number for number in numbers if number not in stored)
            for number in numbers:
                path = folder / f"{number:07d}{FORMATS[format].suffix}"
                paths[number] = stored.get(number, path)
                if number not in stored:
                    next(chains).write(path, writer, format=format)
                if len(paths) == together:
                    writer.flush()
                    yield paths
                    paths = {}
            writer.flush()
            if paths:
                yield paths

    def made(self, numbers: Iterable[int]) -> Iterator[Chain]:
        """Yield the chain after each of some updates, in ascending order."""
        compile_kernels(self.chain.parameters, (), self.devices, resumed=False)
        batch: Batch | None = None
        for number in sorted({*numbers}):
            place = self.chain.place_before(number)
            if batch is None or batch.sweep < place:
                batch = Batch([self.chain.taken_up(place, self.devices)], 1)
            while batch.sweep < number:
                batch.update()
                self.advance()
            yield batch.chains[0]

    def compare_first(self) -> None:
        """Make the stored configuration again that takes the fewest updates; see `compare`."""
        if self.chain.compared is not None:
            self.compare(self.chain, self.chain.compared)

    def compare(self, stored: StoredChain, number: int) -> None:
        """Make a configuration again and compare its links with those that are stored."""
        stored.check(number)
        path = stored.files[number]
        for chain in self.made([number]):
            field = chain.field
            reference = Field.load(path, field.precision, self.devices)
            pairs = zip(field.packed_slices(), reference.packed_slices(), strict=True)
            equal = all([np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in pairs])
            if not field.devices.processes.broadcast(equal):
                sessions = stored.run.read()[1]
                made_by = [f"{s.device} with gauge-mc {s.version}" for s in sessions]
                raise GaugeError(
                    f"Made again on {self.devices.name}, configuration {number} of "
                    f"{stored.run.path} has other links than {path}, so that others would be wrong "
                    f"as well; the run was made on {'; '.join(dict.fromkeys(made_by))}."
                )


def updates_to_measure(run: Run) -> str | None:
    """Return the updates whose configurations can be made again, as text for ``--at``.

    These are those after which the run would have written one, if it keeps none. None if it has
    some, or they cannot be made again.
    """
    if not run.exists() or run.configs():
        return None
    try:
        due = StoredChain.of(run).due
    except GaugeError:
        return None
    several = f":{due[-1]}:{due.step}" if len(due) > 1 else ""
    return f"{due[0]}{several}" if due else None


def how_to_measure(observable: str, folder: Path) -> str:
    """Return the advice that measures an observable on the configurations of a run."""
    run = Run(folder)
    at = updates_to_measure(run)
    if not at and run.exists() and not run.configs() and not run.read()[0].keeps_configs:
        return f"measure it along the way in another run, with --measure {observable}"
    return f"make one with `{CommandLine('measure', observable, as_typed(folder), at=at)}`"


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

    They are made from the nearest configuration before them that the run has; from its start if
    there is none, or if the random number generator has states. First, a configuration that is
    stored is made again from the one before it. If its links differ, as they may on another kind of
    device, nothing is written. Repeating a command that was interrupted makes the rest.

    Parameters
    ----------
    run : path
        Run directory.
    at : str, int or iterable of int
        Make the configurations after these updates, as in ``1050,1100:2000:10``. A range includes
        its last number. None may be later than the last checkpoint.
    output : path, optional
        Folder for the configurations; by default that of the run. It is made if it does not exist.
        In that of the run, they must be some of those after every `separation` updates.
    format : str, optional
        File format; by default that of the run. It is ``ildg`` if the run keeps no configurations.
    backend, devices, threads
        See `gauge_mc.generate`.
    dry_run : bool
        Show what would be made, without making it.
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
    chain, numbers = StoredChain.of(Run(Path(run))), update_numbers(at)
    named = _checked_format(chain, numbers, bool(output), format)
    folder = Path(output) if output else chain.run.path / "configs"

    def missing() -> tuple[int, ...]:
        names = {n: f"{n:07d}{FORMATS[named].suffix}" for n in numbers}
        return tuple(n for n, name in names.items() if not (folder / name).exists())

    made = missing()
    stored = tuple(number for number in numbers if number not in made)
    facts = chain.work(made), chain.compared, str(folder)
    report = RegenerationReport(str(chain.run.path), made, stored, *facts)
    if dry_run and not output:
        chain.run.check_free()
    if dry_run or not made:
        return report
    console = Console(quiet=not progress)
    with ExitStack() as stack:
        if not output:
            stack.enter_context(chain.run.locked())
        opened = open_device_group(devices, backend, threads, lattice=chain.parameters.lattice)
        group = stack.enter_context(closing(opened))
        stack.enter_context(announced_compilation(console))
        advance = stack.enter_context(updates_shown(console, report.updates))
        making = Regeneration(chain, group, advance)
        making.compare_first()
        make_folder(folder)
        for _ in making.files(missing(), folder, named, TOGETHER, {}):
            pass
    return report


def update_numbers(text: Updates) -> tuple[int, ...]:
    """Read updates: numbers and ranges ``FIRST:LAST:STEP``, separated by commas."""
    words = str(text).split(",") if isinstance(text, str | int) else map(str, text)
    updates = sorted({x for word in words for x in _range(word.strip())})
    if not updates:
        raise UsageError("No updates are given; name some, as in 1050,1100:2000:10.")
    return tuple(updates)


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
    updates, live = count(1), console.is_terminal or console.is_jupyter

    def advance() -> None:
        update = next(updates)
        progress.update(update, f"update {update} of {total}", "updates")

    if total and not live:
        console.print(f"making {counted(total, 'update')} again")
    with Progress(console, total, "updates") as progress:
        yield advance


def _checked_format(
    chain: StoredChain, numbers: tuple[int, ...], elsewhere: bool, format: str | None
) -> str:
    """Return the format of configurations that a run can make, in its own folder or elsewhere."""
    p, path = chain.parameters, chain.run.path
    chain.refuse_later(numbers)
    if not elsewhere and not p.keeps_configs:
        raise UsageError(
            f"The run {path} keeps no configurations, because its format is {p.format}; give a "
            "folder for them with --output."
        )
    for number in () if elsewhere else numbers:
        if not is_due(number - p.thermalize, p.separation):
            raise UsageError(
                f"The run {path} keeps no configuration after update {number}, but after every "
                f"{p.separation} updates from {p.thermalize + p.separation} on; give a folder "
                "for others with --output."
            )
    if format is not None:
        FORMATS.check(format)
    named = format or (p.format if p.keeps_configs else defaults.FORMAT)
    if not elsewhere and named != p.format:
        raise UsageError(
            f"The run {path} has configurations in the format {p.format}; give --output for "
            f"others in {named}."
        )
    return named
