"""Scans as a whole: carry out on the devices of this machine, submit as jobs, gather results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from gauge_mc.arguments import checks_types
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import ParametersLike, named_values
from gauge_mc.run.execution import Execution
from gauge_mc.run.log import COMPLETE, INCOMPLETE, SUBMITTED, RunLog, logged_session
from gauge_mc.run.parameters import Parameters, run_options
from gauge_mc.run.stop import Stop
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.grid import axes
from gauge_mc.scans.job_arrays import ArrayPlan, JobRequest
from gauge_mc.scans.ladders import ladders, unfinished
from gauge_mc.scans.process import CHILD
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from gauge_mc.signatures import with_fields

if TYPE_CHECKING:
    from gauge_mc.keywords import ScanKeywords
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.pool import Slot


@documented
@dataclass(frozen=True)
class ScanResult:
    """The result of a session of a scan."""

    path: Path = result_field("Scan directory.")
    runs: int = result_field("Number of runs.")
    complete: int = result_field("Number of complete runs.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end of the scan, or None."
    )
    failures: Mapping[str, str] = result_field("Error messages by the name of the run.")

    def __repr__(self) -> str:
        return f"<Scan {self.path}: {self.complete} of {self.runs} runs complete>"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def table(self) -> TableData:
        """Averages at every point; all columns except ``lattice`` are numbers."""
        return read_table(Scan.read(self.path).table, text=("lattice",))


@documented
@dataclass(frozen=True)
class Submission:
    """The jobs of a scan for a batch system, submitted or, with ``--dry-run``, about to be."""

    scan: str = result_field("Scan directory.")
    job: str | None = result_field(
        "ID of the job array; None if no run was left to be submitted, or none was submitted."
    )
    submitted: Sequence[str] = result_field(
        "Run directories of the jobs, in the order of their indices in the array."
    )
    all_runs: int = result_field("Number of runs.")
    complete: int = result_field("Number of complete runs.")
    submit_by: str | None = result_field(
        "Command that submits the script of the array; None if no run is left."
    )
    script: str | None = result_field("Script of the array; None if no run is left.")

    def __str__(self) -> str:
        done = f"{self.scan}: {self.complete} of {self.all_runs} runs complete"
        if self.submit_by and not self.job:
            return f"{done}, {len(self.submitted)} to be submitted by: {self.submit_by}"
        array = f" as job {self.job}" if self.job else ""
        return f"{done}, {len(self.submitted)} submitted{array}"


def _options() -> list[Option]:
    """Return the options of runs; those that are axes may have several values."""
    several = axes()
    return [replace(one, each=one.kind) if one.name in several else one for one in run_options()]


@with_fields(Parameters, Execution, options=_options)
@checks_types
def scan(
    parameters: ParametersLike = None,
    *,
    beta: str | float | Iterable[float] | None = None,
    lattice: str | Lattice | Iterable[str | Lattice] | None = None,
    chains: int | None = None,
    output: str | Path | None = None,
    per_device: int | None = None,
    skip: Skip = 0,
    refine: bool = False,
    progress: bool = True,
    **options: Unpack[ScanKeywords],
) -> ScanResult:
    """Carry out independent runs on a grid of couplings and lattices.

    Runs on small lattices are updated together on each device. If the scan already exists, it is
    continued, and new points and chains are added.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        Parameters that all runs share; see `gauge_mc.generate`.
    beta : float, iterable of float or str, optional
        Couplings; also accepted as on the command line, such as ``2.2:2.8:0.05``.
    lattice : Lattice, iterable of Lattice or str, optional
        Lattices; also accepted as on the command line, such as ``4x4x4x8,4``.
    chains : int, optional
        Number of independent chains at each point.
    output : path, optional
        Scan directory.
    per_device : int, optional
        Number of processes on each device.
    skip : int or str
        Last update that is left out of the averages, or ``auto``.
    refine : bool
        Whether to add points where the susceptibility of the Polyakov loop of an existing scan has
        its peak, or runs are missing.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name. Options of the action may have several
        values, also as on the command line, such as ``anisotropy="1.5,2"``.

    Returns
    -------
    ScanResult
        The scan, the number of its complete runs, and the failures.

    Raises
    ------
    UsageError
        If a value is invalid, or differs from that of the existing scan.
    GaugeError
        If the scan cannot be carried out, or a run fails.
    """
    if isinstance(parameters, Parameters):  # its point does not belong to the grid
        shared = parameters.values()
        needed = {one.name for one in parameters.action.options if one.usual is None}
        left_out = axes().keys() - needed
        parameters = {name: shared[name] for name in shared if name not in left_out}
    grid: dict[str, object] = {"beta": _words(beta), "lattice": _words(lattice)}
    others = {"quiet": not progress, "output": output, **options}
    grid |= {name: _words(others.pop(name)) for name in axes() if name in others}
    values = named_values(parameters, {**grid, **others})
    asked = ScanRequest.of({**values, "chains": chains, "skip": skip})
    return carry_out(asked.refined() if refine else asked, per_device)


def _words(values: object) -> str | None:
    """Return one or several values as on the command line."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(map(str, values)) if isinstance(values, Iterable) else str(values)


