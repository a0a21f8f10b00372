"""Carry out a scan on the devices of this machine, submit it, or gather its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gauge_mc.devices.choice import AUTOMATIC
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.run.parameters import Execution, Parameters, Wanted, named_values
from gauge_mc.run.stop import Stop
from gauge_mc.scans.process import COMMAND, job
from gauge_mc.scans.request import Request
from gauge_mc.scans.scan import Scan

if TYPE_CHECKING:
    from rich.console import Console

    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.pool import Slot


@dataclass(frozen=True)
class ScanResult:
    """A scan after a session.

    Attributes
    ----------
    path : Path
        The directory.
    runs, complete : int
        The number of runs, and how many of them are complete.
    stopped : str or None
        Why the session stopped before the end of the scan, or None.
    failures : dict of str to str
        What went wrong, by the names of runs.
    """

    path: Path
    runs: int
    complete: int
    stopped: str | None
    failures: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Scan {self.path}: {self.complete} of {self.runs} runs complete>"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def table(self) -> TableData:
        """The averages at every point; text is only in the column ``lattice``."""
        return read_table(Scan.read(self.path).table, text=("lattice",))


def scan(
    parameters: Wanted = None,
    *,
    beta: str | float | Iterable[float] | None = None,
    lattice: str | Lattice | Iterable[str | Lattice] | None = None,
    chains: int | None = None,
    output: str | Path | None = None,
    per_device: int | None = None,
    progress: bool = True,
    **options: Any,
) -> ScanResult:
    """Carry out a grid of independent runs, one or more a device at a time.

    If the scan is there already, it is continued, and enlarged by what is asked for.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        What all runs share; as for `gauge_mc.generate`.
    beta : float, iterable of float or str, optional
        Couplings, also as on the command line, such as ``2.2:2.8:0.05``.
    lattice : Lattice, iterable of Lattice or str, optional
        Lattices, also as on the command line, such as ``4x4x4x8,4``.
    chains : int, optional
        Independent chains at each point.
    output : path, optional
        The scan directory.
    per_device : int, optional
        Runs at a time on each device.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name.

    Returns
    -------
    ScanResult

    Raises
    ------
    UsageError
        If a value is not allowed, or differs from that of the scan in the directory.
    GaugeError
        If the scan cannot be carried out, or a run failed.
    """
    if isinstance(parameters, Parameters):  # a coupling and a lattice of its own are not the grid
        shared = parameters.values()
        parameters = {name: shared[name] for name in shared if name not in ("beta", "lattice")}
    grid = {"beta": _words(beta), "lattice": _words(lattice)}
    options = {"quiet": not progress, **options}
    values = named_values(parameters, {**grid, "output": output, **options})
    return carry_out(Request.of({**values, "chains": chains}), per_device)


def _words(values: object) -> str | None:
    """Return one value or several as on the command line."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(map(str, values)) if isinstance(values, Iterable) else str(values)


def carry_out(asked: Request, per_device: int | None = None) -> ScanResult:
    """Carry out what is left of a scan on the devices of this machine.

    Raises
    ------
    UsageError, GaugeError
        As of `scan`.
    """
    e = asked.execution
    with Stop(e.time_limit) as stop:
        # Imported here, since that takes longer than a signal may take to come.
        from gauge_mc.devices import choose_devices
        from gauge_mc.devices.choice import hint
        from gauge_mc.scans.pool import make_slots

        asked.scan()
        chosen = choose_devices(e.devices, e.backend, e.threads, all_by_default=True)
        slots = make_slots(chosen, per_device)
        advice = hint() if e.backend == AUTOMATIC and not e.devices else None
        with asked.locked() as scan:
            result = _work(scan, slots, e, stop, advice)
    if result.failures:
        name, sentence = next(iter(result.failures.items()))
        raise GaugeError(
            f"{len(result.failures)} of {result.runs} runs failed, and the same command tries "
            f"them again; {name}: {sentence}"
        )
    return result


def _work(
    scan: Scan, slots: Sequence[Slot], execution: Execution, stop: Stop, hint: str | None
) -> ScanResult:
    """Do what there is to do, and show it."""
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.display import Tally, opening, show_progress
    from gauge_mc.scans.pool import Pool
    from gauge_mc.scans.scheduler import Scheduler

    console = _console(execution)
    tally = Tally(scan.members())
    console.print(opening(scan, tally, slots, hint), soft_wrap=True)
    averages = ScanAverages(scan)
    left = [member for member in tally.members if not tally.done(member)]
    with Pool(slots) as pool, show_progress(tally, slots, console) as display:
        scheduler = Scheduler(pool, COMMAND, display, averages, execution)
        reason = scheduler.carry_out(left, stop)
    _finish(averages, console)
    complete = sum(map(tally.done, tally.members))
    failures = scheduler.failures | averages.failures
    return ScanResult(scan.path, len(tally.members), complete, reason, failures)


def gather(asked: Request) -> ScanResult:
    """Gather the results of the runs that are complete.

    Raises
    ------
    UsageError
        If there is no scan.
    GaugeError
        If a table is damaged.
    """
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.display import Tally

    scan = Scan.read(asked.path)
    console, tally = _console(asked.execution), Tally(scan.members())
    console.print(f"{scan.path}: {tally}", soft_wrap=True)
    averages = ScanAverages(scan)
    _finish(averages, console)
    for failure in averages.failures.values():
        raise GaugeError(failure)
    complete = sum(map(tally.done, tally.members))
    return ScanResult(scan.path, len(tally.members), complete, None, {})


def submit(asked: Request, system: str, words: Sequence[str]) -> list[str]:
    """Submit a job for each run that is neither complete nor at work.

    Parameters
    ----------
    asked : Request
    system : str
        The batch system.
    words : sequence of str
        Options of the batch system, as on the command line.

    Returns
    -------
    list of str
        What was done, in lines.

    Raises
    ------
    UsageError, GaugeError
        If the jobs cannot be submitted.
    """
    from gauge_mc.scans import slurm
    from gauge_mc.scans.display import Tally

    if system != slurm.NAME:
        raise UsageError(f"Jobs can be submitted to {slurm.NAME}, not to '{system}'.")
    options = slurm.parse_options(words)
    with asked.locked() as scan:
        tally = Tally(scan.members())
        left = [one for one in tally.members if not (tally.done(one) or one.run.holder()[1])]
        tasks = [slurm.task(member, asked.execution) for member in left]
        folder = scan.path.absolute() / "jobs"
        jobs = slurm.submit(job, tasks, folder, options) if tasks else []
    array = f" as job {str(jobs[0].job_id).partition('_')[0]}" if jobs else ""
    return [f"{scan.path}: {tally}, {len(jobs)} submitted{array}"]


def _console(execution: Execution) -> Console:
    from rich.console import Console

    return Console(quiet=execution.quiet, highlight=False, markup=False)


def _finish(averages: ScanAverages, console: Console) -> None:
    """Write and draw what is complete, and show it."""
    from gauge_mc.scans.display import results

    averages.write()
    files = [averages.scan.table] + [averages.scan.figure] * averages.draw()
    console.print("", results(averages), "", sep="\n")
    console.print(", ".join(map(str, files)), soft_wrap=True)
