"""Append-only tables of measurements as CSV files.

A table begins with a header of ``# key: value`` lines. A line with the names of the columns and the
rows follow. Floats are written so that they read back bit for bit. The rows of a stored
configuration follow a line ``# configuration NUMBER: FILE, DIGEST``, which says what was measured.
A line ``# made by: VERSION`` says that another version than before made the rows after it. A table
that is not being written ends with its seal, a line ``# sha256: …`` with the checksum of all bytes
before it. The checksum is verified whenever the table is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from gauge_mc import errors
from gauge_mc.files.atomic import refuse_link, replacing
from gauge_mc.files.foreign import foreign_table, stated_lattice
from gauge_mc.files.frames import to_html, to_pandas, to_xarray
from gauge_mc.files.input import PACKED_BYTES, open_regular, packed
from gauge_mc.process import in_context
from gauge_mc.quoting import printable
from gauge_mc.registry import nearest

Value = int | float | str

LEAST_PLAIN, MOST_PLAIN = 1e-4, 1e16
"""Range of absolute values that Python writes without an exponent."""

SHOWN_COLUMNS = 6
"""Number of columns that the repr of a table names."""

MOST_TAIL = 2**25
"""Number of bytes at the end of a table that a `TableTail` begins with."""

NOTHING = np.empty(0)
"""The values of a column of a table without rows."""

SEAL = b"# sha256: "
"""Beginning of the seal, which is the last line of a table that is not being written."""


ORIGIN = re.compile(rb"# configuration ([0-9]{1,18}): (.*), ([^,]+)")
"""Form of the line before the rows of a stored configuration."""

MAKER = re.compile(rb"# made by: (.+)|# sources: (?:[0-9a-f]{16}|unknown)")
"""Form of the line before rows that another version made than those before. Earlier versions wrote
digests of sources, which say nothing any more.
"""

UNKNOWN = "unknown"
"""Stands for a version that is not known, after rows of one that is."""


@dataclass(frozen=True)
class Origin:
    """The stored configuration that rows of a table were measured on."""

    name: str
    """Name of its file, without folders."""
    digest: str
    """Digest of its links; see `gauge_mc.configurations.reading.Configuration.digest`."""


@dataclass(frozen=True)
class TableContent:
    """The bytes of a table up to its last complete row, without its seal."""

    size: int
    """Number of bytes."""
    sha256: str
    """Their checksum, in hexadecimal digits."""


class ContentMatch(Enum):
    """Whether a table still has the content that it had when it was read."""

    SAME = "same"
    GROWN = "grown"
    """Rows have been appended."""
    OTHER = "other"


@dataclass(frozen=True)
class TableData:
    """The content of a table file.

    As in a data frame of pandas, iteration and ``in`` are about the names of the columns,
    ``dict(table)`` has the columns by name, and the length is the number of rows. `rows` iterates
    over the rows.

    Attributes
    ----------
    header : dict of str to str
        Contents of the ``# key: value`` lines.
    columns : dict of str to np.ndarray
        Columns by name, each of shape (rows,). The type is int64 if all values are whole numbers,
        float64 if they are all numbers, and strings otherwise.
    origins : dict of int to Origin
        Stored configurations by number, as far as the table says which they were. Tables of earlier
        versions do not.
    content : TableContent or None
        The bytes from which the table was read; None if it is part of a table.
    makers : dict of int to str
        Versions that made the rows, by the place of the first row that each of them made.
    """

    header: dict[str, str]
    columns: dict[str, np.ndarray]
    origins: dict[int, Origin] = field(default_factory=dict)
    content: TableContent | None = None
    makers: dict[int, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise errors.UnknownNameError(
                f"There is no column '{name}'{nearest(name, self.columns, 'columns')}"
            )
        return self.columns[name]

    def __len__(self) -> int:
        return max(map(len, self.columns.values()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def numbers(self, name: str, path: Path) -> NDArray[Any]:
        """Return a column of numbers.

        Raises
        ------
        GaugeError
            If there is none of this name; the message names the file of the table.
        """
        column = self.columns.get(name)
        if column is None or column.dtype.kind == "U":
            raise errors.DamagedError(
                f"The table {path} is damaged: it contains no numbers for {name}."
            )
        return column

    def keys(self) -> KeysView[str]:
        """Return the names of the columns."""
        return self.columns.keys()

    def rows(self) -> Iterator[dict[str, Value]]:
        """Iterate over the rows, each a dictionary of Python's numbers and strings by column."""
        values = (column.tolist() for column in self.columns.values())
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True))

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with these rows and columns, and the header as its attrs.

        Raises
        ------
        GaugeError
            If pandas is not installed.
        """
        return to_pandas(self.columns, self.header)

    def to_xarray(self) -> Any:
        """Return an ``xarray.Dataset`` with the header as its attrs.

        Its dimensions are ``sweep``, if there is such a column, and the first columns after it that
        are needed to tell the rows of a measurement apart, such as ``smearing``, ``path``, ``r``
        and ``t`` of Wilson loops. The other columns are variables, NaN where there is no row.

        Raises
        ------
        GaugeError
            If xarray is not installed, or two rows are equal.
        """
        return to_xarray(self.columns, self.header)

    def _repr_html_(self) -> str:
        from gauge_mc.reports.figures import table_cell

        return to_html(self.columns, self.header, repr(self)) + table_cell(self)

    def after(self, update: int, source: str) -> TableData:
        """Return the rows that were measured after an update.

        Parameters
        ----------
        update : int
            Number of the last update that is left out.
        source : str
            Name of the table for error messages.

        Raises
        ------
        UsageError
            If `update` is negative, or no row is left.
        """
        sweeps = next(iter(self.columns.values()))
        if update < 0:
            raise errors.UsageError(f"--skip is {update}; give 0 or a positive number of updates.")
        if not update or not len(self):
            return self
        later = sweeps > update
        if not later.any():
            raise errors.UsageError(
                f"--skip {update} leaves nothing of {source}, whose last measurement was made "
                f"after update {sweeps[-1]}; skip less."
            )
        return TableData(
            self.header, {name: column[later] for name, column in self.columns.items()}
        )

    def made_by_others(self, version: str) -> NDArray[np.bool_]:
        """Return a mask of the rows that are known to be made by another version."""
        mask = np.zeros(len(self), np.bool_)
        places = [*self.makers, len(self)]
        for maker, begin, end in zip(self.makers.values(), places, places[1:], strict=False):
            mask[begin:end] = maker not in (version, UNKNOWN)
        return mask

    def __repr__(self) -> str:
        title, names = self.header.get("observable", "table"), list(self.columns)
        more = f", … ({len(names)} columns)" if len(names) > SHOWN_COLUMNS else ""
        return f"<{title}: {len(self)} rows of {', '.join(names[:SHOWN_COLUMNS])}{more}>"


class Table:
    """A table file that is open for appending.

    A new file is created with its header. The checksum of an existing one is verified. Before the
    first change the seal is removed, and so is an incomplete last row, which an interruption or a
    full disk has left.

    Parameters
    ----------
    path : Path
        CSV file.
    header : mapping of str to str
        Header of a new file: observable, normalisation, units, group, beta, lattice, version. The
        version is written before further rows of a table that another one has begun.
    columns : sequence of str
        Names of the columns. The first column contains sweep numbers, which never decrease.

    Raises
    ------
    GaugeError
        If an existing file is damaged or has other columns, or if the file cannot be written.
    UsageError
        If `path` is a link.
    """

    def __init__(self, path: Path, header: Mapping[str, str], columns: Sequence[str]) -> None:
        self.path, self.maker = path, header.get("version", UNKNOWN)
        refuse_link(path)
        if not path.exists():
            write_table(path, header, columns, seal=False)
        layout = _TableLayout.of(path)
        if layout.names != list(columns):
            raise errors.GaugeError(
                f"The table {path} has the columns {','.join(layout.names)} instead of "
                f"{','.join(columns)}; move it to another folder."
            )
        with self._writing():
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._size, self._begun, self._columns = layout.content.size, False, list(columns)
        self._stated = _last_maker(layout.lines, layout.header.get("version", UNKNOWN))

    def append(self, rows: Iterable[Sequence[Value]], origin: Origin | None = None) -> None:
        """Append rows in one write."""
        lines: list[str] = []
        for row in rows:
            for column, (_, value) in enumerate(zip(self._columns, row, strict=True)):
                if isinstance(value, float) and not math.isfinite(value):
                    raise self._not_finite(column, value, row[0])
            if origin and not lines:
                lines.append(f"# configuration {row[0]}: {_word(origin.name)}, {origin.digest}\n")
            lines.append(",".join(map(_format, row)) + "\n")
        self._append_rows("".join(lines).encode())

    def append_numbers(self, sweeps: Sequence[int], values: NDArray[np.float64]) -> None:
        """Append rows of floats, which is much faster than `append` and writes the same bytes."""
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, column = bad[0]
            raise self._not_finite(column + 1, values[row, column], sweeps[row])
        if len(sweeps):
            self._append_rows(_lines(sweeps, values))

    def _not_finite(self, column: int, value: Value, sweep: Value) -> errors.GaugeError:
        return errors.GaugeError(
            f"{self._columns[column]} is {value} at {self._columns[0]} {sweep}, so that nothing "
            f"more was added to {self.path}; choose other parameters of the measurement."
        )

    def _append_rows(self, rows: bytes) -> None:
        """Append rows, after the version that makes them if that differs from the one before."""
        if rows and self.maker != self._stated:
            rows = f"# made by: {self.maker}\n".encode() + rows
        self._append(rows)
        if rows:
            self._stated = self.maker

    def _append(self, data: bytes) -> None:
        with self._writing():
            self._begin()
            while data:
                data = data[os.write(self._fd, data) :]

    def sync(self) -> None:
        """Wait until all rows are on the disk; for errors see `append`."""
        with self._writing():
            os.fsync(self._fd)

    def truncate(self, after: int, expected: int) -> None:
        """Remove all rows after a sweep, so that they can be written again."""
        layout = _TableLayout.of(self.path)
        rows = (layout.lines[place] for place in layout.places)
        intact = sum(1 for _ in itertools.takewhile(lambda row: _sweep(row) <= after, rows))
        if intact != expected:
            raise errors.GaugeError(
                f"The table {self.path} has {intact} intact rows up to sweep {after} instead of "
                f"{expected}; restore it, or start a new run with another --output."
            )
        begin = layout.places[intact - 1] + 1 if intact else 0
        dropped = sum(len(line) + 1 for line in layout.lines[begin:])
        self._stated = _last_maker(layout.lines[:begin], layout.header.get("version", UNKNOWN))
        if dropped:
            with self._writing():
                self._begin()
                os.ftruncate(self._fd, layout.content.size - dropped)

    def seal(self) -> None:
        """Append the seal, wait until it is on the disk, and close the file; see `append`."""
        with self._writing():
            self._begin()
            checksum = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self._append(SEAL + checksum.encode() + b"\n")
        self.sync()
        self.close()

    def close(self) -> None:
        """Close the file without a seal. The object cannot be used afterwards."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._fd >= 0:
            self.seal()
        self.close()

    def _begin(self) -> None:
        """Remove the seal or an incomplete last row before the first change."""
        if not self._begun:
            os.ftruncate(self._fd, self._size)
            self._begun = True

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            sentence = str(errors.not_written(self.path, error)).removesuffix(".")
            raise errors.GaugeError(f"{sentence}, then run the same command again.") from error


