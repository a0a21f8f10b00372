"""``gauge-mc report``: write a page that shows everything about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, prints, show_result
from gauge_mc.cli.status import named_or_said
from gauge_mc.run.thermalisation import AUTO, SKIP


@prints("gauge_mc.reports.page:PageReport")
def report(
    run: Annotated[
        list[Path] | None,
        o.argument("Runs; a scan stands for its runs.", o.NEWEST, metavar="RUN|SCAN"),
    ] = None,
    output: Annotated[
        Path | None,
        o.option(
            "File to write.",
            "report.html in the run or scan, or in this folder for several",
            metavar="FILE",
        ),
    ] = None,
    skip: Annotated[str | None, o.declared(SKIP, f"as kept, else {AUTO}")] = None,
    json: o.Json = False,
) -> None:
    """Write a page that shows everything about runs.

    The page has all fits and figures that the tables allow, state and parameters, averages, time
    series with running averages and the cut of the thermalisation, autocorrelation functions,
    histograms, provenance, links to files, and how to cite. Several runs are shown side by side.
    It is one file, which needs no network.

    gauge-mc report
    gauge-mc report RUN --skip auto
    gauge-mc report SCAN --output page.html
    """
    from gauge_mc.reports.page import report as write

    with alone_on_stdout(json):
        page = write(named_or_said(run, json), output, skip=skip)
    show_result("report", page, json, page.file)
