"""Checkpoints: one file with everything that a Markov chain needs to continue.

The first line of the file is the SHA-256 of the rest of the file, in hexadecimal. The second line
is the `ChainState` as a JSON object. Arrays in NumPy's ``.npy`` format follow, one after the other.

Checkpoints of runs that can only be continued together, after the same update.

While new checkpoints are written, every run keeps its last one beside the new one. A process that
is killed meanwhile leaves some new and some old ones, and the old ones are then valid for all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gauge_mc.errors import DamagedError, GaugeError, UnreadableError, not_written
from gauge_mc.files.atomic import replacing
from gauge_mc.files.input import open_regular
from gauge_mc.files.structured import LARGE, parse_json
from gauge_mc.results import documented, result_field

LONGEST = 2**20
"""Maximum length of the second line in bytes."""

DIGEST_LINE = 2 * hashlib.sha256().digest_size + 1
"""Length of the first line in bytes."""


@documented
@dataclass(frozen=True)
class ChainState:
    """Position and parameters of a Markov chain."""

    sweep: int = result_field("Number of updates done, thermalisation included.")
    step: int = result_field(
        "Number of sweeps for which the random number generator has been used."
    )
    chain: dict[str, str | int | float] = result_field(
        "Parameters of the run that must not change, by name; see `Parameters.fixed`."
    )
    measured: bool = result_field(
        "Whether everything that is due after the last update has been measured and written.", True
    )
    tuning: dict[str, float] = result_field(
        "Numbers that the algorithm has chosen; see `gauge_mc.algorithms.Tuning`.", dict
    )
    replica: int | None = result_field(
        "Number of the replica that has the couplings of the run; None without tempering.", None
    )
    ladder: Sequence[float] = result_field(
        "Couplings β of the runs that exchange replicas, in ascending order.", ()
    )

    def entries(self) -> dict[str, Any]:
        """Return the state as it is written; earlier versions cannot read what they lack."""
        unused = {"tuning"} if not self.tuning else set()
        unused |= {"replica", "ladder"} if self.replica is None else set()
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in unused}


def save(path: Path, state: ChainState, arrays: Iterable[np.ndarray]) -> None:
    """Write a checkpoint. It replaces the previous one only when it is complete and on disk.

    Parameters
    ----------
    path : Path
        Checkpoint file.
    state : ChainState
        Position and parameters of the chain.
    arrays : iterable of np.ndarray
        Arrays of any shape and type, in the order in which `load` returns them. Only one at a time
        is in memory.

    Raises
    ------
    GaugeError
        If the checkpoint cannot be written, for instance because the disk is full.
    """
    with replacing(path) as file:
        file.write(b"0" * (DIGEST_LINE - 1) + b"\n")
        body = _DigestingFile(file)
        body.write(json.dumps(state.entries()).encode() + b"\n")
        for array in arrays:
            np.save(body, array, allow_pickle=False)
        file.seek(0)
        file.write(body.digest.hexdigest().encode())


def read_state(path: Path) -> ChainState:
    """Read the state of a checkpoint without checking the rest of the file."""
    with _reading(path) as file:
        file.seek(DIGEST_LINE)
        line = file.readline(LONGEST)
    try:
        return parse_state(line)
    except (ValueError, TypeError) as error:
        raise GaugeError(
            f"{path} is not a checkpoint of this version of gauge-mc; restore it from a copy, or "
            "continue with the version that wrote it."
        ) from error


def load(path: Path) -> tuple[ChainState, Iterator[np.ndarray]]:
    """Check the checksum of a checkpoint and open it.

    Returns
    -------
    ChainState
        Position and parameters of the chain.
    iterator of np.ndarray
        Arrays in the order in which they were saved.

    Raises
    ------
    GaugeError
        If the file cannot be read or is damaged.
    """
    with _reading(path) as file:
        stated = file.readline().strip()
        if stated != hashlib.file_digest(file, "sha256").hexdigest().encode():
            raise _damaged(path, "its checksum is wrong")
    return read_state(path), _arrays(path)


def _arrays(path: Path) -> Iterator[np.ndarray]:
    size = path.stat().st_size
    with _reading(path) as file:
        file.seek(DIGEST_LINE)
        file.readline()
        while file.tell() < size:
            yield _array(path, file, size)


def _array(path: Path, file: BufferedReader, size: int) -> np.ndarray:
    """Read the next array, whose header must fit the size of the file."""
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError("unknown version of the array's header")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        nbytes = math.prod(shape) * dtype.itemsize
        if fortran or dtype.hasobject or min(shape, default=1) < 0:
            raise ValueError("unknown kind of array")
        if nbytes > size - file.tell():
            raise ValueError("an array is longer than the file")
        array = np.empty(shape, dtype)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != nbytes:
            raise ValueError("the file is shorter than its arrays")
        return array
    except Exception as error:  # NumPy evaluates the header, which can fail in many ways
        raise _damaged(path, " ".join(str(error).split()).rstrip(".")) from error


def fitting(
    path: Path, arrays: Iterator[np.ndarray], expected: Iterable[tuple[np.dtype[Any], int]]
) -> Iterator[np.ndarray]:
    """Pass on the arrays of a checkpoint, which must have the expected types and sizes."""
    for dtype, size in expected:
        array = next(arrays, None)
        if array is None or array.dtype != dtype or array.size != size:
            raise _damaged(path, "its arrays do not fit the lattice")
        yield array


def _damaged(path: Path, reason: str) -> DamagedError:
    return DamagedError(
        f"The checkpoint {path} is damaged ({reason}); start a new run from the last configuration "
        "with --start and --output."
    )


def parse_state(text: str | bytes) -> ChainState:
    """Return the state of a chain from the JSON of its entries."""
    state = ChainState(**parse_json(text))
    if not all(type(x) is int and 0 <= x < LARGE for x in (state.sweep, state.step)):
        raise ValueError("a number of updates is out of range")
    numbers = (*dict(state.tuning).values(), *state.ladder)
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ValueError("a number is not finite")
    replicas = range(len(state.ladder)) if state.ladder else (None,)
    if type(state.replica) not in (int, type(None)) or state.replica not in replicas:
        raise ValueError("its replica is not one of its ladder")
    return state


@contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    try:
        with open_regular(path, "a checkpoint") as file:
            yield file
    except OSError as error:
        raise UnreadableError(
            f"The checkpoint {path} cannot be read ({error.strerror}): check the disk."
        ) from error


class _DigestingFile:
    """A writable file that computes the SHA-256 of everything written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