def write_table(
    path: Path,
    header: Mapping[str, str],
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]] = (),
    seal: bool = True,
) -> None:
    """Write a table, which appears at once or not at all."""
    lines = [f"# {_word(key)}: {_word(value)}" for key, value in header.items()]
    records = (",".join(map(_format, row)) for row in rows)
    data = "\n".join([*lines, ",".join(columns), *records, ""]).encode()
    if seal:
        data += SEAL + hashlib.sha256(data).hexdigest().encode() + b"\n"
    with replacing(path) as file:
        file.write(data)


def read_table(
    path: str | Path, text: Collection[str] = ("path",), lattice: str | None = None
) -> TableData:
    """Read a table. If another process is writing it, it is read up to its last complete row.

    It may also be a series of another program; see `gauge_mc.files.foreign`.

    Parameters
    ----------
    path : str or Path
        CSV file, or a series of another program.
    text : collection of str
        Names of columns that are kept as strings even if they look like numbers.
    lattice : str, optional
        Extents of the lattice, such as ``24x24x24x48``, for a series that does not state them.

    Returns
    -------
    TableData
        The columns as arrays, and the header.

    Raises
    ------
    GaugeError
        If the file does not exist, is not a table or is damaged. The message names the line.
    """
    with stated_lattice(lattice):
        table = _kept_table(path, text)
    noted = _noted_tables.get()
    if noted is not None:
        noted[Path(path)] = table
    return table


