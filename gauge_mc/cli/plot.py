"""``gauge-mc plot``: figures of what runs have measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gauge_mc.analysis.plots import History
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats.table import TableData, read_table
from gauge_mc.lattice import Lattice
from gauge_mc.run import newest_run
from gauge_mc.scans import Scan, newest_scan

if TYPE_CHECKING:
    from gauge_mc.analysis.potential import StaticPotential

SOURCES = {
    "plaquette": ("plaquette.csv", "plaquette_configs.csv"),
    "polyakov": ("polyakov.csv", "polyakov_configs.csv"),
}
"""Tables of an observable in a run, the first that is there."""

POTENTIAL, LOOPS = "potential.json", "wilson_loops.csv"
"""The result of ``fit potential`` in a run, and the table that it is from."""


def plot(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="potential, wilson-loops, history, polyakov, plaquette-beta, polyakov-beta or "
            "scan.",
            show_default=False,
        ),
    ],
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
    level: Annotated[
        int | None,
        typer.Option(
            help="wilson-loops: smearing iterations [dim]\\[default: most][/dim]", metavar="N"
        ),
    ] = None,
    path: Annotated[
        str, typer.Option(help="wilson-loops: 100, 110, 210 or 111.", metavar="PATH")
    ] = "100",
) -> None:
    """Draw figures of one run, or of several in one frame.

    potential: V(R) with its fit, residuals and error band (after fit potential). wilson-loops:
    the effective potential ln W(R,T)/W(R,T+1) of one run, with the plateaus of its fit. history:
    time series with integrated autocorrelation times. polyakov: the Polyakov loop in the complex
    plane. plaquette-beta and polyakov-beta: averages of many runs against β, a curve a lattice.
    scan: the averages of a scan, too, and the susceptibility of the Polyakov loop.
    """
    runs = run or [newest_scan().path if what == "scan" else newest_run().path]
    for one in runs:
        if not one.is_dir():
            raise UsageError(f"There is no run {one}.")
    file = output or (runs[0] if len(runs) == 1 else Path()) / f"{what}.pdf"
    drawers: dict[str, Callable[[Sequence[Path], Path], None]] = {
        "potential": _potential,
        "wilson-loops": lambda runs, file: _wilson_loops(runs, file, level, path),
        "history": _history,
        "polyakov": _polyakov,
        "plaquette-beta": lambda runs, file: _against_beta("plaquette", runs, file),
        "polyakov-beta": lambda runs, file: _against_beta("polyakov", runs, file),
        "scan": _scan,
    }
    if what not in drawers:
        raise UsageError(f"'{what}' cannot be plotted; there are {', '.join(drawers)}.")
    drawers[what](runs, file)
    print(file)


def _potential(runs: Sequence[Path], file: Path) -> None:
    from gauge_mc.analysis.plots import plot_potential

    plot_potential([(_label(run), _fitted(run)) for run in runs], file)


def _wilson_loops(runs: Sequence[Path], file: Path, level: int | None, path: str) -> None:
    from gauge_mc.analysis.loops import read_loops
    from gauge_mc.analysis.plots import plot_effective_potential

    if len(runs) > 1:
        raise UsageError("The effective potential is drawn of one run at a time.")
    loops, _ = read_loops(runs[0] / LOOPS, level)
    chosen = [one for one in loops if one.path == path]
    if not chosen:
        raise UsageError(
            f"{runs[0]} has no loops along {path}, only along "
            f"{', '.join(one.path for one in loops)}."
        )
    potential = _fitted(runs[0]) if (runs[0] / POTENTIAL).exists() else None
    if potential and potential.smearing != chosen[0].smearing:
        potential = None
    plot_effective_potential(chosen[0], file, potential)


def _fitted(run: Path) -> StaticPotential:
    """Read the potential of a run; a caution goes to stderr if its table has changed since."""
    from gauge_mc.analysis.report import read_json

    result, table = read_json(run / POTENTIAL), run / LOOPS
    found = _configurations(table) if table.exists() else result.configurations
    if found != result.configurations:
        print(
            f"gauge-mc: {run / POTENTIAL} is from {result.configurations} configurations, but "
            f"{table} holds {found}; gauge-mc fit potential {run} brings it up to date.",
            file=sys.stderr,
        )
    return result


def _configurations(table: Path) -> int:
    """Count the configurations in a table, by its first column alone since it may be long."""
    with table.open(errors="replace") as file:
        rows = (row for row in file if not row.startswith("#"))
        next(rows, None)  # the names of the columns
        return len({row.partition(",")[0] for row in rows})


def _history(runs: Sequence[Path], file: Path) -> None:
    from gauge_mc.analysis.plots import plot_history

    names = {"plaquette": "plaquette", "polyakov": "$|L|$"}
    quantities = []
    for observable, name in names.items():
        tables = [(run, _table(run, observable)) for run in runs]
        series = [_series(run, observable, table) for run, table in tables if table]
        if series:
            quantities.append((name, series))
    if not quantities:
        raise GaugeError(_missing(runs, "plaquette"))
    plot_history(quantities, file)


def _polyakov(runs: Sequence[Path], file: Path) -> None:
    from gauge_mc.analysis.plots import plot_polyakov

    plot_polyakov([_loop(run) for run in runs], file)


def _against_beta(observable: str, runs: Sequence[Path], file: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from gauge_mc.analysis.plots import plot_scan
    from gauge_mc.analysis.timeseries import Estimate, estimate, with_error

    curves: dict[tuple[str, Lattice], list[tuple[float, Estimate]]] = {}
    for run in runs:
        table = _required(run, observable)
        try:
            beta = float(table.header["beta"])
            kind = (table.header["group"], Lattice.parse(table.header["lattice"]))
        except (KeyError, ValueError) as error:
            raise GaugeError(f"The {observable} table of {run} does not say its beta.") from error
        found = estimate(_series(run, observable, table).values)
        curves.setdefault(kind, []).append((beta, found))
    named = [
        (f"SU({group[2:]}), {lattice}", sorted(points, key=lambda point: point[0]))
        for (group, lattice), points in sorted(
            curves.items(), key=lambda item: (item[0][0], item[0][1].extents)
        )
    ]
    shown = Table("lattice", "β", "average", "τ_int", "measurements")
    for name, points in named:
        for beta, found in points:
            tau = with_error(found.tau_int, found.tau_int_error)
            shown.add_row(name, f"{beta:g}", str(found), tau, str(found.samples))
    Console(highlight=False).print(shown)
    label = "plaquette" if observable == "plaquette" else r"$\langle|L|\rangle$"
    plot_scan([(label, named)], file)


def _scan(runs: Sequence[Path], file: Path) -> None:
    from gauge_mc.analysis.scan import draw_scan

    if len(runs) > 1:
        raise UsageError("One scan is drawn at a time.")
    draw_scan(Scan.read(runs[0]).table, file)


def _series(run: Path, observable: str, table: TableData) -> History:
    """Return the series of an observable's number: the mean plaquette, or |L|."""
    column = "plaquette" if observable == "plaquette" else "abs"
    return History(_label(run), table.columns["sweep"], table.columns[column])


def _loop(run: Path) -> History:
    """Return the series of a run's complex Polyakov loop."""
    columns = _required(run, "polyakov").columns
    return History(_label(run), columns["sweep"], columns["re"] + 1j * columns["im"])


def _required(run: Path, observable: str) -> TableData:
    table = _table(run, observable)
    if table is None:
        raise GaugeError(_missing([run], observable))
    return table


def _table(run: Path, observable: str) -> TableData | None:
    """Read the first of an observable's tables that is in a run, if there is one."""
    for name in SOURCES[observable]:
        if (run / name).exists():
            table = read_table(run / name)
            wanted = ("sweep", "plaquette") if observable == "plaquette" else ("re", "im", "abs")
            if any(column not in table.columns for column in wanted):
                raise GaugeError(f"{run / name} is no table of the {observable}.")
            return table
    return None


def _missing(runs: Sequence[Path], observable: str) -> str:
    names = ", ".join(str(run) for run in runs)
    return (
        f"There is no table of the {observable} in {names}; make it by gauge-mc measure "
        f"{observable} {runs[0]}."
    )


def _label(run: Path) -> str:
    return run.resolve().name
