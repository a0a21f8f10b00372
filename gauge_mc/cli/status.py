"""``gauge-mc status``: show the progress of a run or a scan, also from another shell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.scan import Scan, newest_run_or_scan


def status(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="RUN|SCAN", help=o.with_default("Run or scan.", o.NEWEST)),
    ] = None,
) -> None:
    """Show the state, the progress and the averages of a run or a scan.

    The command also works while another process carries out the run or the scan.
    """
    from gauge_mc.console import Console
    from gauge_mc.inspection.status import run_status, scan_status
    from gauge_mc.run.summary import averages_table
    from gauge_mc.scans.averages import ScanAverages
    from gauge_mc.scans.display import results

    console = Console(highlight=False, markup=False)
    chosen = path or newest_run_or_scan()
    if Scan(chosen, Parameters()).exists():
        scan = Scan.read(chosen)
        averages = ScanAverages(scan)
        facts, shown = {**scan_status(scan), **averages.failures}, results(averages)
    else:
        run = Run(chosen)
        facts = run_status(run)
        shown = averages_table([run], run.read()[0])
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        console.print(f"{name:<{width}}{fact}", soft_wrap=True)
    console.print("", shown, sep="\n")
