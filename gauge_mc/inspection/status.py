"""Status of runs and scans, as seen by another process or after they have ended."""

from __future__ import annotations

import time
from shlex import quote

from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.display import describe, duration, energy_text, link_rate, spent
from gauge_mc.scans.scan import Member, Scan
from gauge_mc.scans.slurm import NAME, last_job


def run_status(run: Run) -> dict[str, str]:
    """Return the state and the progress of a run, as text by name.

    Raises
    ------
    UsageError
        If the directory contains no run.
    GaugeError
        If files of the run are damaged.
    """
    p, sessions = run.read()
    holder, at_work = run.holder()
    saved = read_state(run.checkpoint).sweep if run.checkpoint.exists() else 0
    sweep = max(saved, holder.sweep) if at_work else saved
    if at_work:
        state = f"running: process {holder.process} on {holder.host} since {holder.since}"
    elif saved == p.updates:
        state = "complete"
    else:
        state = f"stopped; to continue: gauge-mc generate --output {quote(str(run.path))}"
    phase = "" if sweep > p.thermalize else f", of which {p.thermalize} to thermalise"
    result = {
        "run": str(run.path),
        "chain": describe(p),
        "state": state,
        "updates": f"{sweep} of {p.updates}{phase}",
        "configurations": f"{len(run.configs())} of {p.configs}" if p.keeps_configs else "not kept",
    }
    if run.checkpoint.exists():
        # The clock may have been set back, or may differ from that of the file server.
        age = max(0.0, time.time() - run.checkpoint.stat().st_mtime)
        result["checkpoint"] = f"after update {saved}, {duration(age)} ago"
    if at_work and holder.rate > 0:
        result["rate"] = link_rate(holder.rate * p.links_per_update)
        result["remaining"] = duration((p.updates - sweep) / holder.rate)
    if at_work and holder.times:
        result["spent"] = spent(holder.times)
    spent_joules = [one.joules for one in sessions]
    if at_work and spent_joules and spent_joules[-1] is None:
        spent_joules[-1] = holder.joules
    known = [joules for joules in spent_joules if joules is not None]
    if known:
        some = f" in {len(known)} of {len(sessions)} sessions" if len(sessions) > 1 else ""
        result["energy"] = f"{energy_text(sum(known))}{some}"
    return result


def scan_status(scan: Scan) -> dict[str, str]:
    """Return the state and the progress of a scan, as text by name.

    The entries describe the scan as a whole, then the runs that are being carried out, then the
    damaged runs.
    """
    members = scan.members()
    damage = {member.name: member.damage() for member in members}
    sweeps = {member.name: member.sweep() for member in members}
    working = [member for member in members if member.run.exists() and member.run.holder()[1]]
    complete = sum(sweeps[member.name] >= member.parameters.updates for member in members)
    if complete == len(members):
        state = "complete"
    elif working:
        state = f"{len(working)} runs running"
    else:
        state = _idle(scan)
    links = sum(m.parameters.updates * m.parameters.links_per_update for m in members)
    done = sum(sweeps[m.name] * m.parameters.links_per_update for m in members)
    return {
        "scan": str(scan.path),
        "state": state,
        "runs": f"{complete} of {len(members)} complete",
        "done": f"{done / max(1, links):.0%} of the work",
        **{member.name: _progress(member) for member in working},
        **{name: sentence for name, sentence in damage.items() if sentence},
    }


def _idle(scan: Scan) -> str:
    """Return the state of a scan of which no run is running, and what can be done.

    Jobs that wait in the queue of a batch system cannot be distinguished from jobs that have ended.
    """
    again, job = f"gauge-mc scan --output {quote(str(scan.path))}", last_job(scan.jobs)
    if job is None:
        return f"stopped; to continue: {again}"
    return (
        f"no run is running: the jobs are queued or have ended; to see which: squeue --jobs {job}; "
        f"once they have ended, to submit the rest: {again} --submit {NAME} --slurm time=HH:MM:SS"
    )


def _progress(member: Member) -> str:
    """Return the progress of a run that is being carried out."""
    holder, total = member.run.holder()[0], member.parameters.updates
    rate = (
        link_rate(holder.rate * member.parameters.links_per_update) if holder.rate else "starting"
    )
    return f"{holder.sweep} of {total} updates, {rate}"