def _kept_table(path: str | Path, text: Collection[str]) -> TableData:
    """Read a table, or take it from those that are kept, also by another link to the file."""
    tables = _kept_tables.get()
    if tables is None:
        return _read_table(path, text)
    try:
        status = os.stat(path)
    except OSError:
        return _read_table(path, text)
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, frozenset(text))
    if key not in tables:
        tables[key] = _read_table(path, text)
        for column in tables[key].columns.values():
            column.flags.writeable = False
    return tables[key]


_kept_tables: ContextVar[dict[tuple[object, ...], TableData] | None] = ContextVar(
    "kept_tables", default=None
)
"""Tables that have been read within `each_table_once`."""


def each_table_once() -> contextlib.AbstractContextManager[object]:
    """Let `read_table` read a table that has not changed only once in a context.

    The columns of such tables cannot be changed.
    """
    return in_context(_kept_tables, {})


_noted_tables: ContextVar[dict[Path, TableData] | None] = ContextVar("noted_tables", default=None)
"""Tables that have been read within `noted_tables`."""


def noted_tables() -> contextlib.AbstractContextManager[dict[Path, TableData]]:
    """Note the tables that `read_table` reads in a context, by their paths."""
    return in_context(_noted_tables, {})


def _read_table(path: str | Path, text: Collection[str]) -> TableData:
    """Read a table; see `read_table`."""
    if foreign := foreign_table(Path(path)):
        table, data = foreign
        content = TableContent(len(data), hashlib.sha256(data).hexdigest())
        return TableData(table.header, table.columns, content=content)
    layout = _TableLayout.of(Path(path))
    rows = [layout.lines[place] for place in layout.places]
    numbers = [layout.first + place for place in layout.places]
    columns = _columns(path, layout.names, rows, numbers, text)
    return TableData(layout.header, columns, layout.origins, layout.content, layout.makers)


