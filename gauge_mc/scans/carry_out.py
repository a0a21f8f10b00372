"""Scans as a whole: carry out on the devices of this machine, submit as jobs, gather results.

The reports on scans and their runs, for JSON, are here as well.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gauge_mc.console import Console
from gauge_mc.devices import BACKENDS, choose_devices
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData, Value, read_table
from gauge_mc.options import Option
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import ParametersLike, named_values
from gauge_mc.run.lock import RunLock
from gauge_mc.run.log import COMPLETE, ERROR, FAILURE, INCOMPLETE, RunLog, logged_session
from gauge_mc.run.parameters import Parameters, run_options
from gauge_mc.run.settings import Execution
from gauge_mc.run.state import TIME_LIMIT, RunState, Stop, StopReason, saved_updates, state_of
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.scans.averages import ScanAverages, panels
from gauge_mc.scans.display import (
    ProgressDisplay,
    Tally,
    opening,
    point_name,
    point_words,
    results,
    show_progress,
)
from gauge_mc.scans.display import places as places_in_words
from gauge_mc.scans.grid import COUPLINGS, axes
from gauge_mc.scans.ladders import LadderReport, RunBatch, ladder_reports, ladders, pack, unfinished
from gauge_mc.scans.pool import CHILD, Child, Pool, Slot, make_slots
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Member, Scan
from gauge_mc.signatures import checks_types, with_fields

if TYPE_CHECKING:
    from gauge_mc.keywords import ScanKeywords

SECONDS_TO_STOP = 4.0
"""Time in seconds before a scan's time limit at which all running children are told to stop."""

TICK = 0.1
"""Time in seconds between two checks of the children."""


class Scheduler:
    """A scheduler that carries out the runs of a scan in a pool of children.

    Parameters
    ----------
    pool : Pool
        The pool of children.
    command : sequence of str
        Command that carries out a batch, see `CHILD`.
    display : ProgressDisplay
        Progress display.
    averages : ScanAverages
        Averages over complete runs, updated when a run is complete.
    execution : Execution
        Execution options of the scan, which also apply to its children.

    Attributes
    ----------
    failures : dict of str to str
        Reasons for the failure of runs, by the name of the run.
    """

    def __init__(
        self,
        pool: Pool,
        command: Sequence[str],
        display: ProgressDisplay,
        averages: ScanAverages,
        execution: Execution,
    ) -> None:
        self.pool, self.command, self.display = pool, command, display
        self.averages, self.execution = averages, execution
        self.failures: dict[str, str] = {}
        limit = execution.time_limit
        self._deadline = math.inf if limit is None else time.monotonic() + limit
        self._stopped: str | None = None
        self._queue: deque[RunBatch] = deque()

    def carry_out(self, batches: Iterable[RunBatch], stop: StopReason) -> str | None:
        """Carry out batches until all are done or there is a reason to stop."""
        self._queue.extend(batches)
        reason = None
        while self.pool.children or (self._queue and not reason):
            if not reason and (reason := stop(SECONDS_TO_STOP)):
                self.pool.terminate()
            elif not reason:
                self._fill()
            for child in self.pool.ended():
                self._note(child)
            self.display.refresh(self.pool.children)
            time.sleep(TICK)
        return reason or self._stopped

    def _fill(self) -> None:
        """Start runs in free slots; postpone runs that another process holds."""
        for _ in range(len(self._queue)):
            if not self.pool.free:
                return
            batch = self._queue.popleft()
            held = [member for member in batch if member.run.holder()[1]]
            if held and batch[0].parameters.tempering:
                self._queue.append(batch)
                continue
            free = tuple(member for member in batch if member not in held)
            if free:
                self.pool.start(free, self.command, map(self._values, free))
            self._queue.extend((member,) for member in held)

    def _values(self, member: Member) -> dict[str, object]:
        """Return the values of `Parameters` and `Execution` for a run."""
        values: dict[str, object] = {
            **member.parameters.values(),
            "output": str(member.run.path),
            "checkpoint_every": self.execution.checkpoint_every,
        }
        if math.isfinite(self._deadline):
            seconds = max(1, int(self._deadline - SECONDS_TO_STOP / 2 - time.monotonic()))
            values["time_limit"] = f"0:0:{seconds}"
        return values

    def _note(self, child: Child) -> None:
        """Record the end of a child, whose runs are complete, failed or stopped."""
        tally, failure = self.display.tally, child.failure()
        tally.note(child)
        complete = [member for member in child.members if tally.done(member)]
        remaining = [member for member in child.members if member not in complete]
        tempered = child.members[0].parameters.tempering
        if failure and len(child.members) > 1 and not tempered:
            # One of them has failed. The others can be carried out without it.
            self._queue.extendleft((member,) for member in reversed(remaining))
        elif failure:
            self.failures |= {member.name: failure for member in remaining or child.members[:1]}
            with suppress(GaugeError):  # a full disk, which may be why the run failed
                self.averages.scan.record_failures(self.failures)
            for failed in remaining or child.members[:1]:
                RunLog(self.averages.scan.path).add(
                    FAILURE, ERROR, run=failed.name, message=failure
                )
            self.display.line(f"{child.members[0].name} failed: {failure}")
        elif remaining:
            limited = math.isfinite(self._deadline)
            self._stopped = TIME_LIMIT if limited else f"a signal to {remaining[0].name}"
        if complete and not (failure and (len(child.members) == 1 or tempered)):
            self._average(complete)

    def _average(self, complete: Sequence[Member]) -> None:
        """Average over the runs that have just been completed."""
        chains = self.averages.scan.points()
        for point in dict.fromkeys(member.point for member in complete):
            self.averages.update(point)
            if row := self.averages.rows.get(point):
                self.display.line(point_words(point, row, chains[point]))
        self.averages.write()


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


