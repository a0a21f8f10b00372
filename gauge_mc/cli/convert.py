"""``gauge-mc convert``: write a configuration in another format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.domain.layout import REALS
from gauge_mc.files.stored import Block
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.registry import in_words

_titles = in_words([one.title for one in FORMATS.values()], "or")


@o.listed("Formats", [(name, one.summary) for name, one in FORMATS.items()])
def convert(
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", help=f"Configuration file in {_titles} format."),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    to: Annotated[str, typer.Option(metavar="|".join(writable_formats()), help="Format of OUT.")],
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(REALS),
            help=o.with_default(
                "Precision of the links in OUT.", "as in CONFIG, if the format supports it"
            ),
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a configuration in another format or precision, and keep its provenance.

    CONFIG is checked while it is read. OUT must not exist, and appears complete or not at all.
    """
    from gauge_mc.run import convert as run

    warning = run.warning_of(config)
    if warning:
        say(f"gauge-mc: {config}: {warning}", error=True)
    written = run.convert(config, out, to, precision, _show_progress).header
    say(f"{out}: {written.group} on {written.lattice} in {written.precision} precision, {to}")


def _show_progress(blocks: Iterable[Block], count: int) -> Iterator[Block]:
    """Pass on the blocks of a file, and show the progress on a terminal."""
    from rich.progress import track

    from gauge_mc.console import Console

    console = Console(stderr=True)
    yield from track(
        blocks,
        "converting",
        count,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
