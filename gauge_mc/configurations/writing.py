"""Writing of configuration files: from fields, from NumPy arrays, or from other files.

A file that was converted is compared with its source, bit for bit. A run writes configurations in
the background, while its chain goes on.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.configurations.reading import Configuration, Wrap, open_configuration
from gauge_mc.configurations.window import WRITING, Memory, SliceWindow, open_window, write_behind
from gauge_mc.devices.host import free_memory
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.domain.slab import real_type
from gauge_mc.errors import DamagedError, GaugeError, UnsupportedError, UsageError
from gauge_mc.fields.field import Field, HostField
from gauge_mc.fields.file_links import FieldBlocks, LinkCheck
from gauge_mc.fields.sums import averages
from gauge_mc.files.atomic import replacing
from gauge_mc.files.columns import Averages
from gauge_mc.formats import FORMATS, LinkSource, check_writable, writable_formats
from gauge_mc.groups import GROUPS
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.storage.links import Block, Checksums, Links, LinkSums, StoredLinks


def write_field(
    field: Field,
    path: str | os.PathLike[str],
    precision: str,
    format: str,
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a field slice by slice; all processes that share it must call this.

    For parameters and errors see `Field.save`.
    """
    if isinstance(field, HostField):
        kind = (field.lattice, field.group.name, precision, format, provenance)
        write_configuration(path, field.slices(), *kind)
        return
    stored = stored_by(format, field.lattice, field.group.name, precision)
    source = FieldSource(field, FieldBlocks(field, stored), averages(field))
    if field.devices.root:
        write(path, source, format, provenance)
    else:
        source.follow()


@dataclass(frozen=True)
class FieldSource:
    """The links of a field, which are converted while they are written."""

    field: Field
    """The links."""
    encoding: FieldBlocks
    """Conversion of the links to the blocks of the file."""
    averages: Averages
    """Averages in the precision of the field."""

    @property
    def stored(self) -> StoredLinks:
        """How the links are stored."""
        return self.encoding.stored

    def store(self, out: BinaryIO) -> LinkSums:
        """Write the blocks; see `LinkSource.store`."""
        memory = Memory(self.stored.block_bytes, WRITING)
        blocks = self.encoding.blocks(lambda t: memory.next())
        means = self.averages
        if self.stored.precision == self.field.precision:
            write_behind(lambda block: out.write(block.data), blocks)
        else:
            means = self._through_window(out, blocks)
        check = self.encoding.found
        refuse_misfit(self.stored, check)
        return check.checksums, means

    def follow(self) -> None:
        """Do the part of a process that is not the root."""
        list(self.encoding.blocks())
        _ = self.encoding.found

    def _through_window(self, out: BinaryIO, blocks: Iterator[Block]) -> Averages:
        """Write the blocks, and return averages in the precision of the file.

        Programs that read the file compare its averages with that accuracy.
        """
        window = open_window(self.stored, self.stored.precision)

        def written() -> Iterator[Block]:
            for number, block in enumerate(blocks):
                out.write(block.data)
                yield block.copy() if number == 0 else block

        deque(window.read(written()), maxlen=0)
        return window.averages


def refuse_misfit(stored: StoredLinks, check: LinkCheck) -> None:
    """Raise a `GaugeError` if a link of a field is not in the group."""
    if check.bad:
        raise GaugeError(f"The field is damaged: {stored.misfit(*check.bad)}.")


@dataclass(frozen=True)
class Snapshot:
    """The links of a field at one time, as they are stored in a file."""

    stored: StoredLinks
    """How the blocks store the links."""
    averages: Averages
    """Averages over the links, for the header."""
    checksums: Checksums
    """Checksums of the blocks, for the header."""
    blocks: tuple[Block, ...]
    """The blocks of all time slices."""

    @classmethod
    def of(cls, field: Field, format: str, memory: Block | None = None) -> Snapshot | None:
        """Take a snapshot; all processes that share the field must call this."""
        stored = stored_by(format, field.lattice, field.group.name, field.precision)
        encoding = FieldBlocks(field, stored)
        if not field.devices.root:
            FieldSource(field, encoding, averages(field)).follow()
            return None
        content = np.empty(stored.nbytes, np.uint8) if memory is None else memory
        parts = content[: stored.nbytes].reshape(field.lattice.t, stored.block_bytes)
        means = averages(field)
        blocks = tuple(encoding.blocks(lambda t: parts[t]))
        check = encoding.found
        refuse_misfit(stored, check)
        return cls(stored, means, check.checksums, blocks)

    def store(self, out: BinaryIO) -> LinkSums:
        """Write the blocks; see `LinkSource.store`."""
        for block in self.blocks:
            out.write(block.data)
        return self.checksums, self.averages


