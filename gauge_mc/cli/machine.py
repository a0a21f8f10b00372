"""``gauge-mc bench`` and ``gauge-mc doctor``: how fast this machine is, and what works on it."""

from __future__ import annotations

import json as text
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc import defaults
from gauge_mc.actions import couplings
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.benchmarks import BENCH_KINDS, kind_options
from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.console import Console
from gauge_mc.devices.base import Finding
from gauge_mc.devices.cache import cache_folder
from gauge_mc.devices.cache import clear_cache as clear
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS, Place
from gauge_mc.domain.mpi import find_processes
from gauge_mc.errors import UsageError
from gauge_mc.files.atomic import write_file
from gauge_mc.flows import FLOWS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.plots.figures.files import figure_kind
from gauge_mc.progress import Progress
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import named_values
from gauge_mc.run.parameters import Parameters
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS

if TYPE_CHECKING:
    from gauge_mc.benchmarks.plan import BenchPlan
    from gauge_mc.benchmarks.timing import BenchResult
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice


PLACE = (*Place._fields, "share_gpus")
"""Options of runs that say where kernels are timed."""

SETTINGS = (
    *("group", "lattice", "precision", "action", *(c.name for c in couplings())),
    *("rng", "luxury", "strict", *PLACE),
)
"""Options of runs that say what is timed, and where."""

LATTICES = dict.fromkeys(f"{x.bench_extent}⁴ on a {x.label}" for x in BACKENDS.values())
BESIDE = f"Another action, whose updates are timed beside those of {defaults.ACTION}."
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "lattice": {"default": ", ".join(LATTICES)},
    "action": {"help": BESIDE, "default": "", "usual": None},
}
"""Differences from the options of runs."""

HelpTexts = dict[str, str]
"""Descriptions of options by name."""

HELP = HelpTexts(
    seconds="Approximate time in seconds for each kernel.",
    observables="Time observables, smearings, temporal links and steps of gradient flows "
    "instead, in units of sweeps: all, or those of the given NAMEs.",
    end_to_end="Time whole runs instead: with measurements, with configurations in a temporary "
    "folder here, in batches of small lattices, and from the command to the first update.",
    hmc="Time trajectories of hybrid Monte Carlo and their parts instead, and the gauge force "
    "in units of a stage of a gradient flow.",
    card="With --hmc: time the trajectories of this run card.",
    chains="With --hmc: time the trajectories of this number of chains, which move together, but "
    "with quarks on large lattices one after the other.",
    over="Do it for each of these values of an option, and compare the rates. The option is "
    "lattice, devices, threads or precision.",
    weak="With --over devices or threads: extend the lattice along t with their number.",
    plot="With --over: draw the rates, as PDF, PNG or SVG.",
    tune="First find the fastest launch bounds for this type of GPU.",
    save="Also write the JSON object to a file.",
    compare="Show ratios to the times in a file written by --save.",
)
"""Options of this command, most of which are on or off."""

VALUES: Mapping[str, Mapping[str, Any]] = {
    "seconds": {"kind": float, "default": "1.0"},
    "chains": {"kind": int, "usual": 1},
    "over": {"kind": str, "metavar": "OPTION=VALUE,..."},
    **{name: {"kind": Path, "metavar": "FILE"} for name in ("card", "plot", "save", "compare")},
}
"""Values of the other ones."""

SWITCH: Mapping[str, Any] = {"kind": bool, "usual": False}
OPTIONS = [Option(name, help=text, **VALUES.get(name, SWITCH)) for name, text in HELP.items()]


