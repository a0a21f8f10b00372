"""``gauge-mc status``: how far a run is, seen from another shell or after it ended."""

from __future__ import annotations

import time
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from gauge_mc.run import Run, newest_run


def status(
    run: Annotated[
        Path | None, typer.Argument(help="Run directory; without it, the newest in runs/.")
    ] = None,
) -> None:
    """Show how far a run is, whether a process is at work on it, and its averages so far."""
    from rich.console import Console

    from gauge_mc.progress import averages_table

    shown = Run(run) if run else newest_run()
    console = Console(highlight=False, markup=False)
    for name, fact in facts(shown).items():
        console.print(f"{name:<16}{fact}", soft_wrap=True)
    console.print("", averages_table(shown, shown.read()[0]), sep="\n")


def facts(run: Run) -> dict[str, str]:
    """Return what there is to say of a run, by name.

    Raises
    ------
    UsageError
        If there is no run.
    GaugeError
        If its files are damaged.
    """
    from gauge_mc.checkpoint import read_moment
    from gauge_mc.progress import described, duration, link_rate

    p = run.read()[0]
    holder, at_work = run.holder()
    saved = read_moment(run.checkpoint).sweep if run.checkpoint.exists() else 0
    sweep = max(saved, holder.sweep) if at_work else saved
    if at_work:
        state = f"at work: process {holder.process} on {holder.host} since {holder.since}"
    elif saved == p.sweeps:
        state = "complete"
    else:
        state = f"stopped; to continue: gauge-mc generate --output {quote(str(run.path))}"
    phase = "" if sweep > p.thermalize else f", of which {p.thermalize} to thermalise"
    result = {
        "run": str(run.path),
        "chain": described(p),
        "state": state,
        "sweeps": f"{sweep} of {p.sweeps}{phase}",
        "configurations": f"{len(run.configs())} of {p.configs}" if p.keeps_configs else "not kept",
    }
    if run.checkpoint.exists():
        age = time.time() - run.checkpoint.stat().st_mtime
        result["checkpoint"] = f"after sweep {saved}, {duration(age)} ago"
    if at_work and holder.rate > 0:
        result["rate"] = link_rate(holder.rate * p.links_per_sweep)
        result["time to go"] = duration((p.sweeps - sweep) / holder.rate)
    return result