def _options() -> list[Option]:
    """Return the options of runs, of which axes may have several values, and of additions."""
    several, added = axes(), [x.option for x in ADDITIONS.values()]
    of_runs = [replace(o, each=o.kind) if o.name in several else o for o in run_options()]
    return [*added, *of_runs]


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
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name, and flags that add points to an
        existing scan, such as ``refine``. Options of the action may have several
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
        names = {option.name for option in parameters.action.options if option.usual is None}
        left_out = axes().keys() - names
        parameters = {name: shared[name] for name in shared if name not in left_out}
    stated: dict[str, Any] = {"beta": beta, "lattice": lattice, "output": output, **options}
    added = {name: stated.pop(name, False) for name in ADDITIONS}
    values = named_values(parameters, {"quiet": not progress, **stated})
    request = ScanRequest.of({**values, "chains": chains, "skip": skip})
    return carry_out(request.with_additions(added), per_device)


def carry_out(request: ScanRequest, per_device: int | None = None) -> ScanResult:
    """Carry out the remaining runs of a scan on the devices of this machine."""
    e = request.execution
    with Stop(e.time_limit) as stop:
        request.check_runs()
        slots, busy_sites = places(e, per_device, len(ladders(request.scan().members())))
        with request.locked() as scan:
            averages, console = ScanAverages(scan, request.skip), Console(quiet=e.quiet)
            tally = Tally(scan.members())
            console.print(opening(scan, tally, slots, e.place.hint()), soft_wrap=True)
            remaining, total = unfinished(tally.members, tally.done), len(tally.members)
            scan.record_failures({})
            log = RunLog(scan.path)
            facts = {"devices": places_in_words(slots), "runs": len(remaining)}
            with logged_session([log] if remaining else [], **facts) as ended:
                with Pool(slots) as pool, show_progress(tally, slots, console) as display:
                    scheduler = Scheduler(pool, CHILD, display, averages, e)
                    reason = scheduler.carry_out(pack(remaining, busy_sites, len(slots)), stop)
                _finish(averages, console)
                if remaining:
                    log.caution(*averages.cautions)
                complete = sum(map(tally.done, tally.members))
                end = COMPLETE if complete == total else reason or INCOMPLETE
                ended |= {"ended": end, "complete": complete}
            failures = scheduler.failures | averages.failures
            for name, sentence in failures.items():
                raise GaugeError(
                    f"{len(failures)} of {total} runs failed, and repeating the command tries "
                    f"them again; {name}: {sentence}"
                )
    return ScanResult(scan.path, total, complete, reason, failures)


def places(
    execution: Execution, per_device: int | None, together: int = 0
) -> tuple[list[Slot], int]:
    """Return the slots of the chosen devices, and the number of sites that keeps a device busy."""
    e = execution
    devices = choose_devices(*e.place, all_by_default=True)
    backend = BACKENDS[devices[0].backend]
    if together and not (per_device or devices[0].numbered or devices[0].threads):
        per_device = min(together, backend.available_threads())
    return make_slots(devices, per_device), backend.busy_sites


