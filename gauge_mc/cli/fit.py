"""``gauge-mc fit``: physical quantities from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.fits import FITS
from gauge_mc.options import Option


def _panels() -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the options that fits declare."""
    for name, fit in FITS.items():
        yield f"Options of {name}", fit.options


def _summaries() -> str:
    return "; ".join(f"{name}: {fit.summary}" for name, fit in FITS.items())


@o.declared(_panels())
def fit(
    what: Annotated[
        str,
        typer.Argument(metavar="|".join(FITS), help=_summaries(), show_default=False),
    ],
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            help="Runs, or tables; without any, the newest run in runs/.",
        ),
    ] = None,
    json: o.Json = False,
    **options: Any,
) -> None:
    """Determine physical quantities from the tables of runs.

    The result goes to a JSON file beside the table. All choices that were made because an option
    was not given are stated.
    """
    from rich.console import Console

    from gauge_mc.fits import fit_all

    console = Console(highlight=False, markup=False)
    results = []
    for result, path in fit_all(what, run or [], options):
        if json:
            results.append({"file": str(path), **result.values()})
        else:
            console.print(*result.report(), f"{path}\n", sep="\n")
    if json:
        o.print_json(results[0] if len(results) == 1 else {"fits": results})
