"""``gauge-mc bench``: time the kernels on this machine."""

from __future__ import annotations

import json as text
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc import defaults
from gauge_mc.actions import couplings
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.benchmarks import BENCH_KINDS, BenchPlan, bench_on, kind_options
from gauge_mc.benchmarks.over import MAX_SAVED, SavedBenchmark
from gauge_mc.cli import options as o
from gauge_mc.cli.document import print_document, prints
from gauge_mc.cli.options import with_settings
from gauge_mc.devices.choice import BACKENDS
from gauge_mc.errors import UsageError
from gauge_mc.files.atomic import FileKind, write_file
from gauge_mc.files.structured import json_with
from gauge_mc.flows import FLOWS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS

if TYPE_CHECKING:
    from rich.table import Table

    from gauge_mc.benchmarks.end_to_end import EndToEnd
    from gauge_mc.benchmarks.hmc import HmcTime
    from gauge_mc.benchmarks.kernels import Benchmark
    from gauge_mc.benchmarks.observables import ObservablesTime
    from gauge_mc.benchmarks.over import BenchSeries, RateSeries
    from gauge_mc.benchmarks.timing import BenchResult
    from gauge_mc.console import Console
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice


SAVED = FileKind("a result of bench", json_with(("device", "group", "lattice"), MAX_SAVED))
"""Kind of the files that ``--save`` writes."""

PLACE = ("backend", "devices", "threads", "share_gpus")
"""Options of runs that say where kernels are timed."""

SETTINGS = (
    *("group", "lattice", "precision", "action", *(c.name for c in couplings())),
    *("rng", "luxury", "strict", *PLACE),
)
"""Options of runs that say what is timed, and where."""

CHANGES: Mapping[str, Mapping[str, Any]] = {
    "lattice": {
        "default": ", ".join(
            dict.fromkeys(f"{x.bench_extent}⁴ on a {x.label}" for x in BACKENDS.values())
        )
    },
    "action": {
        "help": f"Another action, whose updates are timed beside those of {defaults.ACTION}.",
        "default": "",
        "usual": None,
    },
}
"""Differences from the options of runs."""


