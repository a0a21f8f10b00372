"""Configurations on disk: ILDG, NERSC, MILC and openQCD files to and from NumPy.

Links are streamed by time slices, complex128 ``U[z, y, x, mu, a, b]`` for t = 0, 1, …, so that
no more than a few of them are in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import ildg, milc, nersc, openqcd
from gauge_mc.formats.files import InputFile, replacing
from gauge_mc.formats.header import Header, Reader
from gauge_mc.formats.links import COLOURS, Links, misfit
from gauge_mc.formats.plaquette import Averages, plaquette_of
from gauge_mc.lattice import Lattice

__all__ = [
    "Averages",
    "Configuration",
    "Header",
    "open_configuration",
    "plaquette_of",
    "write_configuration",
]

_WORKING_SLICES = 8
"""Time slices that reading and checking hold at a time, with all temporaries."""


@dataclass(frozen=True)
class Configuration:
    """A configuration file whose header has been read and fits its size.

    Attributes
    ----------
    path : Path
    header : Header
    """

    path: Path
    header: Header
    _reader: Reader
    _size: int

    def slices(self) -> Iterator[Links]:
        """Stream the time slices and check them.

        Each slice is checked for links that are not in the group before it is given out, the
        last one also after checksum, plaquette and link trace, as far as the format has them,
        have been compared with the header. So whoever has all slices has good ones.

        Yields
        ------
        complex128 array [z, y, x, mu, a, b]

        Raises
        ------
        GaugeError
            If the file is damaged, or has changed since it was opened.
        """
        with InputFile(self.path) as file:
            file.expect_size(self._size)
            try:
                for t, links in enumerate(self._reader.slices(file)):
                    reason = misfit(links, t)
                    if reason:
                        raise file.damaged(reason)
                    yield links
                    del links  # which must not be held beside the next
            except MemoryError as error:
                raise _too_large(self.path) from error


def open_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Open a configuration file, find out its format and read its header.

    Parameters
    ----------
    path : str or path-like
        An ILDG, NERSC, MILC or openQCD file.

    Returns
    -------
    Configuration

    Raises
    ------
    GaugeError
        If the file cannot be read, is of none of these formats, or its header is damaged or
        does not fit its size.
    """
    with InputFile(path) as file:
        head = file.read(0, min(file.size, 64)).tobytes()
        for module in (ildg, nersc, milc, openqcd):
            if module.recognises(head):
                reader: Reader = module.read_header(file)
                _check_memory(file.path, reader.header)
                return Configuration(file.path, reader.header, reader, file.size)
        raise GaugeError(
            f"{file.path} is not a configuration in ILDG, NERSC, MILC or openQCD format: name "
            "another file, or restore this one from a copy if it was one."
        )


def write_configuration(
    path: str | os.PathLike[str],
    slices: Iterable[Links],
    lattice: Lattice,
    group: str,
    precision: str,
    format: str = "ildg",
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a configuration.

    It appears under its name whole and synced to disk, or not at all. The same arguments give
    the same bytes: dates are written only as far as `provenance` has them.

    Parameters
    ----------
    path : str or path-like
        The file, replaced if it exists. Its folder must exist.
    slices : iterable of complex128 arrays [z, y, x, mu, a, b]
        The time slices t = 0, 1, …, taken one at a time.
    lattice : Lattice
    group : str
        ``su2`` or ``su3``.
    precision : str
        ``single`` or ``double``, of the links in the file.
    format : str
        ``ildg``, ``nersc`` (all rows, big endian) or ``openqcd`` (SU(3) in double only).
    provenance : mapping of str to str
        Free text fields. Of these ``ensemble_id``, ``ensemble_label``, ``sequence_number``,
        ``creator``, ``creator_hardware``, ``creation_date`` and ``archive_date`` have a place of
        their own in NERSC files, and ``creation_date`` and ``ildg-data-lfn`` (the logical file
        name; without it the name of the file) in ILDG files. openQCD files hold none.

    Raises
    ------
    UsageError
        If the format does not exist, is read only, or has no such group or precision.
    GaugeError
        If a slice has another shape or links that are not in the group, there are too few or
        too many of them, or the file cannot be written.
    """
    target = Path(path)
    _check_format(format, group, precision)
    fields = {ildg.LFN: target.name} if format == "ildg" else {}
    fields.update(provenance or {})
    writer = {"ildg": ildg.write, "nersc": nersc.write, "openqcd": openqcd.write}[format]
    with replacing(target) as out:
        checked = _checked(target, slices, lattice, group)
        writer(out, checked, lattice, group, precision, fields)


def _check_format(format: str, group: str, precision: str) -> None:
    """Refuse what a format cannot hold."""
    if format == "milc":
        raise UsageError("MILC files are only read: write ildg or nersc instead.")
    if format not in ("ildg", "nersc", "openqcd"):
        raise UsageError(f"There is no format '{format}' to write: choose ildg, nersc or openqcd.")
    if group not in COLOURS:
        raise UsageError(f"There is no group '{group}': choose su2 or su3.")
    if precision not in ("single", "double"):
        raise UsageError(f"There is no precision '{precision}': choose single or double.")
    if format == "openqcd" and (group, precision) != ("su3", "double"):
        raise UsageError(
            f"openQCD files hold SU(3) links in double precision, not {group} in {precision}: "
            "choose ildg or nersc, or double precision."
        )


def _checked(path: Path, slices: Iterable[Links], lattice: Lattice, group: str) -> Iterator[Links]:
    """Pass on just the right number of slices with good links; refuse all else."""
    n = COLOURS[group]
    shape = (lattice.z, lattice.y, lattice.x, 4, n, n)
    count = 0
    for links in slices:
        if count == lattice.t or links.shape != shape:
            raise GaugeError(
                f"{path} was not written: time slice {count} of shape {links.shape} does not "
                f"belong to a {group} configuration of {lattice}."
            )
        exact = np.asarray(links, np.complex128)
        reason = misfit(exact, count)
        if reason:
            raise GaugeError(
                f"{path} was not written: {reason}; the field it comes from is damaged."
            )
        yield exact
        count += 1
    if count < lattice.t:
        raise GaugeError(
            f"{path} was not written: there were {count} time slices where the lattice "
            f"{lattice} has {lattice.t}."
        )


def _check_memory(path: Path, header: Header) -> None:
    """Refuse a file of which not even a time slice can be held, before anything is allocated."""
    volume = math.prod(header.lattice.extents[:3])
    needed = _WORKING_SLICES * volume * 64 * COLOURS[header.group] ** 2
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise _too_large(path)


def _too_large(path: Path) -> GaugeError:
    return GaugeError(
        f"{path} has time slices that do not fit into memory: read it on a larger machine."
    )
