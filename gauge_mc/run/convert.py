"""Conversion of configuration files between formats, and of propagators between bases."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gauge_mc.arguments import checks_types
from gauge_mc.configurations.comparison import DAMAGED, GOOD, FileComparison, compare
from gauge_mc.configurations.reading import Configuration, Wrap, open_configuration
from gauge_mc.configurations.reading import unwrapped as unwrapped
from gauge_mc.configurations.writing import convert_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import FORMATS, check_writable
from gauge_mc.groups import GROUPS
from gauge_mc.quarks.hadrons.propagator_files import BASIS, StoredPropagator, read_propagator


class WrittenWronglyError(GaugeError):
    """A file was read back with other links than those that were to be written."""

    def __init__(self, out: Path, source: Path, difference: str) -> None:
        super().__init__(
            f"{out} was written, but what is read back is not {source} ({difference}), so that it "
            "was removed; check the disk and the memory of this machine, and convert it again."
        )
        self.comparison = FileComparison(DAMAGED, difference)


@checks_types
def convert(
    source: str | Path,
    target: str | Path,
    format: str,
    precision: str | None = None,
    wrap: Wrap = unwrapped,
    *,
    lattice: str | None = None,
    group: str | None = None,
    verify: bool = False,
) -> Configuration:
    """Write a configuration in another format or precision, and keep its provenance.

    `gauge_mc.convert_all` converts several.

    Parameters
    ----------
    source : path
        Configuration file of any format. It is checked while it is read.
    target : path
        File to write. It must not exist, and it appears complete or not at all.
    format : str
        Format of the new file.
    precision : str, optional
        Precision of the links in the new file; by default that of the source, if the format
        supports it.
    wrap : callable
        See `Wrap`.
    lattice, group : str, optional
        Extents and group of links of which the file itself says nothing; see
        `open_configuration`.
    verify : bool
        Whether to read the new file back and compare its links with those of the source, rounded
        to its precision. If they differ, it is removed.

    Returns
    -------
    Configuration
        The new file.

    Raises
    ------
    UsageError
        If the target exists, the format is unknown, or the format does not support the group or
        the precision.
    GaugeError
        If the source is damaged, or the target cannot be written or is read back with other links.
    """
    found = open_configuration(source, lattice, group)
    return convert_opened(found, target, format, precision, wrap, verify)[0]


def convert_opened(
    source: Configuration,
    target: str | Path,
    format: str,
    precision: str | None,
    wrap: Wrap,
    verify: bool,
) -> tuple[Configuration, FileComparison | None]:
    """Write a configuration, and return the new file and its comparison; see `convert`."""
    out = _new_file(target)
    width = written_precision(source, format, precision)
    return write_converted(source, out, width, format, wrap, verify)


def written_precision(source: Configuration, format: str, precision: str | None) -> str:
    """Return the precision in which a configuration is written; see `convert`.

    Raises
    ------
    UsageError
        If the format is unknown, or does not support the group or the precision.
    """
    header = source.header
    width = precision or _precision_for(format, header.group, header.precision)
    check_writable(format, header.group, width)
    return width


def write_converted(
    source: Configuration, out: Path, precision: str, format: str, wrap: Wrap, verify: bool
) -> tuple[Configuration, FileComparison | None]:
    """Write a configuration, and compare it with the source if wanted; see `convert`.

    Raises
    ------
    WrittenWronglyError
        If the links that are read back are not those of the source. The file is then removed.
    """
    written = convert_configuration(source, out, precision, format, wrap)
    if not verify:
        return written, None
    found = compare(source, written)
    if found.verdict != GOOD:
        out.unlink()
        raise WrittenWronglyError(out, source.path, found.difference)
    return written, found


def convert_propagator(
    source: str | Path, target: str | Path, basis: str, formerly: str | None = None
) -> StoredPropagator:
    """Write a quark propagator with another basis of gamma matrices.

    Parameters
    ----------
    source : path
        File in USQCD's format; its checksums are verified.
    target : path
        File to write. It must not exist, and it appears complete or not at all.
    basis : str
        Name of the basis of the new file.
    formerly : str, optional
        Name of the basis of a file that names none; by default that of DeGrand and Rossi.

    Returns
    -------
    StoredPropagator
        What was written.

    Raises
    ------
    UsageError
        If the target exists, a basis is unknown, or the file names another basis.
    GaugeError
        If the source is damaged or has no sources, or the target cannot be written.
    """
    out = _new_file(target)
    found = read_propagator(source, None)
    named = found.metadata.get(BASIS)
    if formerly and named and named != formerly:
        raise UsageError(f"{source} has the basis {named}, not {formerly}; leave --from-basis out.")
    if formerly:
        found = replace(found, metadata={**found.metadata, BASIS: formerly})
    written = found.in_basis(basis)
    written.write(out)
    return written


def _new_file(path: str | Path) -> Path:
    """Return a path at which there is nothing yet."""
    out = Path(path)
    if os.path.lexists(out):  # or a link that leads nowhere
        raise UsageError(f"{out} already exists; choose another file, or remove it first.")
    return out


def _precision_for(format: str, group: str, precision: str) -> str:
    """Return the given precision, or another one if that is all that the format supports."""
    chosen, links_of = FORMATS[format], GROUPS[group]
    fitting = [one for one in (precision, *REALS) if chosen.refusal(links_of, one) is None]
    return fitting[0] if fitting else precision


def warning_of(
    path: str | Path, lattice: Lattice | str | None = None, group: str | None = None
) -> str | None:
    """Return a warning about what cannot be checked in a configuration file, or None."""
    try:
        return open_configuration(path, lattice, group).header.warning or None
    except GaugeError:
        return None