@dataclass
class LinkConversion:
    """Links that pass through a window, from one form to another."""

    window: SliceWindow
    stored: StoredLinks
    blocks: Iterable[tuple[int, Block | None]]

    def store(self, out: BinaryIO) -> LinkSums:
        """Write the blocks; see `LinkSource.store`."""
        begin, size = out.tell(), self.stored.block_bytes

        def put(pair: tuple[int, Block | None]) -> None:
            t, block = pair
            assert block is not None
            out.seek(begin + t * size)
            out.write(block.data)

        write_behind(put, self.blocks)
        out.seek(begin + self.stored.nbytes)
        return self.window.written, self.window.averages


def write_configuration(
    path: str | os.PathLike[str],
    slices: Iterable[Links],
    lattice: Lattice,
    group: str,
    precision: str,
    format: str = defaults.FORMAT,
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a configuration.

    The file appears complete and synced to disk, or not at all. The same arguments give the same
    bytes: dates are written only if they are in `provenance`.

    Parameters
    ----------
    path : str or path-like
        File to write. An existing file is replaced. The folder must exist.
    slices : iterable of complex128 arrays [z, y, x, mu, a, b]
        Time slices t = 0, 1, …, which are consumed one at a time.
    lattice : Lattice
        Extents of the lattice.
    group : str
        Name of the group.
    precision : str
        Precision of the links in the file, ``single`` or ``double``.
    format : str
        Name of a format that can be written.
    provenance : mapping of str to str
        Free text fields. Some formats define special fields, and some store no provenance; see
        their modules.

    Raises
    ------
    UsageError
        If the format is unknown, is read-only, or cannot store the group in this precision.
    GaugeError
        If a slice has the wrong shape or links that are not in the group, if the number of slices
        is wrong, or if the file cannot be written.
    """
    target = stored_by(format, lattice, group, precision)
    links = StoredLinks(lattice, GROUPS[group], "<f8")
    window = open_window(links, "double", target)

    def passing() -> Iterator[tuple[int, Block | None]]:
        for t, block in window.read(_checked(Path(path), slices, links)):
            if bad := window.bad(t):
                raise GaugeError(
                    f"{path} was not written: {links.misfit(*bad)}; the field is damaged."
                )
            yield t, block

    write(path, LinkConversion(window, target, passing()), format, provenance)


def convert_configuration(
    source: Configuration, path: str | os.PathLike[str], precision: str, format: str, wrap: Wrap
) -> Configuration:
    """Write a configuration file in another format or precision; see `gauge_mc.convert`."""
    header = source.header
    target = stored_by(format, header.lattice, header.group, precision)
    width = "single" if header.precision == precision == "single" else "double"
    window = open_window(source.stored, width, target)
    passing = LinkConversion(window, target, source.passing(window, wrap))
    write(path, passing, format, header.provenance)
    return open_configuration(path)


def write(
    path: str | os.PathLike[str],
    source: LinkSource,
    format: str,
    provenance: Mapping[str, str] | None = None,
    turn: Callable[[], object] | None = None,
) -> None:
    """Write links to a file, which appears complete and synced to disk; see `replacing`."""
    writer, target = FORMATS[format], Path(path)
    fields = {**writer.fields(target), **(provenance or {})}
    with replacing(target, turn) as out:
        writer.write(out, source, fields)


def stored_by(format: str, lattice: Lattice, group: str, precision: str) -> StoredLinks:
    """Return how a format stores links."""
    real_type(precision)  # which refuses an unknown one
    check_writable(format, group, precision)
    if isinstance(lattice, OddLattice) and not FORMATS[format].odd_extents:
        formats = {name: FORMATS[name] for name in writable_formats()}
        refused = {name for name, x in formats.items() if x.refusal(GROUPS[group], precision)}
        possible = [name for name, x in formats.items() if x.odd_extents and name not in refused]
        raise UsageError(
            f"{FORMATS[format].title} files have even extents, but the lattice is {lattice}; "
            f"choose {in_words(possible, 'or')}."
        )
    return FORMATS[format].stored(lattice, GROUPS[group], precision)


def _checked(path: Path, slices: Iterable[Links], stored: StoredLinks) -> Iterator[Block]:
    """Yield the slices as blocks of complex128, and refuse a wrong number or shape."""
    lattice, group = stored.lattice, stored.group
    n = group.colours
    shape = (lattice.z, lattice.y, lattice.x, 4, n, n)
    count = 0
    for links in slices:
        if count == lattice.t or links.shape != shape:
            raise GaugeError(
                f"{path} was not written: time slice {count} of shape {links.shape} is not part of "
                f"a configuration of {group.label} on {lattice}."
            )
        yield np.ascontiguousarray(links, np.complex128).reshape(-1).view(np.uint8)
        count += 1
    if count < lattice.t:
        raise GaugeError(
            f"{path} was not written: {count} time slices were given, but the lattice {lattice} "
            f"has {lattice.t}."
        )


@documented
@dataclass(frozen=True)
class FileComparison:
    """The comparison of a file with the one from which it was converted."""

    verdict: str = result_field(
        "Verdict on the file: ``good`` if every number of its links is that of the source, rounded "
        "to the precision of the file; ``damaged`` if it cannot be read back; ``other`` if it is "
        "intact, but not what the source becomes."
    )
    difference: str = result_field("Why the file is not ``good``, in words; or empty.", "")
    averages: Averages | None = result_field(
        "Averages over the links of the file, if it is ``good``.", None
    )
    source_averages: Averages | None = result_field(
        "Averages over the links of the source, if the file is ``good``.", None
    )

    @classmethod
    def of(cls, error: DamagedError | UnsupportedError) -> FileComparison:
        """Return the comparison with a file that cannot be read."""
        return cls(DAMAGED if isinstance(error, DamagedError) else OTHER, error.reason)


GOOD, DAMAGED, OTHER = "good", "damaged", "other"
"""Verdicts on a file."""


def compare(source: Configuration, copy: Configuration) -> FileComparison:
    """Compare the links of a file with those of another one.

    Both are read by their own formats, and every number of the copy is compared with that of the
    source, rounded to the precision of the copy. A last row that one of them does not store is not
    compared; it follows from the others, and is checked like all links of the copy.
    """
    kinds = [(x.header.group, x.header.lattice) for x in (source, copy)]
    if kinds[0] != kinds[1]:
        return FileComparison(OTHER, f"its links are those of {kinds[1][0]} on {kinds[1][1]}")
    rows = min(x.stored.rows or x.stored.group.colours for x in (source, copy))
    precision = copy.header.precision
    windows = [x.matrices() for x in (source, copy)]
    copies = copy.slices(windows[1])
    for t, links in enumerate(source.slices(windows[0])):
        try:
            copied = next(copies)
        except (DamagedError, UnsupportedError) as error:
            return FileComparison.of(error)
        if precision == "single":
            links = links.astype(np.complex64).astype(np.complex128)
        differ = _words(links[..., :rows, :]) != _words(copied[..., :rows, :])
        if differ.any():
            place = source.stored.place(t, int(np.argmax(differ)))
            return FileComparison(OTHER, f"{place} is another one")
    return FileComparison(GOOD, "", windows[1].averages, windows[0].averages)


def _words(links: Links) -> NDArray[np.void]:
    """Return the bytes of each link, in the order of `StoredLinks.place`."""
    n = links.shape[-1] * links.shape[-2]
    flat = np.ascontiguousarray(links).reshape(-1, n)
    return flat.view(np.dtype((np.void, flat.itemsize * n))).reshape(-1)


IN_FLIGHT = 2
"""Largest number of configurations that are in host memory until they are on disk."""


def prepare_writing(field: Field, format: str) -> None:
    """Load the kernels that `BackgroundWriter.write` needs; all processes must call this."""
    averages(field)
    stored = stored_by(format, field.lattice, field.group.name, field.precision)
    FieldBlocks(field, stored).prepare()


class _GivenUpError(Exception):
    """An earlier configuration could not be written."""


class BackgroundWriter:
    """Writes configurations in threads of its own, while the chain goes on.

    At most `IN_FLIGHT` of them are in memory, and written at the same time, because one file alone
    does not keep a disk busy. They appear in their order. `write` waits until there is room. If
    the memory of the host is too small for that, configurations are written at once, slice by
    slice. After a failure nothing more is written, and every call raises the error.

    Attributes
    ----------
    waited : float
        Total time that callers have waited.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._longest = 0.0
        self._begun: dict[Path, float] = {}
        self._threads = ThreadPoolExecutor(IN_FLIGHT, "writer")
        self._pending: deque[Future[bool]] = deque()
        self._memory: list[Block] = []
        self._failure: BaseException | None = None
        self._begun_so_far = 0
        self._left: dict[int, Callable[[], object]] = {}

    def __enter__(self) -> BackgroundWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._failure = None
        self._left.clear()
        self._memory.clear()

    def write(
        self,
        field: Field,
        path: Path,
        format: str,
        provenance: Mapping[str, str],
        before: Callable[[], object],
    ) -> None:
        """Write the links that the field has now; all processes that share it must call this."""
        if not field.devices.root:
            if field.devices.processes.broadcast(None):
                Snapshot.of(field, format)
            else:
                write_field(field, path, field.precision, format, provenance)
            return
        self.flush(IN_FLIGHT - 1)
        stored = stored_by(format, field.lattice, field.group.name, field.precision)
        memory = self._room(field, stored.nbytes)
        if not field.devices.processes.broadcast(memory is not None):
            self.flush()
            before()
            write_field(field, path, field.precision, format, provenance)
            return
        snapshot = Snapshot.of(field, format, memory)
        assert snapshot
        assert memory is not None

        number = self._begun_so_far = self._begun_so_far + 1
        again = partial(write, path, snapshot, format, provenance)
        previous = self._pending[-1] if self._pending else None

        def turn() -> None:
            if previous and not previous.result():
                raise _GivenUpError

        def task() -> bool:
            began = self._begun[path] = time.monotonic()
            try:
                if previous and previous.done():
                    turn()
                before()
                write(path, snapshot, format, provenance, turn)
                self._longest = max(self._longest, time.monotonic() - began)
                return True
            except _GivenUpError:
                self._left[number] = again
                return False
            except BaseException as error:
                # Its frames would keep the field alive, which this thread must not free.
                self._failure = self._failure or error.with_traceback(None)
                self._left[number] = again
                return False
            finally:
                del self._begun[path]
                if number not in self._left:
                    self._memory.append(memory)

        self._pending.append(self._threads.submit(task))

    def flush(self, in_flight: int = 0) -> None:
        """Wait until everything is on disk, or at most some configurations are in flight."""
        began = time.monotonic()
        while len(self._pending) > in_flight:
            self._pending.popleft().result()
        self.waited += time.monotonic() - began
        self.check()

    @property
    def unwritten(self) -> int:
        """Number of configurations that are not yet on disk."""
        return sum(not x.done() for x in list(self._pending)) + len(self._left)

    @property
    def failed(self) -> bool:
        """Whether a configuration could not be written."""
        return self._failure is not None

    def rewrite(self) -> None:
        """Write everything again that could not be written, in its order, after a failure."""
        for pending in self._pending:
            pending.result()
        self._pending.clear()
        for number in sorted(self._left):
            self._left[number]()
            del self._left[number]
        self._failure = None

    @property
    def seconds(self) -> float:
        """Longest time that writing a configuration has taken so far, including the current one."""
        now = time.monotonic()
        return max([self._longest, *(now - began for began in list(self._begun.values()))])

    def check(self) -> None:
        """Raise the error of a configuration that could not be written."""
        if self._failure:
            raise self._failure

    def _room(self, field: Field, nbytes: int) -> Block | None:
        """Return memory for a configuration, or None if there is too little."""
        if self._memory:
            return self._memory.pop()
        if nbytes > free_memory() // 2:
            return None
        return field.devices.devices[0].pinned_memory(nbytes)
