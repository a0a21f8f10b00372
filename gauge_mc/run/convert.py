"""Conversion of configuration files between formats."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gauge_mc.configurations import writing
from gauge_mc.configurations.reading import Configuration, Wrap, open_configuration
from gauge_mc.configurations.reading import unwrapped as unwrapped
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import FORMATS, check_writable
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.registry import Registry
from gauge_mc.signatures import checks_types


class OtherConversion(ABC):
    """A conversion of other files than configurations, which its options choose."""

    name: str
    """Name of what is converted."""
    options: tuple[Option, ...]
    """Its options."""
    alone: str
    """The sentence that refuses options for configurations beside its own."""
    results: tuple[str, ...]
    """Modules and names of the classes of its results."""

    @abstractmethod
    def convert(self, source: Path, target: Path, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Write a file; return a line about it, and the result.

        Raises
        ------
        UsageError
            If a value is missing or invalid, or the target exists.
        GaugeError
            If the source is damaged, or the target cannot be written.
        """


CONVERSIONS: Registry[OtherConversion] = Registry("conversion", __name__, OtherConversion)


class WrittenWronglyError(GaugeError):
    """A file was read back with other links than those that were to be written."""

    def __init__(self, out: Path, source: Path, difference: str) -> None:
        super().__init__(
            f"{out} was written, but what is read back is not {source} ({difference}), so that it "
            "was removed; check the disk and the memory of this machine, and convert it again."
        )
        self.comparison = writing.FileComparison(writing.DAMAGED, difference)


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
    project: bool = False,
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
    project : bool
        Whether to bring the links into the group, each to the nearest matrix, after the source has
        been checked as it is.

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
    configuration, out = open_configuration(source, lattice, group), new_file(target)
    configuration = configuration.projected() if project else configuration
    width = written_precision(configuration, format, precision)
    return write_converted(configuration, out, width, format, wrap, verify)[0]


def written_precision(source: Configuration, format: str, precision: str | None) -> str:
    """Return the precision in which a configuration is written; see `convert`."""
    header = source.header
    width = precision or header.precision
    if not precision:
        layout, group = FORMATS[format], GROUPS[header.group]
        fitting = (real for real in (width, *REALS) if layout.refusal(group, real) is None)
        width = next(fitting, width)
    check_writable(format, header.group, width)
    return width


def write_converted(
    source: Configuration, out: Path, precision: str, format: str, wrap: Wrap, verify: bool
) -> tuple[Configuration, writing.FileComparison | None]:
    """Write a configuration, and compare it with the source if wanted; see `convert`."""
    target = writing.convert_configuration(source, out, precision, format, wrap)
    if not verify:
        return target, None
    comparison = writing.compare(source, target)
    if comparison.verdict != writing.GOOD:
        out.unlink()
        raise WrittenWronglyError(out, source.path, comparison.difference)
    return target, comparison


def new_file(path: str | Path) -> Path:
    """Return a path at which there is nothing yet."""
    out = Path(path)
    if os.path.lexists(out):  # or a link that leads nowhere
        raise UsageError(f"{out} already exists; choose another file, or remove it first.")
    return out


def warning_of(
    path: str | Path, lattice: Lattice | str | None = None, group: str | None = None
) -> str | None:
    """Return a warning about what cannot be checked in a configuration file, or None."""
    try:
        return open_configuration(path, lattice, group).header.warning or None
    except GaugeError:
        return None
