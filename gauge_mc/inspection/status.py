"""Status of runs and scans, as seen by another process or after they have ended."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gauge_mc.progress import duration
from gauge_mc.quoting import CommandLine, counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run, newest
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.results import Average, averages_values
from gauge_mc.run.state import (
    COMPLETE,
    FAILED,
    RUNNING,
    STOPPED,
    WAITING,
    RunState,
    describe,
    energy_text,
    link_rate,
    made_again,
    spent,
    state_of,
)
from gauge_mc.run.thermalisation import StartComparison, compared_starts
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.batch_systems import last_array
from gauge_mc.scans.carry_out import MemberState, member_states, share_done
from gauge_mc.scans.ladders import LadderReport, ladder_reports
from gauge_mc.scans.scan import Scan, is_scan
from gauge_mc.signatures import checks_types
from gauge_mc.stored.thinning import removed_from


class Status(ABC):
    """A state and a progress, shown as lines of text."""

    @abstractmethod
    def lines(self) -> dict[str, str]:
        """Return the content except for the averages, as text by name."""

    def __repr__(self) -> str:
        rows = self.lines()
        width = max(map(len, rows)) + 2
        return "\n".join(f"{name:<{width}}{value}" for name, value in rows.items())


@documented
@dataclass(frozen=True, repr=False)
class RunStatus(Status, RunState):
    """The state and the progress of a run, with the energy of all its sessions."""

    run: str = result_field("Run directory.")
    parameters: Mapping[str, str | int | float] = result_field(
        "Parameters of the run, as in ``run.toml``."
    )
    process: int | None = result_field("Process that works on the run; None if there is none.")
    host: str | None = result_field("Host of that process.")
    since: str | None = result_field("Time at which that process began, in ISO 8601.")
    configurations: int = result_field("Number of configurations.")
    configurations_removed: int = result_field(
        "Number of configurations that were removed on purpose."
    )
    checkpoint_sweep: int | None = result_field(
        "Number of updates in the last checkpoint; None if there is no checkpoint."
    )
    checkpoint_seconds: float | None = result_field("Age of the last checkpoint in seconds.")
    joules_sessions: int = result_field("Number of sessions whose energy is known.")
    all_sessions: int = result_field("Number of all sessions.")
    averages: Mapping[str, Average] = result_field("Averages by the label of the quantity.")
    starts: StartComparison | None = result_field(
        "Comparison with a chain from another start; None if there is none."
    )

    def lines(self) -> dict[str, str]:
        """Return the content except for the averages; see `Status`."""
        p = Parameters.from_run(self.parameters)
        state = self.state
        if self.process is not None:
            state = f"running: process {self.process} on {self.host} since {self.since}"
        elif state == STOPPED:
            again = CommandLine("generate", output=self.run)
            state = f"stopped; to continue: {again}"
            if self.checkpoint_sweep is None and not self.sweep:
                state = f"stopped before its first checkpoint; to begin anew: {again}"
        phase = (
            "" if self.sweep > self.thermalize else f", of which {self.thermalize} to thermalise"
        )
        configs = f"{self.configurations} of {p.configs}" if p.keeps_configs else "not kept"
        if self.configurations_removed:
            configs += f", {self.configurations_removed} removed on purpose"
        rows = {
            "run": self.run,
            "chain": describe(p),
            "state": state,
            "updates": f"{self.sweep} of {self.sweeps}{phase}",
            **({"now": self.physics} if self.physics else {}),
            "configurations": configs,
        }
        if self.checkpoint_seconds is not None:
            age = duration(self.checkpoint_seconds)
            after = f"after update {self.checkpoint_sweep}, {age} ago"
            rows["checkpoint"] = after + made_again(self.updates_again)
        if self.links_per_s is not None and self.remaining_seconds is not None:
            rows["rate"] = link_rate(self.links_per_s)
            rows["remaining"] = duration(self.remaining_seconds)
        if self.times:
            rows["spent"] = spent(self.times)
        if self.joules is not None:
            several = f" in {self.joules_sessions} of {self.all_sessions} sessions"
            some = several if self.all_sessions > 1 else ""
            rows["energy"] = f"{energy_text(self.joules)}{some}"
        return rows


@checks_types
def status(path: str | os.PathLike[str] | None = None) -> RunStatus | ScanStatus:
    """Return the state, the progress and the averages of a run or a scan.

    Nothing is locked or written, and another process may carry out the run or the scan.

    Parameters
    ----------
    path : path, optional
        Run or scan directory; by default the newest one in ``runs/``.

    Returns
    -------
    RunStatus or ScanStatus
        What ``gauge-mc status --json`` prints.

    Raises
    ------
    UsageError
        If the directory contains neither a run nor a scan.
    GaugeError
        If files of the run are damaged.
    """
    place = newest("run", "scan") if path is None else Path(path)
    if is_scan(place):
        return scan_status(Scan.read(place))
    return run_status(Run(place), averages=True)


def run_status(run: Run, averages: bool = False, tau_exp: float | None = None) -> RunStatus:
    """Return the state and the progress of a run, with its averages if they are wanted."""
    p, sessions = run.read()
    exists = run.checkpoint.exists()
    saved = read_state(run.checkpoint).sweep if exists else 0
    now = state_of(run, p, saved)
    holder = run.holder()[0] if now.state == RUNNING else None
    # The clock may have been set back, or may differ from that of the file server.
    age = max(0.0, time.time() - run.checkpoint.stat().st_mtime) if exists else None
    joules = [s.joules for s in sessions]
    if joules and joules[-1] is None:
        joules[-1] = now.joules
    energies = [joule for joule in joules if joule is not None]
    held = (holder.process, holder.host, holder.since) if holder else (None, None, None)
    process, host, since = held
    files = len(run.configs()), removed_from(run, p), saved if exists else None, age
    numbers = (process, host, since, *files, len(energies), len(joules))
    means = averages_values([run], p.recorded, tau_exp) if averages else {}
    starts = compared_starts(run.path) if averages else None
    rest = vars(replace(now, joules=sum(energies) if energies else None))
    return RunStatus(str(run.path), p.values(), *numbers, means, starts, **rest)


@documented
@dataclass(frozen=True, repr=False)
class ScanStatus(Status):
    """The state and the progress of a scan."""

    scan: str = result_field("Scan directory.")
    state: str = result_field("``running``, ``complete`` or ``stopped``.")
    job: str | None = result_field(
        "ID of the last array of jobs of a batch system; None if the scan has not been submitted."
    )
    batch_system: str | None = result_field("Name of that batch system, or None.")
    query: str | None = result_field("Command that shows those jobs in the queue, or None.")
    runs: Sequence[MemberState] = result_field("Runs.")
    complete: int = result_field("Number of complete runs.")
    others: Mapping[str, int] = result_field(
        "Numbers of the other runs by their state: ``running``, ``failed`` in the latest session, "
        "``stopped``, or ``waiting`` if they have not begun."
    )
    done: float = result_field("Fraction of the work that is done, from 0 to 1.")
    working: Mapping[str, float] = result_field(
        "Link updates per second of the runs that are being carried out, by the name of the run; 0 "
        "if it is not known yet."
    )
    failures: Mapping[str, str] = result_field("Error messages by the name of the run.")
    rows: Sequence[Mapping[str, str | int | float]] = result_field(
        "Rows of ``scan.csv``, by column."
    )
    cautions: Sequence[str] = result_field("Cautions about the averages, one sentence each.")
    ladders: Sequence[LadderReport] = result_field("Runs that exchange their couplings.")

    def lines(self) -> dict[str, str]:
        """Return the content except for the averages; see `Status`.

        The entries describe the scan as a whole, then the runs that are being carried out, then the
        damaged runs.
        """
        named = {run.name: run for run in self.runs}
        state = f"{counted(len(self.working), 'run')} running" if self.working else self.state
        progress = {
            name: f"{named[name].sweep} of {named[name].sweeps} updates, "
            f"{link_rate(rate) if rate else 'starting'}"
            for name, rate in self.working.items()
        }
        counts = [f"{number} {name}" for name, number in self.others.items() if number]
        again = sum(run.updates_again for run in self.runs if not run.damage)
        return {
            "scan": self.scan,
            "state": self._idle() if state == STOPPED else state,
            "runs": ", ".join([f"{self.complete} of {len(self.runs)} complete", *counts]),
            "done": f"{self.done:.0%} of the work{made_again(again)}",
            **progress,
            **{name: x.damage for name, x in named.items() if x.damage},
            **self.failures,
        }

    def _idle(self) -> str:
        """Return the state of a scan of which no run is running, and what can be done.

        Jobs that wait in the queue of a batch system cannot be distinguished from jobs that have
        ended.
        """
        again = CommandLine("scan", output=self.scan)
        if self.query is None:
            return f"stopped; to continue: {again}"
        return (
            f"no run is running: the jobs are queued or have ended; to see which: {self.query}; "
            f"once they have ended, to submit the rest: {again} --submit {self.batch_system}"
        )


def scan_status(scan: Scan, averages: ScanAverages | None = None) -> ScanStatus:
    """Return the state and the progress of a scan."""
    averages = averages or ScanAverages(scan)
    members, failures = scan.members(), scan.failures()
    runs = member_states(members, failures)
    counts = Counter(run.state for run in runs)
    complete = counts.pop(COMPLETE, 0)
    state = COMPLETE if complete == len(runs) else RUNNING if counts[RUNNING] else STOPPED
    return ScanStatus(
        str(scan.path),
        state,
        *last_array(scan.jobs),
        runs,
        complete,
        {name: counts[name] for name in (RUNNING, FAILED, STOPPED, WAITING)},
        share_done(members, runs)[0],
        {run.name: run.links_per_s or 0.0 for run in runs if run.state == RUNNING},
        {run.name: failures[run.name] for run in runs if run.state == FAILED} | averages.failures,
        averages.sorted_rows(),
        averages.cautions,
        ladder_reports(scan),
    )