def carry_out(asked: ScanRequest, per_device: int | None = None) -> ScanResult:
    """Carry out the remaining runs of a scan on the devices of this machine.

    Raises
    ------
    UsageError, GaugeError
        See `scan`.
    """
    e = asked.execution
    with Stop(e.time_limit) as stop:
        # These imports take long. They come after the signal handlers have been installed, so that
        # a signal in the meantime is not lost.
        from gauge_mc.devices.choice import hint
        from gauge_mc.scans.averages import ScanAverages

        asked.check_runs()
        slots, busy_sites = places(e, per_device, len(ladders(asked.scan().members())))
        advice = hint() if e.backend == AUTOMATIC and not e.devices else None
        with asked.locked() as scan:
            averages = ScanAverages(scan, asked.skip)
            result = _work(averages, slots, busy_sites, e, stop, advice)
            if result.failures:
                name, sentence = next(iter(result.failures.items()))
                raise GaugeError(
                    f"{len(result.failures)} of {result.runs} runs failed, and repeating the "
                    f"command tries them again; {name}: {sentence}"
                )
    return result


def places(
    execution: Execution, per_device: int | None, together: int = 0
) -> tuple[list[Slot], int]:
    """Return the slots of the chosen devices, and the number of sites that keeps a device busy.

    Parameters
    ----------
    execution : Execution
        Execution options of the scan.
    per_device : int, optional
        Number of slots on each device.
    together : int
        Number of batches that cannot be divided, if there are only such; else 0.
    """
    from gauge_mc.devices import BACKENDS, choose_devices
    from gauge_mc.scans.pool import make_slots

    e = execution
    chosen = choose_devices(e.devices, e.backend, e.threads, all_by_default=True)
    backend = BACKENDS[chosen[0].backend]
    if together and not (per_device or chosen[0].numbered or chosen[0].threads):
        per_device = min(together, backend.available_threads())
    return make_slots(chosen, per_device), backend.busy_sites


def _work(
    averages: ScanAverages,
    slots: Sequence[Slot],
    busy_sites: int,
    execution: Execution,
    stop: Stop,
    hint: str | None,
) -> ScanResult:
    """Carry out the remaining runs, and show the progress."""
    from gauge_mc.scans.display import Tally, opening, show_progress
    from gauge_mc.scans.display import places as places_in_words
    from gauge_mc.scans.packing import pack
    from gauge_mc.scans.pool import Pool
    from gauge_mc.scans.scheduler import Scheduler

    console, scan = Console(quiet=execution.quiet), averages.scan
    tally = Tally(scan.members())
    console.print(opening(scan, tally, slots, hint), soft_wrap=True)
    left = unfinished(tally.members, tally.done)
    scan.record_failures({})
    log, facts = RunLog(scan.path), {"devices": places_in_words(slots), "runs": len(left)}
    with logged_session([log] if left else [], **facts) as ended:
        with Pool(slots) as pool, show_progress(tally, slots, console) as display:
            scheduler = Scheduler(pool, CHILD, display, averages, execution)
            reason = scheduler.carry_out(pack(left, busy_sites, len(slots)), stop)
        _finish(averages, console)
        if left:
            log.caution(*averages.cautions)
        complete = sum(map(tally.done, tally.members))
        whole = complete == len(tally.members)
        ended |= {"ended": COMPLETE if whole else reason or INCOMPLETE, "complete": complete}
    failures = scheduler.failures | averages.failures
    return ScanResult(scan.path, len(tally.members), complete, reason, failures)


