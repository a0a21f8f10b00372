"""Conversion of configuration files between formats and precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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
"""Takes an iterator of time slices and their number; returns one that shows progress."""


def convert(
    source: str | Path,
    target: str | Path,
    format: str,
    precision: str | None = None,
    wrap: Wrap = lambda slices, count: slices,
) -> Configuration:
    """Write a configuration in another format, or precision, with what is known of its origin.

    Parameters
    ----------
    source : path
        A configuration file of any format. It is checked on the way.
    target : path
        The file to write, which appears whole or not at all. It must not exist.
    format : str
        The format of the new file.
    precision : str, optional
        The precision of the links in the new file; by default that of the source, if the format
        holds it.
    wrap : callable
        See `Wrap`.

    Returns
    -------
    Configuration
        The new file.

    Raises
    ------
    UsageError
        If the target exists, there is no such format, or it cannot hold such links.
    GaugeError
        If the source is damaged, or the target cannot be written.
    """
    out = Path(target)
    if out.exists():
        raise UsageError(f"{out} exists: name another file, or remove it first.")
    found = open_configuration(source)
    header = found.header
    width = precision or _precision_for(format, header.group, header.precision)
    check_writable(format, header.group, width)
    slices = wrap(found.slices(), header.lattice.t)
    write_configuration(out, slices, header.lattice, header.group, width, format, header.provenance)
    return open_configuration(out)


def _precision_for(format: str, group: str, precision: str) -> str:
    """Return the precision of a file, or the other one if a format only holds that."""
    chosen, links_of = FORMATS[format], GROUPS[group]
    others = ("single", "double")
    fitting = [one for one in (precision, *others) if chosen.refusal(links_of, one) is None]
    return fitting[0] if fitting else precision


def warning_of(path: str | Path) -> str | None:
    """Return what could not be checked of a configuration file, or None."""
    try:
        return open_configuration(path).header.warning or None
    except GaugeError:
        return None
