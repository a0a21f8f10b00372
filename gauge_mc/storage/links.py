"""How a file stores links, the checksums of its bytes, and its header.

NumPy reads and writes links in blocks of files where kernels cannot be compiled. The kernels
``read_links`` and ``write_links`` do the same on devices (``cuda_src/files``): the order of the
links, types of numbers, checksums, the row of a matrix that follows from the others, and the test
whether a matrix is in the group. Besides them there are only the traces that headers of files
state.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.results import documented, result_field

Links = NDArray[np.complex128]
"""Links of one time slice, ``U[z, y, x, mu, a, b]``."""

Block = NDArray[np.uint8]
"""The bytes of a time slice in a file."""


BlockReader = Callable[[InputFile, int], Block]
"""Function that returns the block of a time slice, given the file and the number of the slice."""

OrderNumbers = Callable[[tuple[int, int, int], int], NDArray[np.int64]]
"""Function that returns the numbers ``[z, y, x, mu]`` of the links of a time slice in its block,
given the extents (x, y, z) and the parity of the first site. Links in the block of the next slice
have their number there plus the number of links in a block."""


@dataclass(frozen=True)
class FileOrder:
    """An order of the links in a file, which a C++ header declares; see ``files/file_order.h``."""

    name: str
    """Name of the order."""
    header: str
    """C++ header, relative to ``cuda_src`` or absolute."""
    cpp: str
    """Name of the class in the header."""
    reaches_back: bool = False
    """Whether the block of a time slice also contains links of the slice before."""
    numbers: OrderNumbers | None = None
    """The same order in Python. Without it, such files cannot be read without a compiler."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this order."""
        return Choice.of("file_order", self.name, self.header, self.cpp)


def _by_site(extents: tuple[int, int, int], parity: int) -> NDArray[np.int64]:
    x, y, z = extents
    return np.arange(4 * x * y * z).reshape(z, y, x, 4)


BY_SITE = FileOrder("by site", "files/by_site.h", "BySite", numbers=_by_site)
"""The order ``[t][z][y][x][mu]``."""


@dataclass(frozen=True)
class StoredLinks:
    """How a file stores the links of a lattice: in one block per time slice."""

    lattice: Lattice
    """Extents of the lattice."""
    group: Group
    """The gauge group."""
    dtype: str
    """NumPy type of a real, with byte order: ``<f4``, ``>f4``, ``<f8`` or ``>f8``."""
    rows: int | None = None
    """Number of rows ``[row][column][re, im]`` of every matrix; by default all. The others follow
    from them.
    """
    order: FileOrder = BY_SITE
    """Order of the links in a block."""
    checksums: frozenset[str] = frozenset()
    """Checksums of the bytes to compute, named as in `Checksums`."""
    decoded: BlockReader | None = None
    """Function that reads a block, if the file has the links in another form than is said here. A
    format that writes such files turns the blocks into that form.
    """
    as_stored: bool = False
    """Whether there are the components in the order in which the group stores them, not rows."""

    @property
    def precision(self) -> str:
        """Precision of the reals, ``single`` or ``double``."""
        return "single" if self.dtype.endswith("4") else "double"

    @property
    def reals(self) -> int:
        """Number of reals per link."""
        n = self.group.colours
        return self.group.reals if self.as_stored else 2 * n * (self.rows or n)

    @property
    def site_bytes(self) -> int:
        """Number of bytes per site."""
        return 4 * self.reals * int(self.dtype[-1])

    @property
    def identified(self) -> StoredLinks:
        """The same links with a checksum that depends on all bytes and their places."""
        if self.checksums & IDENTIFYING.keys():
            return self
        return replace(self, checksums=self.checksums | {SITE_CRC})

    @property
    def block_bytes(self) -> int:
        """Number of bytes per time slice."""
        return self.site_bytes * self.lattice.slice_sites

    @property
    def nbytes(self) -> int:
        """Number of bytes of all links."""
        return self.block_bytes * self.lattice.t

    @property
    def other_sizes(self) -> set[int]:
        """Numbers of bytes of such links of any SU(N), precision and number of reals per link."""
        counts = {
            reals
            for n in {group.colours for group in GROUPS.values()}
            for reals in (2 * n**2, 2 * n * (n - 1), n**2 - 1)
        }
        return {4 * self.lattice.sites * reals * width for reals in counts for width in (4, 8)}

    def misfit(self, t: int, number: int) -> str:
        """Return a message about a link that is not in the group; see `place`."""
        return f"{self.place(t, number)} is not in {self.group.label}"

    def place(self, t: int, number: int) -> str:
        """Return direction and site of a link in words.

        Parameters
        ----------
        t : int
            Time slice.
        number : int
            Number ``((z Y + y) X + x) 4 + mu`` of the link in the slice.
        """
        site, mu = divmod(number, 4)
        rest, x = divmod(site, self.lattice.x)
        z, y = divmod(rest, self.lattice.y)
        return f"the link in direction {'xyzt'[mu]} at (x, y, z, t) = ({x}, {y}, {z}, {t})"