def gather(asked: ScanRequest) -> ScanResult:
    """Average the results of the complete runs, and write the scan's table and figure.

    Parameters
    ----------
    asked : ScanRequest
        The scan that the user requests.

    Returns
    -------
    ScanResult
        The scan with the number of its runs and of the complete ones, without failures.

    Raises
    ------
    UsageError
        If the scan does not exist.
    GaugeError
        If a table is damaged.
    """
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.display import Tally

    scan = Scan.read(asked.path)
    console, tally = Console(quiet=asked.execution.quiet), Tally(scan.members())
    averages = ScanAverages(scan, asked.skip)
    console.print(f"{scan.path}: {tally}", soft_wrap=True)
    complete = sum(map(tally.done, tally.members))
    with logged_session([RunLog(scan.path)], runs=len(tally.members)) as ended:
        _finish(averages, console)
        for failure in averages.failures.values():
            raise GaugeError(failure)
        whole = complete == len(tally.members)
        ended |= {"ended": COMPLETE if whole else INCOMPLETE, "complete": complete}
    return ScanResult(scan.path, len(tally.members), complete, None, {})


def submit(
    asked: ScanRequest, system: str, words: Sequence[str], dry_run: bool = False
) -> Submission:
    """Submit a job for each run that is neither complete nor running.

    Parameters
    ----------
    asked : ScanRequest
        The scan that the user requests.
    system : str
        Name of the batch system.
    words : sequence of str
        Options of the batch system, as on the command line.
    dry_run : bool
        Whether to write and submit nothing.

    Returns
    -------
    Submission
        The job array, with its ID, its runs and its script.

    Raises
    ------
    UsageError, GaugeError
        If the jobs cannot be submitted.
    """
    wanted = JobRequest.of(system, words)
    if ladders(asked.scan().members()):
        raise UsageError(
            "--submit makes a job of every run, and runs that exchange their couplings are one "
            "process; repeat the command without --submit in a job, or leave out --tempering."
        )
    asked.check_runs()
    if dry_run:
        return _submission(asked.scan(), wanted, asked.execution)
    with asked.locked() as scan:
        return _submission(scan, wanted, asked.execution, RunLog(scan.path))


def _submission(
    scan: Scan, wanted: JobRequest, execution: Execution, log: RunLog | None = None
) -> Submission:
    """Return the jobs of a scan; submit them if there is a log."""
    from gauge_mc.scans.display import Tally

    tally = Tally(scan.members())
    left = [one for one in tally.members if not (tally.done(one) or one.run.holder()[1])]
    array = ArrayPlan.of(wanted, scan.jobs, left, execution) if left else None
    job = None
    if array and log:
        with logged_session([log], devices=wanted.system.name, runs=len(left)) as ended:
            job = array.submit()
            ended |= {"ended": SUBMITTED, "job": job}
    return Submission(
        str(scan.path),
        job,
        [str(one.run.path) for one in left],
        len(tally.members),
        sum(map(tally.done, tally.members)),
        array.command if array else None,
        array.text() if array else None,
    )


def _finish(averages: ScanAverages, console: Console) -> None:
    """Write and draw the averages over complete runs, and show them."""
    from gauge_mc.scans.display import results

    averages.write()
    files = [averages.scan.table] + [averages.scan.figure] * _draw(averages)
    console.print("", results(averages), "", sep="\n")
    console.print(", ".join(map(str, files)), soft_wrap=True)


def _draw(averages: ScanAverages) -> bool:
    """Draw the scan's figure; return False if there is no data, or Matplotlib is missing."""
    from gauge_mc.plots import PLOTS
    from gauge_mc.scans.averages import panels

    shown = {panel.column for panel in panels()}
    if not find_spec("matplotlib") or not any(shown & row.keys() for row in averages.rows.values()):
        return False
    PLOTS["scan"].draw([averages.scan.path], averages.scan.figure)
    return True