def gather(request: ScanRequest) -> ScanResult:
    """Average the results of the complete runs, and write the scan's table and figure."""
    scan = Scan.read(request.path)
    console, tally = Console(quiet=request.execution.quiet), Tally(scan.members())
    averages = ScanAverages(scan, request.skip)
    console.print(f"{scan.path}: {tally}", soft_wrap=True)
    complete, total = sum(map(tally.done, tally.members)), len(tally.members)
    with logged_session([RunLog(scan.path)], runs=total) as ended:
        _finish(averages, console)
        for failure in averages.failures.values():
            raise GaugeError(failure)
        ended |= {"ended": COMPLETE if complete == total else INCOMPLETE, "complete": complete}
    return ScanResult(scan.path, total, complete, None, {})


def take_out(request: ScanRequest) -> ScanResult:
    """Take points out of a scan, whose runs keep their directories, and gather the results."""
    scan, gone = request.reduced()
    with closing(RunLock(scan.lock)):
        scan.write()
    names = in_words(x.name for x in gone)
    console = Console(quiet=request.execution.quiet)
    console.print(f"taken out of {scan.path}: {names}; their folders stay", soft_wrap=True)
    return gather(request)


def _finish(averages: ScanAverages, console: Console) -> None:
    """Write and draw the averages over complete runs, and show them."""
    averages.write()
    files = [averages.scan.table] + [averages.scan.figure] * _draw(averages)
    console.print("", results(averages), "", sep="\n")
    console.print(", ".join(map(str, files)), soft_wrap=True)


def _draw(averages: ScanAverages) -> bool:
    """Draw the scan's figure; return False if there is no data, or Matplotlib is missing."""
    from gauge_mc.plots import PLOTS

    shown = {panel.column for panel in panels()}
    if not find_spec("matplotlib") or not any(shown & row.keys() for row in averages.rows.values()):
        return False
    PLOTS["scan"].draw([averages.scan.path], averages.scan.figure)
    return True


@documented
@dataclass(frozen=True)
class MemberState(RunState):
    """A run of a scan and its progress."""

    run: str = result_field("Run directory.")
    beta: float = result_field("Coupling.")
    lattice: str = result_field("Extents of the lattice.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    chain: int = result_field("Number of the chain at its point, from 1.")
    point: str = result_field("Couplings and lattice in words.")
    damage: str | None = result_field("Why the run cannot be read or continued; None if it can.")

    @classmethod
    def of(
        cls,
        member: Member,
        failures: Collection[str] = (),
        saved: int | None = None,
        damage: str | None = None,
    ) -> MemberState:
        """Return the state of a run of a scan."""
        p = member.parameters
        saved = saved_updates(member.run) if saved is None else saved
        failed = member.name in failures
        return cls(
            str(member.run.path),
            p.beta,
            str(p.lattice),
            member.point.numbers,
            member.chain,
            point_name(member.point),
            damage,
            **vars(state_of(member.run, p, saved, member.begun(), failed)),
        )

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return Path(self.run).name

    def __str__(self) -> str:
        return f"{self.name}  {self.damage or f'{self.sweep} of {self.sweeps} updates'}"


def member_states(members: Sequence[Member], failures: Collection[str] = ()) -> list[MemberState]:
    """Return the states of runs of a scan, with damages of their files."""
    return [MemberState.of(member, failures, damage=member.damage()) for member in members]


def share_done(members: Sequence[Member], states: Sequence[RunState]) -> tuple[float, int]:
    """Return the fraction of the work of a scan that is done, and what is left in link updates."""
    links = [member.parameters.links_per_update for member in members]
    every = sum(state.sweeps * n for state, n in zip(states, links, strict=True))
    updates = sum(
        min(state.sweep, state.sweeps) * n for state, n in zip(states, links, strict=True)
    )
    return updates / max(1, every), every - updates


@documented
@dataclass(frozen=True)
class ScanReport:
    """A scan, what a session has done, and the averages at its points."""

    scan: str = result_field("Scan directory.")
    runs: Sequence[MemberState] = result_field("Runs.")
    complete: int = result_field("Number of complete runs.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )
    failures: Mapping[str, str] = result_field("Error messages by the name of the run.")
    rows: Sequence[Mapping[str, Value]] = result_field("Rows of ``scan.csv``, by column.")
    cautions: Sequence[str] = result_field("Cautions about the averages, one sentence each.")
    ladders: Sequence[LadderReport] = result_field("Runs that exchange their couplings.")

    @classmethod
    def of(cls, result: ScanResult, skip: Skip = 0) -> ScanReport:
        """Return the report on a session of a scan."""
        scan = Scan.read(result.path)
        averages = ScanAverages(scan, skip)
        return cls(
            str(result.path),
            member_states(scan.members(), result.failures),
            result.complete,
            result.stopped,
            result.failures,
            averages.sorted_rows(),
            averages.cautions,
            ladder_reports(scan),
        )