@dataclass(frozen=True)
class Checksums:
    """Checksums of the bytes of all links. Only those that were requested have a meaning."""

    word_sum: int = 0
    """Sum of all 32-bit words modulo 2^32."""
    site_crc: tuple[int, int] = (0, 0)
    """A pair of words: the CRC-32 of the bytes of each site, rotated left by the number of the site
    in the file modulo 29 (first word) and 31 (second word), combined by exclusive or.
    """
    rotated_words: tuple[int, int] = (0, 0)
    """The same for all 32-bit words."""

    def __or__(self, other: Checksums) -> Checksums:
        """Return the checksums of the bytes of both."""

        def both(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
            return first[0] ^ second[0], first[1] ^ second[1]

        return Checksums(
            (self.word_sum + other.word_sum) & 0xFFFFFFFF,
            both(self.site_crc, other.site_crc),
            both(self.rotated_words, other.rotated_words),
        )


LinkSums = tuple[Checksums, Averages]
"""Checksums and averages of links."""


class LinkSource(Protocol):
    """Links that are to be written to a file."""

    @property
    def stored(self) -> StoredLinks:
        """How they are to be stored: what `Format.stored` has returned."""

    def store(self, out: BinaryIO) -> LinkSums:
        """Write all blocks from the current position of a file on, and return what headers state.

        The position is then behind the last block.
        """


WORD_SUM, SITE_CRC, ROTATED_WORDS = "word_sum", "site_crc", "rotated_words"
"""Names of the checksums."""

IDENTIFYING = {SITE_CRC: "SciDAC", ROTATED_WORDS: "MILC"}
"""Checksums that identify the content of a file, with the programs that introduced them. They have
64 bits and depend on the places of all bytes, unlike a sum of words."""


def checksum_words(value: int | tuple[int, int]) -> str:
    """Return a checksum in hexadecimal, one of 64 bits as two words of eight digits."""
    return f"{value:x}" if isinstance(value, int) else " ".join(f"{word:08x}" for word in value)


def digest(stored: StoredLinks, words: str) -> str:
    """Return the digest of links whose identifying checksum is known."""
    (name,) = stored.checksums & IDENTIFYING.keys()
    return f"{IDENTIFYING[name]} checksum {words}"


Matrices = NDArray[np.complex128]
"""The matrices of a time slice, ``[link][row][column]`` with links in the order z, y, x, mu."""

Bytes = NDArray[np.uint8]
"""The bytes of the links of a time slice as they are stored, ``[link][byte]``."""


def readable(stored: StoredLinks) -> bool:
    """Return whether NumPy can read such links: those of SU(N), in an order that it knows."""
    group = stored.group
    return stored.order.numbers is not None and group.name == special_unitary(group.colours)


def gather(stored: StoredLinks, t: int, block: Block, following: Block | None) -> Bytes:
    """Return the links of slice `t`, given its block and, for some orders, the next one."""
    size = stored.site_bytes // 4
    links = block.reshape(-1, size)
    if stored.order.reaches_back:
        assert following is not None
        links = np.concatenate([links, following.reshape(-1, size)])
    return links[_numbers(stored.order, stored.lattice.extents[:3], t % 2)]


def scatter(stored: StoredLinks, t: int, links: Bytes, before: Bytes | None) -> Block:
    """Return the block of slice `t`, given its links and, for some orders, those before it."""
    count = len(links)
    block = np.empty_like(links)
    extents = stored.lattice.extents[:3]
    numbers = _numbers(stored.order, extents, t % 2)
    block[numbers[numbers < count]] = links[numbers < count]
    if stored.order.reaches_back:
        assert before is not None
        previous = _numbers(stored.order, extents, (t - 1) % 2)
        block[previous[previous >= count] - count] = before[previous >= count]
    return block.reshape(-1)


@lru_cache(maxsize=4)
def _numbers(order: FileOrder, extents: tuple[int, int, int], parity: int) -> NDArray[np.int64]:
    """Return `FileOrder.numbers` in the order z, y, x, mu."""
    assert order.numbers
    return order.numbers(extents, parity).reshape(-1)


def checksums(stored: StoredLinks, t: int, links: Bytes) -> Checksums:
    """Return the checksums of the links of slice `t` that the file needs."""
    sites = stored.lattice.slice_sites
    words = np.ascontiguousarray(links).view(f"{stored.dtype[0]}u4").reshape(-1)
    sums = Checksums()
    if WORD_SUM in stored.checksums:
        sums |= Checksums(word_sum=int(words.sum(dtype=np.uint64)) & 0xFFFFFFFF)
    if SITE_CRC in stored.checksums:
        rows = links.reshape(sites, -1)
        crcs = np.fromiter((zlib.crc32(row.data) for row in rows), np.uint32, sites)
        sums |= Checksums(site_crc=_rotated(crcs, t * sites))
    if ROTATED_WORDS in stored.checksums:
        first = t * words.size
        sums |= Checksums(rotated_words=_rotated(words.astype(np.uint32), first))
    return sums


def _rotated(values: NDArray[np.uint32], first: int) -> tuple[int, int]:
    """Rotate values by their numbers modulo 29 and 31, and combine them by exclusive or."""
    numbers = np.arange(first, first + len(values))
    combined = []
    for period in (29, 31):
        turns = (numbers % period).astype(np.uint32)
        turned = values << turns | values >> ((np.uint32(32) - turns) & np.uint32(31))
        combined.append(int(np.bitwise_xor.reduce(turned)))
    return combined[0], combined[1]


def decode(stored: StoredLinks, links: Bytes) -> Matrices:
    """Return the matrices of links, exactly as they are stored, with all rows."""
    n = stored.group.colours
    reals = links.view(stored.dtype).astype(np.float64)
    rows = reals.view(np.complex128).reshape(len(links), -1, n)
    return rows if rows.shape[1] == n else np.concatenate([rows, last_row(rows)], axis=1)


def encode(stored: StoredLinks, matrices: Matrices) -> Bytes:
    """Return matrices as they are stored."""
    rows = np.ascontiguousarray(matrices[:, : stored.rows])
    return rows.reshape(len(rows), -1).view(np.float64).astype(stored.dtype).view(np.uint8)


def last_row(rows: Matrices) -> Matrices:
    """Return the last row of matrices of SU(N), ``[link][1][column]``, given all others.

    It is the complex conjugate of the cofactors. The minors of the first rows are computed row by
    row, each from those of one row fewer.
    """
    n = rows.shape[2]
    minors: dict[tuple[int, ...], Any] = {(column,): rows[:, 0, column] for column in range(n)}
    for k in range(1, n - 1):
        minors = {
            c: sum(
                (-1) ** (k + i) * rows[:, k, column] * minors[c[:i] + c[i + 1 :]]
                for i, column in enumerate(c)
            )
            for c in combinations(range(n), k + 1)
        }
    columns = reversed(list(combinations(range(n), n - 1)))  # without column 0, 1, ...
    cofactors = [(-1) ** (n - 1 + j) * minors[x] for j, x in enumerate(columns)]
    return np.stack(cofactors, axis=-1).conj()[:, np.newaxis]


def in_group(group: Group, matrices: Matrices) -> Matrices:
    """Return matrices that have only those entries from the file that kernels store."""
    n = group.colours
    if group.components >= 2 * n**2:
        return matrices
    return np.concatenate([matrices[:, :-1], last_row(matrices[:, :-1])], axis=1)


def deviations(matrices: Matrices) -> NDArray[np.float64]:
    """Return the deviation of each link from SU(N), or NaN; see ``file_links.h``."""
    rows, last = matrices[:, :-1], matrices[:, -1:]
    products = rows @ rows.conj().transpose(0, 2, 1) - np.eye(rows.shape[1])
    result: NDArray[np.float64] = np.maximum(
        np.abs(products).max(axis=(1, 2)), np.abs(last - last_row(rows)).max(axis=(1, 2))
    )
    return result


def nearest_in_group(matrices: Matrices) -> Matrices:
    """Return the matrices of SU(N) that are nearest to these."""
    left, _, right = np.linalg.svd(matrices)
    unitary: Matrices = left @ right
    phase = np.angle(np.linalg.det(unitary)) / unitary.shape[-1]
    unitary *= np.exp(-1j * phase)[:, np.newaxis, np.newaxis]
    return unitary


def trace_sums(
    extents: tuple[int, int, int], links: Matrices, following: Matrices
) -> NDArray[np.float64]:
    """Return the sums of Re Tr over spatial plaquettes, temporal ones and links of a slice."""
    x, y, z = extents
    n = links.shape[-1]
    lower, above = (link.reshape(z, y, x, 4, n, n) for link in (links, following))

    def ahead(direction: int, mu: int) -> Matrices:
        """Return the links along `direction` that leave the neighbours ahead along `mu`."""
        if mu == 3:
            return above[..., direction, :, :]
        return np.roll(lower[..., direction, :, :], -1, axis=2 - mu)

    def plaquettes(mu: int, nu: int) -> float:
        path = lower[..., mu, :, :] @ ahead(nu, mu)
        detour = lower[..., nu, :, :] @ ahead(mu, nu)
        return float((path.real * detour.real + path.imag * detour.imag).sum())

    spatial = sum(plaquettes(mu, nu) for mu, nu in ((0, 1), (0, 2), (1, 2)))
    temporal = sum(plaquettes(mu, 3) for mu in range(3))
    trace = float(np.trace(links, axis1=1, axis2=2).real.sum())
    return np.array([spatial, temporal, trace])


@documented
@dataclass(frozen=True)
class Header:
    """The header of a configuration."""

    format: str = result_field("Name of the format.")
    lattice: Lattice = result_field("Extents of the lattice.")
    group: str = result_field("Name of the group.")
    precision: str = result_field("Precision of the stored links, ``single`` or ``double``.")
    plaquette: float | None = result_field(
        "Average of Re Tr / N over all plaquettes, if the file states it.", None
    )
    link_trace: float | None = result_field(
        "Average of Re Tr / N over all links, if the file states it.", None
    )
    checksum: str = result_field(
        "Checksum that the file states, in hexadecimal; two words separated by a space if the "
        "format has two. Empty if there is none.",
        "",
    )
    provenance: dict[str, str] = result_field("Free text fields of the file.", dict)
    warning: str = result_field(
        "Check that is not possible because the file lacks the information, in words; or empty.", ""
    )


AVERAGE = re.compile(r"([+-]?[0-9]{1,20}(?:\.([0-9]{0,40}))?)(?:[eE]([+-]?[0-9]{1,2}))?")
"""Form of an average in a header."""

TOLERANCE = {"single": 1e-5, "double": 1e-8}
"""Tolerance of plaquette and link trace, by the precision of the links. Other programs may sum in
this precision, with rounding errors of 6e-8 and 1e-16 that accumulate over the lattice."""

COARSEST = 0.01
"""Largest unit of the last digit of an average that is allowed for when it is compared."""


@dataclass(frozen=True)
class StatedAverage:
    """An average that a header states."""

    value: float
    """The average."""
    unit: float
    """Unit of its last digit, at most `COARSEST`."""

    @classmethod
    def parse(cls, text: str) -> StatedAverage | None:
        """Read an average; return None if the text is not a number between -1 and 1, roughly."""
        match = AVERAGE.fullmatch(text)
        value = float(text) if match else math.inf
        if match is None or not abs(value) <= 1 + COARSEST:
            return None
        return cls(value, min(COARSEST, float(f"1e{int(match[3] or 0) - len(match[2] or '')}")))


STATED = {"plaquette": "mean", "link trace": "link_trace"}
"""Averages that headers of files state, with the names that they have in `Averages`."""


@dataclass(frozen=True)
class Reader:
    """A configuration file whose header has been read and agrees with its size.

    A format whose files state checksums, or averages of another accuracy, has a subclass.
    """

    header: Header
    """The header."""
    stored: StoredLinks
    """How the file stores the links."""
    offset: int
    """Position of the links in the file, in bytes."""
    averages: Mapping[str, StatedAverage]
    """Averages that the header states, by a name in `STATED`."""

    @classmethod
    def of(
        cls,
        format: str,
        stored: StoredLinks,
        offset: int,
        averages: Mapping[str, StatedAverage] | None = None,
        **fields: Any,
    ) -> Self:
        """Return the reader of a file of a format.

        Parameters
        ----------
        format : str
            Name of the format.
        stored : StoredLinks
            How the file stores the links.
        offset : int
            Position of the links in the file, in bytes.
        averages : mapping of str to StatedAverage, optional
            Averages that the header states, by a name in `STATED`.
        **fields : object
            Further fields of the `Header`.
        """
        stated = averages or {}
        fields |= {name.replace(" ", "_"): average.value for name, average in stated.items()}
        header = Header(format, stored.lattice, stored.group.name, stored.precision, **fields)
        return cls(header, stored, offset, stated)

    def wrong_checksum(self, file: InputFile, checksums: Checksums) -> str:
        """Return what the checksum of the links is instead of the stated one; empty if it is."""
        stated = self.header.checksum
        for name in self.stored.checksums if stated else ():
            if (words := checksum_words(getattr(checksums, name))) != stated:
                title = f"{IDENTIFYING[name]} " if name in IDENTIFYING else ""
                return f"its links have the {title}checksum {words}, its header says {stated}"
        return ""

    def wrong_average(self, averages: Averages) -> str:
        """Return which average differs from the stated one by more than rounding, or nothing."""
        for name, stated in self.averages.items():
            average = getattr(averages, STATED[name])
            if not abs(average - stated.value) <= TOLERANCE[self.header.precision] + stated.unit:
                return (
                    f"its links have the {name} {average:.12g}, its header says {stated.value:.12g}"
                )
        return ""


def expect_links(file: InputFile, offset: int, stored: StoredLinks) -> None:
    """Refuse a file that does not end with its links, which begin at a position in bytes."""
    file.expect_size(offset + stored.nbytes, {offset + size for size in stored.other_sizes})


LEAST_SITE_BYTES = 64
"""Bytes per site of the most compact file: one row of four SU(2) links in single precision."""


def lattice_of(file: InputFile, x: int, y: int, z: int, t: int, *, odd: bool = False) -> Lattice:
    """Return the lattice with the extents that a file states."""
    try:
        return Lattice(x, y, z, t)
    except GaugeError as error:
        extents, reason = (x, y, z, t), str(error).rstrip(".")
        positive = min(extents) > 0
        short = positive and LEAST_SITE_BYTES * math.prod(extents) > file.size
        if odd and positive and not short and any(extent % 2 for extent in extents):
            return OddLattice(*extents)
        raise file.refusal(reason, short=short) from None
