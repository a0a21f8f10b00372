"""The record of a published run: its configurations with their checksums, and where it was made.

A folder has ``configurations.csv`` with one row per configuration, ``kernels.csv`` with the SHA-256
of the kernels' sources, ``chain.json`` with the state at the last checkpoint, ``machine.json`` with
the versions of compilers, drivers and packages, and the files of the run itself.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar, get_type_hints

from gauge_mc import __version__
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices import BACKENDS
from gauge_mc.devices.source import source_folder
from gauge_mc.errors import DamagedError
from gauge_mc.files.input import open_regular, read_text
from gauge_mc.files.structured import parse_csv
from gauge_mc.libraries import LIBRARIES
from gauge_mc.options import READ
from gauge_mc.run.checkpoint import ChainState
from gauge_mc.run.directory import Run

CONFIGURATIONS, KERNELS = Path("configurations.csv"), Path("kernels.csv")
CHAIN, MACHINE, CARD = Path("chain.json"), Path("machine.json"), Path("card.toml")
"""Files of a published run."""

Row = TypeVar("Row")

KERNEL_COLUMNS = ("file", "sha256")
"""Columns of the list of the kernels' sources."""

MOST_BYTES = 2**28
"""Largest size of a list that is read."""

SOURCES = (".h", ".cu", ".cuh", ".cpp")
"""Endings of the kernels' sources."""


@dataclass(frozen=True)
class PublishedConfiguration:
    """A row of the list of configurations."""

    update: int
    """Number of updates after which it was written."""
    file: str
    """Path in the run."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file."""
    links: str
    """Digest of the links, which does not depend on the header of the file."""
    plaquette: float
    """Average plaquette."""

    @classmethod
    def of(cls, run: Run, update: int, path: Path) -> PublishedConfiguration:
        """Return the row of a configuration, after the file has been checked.

        Raises
        ------
        GaugeError
            If it is damaged.
        """
        averages, links = open_configuration(path).identified()
        place = path.relative_to(run.path).as_posix()
        return cls(update, place, path.stat().st_size, sha256(path), links, averages.mean)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with open_regular(path, "a file") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def configurations_text(rows: Iterable[PublishedConfiguration]) -> str:
    """Return the list of configurations as a CSV file."""
    return _csv([one.name for one in fields(PublishedConfiguration)], map(astuple, rows))


def read_configurations(folder: Path) -> dict[int, PublishedConfiguration]:
    """Read the list of configurations, by update.

    Raises
    ------
    GaugeError
        If it is damaged.
    """
    kinds = get_type_hints(PublishedConfiguration)

    def read(row: dict[str, str]) -> PublishedConfiguration:
        return PublishedConfiguration(**{name: READ[kinds[name]](row[name]) for name in row})

    return {one.update: one for one in _rows(folder / CONFIGURATIONS, [*kinds], read)}


def kernels_text() -> str:
    """Return the SHA-256 of the sources of this version's kernels as a CSV file."""
    return _csv(KERNEL_COLUMNS, source_digests().items())


def source_digests() -> dict[str, str]:
    """Return the SHA-256 of the kernels' sources, by path."""
    root = source_folder()
    files = sorted(path for path in root.rglob("*") if path.suffix in SOURCES)
    return {path.relative_to(root).as_posix(): sha256(path) for path in files}


def other_sources(folder: Path) -> list[str]:
    """Return the kernels' sources that differ from those that a publication lists."""
    listed = dict(_rows(folder / KERNELS, KERNEL_COLUMNS, lambda row: (row["file"], row["sha256"])))
    own = source_digests()
    return sorted(name for name in {*listed, *own} if listed.get(name) != own.get(name))


def chain_text(state: ChainState) -> str:
    """Return the state of a chain as JSON."""
    return json.dumps(state.entries(), indent=1) + "\n"


def machine_text() -> str:
    """Return the versions of the system, of compilers, drivers and packages as JSON."""
    findings = [one for backend in BACKENDS.values() for one in backend.findings()]
    packages = {name: _version(name) for name in ("numpy", *LIBRARIES)}
    return (
        json.dumps(
            {
                "gauge-mc": __version__,
                "system": platform.platform(),
                "processor": platform.machine(),
                "python": platform.python_version(),
                "devices": {one.subject: asdict(one) for one in findings},
                "packages": {name: found for name, found in packages.items() if found},
            },
            indent=1,
        )
        + "\n"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _rows(path: Path, names: Sequence[str], read: Callable[[dict[str, str]], Row]) -> list[Row]:
    """Read the rows of a list.

    Raises
    ------
    GaugeError
        If it is damaged.
    """
    try:
        return [read(row) for row in parse_csv(read_text(path, MOST_BYTES), names)]
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DamagedError(f"{path} is damaged: {reason}; get the publication again.") from error


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()
