"""``gauge-mc status``: show the progress of a run or a scan, also from another shell."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import print_document, prints
from gauge_mc.console import Console
from gauge_mc.errors import UsageError
from gauge_mc.run.directory import Run, chains_of, newest
from gauge_mc.run.log import LOG
from gauge_mc.run.results import TAU_EXP, averages_table
from gauge_mc.scans.scan import Scan, is_scan


def one_named_or_newest(path: Path | None) -> Path:
    """Return the path that was named, or else the newest run or scan.

    If that is one of several chains of an ensemble, a line on standard error names another one.
    """
    if path:
        return path
    latest = newest("run", "scan")
    chains = chains_of(latest)
    if len(chains) > 1:
        sibling = next(chain for chain in chains if chain != latest)
        say(
            f"{latest} is one of {len(chains)} chains; name another, such as {sibling}.", error=True
        )
    return latest


@prints("gauge_mc.inspection.status:RunStatus", "gauge_mc.inspection.status:ScanStatus")
def status(
    path: Annotated[Path | None, o.argument("Run or scan.", o.NEWEST, metavar="RUN|SCAN")] = None,
    tau_exp: Annotated[
        float | None, o.option(TAU_EXP.help, TAU_EXP.default, metavar=TAU_EXP.metavar)
    ] = None,
    follow: Annotated[
        bool, o.option("Then show the entries of the log as they come.", flag="--follow")
    ] = False,
    json: o.Json = False,
) -> None:
    """Show the state, the progress and the averages of a run or a scan.

    The command also works while another process carries out the run or the scan. With --follow it
    then shows the log, run.log, of the run or of all runs of the scan, and ends with the work, or
    by Ctrl-C.

    gauge-mc status
    gauge-mc status RUN
    gauge-mc status SCAN --follow
    """
    from gauge_mc.inspection.status import RunStatus, ScanStatus, run_status, scan_status
    from gauge_mc.scans import averages, display

    if follow and json:
        raise UsageError(
            f"--json prints one object; follow the file {LOG}, which consists of them."
        )
    if tau_exp is not None:
        TAU_EXP.checked(tau_exp)
    or_newest = one_named_or_newest(path)
    report: RunStatus | ScanStatus
    if is_scan(or_newest):
        if tau_exp is not None:
            raise UsageError(
                f"{TAU_EXP.flag} is for the averages of a run; name a run of {or_newest}."
            )
        means = averages.ScanAverages(Scan.read(or_newest))
        report, shown = scan_status(means.scan, means), display.results(means)
    else:
        run = Run(or_newest)
        report = run_status(run, json, tau_exp)
        shown = averages_table([run], run.read()[0].recorded, tau_exp)
    if json:
        print_document("status", report)
        return
    console = Console()
    console.print(repr(report), soft_wrap=True)
    console.print("", shown, sep="\n")
    if follow:
        from gauge_mc.watch.terminal import followed

        with suppress(KeyboardInterrupt):
            for line in followed(or_newest):
                console.print(line, soft_wrap=True)
