"""``gauge-mc fit``: the static potential and Creutz ratios from Wilson loops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gauge_mc.errors import UsageError
from gauge_mc.run import newest_run

KINDS = ("potential", "creutz")
TABLE = "wilson_loops.csv"


def fit(
    what: Annotated[
        str, typer.Argument(metavar="|".join(KINDS), help="What to determine.", show_default=False)
    ],
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            help="Runs, or tables of Wilson loops; without any, the newest run in runs/.",
        ),
    ] = None,
    t_min: Annotated[
        int | None,
        typer.Option(help="First t of all plateaus [dim]\\[default: where they begin][/dim]"),
    ] = None,
    t_max: Annotated[
        int | None,
        typer.Option(help="Last t of all plateaus [dim]\\[default: where loops are known][/dim]"),
    ] = None,
    r_min: Annotated[
        float | None,
        typer.Option(help="Least distance fitted [dim]\\[default: 2, or r₀/3 if larger][/dim]"),
    ] = None,
    r_max: Annotated[
        float | None,
        typer.Option(help="Largest distance fitted [dim]\\[default: the largest known][/dim]"),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            help="Smearing iterations of the loops used [dim]\\[default: most][/dim]", metavar="N"
        ),
    ] = None,
) -> None:
    """Fit V(R) = A + B/R + σR to plateaus of ln W(R,T)/W(R,T+1), or determine Creutz ratios.

    Along all paths that were measured. The results of a run go to potential.json and creutz.json
    beside its Wilson loops. All choices that were made for want of an option are stated.
    """
    from rich.console import Console

    if what not in KINDS:
        raise UsageError(f"'{what}' cannot be fitted; there are {', '.join(KINDS)}.")
    windows = {"t_min": t_min, "t_max": t_max, "r_min": r_min, "r_max": r_max}
    given = [name for name, value in windows.items() if value is not None]
    if what == "creutz" and given:
        raise UsageError(f"--{given[0].replace('_', '-')} is for potential, not for creutz.")
    console = Console(highlight=False, markup=False)
    for one in run or [newest_run().path]:
        path = one / TABLE if one.is_dir() else one
        work = _fit_potential if what == "potential" else _list_creutz_ratios
        console.print(*work(path, level, windows), f"{path.parent / RESULTS[what]}\n", sep="\n")


RESULTS = {"potential": "potential.json", "creutz": "creutz.json"}
"""Where the results go."""


def _fit_potential(path: Path, level: int | None, windows: dict[str, Any]) -> list[Any]:
    """Fit, write the result, and return the tables that show it."""
    from gauge_mc.analysis.loops import read_loops
    from gauge_mc.analysis.potential import static_potential
    from gauge_mc.analysis.report import fit_table, plateau_table, window_table, write_json

    loops, ensemble = read_loops(path, level)
    result = static_potential(loops, **windows, ensemble=ensemble)
    write_json(result, path.parent / RESULTS["potential"])
    return [plateau_table(result), window_table(result), fit_table(result)]


def _list_creutz_ratios(path: Path, level: int | None, windows: dict[str, Any]) -> list[Any]:
    """Determine and write the Creutz ratios on axis, and return the table that shows them."""
    from gauge_mc.analysis.loops import creutz_ratios, read_loops
    from gauge_mc.analysis.report import creutz_table, write_creutz

    loops, ensemble = read_loops(path, level)
    grid = creutz_ratios(loops[0])
    write_creutz(grid, loops[0], ensemble, path.parent / RESULTS["creutz"])
    return [creutz_table(grid)]