def _columns(
    path: str | Path,
    names: Sequence[str],
    rows: Sequence[bytes],
    numbers: Sequence[int],
    text: Collection[str],
) -> dict[str, np.ndarray]:
    """Return the columns of rows, given the number of the line of each; see `read_table`."""
    cells = [row.decode(errors="replace").split(",") for row in rows]
    for line, row in zip(numbers, cells, strict=True):
        if len(row) != len(names):
            raise errors.DamagedError(
                f"Line {line} of the table {path} is damaged: it has {len(row)} values "
                f"instead of {len(names)}."
            )
    columns = {}
    for index, name in enumerate(names):
        words = np.array([row[index] for row in cells], dtype=str)
        columns[name] = words if name in text else _numbers(words)
        if name not in text and columns[name] is words:
            odd = [line for line, word in zip(numbers, words, strict=True) if not _is_number(word)]
            if len(odd) < len(words):
                raise errors.DamagedError(
                    f"Line {odd[0]} of the table {path} is damaged: its {name} is not a number."
                )
    return columns


class TableTail:
    """A table that is read again and again while another process appends rows to it.

    Only what has been added is read. Rows that are taken back and written again, as by a run that
    is resumed, are the same. The seal is not verified.

    Parameters
    ----------
    path : Path
        CSV file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = (0, 0)
        self._end = 0

    def read(self) -> TableData:
        """Return the table up to its last complete row, from at most its last `MOST_TAIL` bytes."""
        with _opened(self.path) as file:
            status = os.fstat(file.fileno())
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._end:
                self._begin(file, status.st_size)
                self._file = (status.st_dev, status.st_ino)
            file.seek(self._end)
            data = file.read()
        lines = data.split(b"\n")[:-1]
        while lines and lines[-1].startswith(SEAL):  # a resumed run removes it
            lines.pop()
        rows = [line for line in lines if not line.startswith(b"#")]
        if rows:
            unknown = range(self._rows + 1, self._rows + len(rows) + 1)
            new = _columns(self.path, self._names, rows, unknown, ("path",))
            for name, column in new.items():
                before = self._columns.get(name)
                self._columns[name] = column if before is None else np.append(before, column)
            self._rows += len(rows)
        self._end += sum(map(len, lines)) + len(lines)
        return TableData(self._header, {**dict.fromkeys(self._names, NOTHING), **self._columns})

    def _begin(self, file: BufferedReader, size: int) -> None:
        """Read the heading, and find the place from which rows are read."""
        self._header, self._names = _read_heading(self.path, file)
        self._columns: dict[str, np.ndarray] = {}
        self._rows, self._end = 0, file.tell()
        if size - self._end > MOST_TAIL:
            file.seek(size - MOST_TAIL)
            self._end = size - MOST_TAIL + len(file.readline())


def read_heading(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the header of a table and the names of its columns, without reading its rows."""
    if foreign := foreign_table(path):
        return foreign[0].header, [*foreign[0].columns]
    with _opened(path) as file:
        return _read_heading(path, file)


