"""``gauge-mc plot``: figures of what runs have measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, find_plot, plot_names
from gauge_mc.run.directory import newest_run
from gauge_mc.scans.scan import newest_scan


def _panels() -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the options that plots declare."""
    for name, one in PLOTS.items():
        yield f"Options of {name}", one.options


def _summaries() -> str:
    return "; ".join(f"{name}: {find_plot(name).summary}" for name in plot_names())


@o.declared(_panels())
def plot(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=_summaries(), show_default=False)],
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            help="Runs, or a scan; without any, the newest in runs/.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A .pdf, .png or .svg [dim]\\[default: WHAT.pdf in the run, or for several runs "
            "in this folder][/dim]",
            metavar="FILE",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Draw figures of one run, or of several in one frame."""
    from rich.console import Console

    chosen = find_plot(what)
    runs = run or [newest_scan().path if chosen.of_scans else newest_run().path]
    for one in runs:
        if not one.is_dir():
            raise UsageError(f"There is no run {one}.")
    file = output or (runs[0] if len(runs) == 1 else Path()) / f"{what}.pdf"
    given = {name: value for name, value in options.items() if value is not None}
    own = {option.name for option in chosen.options}
    for name in given:
        if name not in own:
            raise UsageError(f"--{name.replace('_', '-')} is not an option of the plot {what}.")
    shown = chosen.draw(runs, file, **given)
    if shown:
        Console(highlight=False).print(*shown)
    print(file)
