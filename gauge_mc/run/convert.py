"""Conversion of configuration files between formats and precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.links import Links
from gauge_mc.formats import (
    FORMATS,
    Configuration,
    check_writable,
    open_configuration,
    write_configuration,
)
from gauge_mc.groups import GROUPS

Wrap = Callable[[Iterator[Links], int], Iterator[Links]]
"""Function of an iterator over time slices and their number; returns an iterator over the same
slices that also shows progress."""


def convert(
    source: str | Path,
    target: str | Path,
    format: str,
    precision: str | None = None,
    wrap: Wrap = lambda slices, count: slices,
) -> Configuration:
    """Write a configuration in another format or precision, and keep its provenance.

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
        If the source is damaged, or the target cannot be written.
    """
    out = Path(target)
    if out.exists():
        raise UsageError(f"{out} already exists; choose another file, or remove it first.")
    found = open_configuration(source)
    header = found.header
    width = precision or _precision_for(format, header.group, header.precision)
    check_writable(format, header.group, width)
    slices = wrap(found.slices(), header.lattice.t)
    write_configuration(out, slices, header.lattice, header.group, width, format, header.provenance)
    return open_configuration(out)


def _precision_for(format: str, group: str, precision: str) -> str:
    """Return the given precision, or another one if that is all that the format supports."""
    chosen, links_of = FORMATS[format], GROUPS[group]
    fitting = [one for one in (precision, *REALS) if chosen.refusal(links_of, one) is None]
    return fitting[0] if fitting else precision


def warning_of(path: str | Path) -> str | None:
    """Return a warning about what cannot be checked in a configuration file, or None."""
    try:
        return open_configuration(path).header.warning or None
    except GaugeError:
        return None
