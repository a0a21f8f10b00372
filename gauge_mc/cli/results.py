"""``gauge-mc fit`` and ``gauge-mc report``: what follows from the tables of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli.command import OptionGroup, Subcommands
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.cli.options import is_function
from gauge_mc.console import Console
from gauge_mc.fits import FITS, fit_all
from gauge_mc.quoting import counted
from gauge_mc.run.thermalisation import SKIP


@prints("gauge_mc.fits:FitReport", *(kind for x in FITS.values() for kind in x.content))
@Subcommands(
    "Fits",
    lambda: FITS,
    lambda name: FITS[name].summary,
    lambda name: [OptionGroup(name, FITS[name].options, f"Options of {name}")],
    FITS.check,
)
@o.described_by("gauge_mc.fits.__init__:fit", output="FILE", lattice="XxYxZxT")
def fit(
    what: Annotated[str, o.argument("One of the fits below.", metavar="FIT", choices=FITS)],
    run: Annotated[
        list[Path] | None,
        o.argument(
            "Runs, tables, series of other programs, scans or folders of chains. Chains of one "
            "ensemble are fitted together.",
            o.NEWEST,
            metavar="RUN|TABLE|SCAN",
        ),
    ] = None,
    output: Path | None = None,
    separate: Annotated[bool, o.option("Do not join chains of one ensemble.")] = False,
    lattice: str | None = None,
    keep: Annotated[bool, o.option("Keep the given options with the runs.")] = False,
    all: Annotated[bool, o.option("Print all tables, not only the main ones.")] = False,
    json: o.Json = False,
    **options: Any,
) -> None:
    """Determine physical quantities from the tables of runs.

    Options that are kept hold for later fits, plots and reports of a run, until --keep is given
    without any. The result is written to a JSON file. It states all values that were
    chosen automatically because an option was not given. The last line
    has the numbers that one quotes.

    gauge-mc fit potential
    gauge-mc fit scale RUN --all
    gauge-mc fit transition SCAN --output result.json
    """
    console = Console()
    results, targets = [], o.named_or_said(run, json, FITS[what].of_scans)
    with alone_on_stdout(json):
        for result, path in fit_all(what, targets, options, output, separate, lattice, keep):
            results.append({"file": str(path), **result.document()})
            if not json:
                further = result.further_report()
                shown = [*(further if all else []), *result.whole_report()]
                tables = sum(not isinstance(part, str) for part in further)
                if tables and not all:
                    shown.append(f"{counted(tables, 'further table')} with --all.")
                console.print(*shown, sep="\n")
                console.print(f"{path}\n{result.result_line}\n", soft_wrap=True)
    if json:
        print_document("fit", results[0] if len(results) == 1 else {"fits": results})


@prints("gauge_mc.reports.page:PageReport")
@is_function("gauge_mc.reports.page:report", run="RUN|SCAN", output="FILE", skip=SKIP)
def report(page: Any) -> Iterator[str]:
    """Yield the file.

    gauge-mc report
    gauge-mc report RUN --skip auto
    gauge-mc report SCAN --output page.html
    """
    yield page.file
