"""``gauge-mc measure``: observables on configurations that are on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.errors import UsageError
from gauge_mc.parameters import ITERATIONS, LOOP_EXTENT, PRECISIONS

if TYPE_CHECKING:
    from rich.console import Console

    from gauge_mc.crew import DeviceOrRing
    from gauge_mc.lattice import Lattice
    from gauge_mc.measure import Ensemble, Work
    from gauge_mc.observables.records import Loops, Observable

LOOPS = "Wilson loops"
TABLES = {
    "wilson-loops": "wilson_loops.csv",
    "plaquette": "plaquette_configs.csv",
    "polyakov": "polyakov_configs.csv",
}
"""Observables and their tables: ``plaquette.csv`` and ``polyakov.csv`` are those of `generate`."""

CONFIGS = "wilson_loops_configs.csv"
"""The table of Wilson loops where ``wilson_loops.csv`` is the run's own."""

WEIGHT = 0.2
SILENCE = 30.0
"""Seconds between plain lines at the most; they also come at every tenth of the work."""


def _loops(help: str, **how: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=LOOPS, show_default=False, **how)


def measure(
    observable: Annotated[
        str, typer.Argument(metavar="|".join(TABLES), help="What to measure.", show_default=False)
    ],
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|CONFIG...",
            help="Run, or configuration files of any format; without any, the newest run in runs/.",
        ),
    ] = None,
    r_max: Annotated[
        int | None,
        _loops(f"Largest distance [dim]\\[default: {LOOP_EXTENT}, or half the lattice][/dim]"),
    ] = None,
    t_max: Annotated[
        int | None,
        _loops(f"Largest time [dim]\\[default: {LOOP_EXTENT}, or half the lattice][/dim]"),
    ] = None,
    off_axis: Annotated[
        bool | None,
        typer.Option(
            "--off-axis",
            help="Also along (1,1,0), (2,1,0) and (1,1,1).",
            rich_help_panel=LOOPS,
        ),
    ] = None,
    smear: Annotated[
        str | None,
        _loops("Of the spatial links [dim]\\[default: ape][/dim]", metavar="ape|none"),
    ] = None,
    weight: Annotated[
        float | None,
        _loops(
            f"w in U → P\\[(U + w Σ staples)/(1 + 6 w)] [dim]\\[default: {WEIGHT}][/dim]",
            metavar="W",
        ),
    ] = None,
    alpha: Annotated[
        float | None, _loops("Instead of w: U → P\\[(1 − α) U + α/n Σ of the n staples].")
    ] = None,
    iterations: Annotated[
        str | None,
        _loops(
            "How many, or several levels to measure at, such as 0,10,25 "
            f"[dim]\\[default: {ITERATIONS}][/dim]",
            metavar="N[,N...]",
        ),
    ] = None,
    dims: Annotated[
        int | None, _loops("Staples in space, or all [dim]\\[default: 3][/dim]", metavar="3|4")
    ] = None,
    projection: Annotated[
        str | None,
        _loops(
            "P of SU(3): largest trace, or unitary [dim]\\[default: maximal][/dim]",
            metavar="maximal|polar",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The table [dim]\\[default: in the run, or in this folder][/dim]", metavar="FILE"
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(PRECISIONS),
            help="Of the links in memory [dim]\\[default: as in the files][/dim]",
            show_default=False,
        ),
    ] = None,
    backend: o.Backend = None,
    devices: o.Devices = None,
    split: Annotated[
        bool | None,
        typer.Option(
            "--split",
            help="Every configuration over all devices, not one each.",
            rich_help_panel=o.EXECUTION,
        ),
    ] = None,
    threads: o.Threads = None,
    quiet: o.Quiet = None,
) -> None:
    """Measure on configurations: Wilson loops, plaquettes or Polyakov loops.

    All GPUs take part, a configuration each, or else the CPU; --devices chooses. The same command
    again goes on where it stopped, and measures what is new. Other parameters are refused by
    name; they go to another --output. Wilson loops go to wilson_loops.csv, plaquettes and Polyakov
    loops to plaquette_configs.csv and polyakov_configs.csv, since plaquette.csv and polyakov.csv
    belong to generate; wilson_loops.csv, too, if the run measures loops along the way, when they go
    to wilson_loops_configs.csv.
    """
    from rich.console import Console

    from gauge_mc.crew import crew_of
    from gauge_mc.measure import find_ensemble, measurement
    from gauge_mc.observables.records import AVERAGES

    given = {
        "r-max": r_max,
        "t-max": t_max,
        "off-axis": off_axis,
        "smear": smear,
        "weight": weight,
        "alpha": alpha,
        "iterations": iterations,
        "dims": dims,
        "projection": projection,
    }
    values = {name: value for name, value in given.items() if value is not None}
    if observable not in TABLES:
        raise UsageError(f"'{observable}' cannot be measured; there are {', '.join(TABLES)}.")
    if values and observable != "wilson-loops":
        raise UsageError(f"--{next(iter(values))} is for wilson-loops, not for {observable}.")
    _check(precision)
    ensemble = find_ensemble(run or [])
    wanted: Observable
    wanted = (
        loops_of(ensemble.lattice, values) if observable == "wilson-loops" else AVERAGES[observable]
    )
    path = output or ensemble.folder / _table(observable, ensemble)
    width = precision or ensemble.precision
    console = Console(quiet=bool(quiet), highlight=False, markup=False)
    openers = _openers(devices, backend or "auto", threads, bool(split))[: len(ensemble.files)]
    with crew_of(openers) as crew, measurement(ensemble, wanted, path, width) as work:
        console.print(_opening(work, observable, crew.name), soft_wrap=True)
        for _ in _shown(work.carry_out(crew, width), work, console):
            pass
    console.print(_summary(path, observable))