PREVIOUS = "previous"
"""Name of the last checkpoint of a run while a new one is written."""

Moment = tuple[int, bool]
"""Number of updates, and whether everything that is due after them has been written."""


@contextmanager
def replaced_together(paths: Sequence[Path]) -> Iterator[None]:
    """Keep the last checkpoints of several runs until all new ones have been written."""
    for path in paths:
        try:
            if not _previous(path).exists():  # which it does if writing new ones has just failed
                os.link(path, _previous(path))
        except OSError as error:
            raise not_written(_previous(path), error) from error
    yield
    for path in paths:
        _previous(path).unlink(missing_ok=True)


def restore_common(paths: Sequence[Path]) -> None:
    """Restore the newest checkpoints that several runs have after the same update."""
    checkpoints = [_by_moment(path) for path in paths]
    common = set.intersection(*(set(x) for x in checkpoints))
    if common:
        newest = max(common)
        for path, files in zip(paths, checkpoints, strict=True):
            if files[newest] != path:
                os.replace(files[newest], path)
            _previous(path).unlink(missing_ok=True)
    elif all(moment[0] == 0 for x in checkpoints for moment in x):
        for path in paths:  # the process was killed while the first ones were written
            path.unlink(missing_ok=True)
    else:
        raise GaugeError(
            f"The checkpoint {paths[0]} and those of the runs with which it exchanges couplings "
            "are not after the same update; restore them from copies, or begin again with another "
            "--output."
        )


def _by_moment(path: Path) -> dict[Moment, Path]:
    """Return the checkpoints of a run by the update after which they are."""
    paths: dict[Moment, Path] = {}
    for file in (_previous(path), path):
        if file.exists():
            state = read_state(file)
            paths[state.sweep, state.measured] = file
    return paths


def _previous(path: Path) -> Path:
    return path.with_name(PREVIOUS)