def _read_heading(path: Path, file: BufferedReader) -> tuple[dict[str, str], list[str]]:
    """Read the lines up to the one with the names of the columns."""
    lines = []
    for line in file:
        lines.append(line.removesuffix(b"\n"))
        if not line.startswith(b"#"):
            break
    return _parse_heading(path, lines)


@dataclass(frozen=True)
class _TableLayout:
    """The parts of a table file, up to its last complete row."""

    header: dict[str, str]
    """Contents of the header."""
    names: list[str]
    """Names of the columns."""
    lines: list[bytes]
    """Lines after that with the names of the columns, without their line ends."""
    places: Sequence[int]
    """Places of the rows among these lines."""
    origins: dict[int, Origin]
    """Stored configurations by number."""
    makers: dict[int, str]
    """Versions by the place of the first row that they made."""
    first: int
    """Number of the first of these lines, counted from 1."""
    content: TableContent
    """The bytes of the file up to the end of the last complete line."""

    @classmethod
    def of(cls, path: Path) -> _TableLayout:
        with _opened(path) as file:
            data = file.read()
        data, content = _unsealed(path, data[: data.rfind(b"\n") + 1])
        lines = data.split(b"\n")[:-1]
        header, names = _parse_heading(path, lines)
        first = sum(1 for _ in _comments(lines)) + 1
        body = lines[first:]
        origins: dict[int, Origin] = {}
        makers = {0: header["version"]} if "version" in header else {}
        places: list[int] = []
        for place, line in enumerate(body):
            comment = line.startswith(b"#")
            if comment and (match := ORIGIN.fullmatch(line)):
                origins[int(match[1])] = Origin(
                    match[2].decode(errors="replace"), match[3].decode()
                )
            elif comment and (match := MAKER.fullmatch(line)):
                if match[1]:
                    makers[len(places)] = match[1].decode(errors="replace")
            else:
                places.append(place)
        makers.pop(len(places), None)  # no row follows
        return cls(header, names, body, places, origins, makers, first + 1, content)


def _last_maker(lines: Sequence[bytes], first: str) -> str:
    """Return the version that made the last rows, given the lines and that of the header."""
    for line in reversed(lines):
        if line.startswith(b"#") and (match := MAKER.fullmatch(line)) and match[1]:
            return match[1].decode(errors="replace")
    return first


