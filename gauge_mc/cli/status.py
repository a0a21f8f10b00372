"""``gauge-mc status``: how far a run or a scan is, from another shell or after it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.run.directory import Run, newest_run
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.scan import Scan


def status(
    run: Annotated[
        Path | None,
        typer.Argument(help="Run or scan directory; without it, the newest run in runs/."),
    ] = None,
) -> None:
    """Show how far a run or a scan is, whether a process is at work on it, and its averages."""
    from rich.console import Console

    from gauge_mc.inspection.status import run_status, scan_status
    from gauge_mc.run.summary import averages_table
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.display import results

    console = Console(highlight=False, markup=False)
    if run and Scan(run, Parameters()).exists():
        scan = Scan.read(run)
        averages = ScanAverages(scan)
        facts, shown = {**scan_status(scan), **averages.failures}, results(averages)
    else:
        chosen = Run(run) if run else newest_run()
        facts = run_status(chosen)
        shown = averages_table(chosen, chosen.read()[0])
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        console.print(f"{name:<{width}}{fact}", soft_wrap=True)
    console.print("", shown, sep="\n")
