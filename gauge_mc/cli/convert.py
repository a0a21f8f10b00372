"""``gauge-mc convert``: write a configuration in another format, a propagator in another basis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import UsageError
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.storage.links import Block

_titles = in_words([one.title for one in FORMATS.values()], "or")


@documented
@dataclass(frozen=True)
class ConvertReport:
    """The document of ``convert``; for a propagator, only the file and the basis."""

    file: str = result_field("File that was written or read.")
    format: str = result_field("Name of the format.")
    group: str = result_field("Name of the group.")
    lattice: str = result_field("Extents of the lattice.")
    precision: str = result_field("Precision of the stored links, ``single`` or ``double``.")
    basis: str = result_field("Basis of the gamma matrices.")


@prints(ConvertReport)
@o.listed("Formats", [(name, one.summary) for name, one in FORMATS.items()])
def convert(
    config: Annotated[
        Path,
        o.argument(
            f"Configuration file in {_titles} format, or with --basis a quark propagator.",
            metavar="CONFIG",
        ),
    ],
    out: Annotated[Path, o.argument("File to write.", metavar="OUT")],
    to: Annotated[str | None, o.option("Format of OUT.", choices=writable_formats())] = None,
    precision: Annotated[
        str | None,
        o.option(
            "Precision of the links in OUT.",
            "as in CONFIG, if the format supports it",
            choices=REALS,
        ),
    ] = None,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    basis: Annotated[
        str | None, o.option("Basis of gamma matrices of OUT, for a propagator.", metavar="NAME")
    ] = None,
    from_basis: Annotated[
        str | None,
        o.option("Basis of a propagator that names none.", "degrand-rossi", metavar="NAME"),
    ] = None,
    json: o.Json = False,
) -> None:
    """Write a configuration in another format or precision, and keep its provenance.

    CONFIG is checked while it is read. OUT must not exist, and appears complete or not at all. With
    --basis it is a quark propagator in USQCD's format, which is written in another basis.
    """
    from gauge_mc.run import convert as run

    if basis or from_basis:
        _convert_propagator(config, out, basis, from_basis, to or precision, json)
        return
    if to is None:
        raise UsageError(f"--to is missing; choose {in_words(writable_formats(), 'or')}.")
    stated = {"lattice": lattice, "group": group}
    warning = run.warning_of(config, **stated)
    if warning:
        say(f"gauge-mc: {config}: {warning}", error=True)
    with alone_on_stdout(json):
        written = run.convert(config, out, to, precision, _show_progress, **stated).header
    if json:
        names = ("format", "group", "lattice", "precision")
        values = {name: getattr(written, name) for name in names}
        print_document("convert", {"file": str(out), **values})
        return
    say(f"{out}: {written.group} on {written.lattice} in {written.precision} precision, {to}")


def _convert_propagator(
    source: Path,
    out: Path,
    basis: str | None,
    formerly: str | None,
    other: str | None,
    as_json: bool,
) -> None:
    from gauge_mc.run import convert as run

    if basis is None or other:
        raise UsageError(
            "--basis is for propagators; give it alone or with --from-basis, and --to and "
            "--precision for configurations."
        )
    written = run.convert_propagator(source, out, basis, formerly)
    if as_json:
        print_document("convert", {"file": str(out), "basis": written.basis})
        return
    say(f"{out}: a propagator in the basis {written.basis}")


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
