"""Checkpoints: all that a Markov chain needs to go on, in one file that is whole or not there.

The file's first line is the SHA-256 of all that follows, in hexadecimal; the second is a JSON
object, the `Moment`; then come arrays in NumPy's ``.npy`` format, one after the other.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.formats.files import replacing

LONGEST = 2**20
"""Bytes of the line that holds the moment, at most."""

DIGEST_LINE = 2 * hashlib.sha256().digest_size + 1


@dataclass(frozen=True)
class Moment:
    """Where a Markov chain stands, and which chain it is.

    Parameters
    ----------
    sweep : int
        Composite sweeps done.
    step : int
        The random number generator's count of steps.
    chain : dict
        The run's parameters by name, as far as they may not change.
    """

    sweep: int
    step: int
    chain: dict[str, str | int | float]


def save(path: Path, moment: Moment, arrays: Iterable[np.ndarray]) -> None:
    """Write a checkpoint; until it is whole and synced, the one before stays.

    Parameters
    ----------
    path : Path
        The checkpoint file.
    moment : Moment
        Where the chain stands.
    arrays : iterable of np.ndarray
        What `load` gives back, of any shapes and types. One at a time is in memory.

    Raises
    ------
    GaugeError
        If it cannot be written, for instance because the disk is full.
    """
    with replacing(path) as file:
        file.write(b"0" * (DIGEST_LINE - 1) + b"\n")
        body = _Digesting(file)
        body.write(json.dumps(dataclasses.asdict(moment)).encode() + b"\n")
        for array in arrays:
            np.save(body, array, allow_pickle=False)
        file.seek(0)
        file.write(body.digest.hexdigest().encode())


def read_moment(path: Path) -> Moment:
    """Read where a checkpoint stands, without checking the rest of the file.

    Raises
    ------
    GaugeError
        If the file cannot be read or is damaged.
    """
    with _reading(path) as file:
        file.seek(DIGEST_LINE)
        return _moment(path, file.readline(LONGEST))


def load(path: Path) -> tuple[Moment, Iterator[np.ndarray]]:
    """Check a checkpoint from end to end and open it.

    Returns
    -------
    Moment
        Where the chain stands.
    iterator of np.ndarray
        The arrays, in the order in which they were saved.

    Raises
    ------
    GaugeError
        If the file cannot be read or is damaged.
    """
    with _reading(path) as file:
        stated = file.readline().strip()
        found = hashlib.file_digest(file, "sha256").hexdigest().encode()
        if stated != found:
            raise GaugeError(
                f"The checkpoint {path} is damaged (its checksum is wrong); "
                "start a new run from the last configuration with --start and --output."
            )
    return read_moment(path), _arrays(path)


def _arrays(path: Path) -> Iterator[np.ndarray]:
    size = path.stat().st_size
    with _reading(path) as file:
        file.seek(DIGEST_LINE)
        file.readline()
        while file.tell() < size:
            yield np.load(file, allow_pickle=False)


def _moment(path: Path, line: bytes) -> Moment:
    try:
        moment = Moment(**json.loads(line))
        if not (isinstance(moment.sweep, int) and isinstance(moment.step, int)):
            raise ValueError
    except (ValueError, TypeError) as error:
        raise GaugeError(f"{path} is not a checkpoint of this version of gauge-mc.") from error
    return moment


@contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise GaugeError(f"Cannot read the checkpoint {path}: {error.strerror}.") from error


class _Digesting:
    """A file to write to that keeps the digest of what went through."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)
