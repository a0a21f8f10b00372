"""``gauge-mc info``: show the contents of a configuration file, a run or a scan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gauge_mc.cli import options as o
from gauge_mc.cli.document import print_document, prints
from gauge_mc.cli.status import one_named_or_newest
from gauge_mc.configurations.reading import LinkKind
from gauge_mc.console import Console
from gauge_mc.inspection.contents import InfoPart, info_parts
from gauge_mc.quoting import printable


@prints(
    "gauge_mc.inspection.contents:ConfigurationInfo",
    "gauge_mc.inspection.contents:RunInfo",
    "gauge_mc.inspection.contents:ScanInfo",
    "gauge_mc.inspection.contents:FolderInfo",
)
@o.described_by("gauge_mc.inspection.contents:info", path="CONFIG|RUN|SCAN|FOLDER")
def info(
    path: Path | None = None,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    json: o.Json = False,
) -> None:
    """Show the contents of a configuration file, a run or a scan.

    For a configuration file, its header and averages computed from its links are shown. For a run,
    its parameters, sessions and tables are shown, and its newest configuration. For a scan, its
    parameters, grids and runs are shown; for another folder, its runs or its configurations.

    gauge-mc info
    gauge-mc info SCAN
    gauge-mc info CONFIG --lattice 8x8x8x16 --group su3
    """
    console = Console()
    parts = info_parts(one_named_or_newest(path), LinkKind(lattice, group))
    if json:
        print_document("info", *parts)
        return
    for part in parts:
        for name, value in lines(part):
            console.print(f"{name:<20} ", style="bold", end="")
            console.print(value, soft_wrap=True)


def one_line(words: str) -> str:
    """Return a text on one line."""
    return printable(" ".join(words.split()))


def item_words(item: object) -> str:
    """Return an item of a list as text."""
    if isinstance(item, dict):
        return ", ".join(f"{key} {word}" for key, word in item.items() if word is not None)
    return str(item)


def lines(part: InfoPart, indent: str = "") -> Iterator[tuple[str, str]]:
    """Yield the lines of a part, each a name and its value as text."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield f"{indent}{name}", ""
            yield from lines(value, indent + "  ")
        elif isinstance(value, list):
            for item in value:
                yield f"{indent}{name}", one_line(item_words(item))
        else:
            yield f"{indent}{name}", "none" if value is None else one_line(str(value))