def loops_of(lattice: Lattice, values: dict[str, Any]) -> Loops:
    """Make the measurement of Wilson loops that options describe.

    Parameters
    ----------
    lattice : Lattice
    values : dict of str to object
        What was given, by the names of the options.

    Raises
    ------
    UsageError
        If a value is not allowed, or two of them exclude each other.
    """
    from gauge_mc.observables.records import Loops
    from gauge_mc.observables.wilson import PATHS
    from gauge_mc.smearing import Ape

    smear = values.get("smear", "ape")
    how = [
        name for name in ("weight", "alpha", "iterations", "dims", "projection") if name in values
    ]
    if smear not in ("ape", "none"):
        raise UsageError(f"The smearing '{smear}' is unknown; choose ape or none.")
    if smear == "none" and how:
        raise UsageError(f"--{how[0]} is for --smear ape.")
    if "weight" in values and "alpha" in values:
        raise UsageError("--weight and --alpha are two forms of the same; give one.")
    kind = (values.get("dims", 3), values.get("projection", "maximal"))
    if "alpha" in values:
        ape = Ape.from_alpha(values["alpha"], *kind)
    else:
        ape = Ape(values.get("weight", WEIGHT), *kind)
    usual = Loops.usual(lattice)
    levels = _levels(values["iterations"]) if "iterations" in values else usual.levels
    return Loops(
        lattice,
        values.get("r-max", usual.r_max),
        values.get("t-max", usual.t_max),
        PATHS if values.get("off-axis") else usual.paths,
        ape,
        (0,) if smear == "none" else levels,
    )


def _levels(text: str) -> tuple[int, ...]:
    """Read numbers of iterations, such as ``0,10,25``."""
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise UsageError(f"--iterations: '{text}' is not of the form N or N,N,..., such as 0,25.")
    return tuple(sorted({int(word) for word in words}))


def _table(observable: str, ensemble: Ensemble) -> str:
    """Return the name of a table, one that does not belong to `generate`."""
    own = observable == "wilson-loops" and observable in ensemble.measured
    return CONFIGS if own else TABLES[observable]


def _check(precision: str | None) -> None:
    if precision not in (None, *PRECISIONS):
        raise UsageError(f"The precision '{precision}' is unknown; choose single or double.")


def _openers(
    devices: str | None, backend: str, threads: int | None, split: bool
) -> list[Callable[[], DeviceOrRing]]:
    """Return what opens devices: those asked for, or all GPUs, or the CPU; all at once to split."""
    from gauge_mc.devices import choose_devices
    from gauge_mc.ring import open_ring

    if split:
        return [partial(open_ring, devices, backend, threads, every_gpu=True)]
    return [choice.open for choice in choose_devices(devices, backend, threads, every_gpu=True)]


def _opening(work: Work, observable: str, devices: str) -> str:
    """Return the lines that say what begins."""
    ensemble, header, total = work.ensemble, work.observable.header, len(work.done) + len(work.todo)
    lines = [
        f"{observable} on {total} configuration{'s' * (total != 1)}, {ensemble.group} on "
        f"{ensemble.lattice}, {len(work.done)} of them done, on {devices}"
    ]
    if "smearing" in header:
        lines.append(f"smearing: {header['smearing']}; iterations: {header['iterations']}")
    return "\n".join(lines)


def _shown(numbers: Iterator[int], work: Work, console: Console) -> Iterator[int]:
    """Show progress: live on a terminal, in plain lines elsewhere."""
    from rich.progress import track

    if console.is_terminal or console.quiet:
        yield from track(
            numbers,
            "measuring",
            len(work.todo),
            console=console,
            transient=True,
            disable=console.quiet,
        )
        return
    yield from _lines(numbers, len(work.todo), console)


def _lines(numbers: Iterator[int], total: int, console: Console) -> Iterator[int]:
    from gauge_mc.progress import duration

    began = shown = time.monotonic()
    tenth = 0
    for done, number in enumerate(numbers, 1):
        now = time.monotonic()
        if now - shown >= SILENCE or (10 * done // total > tenth and now - shown >= 1.0):
            shown, tenth = now, 10 * done // total
            rest = (now - began) / done * (total - done)
            console.print(f"configuration {number}, {done} of {total}  ETA {duration(rest)}")
        yield number


def _summary(path: Path, observable: str) -> Any:
    """Return where the table is, and averages."""
    from rich.console import Group

    from gauge_mc.analysis.timeseries import estimate
    from gauge_mc.formats.table import read_table

    table = read_table(path)
    lines: Sequence[str] = []
    if observable != "wilson-loops":
        lines = [
            f"{name:<10} {estimate(series)}"
            for name, series in table.columns.items()
            if name != "sweep"
        ]
    return Group(*lines, f"{path}")
