"""``gauge-mc convert``: write a configuration in another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.errors import UsageError
from gauge_mc.formats import Configuration, open_configuration, write_configuration
from gauge_mc.formats.links import Links
from gauge_mc.parameters import FORMATS, PRECISIONS


def convert(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="An ILDG, NERSC, MILC or openQCD file.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[str, typer.Option(metavar="|".join(FORMATS), help="Format of OUT.")],
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(PRECISIONS),
            help="Of the links in OUT [dim]\\[default: as in CONFIG; for openqcd, double][/dim]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a configuration in another format, or precision, with what is known of its origin.

    CONFIG is checked on the way; OUT appears whole or not at all.
    """
    if out.exists():
        raise UsageError(f"{out} exists: name another file, or remove it first.")
    source = open_configuration(config)
    header = source.header
    width = precision or ("double" if to == "openqcd" else header.precision)
    write_configuration(
        out, slices(source), header.lattice, header.group, width, to, header.provenance
    )
    print(f"{out}: {header.group} on {header.lattice} in {width} precision, {to}")


def slices(source: Configuration) -> Iterator[Links]:
    """Stream the time slices, with progress on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(
        source.slices(),
        "converting",
        source.header.lattice.t,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