def _comments(lines: Sequence[bytes]) -> Iterator[bytes]:
    return itertools.takewhile(lambda line: line.startswith(b"#"), lines)


def _parse_heading(path: Path, lines: Sequence[bytes]) -> tuple[dict[str, str], list[str]]:
    """Return the header and the names of the columns from the first lines of a table."""
    comments = list(_comments(lines))
    try:
        names = lines[len(comments)].decode().split(",")
        pairs = [line.decode()[1:].partition(":") for line in comments]
    except (IndexError, UnicodeDecodeError) as error:
        raise errors.UnsupportedError(
            f"{path} is not a table: it has no line with the names of columns."
        ) from error
    header = {key.strip(): value.strip() for key, _, value in pairs}
    texts = {name or "\0": "a name in its header" for name in (*header, *names)}
    texts |= dict.fromkeys(header.values(), "its header")
    for text, origin in texts.items():
        if not text.isprintable():
            raise errors.UnsupportedError(f"{path} is not a table: {origin} is not printable text.")
    return header, names


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Open a table for reading."""
    try:
        with open_regular(path, "a table") as file:
            if kind := packed(file.peek(PACKED_BYTES)):
                raise errors.UnsupportedError(f"{path} is {kind}: unpack it first.")
            yield file
    except errors.GaugeError as error:
        raise type(error)(f"The table {error}") from error
    except OSError as error:
        raise errors.UnreadableError(
            f"The table {path} cannot be read ({error.strerror})."
        ) from error


def _unsealed(path: Path, data: bytes) -> tuple[bytes, TableContent]:
    """Verify the seal of a table, if it has one, and return the content before it."""
    end = data.find(SEAL, data.rfind(b"\n", 0, -1) + 1)
    content = data if end < 0 else data[:end]
    digest = hashlib.sha256(content).hexdigest()
    if end >= 0 and data[end + len(SEAL) :].strip() != digest.encode():
        raise errors.DamagedError(
            f"The table {path} is damaged: its checksum is not that of its last line; restore it "
            "from a copy, or remove that line to use the table as it is."
        )
    return content, TableContent(len(content), digest)


def compare_content(path: Path, content: TableContent) -> ContentMatch:
    """Compare a table with the content that it had when it was read."""
    with _opened(path) as file:
        data = file.read()
    start = data[: content.size]
    if len(start) < content.size or hashlib.sha256(start).hexdigest() != content.sha256:
        return ContentMatch.OTHER
    *rows, _ = data[content.size :].split(b"\n")
    unchanged = not [row for row in rows if not row.startswith(SEAL)]
    return ContentMatch.SAME if unchanged else ContentMatch.GROWN


def _word(text: object) -> str:
    """Return a text for the header, which may come from the header of another file."""
    return printable(" ".join(str(text).split()))


def _format(value: Value) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def _lines(sweeps: Sequence[int], values: NDArray[np.float64]) -> bytes:
    """Return rows in the format of `_format`."""
    size = np.abs(values)
    # Other numbers are written with an exponent, about which libraries disagree.
    usual = ((size >= LEAST_PLAIN) & (size < MOST_PLAIN)) | (size == 0)
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)
    rows = text.removeprefix(b"[[").removesuffix(b"]]").split(b"],[")
    for n in np.flatnonzero(~usual.all(axis=1)):
        rows[n] = ",".join(map(repr, values[n].tolist())).encode()
    return b"".join(b"%d,%b\n" % pair for pair in zip(sweeps, rows, strict=True))


def _sweep(row: bytes) -> float:
    """Return the sweep of a row, or infinity if the row is damaged."""
    try:
        return int(row.split(b",", 1)[0])
    except ValueError:
        return math.inf


def _numbers(words: np.ndarray) -> np.ndarray:
    """Return words as whole numbers or as floats, or unchanged if they are not all numbers."""
    for kind in (np.int64, np.float64):
        with contextlib.suppress(ValueError, OverflowError):
            return words.astype(kind)
    return words


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        float(word)
        return True
    return False
