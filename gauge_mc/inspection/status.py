"""Status of runs and scans, as seen by another process or after they have ended."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from gauge_mc.arguments import checks_types
from gauge_mc.numbers import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.averages import Average, averages_values
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.display import describe, duration, energy_text, link_rate, spent
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.starts import StartComparison, compared_starts
from gauge_mc.run.thinning import removed_from
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.ladder_report import LadderReport, ladder_reports
from gauge_mc.scans.report import MemberReport
from gauge_mc.scans.scan import Member, Scan, newest_run_or_scan
from gauge_mc.scans.slurm import NAME, last_job

RUNNING, COMPLETE, STOPPED = "running", "complete", "stopped"
FAILED, WAITING = "failed", "waiting"
"""States of runs and scans."""


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
class RunStatus(Status):
    """The state and the progress of a run."""

    run: str = result_field("Run directory.")
    parameters: Mapping[str, str | int | float] = result_field(
        "Parameters of the run, as in ``run.toml``."
    )
    state: str = result_field("``running``, ``complete`` or ``stopped``.")
    process: int | None = result_field("Process that works on the run; None if there is none.")
    host: str | None = result_field("Host of that process.")
    since: str | None = result_field("Time at which that process began, in ISO 8601.")
    sweep: int = result_field("Number of updates done, thermalisation included.")
    sweeps: int = result_field("Number of updates in all, thermalisation included.")
    configurations: int = result_field("Number of configurations.")
    configurations_removed: int = result_field(
        "Number of configurations that were removed on purpose."
    )
    checkpoint_sweep: int | None = result_field(
        "Number of updates in the last checkpoint; None if there is no checkpoint."
    )
    checkpoint_seconds: float | None = result_field("Age of the last checkpoint in seconds.")
    links_per_s: float | None = result_field(
        "Link updates per second of the process at work; None if it is unknown."
    )
    remaining_seconds: float | None = result_field(
        "Time that the process at work will take to the end of the run, in seconds; None if it is "
        "unknown.",
    )
    times: Mapping[str, float] = result_field(
        "Shares of the time of the process at work by name, in seconds."
    )
    joules: float | None = result_field(
        "Energy that the devices used, in joules; None if it is unknown."
    )
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
            again = f"gauge-mc generate --output {quote(self.run)}"
            state = f"stopped; to continue: {again}"
            if self.checkpoint_sweep is None and not self.sweep:
                state = f"stopped before its first checkpoint; to begin anew: {again}"
        phase = "" if self.sweep > p.thermalize else f", of which {p.thermalize} to thermalise"
        configs = f"{self.configurations} of {p.configs}" if p.keeps_configs else "not kept"
        if self.configurations_removed:
            configs += f", {self.configurations_removed} removed on purpose"
        rows = {
            "run": self.run,
            "chain": describe(p),
            "state": state,
            "updates": f"{self.sweep} of {self.sweeps}{phase}",
            "configurations": configs,
        }
        if self.checkpoint_seconds is not None:
            age = duration(self.checkpoint_seconds)
            rows["checkpoint"] = f"after update {self.checkpoint_sweep}, {age} ago"
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
    chosen = newest_run_or_scan() if path is None else Path(path)
    if Scan(chosen, Parameters()).exists():
        return scan_status(Scan.read(chosen))
    return run_status(Run(chosen), averages=True)


def run_status(run: Run, averages: bool = False, tau_exp: float | None = None) -> RunStatus:
    """Return the state and the progress of a run, with its averages if they are wanted.

    Parameters
    ----------
    run : Run
        The run directory, which must exist.
    averages : bool
        Whether to read the tables, which takes time, and average their columns.
    tau_exp : float, optional
        Exponential autocorrelation time in updates, whose tail is added to the errors of averages.

    Raises
    ------
    UsageError
        If the directory contains no run.
    GaugeError
        If files of the run are damaged.
    """
    p, sessions = run.read()
    holder, at_work = run.holder()
    there = run.checkpoint.exists()
    saved = read_state(run.checkpoint).sweep if there else 0
    sweep = max(saved, holder.sweep) if at_work else saved
    # The clock may have been set back, or may differ from that of the file server.
    age = max(0.0, time.time() - run.checkpoint.stat().st_mtime) if there else None
    rate = holder.rate if at_work and holder.rate > 0 else None
    joules = [one.joules for one in sessions]
    if at_work and joules and joules[-1] is None:
        joules[-1] = holder.joules
    known = [one for one in joules if one is not None]
    return RunStatus(
        str(run.path),
        p.values(),
        RUNNING if at_work else COMPLETE if saved == p.updates else STOPPED,
        holder.process if at_work else None,
        holder.host if at_work else None,
        holder.since if at_work else None,
        sweep,
        p.updates,
        len(run.configs()),
        removed_from(run, p),
        saved if there else None,
        age,
        rate and rate * p.links_per_update,
        rate and (p.updates - sweep) / rate,
        holder.times if at_work else {},
        sum(known) if known else None,
        len(known),
        len(joules),
        averages_values([run], p, tau_exp) if averages else {},
        compared_starts(run.path) if averages else None,
    )


@documented
@dataclass(frozen=True, repr=False)
class ScanStatus(Status):
    """The state and the progress of a scan."""

    scan: str = result_field("Scan directory.")
    state: str = result_field("``running``, ``complete`` or ``stopped``.")
    job: str | None = result_field(
        "Number of the last job of a batch system; None if the scan has not been submitted."
    )
    runs: Sequence[MemberReport] = result_field("Runs.")
    complete: int = result_field("Number of complete runs.")
    others: Mapping[str, int] = result_field(
        "Numbers of the other runs by their state: ``running``, ``failed`` in the latest session, "
        "``stopped``, or ``waiting`` if they have not begun."
    )
    done: float = result_field("Fraction of the work that is done, from 0 to 1.")
    working: Mapping[str, float] = result_field(
        "Link updates per second of the runs that are being carried out, by the name of the run; 0 "
        "if it is not known yet.",
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
        named = {Path(one.run).name: one for one in self.runs}
        state = f"{counted(len(self.working), 'run')} running" if self.working else self.state
        progress = {
            name: f"{named[name].sweep} of {named[name].sweeps} updates, "
            f"{link_rate(rate) if rate else 'starting'}"
            for name, rate in self.working.items()
        }
        others = [f"{number} {name}" for name, number in self.others.items() if number]
        return {
            "scan": self.scan,
            "state": _idle(self.scan, self.job) if state == STOPPED else state,
            "runs": ", ".join([f"{self.complete} of {len(self.runs)} complete", *others]),
            "done": f"{self.done:.0%} of the work",
            **progress,
            **{name: one.damage for name, one in named.items() if one.damage},
            **self.failures,
        }


def scan_status(scan: Scan, averages: ScanAverages | None = None) -> ScanStatus:
    """Return the state and the progress of a scan.

    Parameters
    ----------
    scan : Scan
        The scan directory, which must exist.
    averages : ScanAverages, optional
        Averages of the scan, if they are known already.
    """
    averages = averages or ScanAverages(scan)
    members, rates = scan.members(), {}
    reports = [MemberReport.of(member) for member in members]
    for n, member in enumerate(members):
        if member.run.exists() and (found := member.run.holder())[1]:
            reports[n] = replace(reports[n], sweep=found[0].sweep)
            rates[member.name] = found[0].rate * member.parameters.links_per_update
    unfinished = {one.name for one in members if not (one.complete() or one.name in rates)}
    failures = {name: said for name, said in scan.failures().items() if name in unfinished}
    saved = [member.sweep() for member in members]
    complete = sum(one >= m.parameters.updates for one, m in zip(saved, members, strict=True))
    links = [member.parameters.links_per_update for member in members]
    every = sum(m.parameters.updates * n for m, n in zip(members, links, strict=True))
    done = sum(one * n for one, n in zip(saved, links, strict=True))
    state = COMPLETE if complete == len(members) else RUNNING if rates else STOPPED
    return ScanStatus(
        str(scan.path),
        state,
        last_job(scan.jobs),
        reports,
        complete,
        _numbers_of_others(members, rates, failures),
        done / max(1, every),
        {} if state == COMPLETE else rates,
        failures | averages.failures,
        averages.sorted_rows(),
        averages.cautions,
        ladder_reports(scan),
    )


def _numbers_of_others(
    members: Sequence[Member], running: Collection[str], failed: Collection[str]
) -> dict[str, int]:
    """Return the numbers of the runs that are not complete, by their state."""
    found = dict.fromkeys((RUNNING, FAILED, STOPPED, WAITING), 0)
    for one in members:
        if one.name in running:
            found[RUNNING] += 1
        elif not one.complete():
            known = FAILED if one.name in failed else STOPPED if one.begun() else WAITING
            found[known] += 1
    return found


def _idle(path: str, job: str | None) -> str:
    """Return the state of a scan of which no run is running, and what can be done.

    Jobs that wait in the queue of a batch system cannot be distinguished from jobs that have ended.
    """
    again = f"gauge-mc scan --output {quote(path)}"
    if job is None:
        return f"stopped; to continue: {again}"
    return (
        f"no run is running: the jobs are queued or have ended; to see which: squeue --jobs {job}; "
        f"once they have ended, to submit the rest: {again} --submit {NAME} --slurm time=HH:MM:SS"
    )
