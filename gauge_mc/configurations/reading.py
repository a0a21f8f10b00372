"""Reading of configuration files: into fields, as NumPy arrays, or only to check them.

Boundary conditions that other programs leave in the links of the last time slice.

Only periodic lattices can be read, but a file with other boundaries is not damaged. They are looked
for by NumPy, and only in a file that does not pass its checks.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from gauge_mc.configurations.window import (
    READING,
    DeviceWindow,
    Memory,
    SliceWindow,
    open_window,
    read_ahead,
)
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import Devices
from gauge_mc.domain.lattice import Lattice, OddLattice, any_lattice, odd_extents
from gauge_mc.errors import CautionWarning, NoKernelsError, UsageError
from gauge_mc.fields.field import Field, HostField
from gauge_mc.fields.file_links import CAUTIOUS, TOLERANCE, LinkCheck, read_blocks
from gauge_mc.fields.sums import averages, normalised
from gauge_mc.files.columns import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import read_header, too_large
from gauge_mc.groups import GROUPS, Group
from gauge_mc.quoting import CommandLine
from gauge_mc.storage import links as host_links
from gauge_mc.storage.links import (
    IDENTIFYING,
    Block,
    Checksums,
    Header,
    Reader,
    StoredLinks,
    checksum_words,
    digest,
)

_OTHER_ORDER = str.maketrans("<>", "><")

TEMPORAL = 3
"""Number of the direction t among the four links of a site."""


@dataclass(frozen=True)
class LastSlice:
    """The last time slice of a file.

    Attributes
    ----------
    stored : StoredLinks
        How the file stores the links; `host_links.readable` must be true.
    links, following : Matrices
        The matrices of the last time slice and of the first one.
    """

    stored: StoredLinks
    links: host_links.Matrices
    following: host_links.Matrices

    @property
    def signs_show(self) -> bool:
        """Whether -1 times an element of SU(N) is not in SU(N) again, as for odd N."""
        return self.stored.group.colours % 2 == 1

    def misfit(self) -> str:
        """Return what the links along t are, or an empty text if no boundary explains a misfit.

        All other links of the slice must then be in SU(N), and all those along t of one kind.
        """
        stored, links = self.stored, self.links.copy()
        with np.errstate(all="ignore"):  # numbers of a damaged file
            temporal = links[TEMPORAL::4]
            if not temporal.any():
                temporal[:] = np.eye(stored.group.colours)
                words = "0, as those of open boundaries, and only periodic lattices can be read"
            elif self.signs_show:
                temporal *= -1
                words = (
                    f"-1 times those of {stored.group.label}, as with antiperiodic phases in the "
                    "links; write the file without them"
                )
            else:
                return ""
            fits = (host_links.deviations(links) <= TOLERANCE).all()
        t = stored.lattice.t - 1
        return f"its links along t of the last time slice {t} are {words}" if fits else ""

    def without_signs(self, averages: Averages) -> Averages | None:
        """Return averages over the links, with those along t of this slice multiplied by -1.

        Only then does a row that the file does not have follow with the right sign from the others.
        Returns None if links with signs would not be in the group, which is seen before.
        """
        stored, group = self.stored, self.stored.group
        if self.signs_show and stored.rows in (None, group.colours):
            return None
        flipped = self.links.copy()
        flipped[TEMPORAL::4, :-1] *= -1
        with np.errstate(all="ignore"):  # numbers of a damaged file
            flipped[TEMPORAL::4, -1:] = host_links.last_row(flipped[TEMPORAL::4, :-1])
            before, after, above = (
                host_links.in_group(group, links) for links in (self.links, flipped, self.following)
            )
            extents = stored.lattice.extents[:3]
            sums = [host_links.trace_sums(extents, links, above) for links in (before, after)]
        change = normalised(sums[1] - sums[0], group.colours, stored.lattice.sites)
        return Averages(*map(sum, zip(astuple(averages), astuple(change), strict=True)))


Wrap = Callable[[Iterable[Block], int], Iterable[Block]]
"""Function that passes on the blocks of a file, whose number is given, for example to show the
progress."""


def unwrapped(blocks: Iterable[Block], count: int) -> Iterable[Block]:
    """Return the blocks as they are."""
    return blocks


class LinkKind(NamedTuple):
    """Extents and group of links of which the file itself says nothing; both, or neither."""

    lattice: Lattice | str | None = None
    """Extents of the lattice."""
    group: str | None = None
    """Name of the group."""

    def refuse(self, source: str) -> None:
        """Refuse extents and group for something that states its own."""
        if self != STATED_KIND:
            raise UsageError(
                f"{source} states its lattice and its group; leave --lattice and --group out."
            )


STATED_KIND = LinkKind()
"""The kind of links of which the file says all."""


@dataclass(frozen=True)
class Configuration:
    """A configuration file whose header has been read and agrees with its size.

    Attributes
    ----------
    path : Path
        Path of the file.
    header : Header
        Header of the file.
    cautions : list of str
        What `check` has noticed about links that are good all the same, in words.
    """

    path: Path
    header: Header
    _reader: Reader
    _size: int
    _stated: bool = True
    cautions: list[str] = field(default_factory=list)
    _moved: list[float] = field(default_factory=list)

    def __repr__(self) -> str:
        header = self.header
        description = f"{header.group} on {header.lattice}, {header.precision}, {header.format}"
        return f"<Configuration {self.path}: {description}>"

    @property
    def stored(self) -> StoredLinks:
        """How the file stores the links."""
        return self._reader.stored

    def load(self, precision: str | None = None, device: Devices | None = None) -> Field:
        """Return the field, and check the file.

        Where no kernel can be compiled, or if an extent is odd, NumPy reads the links, unless a
        device is given. Such a field has `Field.to_numpy`, `Field.slices` and `Field.save`. It
        refuses everything else.

        Parameters
        ----------
        precision : str, optional
            Precision of the links in memory; by default that of the file.
        device : Device or DeviceGroup, optional
            See `Field.empty`. All processes must call this method.

        Raises
        ------
        GaugeError
            If the file is damaged, has changed since it was opened, does not fit into memory, or
            has odd extents and is to be on a device.
        """
        lattice = self.header.lattice
        kind = (lattice, self.header.group, precision or self.header.precision)
        if isinstance(lattice, OddLattice):
            if device is not None:
                raise odd_extents(lattice)
            return HostField(*kind, self.slices(), odd_extents(lattice))
        try:
            return self.load_identified(precision, device)[0]
        except NoKernelsError as error:
            if device is not None:
                raise
            return HostField(*kind, self.slices(), error)

    def load_identified(
        self, precision: str | None = None, device: Devices | None = None
    ) -> tuple[Field, str]:
        """Return the field and the digest of its links in the file; see `load` and `digest`.

        If an extent is odd, the field has periodic copies of the links; see `OddLattice.copies`.
        """
        if isinstance(self.header.lattice, OddLattice):
            return self._copies(self.header.lattice, precision, device)
        header, devices = self.header, DeviceGroup.of(device)
        stored = self.stored.identified
        width = precision or header.precision
        field = Field.empty(header.lattice, header.group, width, devices)
        # The averages are compared with those of the file in its own precision.
        window = None
        if width != header.precision:
            window = DeviceWindow(self.stored, header.precision, devices.devices[0])
        with self._opened() as file:
            # A window is one block ahead of the field, whose order may need another one.
            in_use = READING + 2 * (window is not None)
            blocks = self._blocks(file, in_use) if devices.root else iter(())
            checked = self._through(window, blocks, file) if window and devices.root else blocks
            check = read_blocks(field, stored, checked)
            if check.bad:
                self._refuse_misfit(file, check)
            means = averages(field) if window is None else window.averages
            if devices.root:
                self._verify(file, check, means)
                self._warn()
        return field, _digest(stored, check.checksums)

    def _copies(
        self, lattice: OddLattice, precision: str | None, device: Devices | None
    ) -> tuple[Field, str]:
        """Return a field with periodic copies of the links, and their digest in the file."""
        x, y, z, t = lattice.counts
        stored = self.stored.identified
        window = open_window(stored, "double", self._as_matrices)
        once = [np.tile(links, (z, y, x, 1, 1, 1)) for links in self.slices(window)]
        width = precision or self.header.precision
        field = Field.from_slices(lattice.copies, self.header.group, once * t, width, device)
        return field, _digest(stored, window.found.checksums)

    @property
    def span(self) -> tuple[int, int]:
        """Position and size of the links in the file, in bytes."""
        return self._reader.offset, self.stored.nbytes

    @property
    def stated_digest(self) -> str:
        """The digest of the links if the header states it, or an empty text."""
        words = self.header.checksum
        return digest(self.stored, words) if words and self.stored.identified == self.stored else ""

    def digest(self) -> str:
        """Return a digest of the links as they are stored, which tells configurations apart.

        It is the checksum in the header if that depends on the places of all bytes. Otherwise the
        file is read and checked.

        Raises
        ------
        GaugeError
            See `load`.
        """
        return self.stated_digest or self.identified()[1]

    def identified(self) -> tuple[Averages, str]:
        """Check the file, and return the averages over its links and their digest.

        Raises
        ------
        GaugeError
            See `load`.
        """
        window = self._checked(self.stored.identified)
        return window.averages, _digest(self.stored.identified, window.found.checksums)

    def check(self, wrap: Wrap = unwrapped) -> Averages:
        """Check the file, without keeping it in memory, and return the averages over its links.

        Parameters
        ----------
        wrap : callable
            See `Wrap`.

        Raises
        ------
        GaugeError
            See `load`.
        """
        return self._checked(self.stored, wrap).averages

    def _checked(self, stored: StoredLinks, wrap: Wrap = unwrapped) -> SliceWindow:
        """Return a window through which all links have passed."""
        window = open_window(stored, self.header.precision)
        deque(self._passing(window, wrap), maxlen=0)
        return window

    def projected(self) -> Configuration:
        """Check the file, and return it with its links brought into the group as they are read.

        Nothing that the file states of its own links is then compared. `moved` tells the change.

        Raises
        ------
        UsageError
            If only kernels know the group or the order of the links.
        GaugeError
            See `load`.
        """
        stored, link_bytes = self.stored, self.stored.site_bytes // 4
        if not host_links.readable(stored):
            raise UsageError(
                f"{self.path} has links that cannot be projected; leave --project out."
            )
        self.check()

        def decoded(file: InputFile, t: int) -> Block:
            matrices = host_links.decode(stored, self._block(file, t).reshape(-1, link_bytes))
            nearest = host_links.nearest_in_group(matrices)
            moved.append(float(np.abs(nearest - matrices).max()))
            return host_links.encode(stored, nearest).reshape(-1)

        moved: list[float] = []
        header = replace(self.header, checksum="", plaquette=None, link_trace=None)
        reader = Reader(header, replace(stored, decoded=decoded), self._reader.offset, {})
        return replace(self, header=header, _reader=reader, cautions=[], _moved=moved)

    @property
    def moved(self) -> float | None:
        """Largest change of an entry by `projected`, in the links read so far; None without it."""
        return max(self._moved, default=None)

    def matrices(self) -> SliceWindow:
        """Return a window for `slices`, which also computes the averages over the links."""
        return open_window(self.stored, "double", self._as_matrices)

    def slices(self, window: SliceWindow | None = None) -> Iterator[np.ndarray]:
        """Stream the time slices and check them.

        Before a slice is yielded, its links are checked to be in the group. Before the last slice
        is yielded, checksum, plaquette and link trace are compared with those that the file
        states. So a caller who has received all slices has an intact configuration.

        Parameters
        ----------
        window : SliceWindow, optional
            What `matrices` has returned; it then has the averages as well.

        Yields
        ------
        complex128 array [z, y, x, mu, a, b]
            The matrices of the time slices t = 0, 1, …

        Raises
        ------
        GaugeError
            See `load`.
        """
        window = window or self.matrices()
        x, y, z, _ = self.header.lattice.extents
        n = self.stored.group.colours
        for t, block in self.passing(window):
            assert block is not None
            links = block.copy().view(np.complex128).reshape(z, y, x, 4, n, n)
            if t + 1 < self.header.lattice.t:
                yield links
        yield links

    @property
    def _as_matrices(self) -> StoredLinks:
        """All links as matrices of complex128."""
        return StoredLinks(self.header.lattice, self.stored.group, "<f8")

    def to_numpy(self) -> np.ndarray:
        """Return all links as matrices, and check the file.

        Returns
        -------
        ndarray, shape (T, Z, Y, X, 4, N, N), complex128
            The links ``U[t, z, y, x, mu, a, b]``.

        Raises
        ------
        GaugeError
            See `load`.
        """
        return np.stack(list(self.slices()))

    def passing(
        self, window: SliceWindow, wrap: Wrap = unwrapped
    ) -> Iterator[tuple[int, Block | None]]:
        """Yield what `SliceWindow.read` yields, and check the file; for the errors see `load`."""
        yield from self._passing(window, wrap)
        self._warn()

    def _passing(self, window: SliceWindow, wrap: Wrap) -> Iterator[tuple[int, Block | None]]:
        with self._opened() as file:
            blocks = wrap(self._blocks(file), self.header.lattice.t)
            passed = window.read(blocks)
            for t, block in passed:
                self._refuse_read(file, window, t, passed)
                yield t, block
            self._verify(file, window.found, window.averages)

    def _warn(self) -> None:
        for words in self.cautions:
            warnings.warn(f"{self.path}: {words}", CautionWarning, stacklevel=3)

    def _through(
        self, window: SliceWindow, blocks: Iterator[Block], file: InputFile
    ) -> Iterator[Block]:
        """Pass on blocks that also pass through a window."""
        queue: list[Block] = []

        def noted() -> Iterator[Block]:
            for block in blocks:
                queue.append(block)
                yield block

        passed = window.read(noted())
        for t, _ in passed:
            self._refuse_read(file, window, t, passed)
            yield queue.pop(0)

    def _refuse_read(
        self, file: InputFile, window: SliceWindow, t: int, rest: Iterator[object]
    ) -> None:
        """Refuse the file if slice `t` has a link that is not in the group, after the others."""
        if window.bad(t):
            deque(rest, maxlen=0)  # the checksum is that of all slices
            self._refuse_misfit(file, window.found)

    def _refuse_misfit(self, file: InputFile, check: LinkCheck) -> NoReturn:
        """Refuse a file that has a link outside of the group."""
        assert check.bad
        misfit = self.stored.misfit(*check.bad)
        wrong, agrees = self._checksum(file, check)
        if words := self._pattern(file, check.bad[0], agrees):
            raise file.refusal(words)
        if not self._stated:
            raise UsageError(
                f"{file.path} may have links of another group or on another lattice than "
                f"{self.stored.group.label} on {self.header.lattice}, which --lattice and --group "
                f"say, because {misfit}; give others, or restore it from a copy if they are right."
            )
        more = f", and {wrong}" if wrong else ", although its checksum is right" * bool(agrees)
        raise file.refusal(misfit + more, agrees=agrees, outside=True)

    def _checksum(self, file: InputFile, check: LinkCheck) -> tuple[str, bool | None]:
        """Return how the checksum differs from the stated one, and whether it agrees.

        The latter is None if the file states none.
        """
        wrong = self._reader.wrong_checksum(file, check.checksums)
        return wrong, not wrong if self.header.checksum else None

    def _pattern(self, file: InputFile, t: int, agrees: bool | None) -> str:
        """Return why programs write links of slice `t` that are not in the group, if it shows."""
        if not host_links.readable(self.stored):
            return ""
        swapped = replace(self.stored, dtype=self.stored.dtype.translate(_OTHER_ORDER))
        with np.errstate(all="ignore"):  # numbers of a damaged file
            apart = host_links.deviations(self._matrices(file, t, swapped))
        if (apart <= TOLERANCE).all():
            return "its numbers have another byte order than its header says; correct the header"
        last = self._last_slice(file) if t == self.header.lattice.t - 1 else None
        return last.misfit() if last and agrees is not False else ""

    def _verify(self, file: InputFile, check: LinkCheck, averages: Averages) -> None:
        """Compare checksums and averages of links in the group with those that the file states."""
        wrong, agrees = self._checksum(file, check)
        if wrong:
            raise file.refusal(wrong, agrees=agrees)
        if words := self._reader.wrong_average(averages):
            self._refuse_averages(file, averages, words, agrees)
        if check.deviation > CAUTIOUS:
            self.cautions[:] = [
                f"its links are in {self.stored.group.label} to {check.deviation:.1g} only; "
                f"`{CommandLine('convert', file.path, 'OUT', project=True)}` brings them into the "
                "group"
            ]

    def _refuse_averages(
        self, file: InputFile, averages: Averages, words: str, agrees: bool | None
    ) -> None:
        """Refuse links with other averages, unless they are those of the matrices as stored.

        Signs on the last time slice, without which they are right, are named.
        """
        more = "although its checksum is right" if agrees else "and it has no checksum that decides"
        reason, last, flipped = f"{words}, {more}", None, None
        if host_links.readable(self.stored):
            if not self._reader.wrong_average(self._averages_as_stored(file)):
                return
            last = self._last_slice(file)
            flipped = last.without_signs(averages)
        if last and flipped and last.signs_show:
            # Rows that the file does not have followed with the wrong sign.
            trace = self.header.link_trace or 0.0  # with or without the signs
            flipped = replace(flipped, link_trace=trace)
        if flipped and not self._reader.wrong_average(flipped):
            reason = (
                "the averages in its header are those of links without the sign -1 along t of the "
                f"last time slice {self.header.lattice.t - 1}, as with antiperiodic phases in the "
                "links; write the file without them"
            )
        raise file.refusal(reason, agrees=agrees)

    def _averages_as_stored(self, file: InputFile) -> Averages:
        """Return averages over the matrices with all entries of the file; kernels keep fewer."""
        extents, times = self.header.lattice.extents[:3], range(self.header.lattice.t)
        pairs = ((self._matrices(file, t), self._matrices(file, t + 1)) for t in times)
        sums = [host_links.trace_sums(extents, *pair) for pair in pairs]
        return normalised(
            np.sum(sums, axis=0), self.stored.group.colours, self.header.lattice.sites
        )

    def _matrices(self, file: InputFile, t: int, stored: StoredLinks | None = None) -> np.ndarray:
        """Return the matrices of a time slice by NumPy, perhaps as if stored in another way."""
        layout, count = stored or self.stored, self.header.lattice.t
        blocks = (self._block(file, (t + ahead) % count) for ahead in (0, 1))
        return host_links.decode(layout, host_links.gather(layout, t, *blocks))

    def _last_slice(self, file: InputFile) -> LastSlice:
        """Return the last time slice, which NumPy can read."""
        links = (self._matrices(file, t) for t in (self.header.lattice.t - 1, 0))
        return LastSlice(self.stored, *links)

    @contextmanager
    def _opened(self) -> Iterator[InputFile]:
        """Open the file, which must not have changed, and refuse one with too large slices."""
        with InputFile(self.path) as file:
            file.expect_size(self._size)
            try:
                yield file
            except MemoryError as error:
                raise too_large(self.path) from error

    def _blocks(self, file: InputFile, in_use: int = READING) -> Iterator[Block]:
        memory = Memory(self.stored.block_bytes, in_use)

        def block(t: int) -> Block:
            # The first block is needed again after the last one.
            return self._block(file, t, memory.next() if t else None)

        return read_ahead(block, range(self.header.lattice.t))

    def _block(self, file: InputFile, t: int, memory: Block | None = None) -> Block:
        """Read the block of a time slice."""
        if self.stored.decoded:
            return self.stored.decoded(file, t)
        size = self.stored.block_bytes
        return file.read(self._reader.offset + t * size, size, memory)


def _digest(stored: StoredLinks, checksums: Checksums) -> str:
    """Return the digest of links that have been read."""
    (name,) = stored.checksums & IDENTIFYING.keys()
    return digest(stored, checksum_words(getattr(checksums, name)))


def open_configuration(
    path: str | os.PathLike[str], lattice: Lattice | str | None = None, group: str | None = None
) -> Configuration:
    """Open a configuration file, detect its format and read its header.

    Parameters
    ----------
    path : str or path-like
        File in one of the `FORMATS`.
    lattice, group : Lattice or str, str, optional
        Extents and group of links of which the file itself says nothing, as those of
        LatticeQCD.jl; both are then needed.

    Returns
    -------
    Configuration
        The open file; use it in a ``with`` statement.

    Raises
    ------
    UsageError
        If only one of lattice and group is given, or the file states them.
    GaugeError
        If the file cannot be read, has an unknown format, or its header is damaged or does not
        agree with its size.
    """
    with InputFile(path) as file:
        stated = _given(lattice, group)
        reader = read_header(file, stated)
        return Configuration(file.path, reader.header, reader, file.size, stated is None)


def _given(lattice: Lattice | str | None, group: str | None) -> tuple[Lattice, Group] | None:
    """Return lattice and group of a file that states neither; None if it does."""
    if lattice is None and group is None:
        return None
    if lattice is None or group is None:
        raise UsageError("--lattice and --group belong together; give both, or neither.")
    GROUPS.check(group, "group")
    extents = lattice if isinstance(lattice, Lattice) else any_lattice(lattice)
    return extents, GROUPS[group]