@prints(
    "gauge_mc.benchmarks.kernels:Benchmark",
    "gauge_mc.benchmarks.observables:ObservablesTime",
    "gauge_mc.benchmarks.end_to_end:EndToEnd",
    "gauge_mc.benchmarks.hmc:HmcTime",
    "gauge_mc.benchmarks.over:BenchSeries",
    *(name for kind in BENCH_KINDS.values() for name in kind.results),
)
@with_settings(SETTINGS, CHANGES, kind_options())
def bench(
    names: Annotated[
        list[str] | None,
        o.argument(
            "What is timed, instead of everything: updates and observables, such as heatbath and "
            "plaquette; with --observables also smearings, such as ape.",
            metavar="NAME",
            choices=[
                *ALGORITHMS[defaults.ALGORITHM].timed_sweeps,
                *OBSERVABLES,
                *SMEARINGS,
                *TEMPORAL_LINKS,
                *FLOWS,
            ],
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Approximate time in seconds for each kernel.", min=0.05)
    ] = 1.0,
    observables: Annotated[
        bool,
        o.option(
            "Time observables, smearings, temporal links and steps of gradient flows instead, "
            "in units of sweeps: all, or those of the given NAMEs.",
            flag="--observables",
        ),
    ] = False,
    end_to_end: Annotated[
        bool,
        o.option(
            "Time whole runs instead: with measurements, with configurations in a temporary "
            "folder here, in batches of small lattices, and from the command to the first update.",
            flag="--end-to-end",
        ),
    ] = False,
    hmc: Annotated[
        bool,
        o.option(
            "Time trajectories of hybrid Monte Carlo and their parts instead, and the gauge "
            "force in units of a stage of a gradient flow.",
            flag="--hmc",
        ),
    ] = False,
    card: Annotated[
        Path | None, o.option("With --hmc: time the trajectories of this run card.", metavar="FILE")
    ] = None,
    chains: Annotated[
        int | None,
        o.option(
            "With --hmc: time the trajectories of so many chains, which move together, but with "
            "quarks on large lattices one after the other.",
            1,
        ),
    ] = None,
    over: Annotated[
        str | None,
        o.option(
            "Do it for each of these values of an option, and compare the rates. The option is "
            "lattice, devices, threads or precision.",
            metavar="OPTION=VALUE,...",
        ),
    ] = None,
    weak: Annotated[
        bool,
        o.option(
            "With --over devices or threads: extend the lattice along t with their number.",
            flag="--weak",
        ),
    ] = False,
    plot: Annotated[
        Path | None, o.option("With --over: draw the rates, as PDF, PNG or SVG.", metavar="FILE")
    ] = None,
    tune: Annotated[
        bool, o.option("First find the fastest launch bounds for this type of GPU.", flag="--tune")
    ] = False,
    json: o.Json = False,
    save: Annotated[
        Path | None, o.option("Also write the JSON object to a file.", metavar="FILE")
    ] = None,
    compare: Annotated[
        Path | None,
        o.option("Show ratios to the times in a file written by --save.", metavar="FILE"),
    ] = None,
    **settings: Any,
) -> None:
    """Time all kernels on a thermal field, and compare the times with the memory bandwidth.

    The column "roofline" shows the minimum time for the memory traffic of a kernel, divided by the
    measured time. The minimum is computed from the bandwidth of a large copy, which is measured
    first. Values above 100 % mean that the caches hold the field. "nJ/link" is the energy that the
    devices use, if they have counters that can be read.

    gauge-mc bench
    gauge-mc bench --group su3 --lattice 16x16x16x16
    gauge-mc bench --hmc --over threads=1,2
    """
    from gauge_mc.benchmarks.over import BenchAxis, BenchSeries
    from gauge_mc.console import Console
    from gauge_mc.devices.choice import AUTOMATIC, hint
    from gauge_mc.domain.mpi import find_processes
    from gauge_mc.plots.figures.files import figure_kind
    from gauge_mc.run.cards import named_values
    from gauge_mc.run.parameters import Parameters

    backend, devices, threads, share_gpus = (settings.pop(name) for name in PLACE)
    if (weak or plot) and not over:
        raise UsageError("--weak and --plot are for --over; add it, or leave them out.")
    if over and (tune or compare):
        raise UsageError(
            "--over is for one benchmark after the other; leave out --tune and --compare."
        )
    timed, updates = (names or True, None) if observables else (False, names)
    selection: dict[str, Any] = dict(
        seconds=seconds, observables=timed, updates=updates, chains=chains
    )
    if card and not hmc:
        raise UsageError("--card is for --hmc; add it, or leave out --card.")

    def plan_of(changes: Mapping[str, Any]) -> BenchPlan:
        values = {**settings, **changes}
        run = Parameters.from_values(named_values(card, values)) if card else hmc
        return BenchPlan.from_values(values | selection | dict(end_to_end=end_to_end, hmc=run))

    plan_of({})  # which refuses what is wrong before a file is checked or a device opened
    axis = BenchAxis.parse(over, weak) if over else None
    before = SavedBenchmark.read(compare).times if compare else None
    if save:
        SAVED.check(save)
    if plot:
        figure_kind(plot).check(plot)
    console = Console(stderr=json)
    processes = find_processes()
    with processes.aborting():
        place = {"backend": backend or AUTOMATIC, "devices": devices, "threads": threads}
        root = processes.rank == 0
        advice = hint() if place["backend"] == AUTOMATIC and not devices else None
        if advice and root:
            console.print(advice, soft_wrap=True)

        def carry_out(plan: BenchPlan, group: DeviceGroup, lattice: Lattice) -> BenchResult:
            if tune:
                _tune(group, console, plan, lattice)
            with _progress(Console(stderr=True, quiet=not root)) as progress:
                return plan.carry_out(group, lattice, progress)

        result = bench_on(place, plan_of, axis, processes, carry_out, bool(share_gpus))
    if not root:
        return
    if plot and isinstance(result, BenchSeries):
        _draw(result, plot)
    values = asdict(result)
    if save:
        write_file(save, f"{text.dumps(values, indent=2)}\n", SAVED)
    if json:
        print_document("bench", values)
    else:
        _show(result, before, console)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int], object]]:
    """Show on a terminal which kernel is being timed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text = TextColumn("timing {task.description}")
    columns = text, BarColumn(bar_width=None), MofNCompleteColumn()
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        count = -1

        def advance(name: str, total: int) -> None:
            nonlocal count
            count += total > 0
            now = max(count, 0)
            bar.update(task, description=name, total=total or None, completed=now, refresh=True)

        yield advance


def _tune(devices: DeviceGroup, console: Console, plan: BenchPlan, lattice: Lattice) -> None:
    """Try launch bounds, and show the times; a star marks a choice that was kept."""
    from gauge_mc.benchmarks.kernels import tune
    from gauge_mc.devices.base import TunableDevice

    device = devices.devices[0]
    if not isinstance(device, TunableDevice) or devices.processes.size > 1:
        raise UsageError("--tune works only on a GPU and in one process; leave it out.")
    for timing in tune(device, plan, lattice):
        registers = f"{timing.registers.count:3} registers" if timing.registers else ""
        spilled = f"{timing.registers.spilled:4} B spilled" if timing.registers else ""
        time = f"{timing.ns_per_link:.4g} ns/link{'  *' * timing.kept}"
        console.print(f"{timing.kernel:14}  {timing.choice}  {registers}  {spilled}  {time}")


def _show(
    result: BenchResult | BenchSeries, before: Mapping[str, float] | None, console: Console
) -> None:
    """Print the results of a benchmark."""
    from gauge_mc.benchmarks.kernels import Benchmark

    if isinstance(result, Benchmark):
        _show_updates(result, before, console)
        return
    reports: dict[str, Callable[[Any], list[Any]]]
    reports = {kind: x.report for x in BENCH_KINDS.values() for kind in x.results}
    reports |= {
        "gauge_mc.benchmarks.end_to_end:EndToEnd": _whole_runs,
        "gauge_mc.benchmarks.hmc:HmcTime": _trajectory,
        "gauge_mc.benchmarks.observables:ObservablesTime": _observables,
        "gauge_mc.benchmarks.over:BenchSeries": _rates,
    }
    report = reports[f"{type(result).__module__}:{type(result).__name__}"]
    console.print(*report(result), sep="\n")


def _show_updates(result: Benchmark, before: Mapping[str, float] | None, console: Console) -> None:
    """Print the times of the updates."""
    lanes = f"{result.lanes} site{'s' * (result.lanes > 1)} per register"
    console.print(
        f"{result.group.upper()} {result.lattice}, {result.precision} precision, {result.random} "
        f"on {result.device}, {lanes}; copy {result.copy_gb_per_s:.4g} GB/s",
        soft_wrap=True,
    )
    console.print(_table(result, before))
    for name, ratio in result.ratios.items():
        console.print(f"{name}: {ratio:.3g} times {name.partition(', ')[0]}")
    if result.hidden is not None:
        console.print(f"{result.hidden:.0%} of the halo exchange is hidden behind the heatbath")
    for line in result.left_out:
        console.print(line)
    if all(kernel.nj_per_link is None for kernel in result.kernels):
        console.print(f"energy: not available, {result.energy_source}", soft_wrap=True)
    else:
        console.print(f"energy: counters of {result.energy_source}")


def _table(result: Benchmark, before: Mapping[str, float] | None) -> Table:
    columns = ["ns/link", "±", "Mlink/s", "B/link", "roofline"]
    registers = any(kernel.registers is not None for kernel in result.kernels)
    energies = any(kernel.nj_per_link is not None for kernel in result.kernels)
    columns += ["nJ/link"] * energies
    columns += ["regs", "spill"] * registers + ["ratio"] * (before is not None)
    # The name of an observable may be long.
    table = _empty_table("kernel", columns, unbroken=True, overflow="fold")
    for kernel in result.kernels:
        row: list[Any] = [
            kernel.name,
            f"{kernel.ns_per_link:.4g}",
            f"{kernel.spread / 2:.0%}",
            f"{kernel.links_per_s / 1e6:.0f}",
            "–" if kernel.bytes_per_link is None else f"{kernel.bytes_per_link:g}",
            "–" if kernel.roofline is None else f"{kernel.roofline:.0%}",
        ]
        if energies:
            row.append("–" if kernel.nj_per_link is None else f"{kernel.nj_per_link:.3g}")
        counts = (kernel.registers, kernel.spilled)
        row += ["–" if count is None else str(count) for count in counts] * registers
        if before is not None:
            old = before.get(kernel.name)
            row.append(f"{kernel.ns_per_link / old:.3f}" if old else "–")
        table.add_row(*row)
    return table


def _empty_table(first: str, headings: Iterable[str], unbroken: bool = False, **look: Any) -> Table:
    """Return a table without rows, of a column with a look and of columns with numbers."""
    from rich.table import Column, Table

    numbers = (Column(heading, justify="right", no_wrap=unbroken) for heading in headings)
    return Table(Column(first, **look), *numbers)


def _rates(rates: BenchSeries) -> list[Any]:
    table = _empty_table(f"{rates.unit}, by {rates.axis}", rates.values, unbroken=True)
    for curve in rates.series:
        cells = [
            ("–" if rate is None else f"{rate:.4g}") + (f" ({part:.0%})" if part else "")
            for rate, part in zip(curve.rates, curve.efficiencies, strict=True)
        ]
        table.add_row(curve.name, *cells)
    several = any(part for series in rates.series for part in series.efficiencies)
    note = [f"in brackets: for each of the {rates.axis}, relative to the first column"]
    return [rates.title, table, *note * several]


def _draw(rates: BenchSeries, file: Path) -> None:
    """Draw the rates along an axis."""
    from gauge_mc.benchmarks.over import AXES
    from gauge_mc.plots.figures.curves import RateCurve, draw_rates

    def points(values: Sequence[float | None]) -> list[tuple[float, float]]:
        return [(x, value) for x, value in zip(rates.numbers, values, strict=True) if value]

    def curve(series: RateSeries) -> RateCurve:
        words = [word for word in series.name.split(", ") if word != series.storage]
        return RateCurve(
            ", ".join(words), points(series.rates), points(series.limits), series.storage
        )

    curves = [curve(series) for series in rates.series]
    ticks = [*zip(rates.numbers, rates.values, strict=True)]
    divided = any(part for series in rates.series for part in series.efficiencies)
    draw_rates(curves, AXES[rates.axis], rates.unit, ticks, file, rates.title, divided)


def _whole_runs(result: EndToEnd) -> list[Any]:
    from rich.filesize import decimal

    headings = ("rate or time", "share")
    table = _empty_table("what a user waits for", headings, unbroken=True, no_wrap=True)
    table.add_column("of", no_wrap=True)
    for line in result.lines:
        share = "" if line.share is None else f"{line.share:.0%}"
        table.add_row(line.name, f"{line.value:.3g} {line.unit}", share, line.bound)
    subject = (
        f"{result.group.upper()} {result.lattice}, {result.precision} precision on {result.device}"
    )
    return [f"{subject}; a configuration has {decimal(result.config_bytes)}", table]


def _observables(result: ObservablesTime) -> list[Any]:
    headings = ("ns/link", "heatbath\nsweeps", "overrelaxation\nsweeps")
    table = _empty_table("one measurement, iteration or step", headings)
    rows = {
        **result.observables,
        **{f"{name} smearing": sweeps for name, sweeps in result.smearings.items()},
        **{f"{name} temporal links": sweeps for name, sweeps in result.temporal_links.items()},
        **{f"{name} flow": sweeps for name, sweeps in result.flows.items()},
    }
    for name, sweeps in rows.items():
        values = (result.ns_per_link(sweeps), sweeps, result.overrelaxations(sweeps))
        table.add_row(name, *(f"{value:.{4 if value > 999 else 3}g}" for value in values))
    subject = (
        f"{result.group.upper()} {result.lattice}, {result.precision} precision on {result.device}"
    )
    times = [f"{1e3 * x:.4g} ms" for x in (result.heatbath_s, result.overrelaxation_s)]
    sweeps_take = f"a heatbath sweep takes {times[0]}, an overrelaxation sweep {times[1]}"
    return [subject, sweeps_take, table]


def _trajectory(result: HmcTime) -> list[Any]:
    headings = ("number", "ms each", "ns/link", "iterations", "share")
    table = _empty_table("part of a trajectory", headings, no_wrap=True)
    for part in result.parts:
        each = result.ns_per_link(part.seconds, part.chains)
        times = (f"{1e3 * part.seconds:.4g}", f"{each:.4g}")
        count = str(part.iterations) if part.iterations else ""
        table.add_row(part.name, str(part.calls), *times, count, f"{part.share:.1%}")
    where = (
        f"{result.group.upper()} {result.lattice}, {result.precision} precision on {result.device}"
    )
    several = result.chains > 1
    chains = f", {result.chains} chains" if several else ""
    stage = (
        f"gauge force and drift take {result.ratio:.3g} times a stage of the {result.flow} flow "
        f"({result.ns_per_link(result.flow_stage_s):.4g} ns/link)"
    )
    every = f" of every chain takes {result.trajectory_s:.4g} s, {result.chain_s:.4g} s for each"
    summary = "a trajectory" + (every if several else f" takes {result.trajectory_s:.4g} s")
    summary += f"; forces and solvers, each timed alone, take {result.inside:.1%} of that"
    energy = f"energy: not available, {result.energy_source}"
    if result.joules is not None:
        energy = (
            f"energy: {result.joules / result.chains:.4g} J per trajectory, {result.per_kwh:.4g} "
            f"trajectories per kWh; counters of {result.energy_source}"
        )
    return [where, f"{result.action}, {result.algorithm}{chains}", table, stage, summary, energy]