@prints(
    "gauge_mc.benchmarks.kernels:Benchmark",
    "gauge_mc.benchmarks.kernels:ObservablesTime",
    "gauge_mc.benchmarks.end_to_end:EndToEnd",
    "gauge_mc.benchmarks.hmc:HmcTime",
    "gauge_mc.benchmarks.over:BenchSeries",
    *(name for kind in BENCH_KINDS.values() for name in kind.results),
)
@o.with_settings(SETTINGS, CHANGES, (*kind_options(), *OPTIONS))
def bench(
    names: Annotated[
        list[str] | None,
        o.argument(
            "What is timed, instead of everything: updates and observables, such as heatbath and "
            "plaquette; with --observables also smearings, such as ape.",
            metavar="NAME",
            choices=[
                *(*ALGORITHMS[defaults.ALGORITHM].timed_sweeps, *OBSERVABLES),
                *(*SMEARINGS, *TEMPORAL_LINKS, *FLOWS),
            ],
        ),
    ] = None,
    json: o.Json = False,
    save: Path | None = None,
    compare: Path | None = None,
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
    from gauge_mc.benchmarks import kernels
    from gauge_mc.benchmarks import over as series
    from gauge_mc.benchmarks import plan as plans

    devices, backend, threads, share_gpus = (settings.pop(name) for name in PLACE)
    requests = {name: settings.pop(name) for name in HELP if name in settings}
    card, over, weak, plot, tune = map(requests.pop, ("card", "over", "weak", "plot", "tune"))
    if (weak or plot) and not over:
        raise UsageError("--weak and --plot are for --over; add it, or leave them out.")
    if over and (tune or compare):
        raise UsageError(
            "--over is for one benchmark after the other; leave out --tune and --compare."
        )
    if card and not requests["hmc"]:
        raise UsageError("--card is for --hmc; add it, or leave out --card.")
    if not requests["observables"]:
        requests["updates"] = names
    elif names:
        requests["observables"] = names

    def plan_of(changes: Mapping[str, Any]) -> BenchPlan:
        values = {**settings, **changes}
        run = Parameters.from_values(named_values(card, values)) if card else requests["hmc"]
        return plans.BenchPlan.from_values({**values, **requests, "hmc": run})

    plan_of({})  # which refuses what is wrong before a file is checked or a device opened
    axis = series.BenchAxis.parse(over, bool(weak)) if over else None
    before = series.SavedBenchmark.read(compare).times if compare else None
    if save:
        series.SAVED.check(save)
    if plot:
        figure_kind(plot).check(plot)
    console = Console(stderr=json)
    processes = find_processes()
    with processes.aborting():
        place = Place(devices, backend or AUTOMATIC, threads)
        root = processes.rank == 0
        if root and (advice := place.hint()):
            console.print(advice, soft_wrap=True)

        def carry_out(plan: BenchPlan, group: DeviceGroup, lattice: Lattice) -> BenchResult:
            for timing, choice, x, best in kernels.tune(group, plan, lattice) if tune else ():
                registers = f"{x.count:3} registers  {x.spilled:4} B spilled" if x else "  "
                time = f"{1e9 / timing.rate:.4g} ns/link{'  *' * best}"
                console.print(f"{timing.name:14}  {choice}  {registers}  {time}")
            with Progress(Console(stderr=True, quiet=not root), 0, "kernels", plain=False) as bar:

                def show(name: str, total: int) -> None:
                    bar.total, bar.count = total, bar.count + (total > 0)
                    bar.show(max(0, bar.count - 1), "", f"timing {name}")

                return plan.carry_out(group, lattice, show)

        result = plans.bench_on(place, plan_of, axis, processes, carry_out, bool(share_gpus))
    if not root:
        return
    if plot and isinstance(result, series.BenchSeries):
        result.draw(plot)
    values = asdict(result)
    if save:
        write_file(save, f"{text.dumps(values, indent=2)}\n", series.SAVED)
    if json:
        print_document("bench", values)
        return
    updates = result if isinstance(result, kernels.Benchmark) else None
    for part in updates.report(before) if updates else result.report():
        console.print(part, soft_wrap=updates is not None and isinstance(part, str))


@documented
@dataclass(frozen=True)
class Diagnosis:
    """The document of ``doctor``."""

    findings: Sequence[Finding] = result_field("What was examined.")
    works: bool = result_field("Whether it works; for the whole, whether any device works.")


@documented
@dataclass(frozen=True)
class CacheReport:
    """The document of ``doctor --clear-cache`` and of ``doctor --install``."""

    folder: str = result_field("Folder of the compiled kernels.")
    removed: int = result_field("Number of files that were removed.")
    installed: str = result_field("Backend for which software was installed.")


@prints(Diagnosis, CacheReport)
def doctor(
    clear_cache: Annotated[
        bool,
        o.option("Only remove all compiled kernels and tuned launch bounds.", flag="--clear-cache"),
    ] = False,
    install: Annotated[
        str | None,
        o.option(
            "Only install the software that the devices of a backend need.",
            metavar="|".join(BACKENDS),
            flag="--install",
        ),
    ] = None,
    physics: Annotated[
        bool,
        o.option(
            "Only compare averages of every device with those of long runs, which takes half a "
            "minute.",
            flag="--physics",
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Show which devices, compilers and optional packages work, and how to fix the rest.

    The location of the compiled kernels is also shown. The exit code is 1 if no device works, or if
    averages are wrong.

    gauge-mc doctor
    gauge-mc doctor --physics
    gauge-mc doctor --clear-cache
    """
    console = Console()
    if clear_cache:
        folder, removed = cache_folder(), clear()
        document = {"folder": str(folder), "removed": removed}
        words = f"{folder}: {counted(removed, 'file')} removed"
        show_result("doctor", document, json, words)
        return
    if install is not None:
        BACKENDS.check(install, "--install")
        with alone_on_stdout(json), console.status("Installing"):
            BACKENDS[install].install(lambda line: console.print(line, soft_wrap=True))
        if json:
            print_document("doctor", {"installed": install})
        return
    from gauge_mc.inspection.doctor import examine, examine_physics

    doing, tests, bad = "Testing compilers and devices", examine, "missing"
    if physics:
        doing, tests, bad = "Comparing averages", examine_physics, "wrong"
    findings = []
    with alone_on_stdout(json), console.status(doing):
        for finding in tests():
            findings.append(finding)
            if not json:
                _show(console, finding, bad)
    labels = {backend.label for backend in BACKENDS.values()}
    working = [f for f in findings if f.works]
    works = any(x.subject.partition(" ")[0] in labels for x in working)
    if physics:
        works = bool(findings) and working == findings
    if json:
        print_document("doctor", Diagnosis(findings, works))
    elif physics and not findings:
        say("No device works; `gauge-mc doctor` says why.")
    if not works:
        raise typer.Exit(1)


def _show(console: Console, finding: Finding, bad: str) -> None:
    """Show what works or is bad."""
    mark, style = ("works", "green") if finding.works else (bad, "yellow")
    console.print(f"{mark:7} ", style=style, end="")
    console.print(f"{finding.subject}: {finding.detail}", soft_wrap=True)
    if finding.remedy and not finding.works:
        console.print(f"          {finding.remedy}", style="bold", soft_wrap=True)
