"""``gauge-mc fit``, ``report`` and ``export``: what follows from the tables of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli.command import OptionGroup, Subcommands
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import is_function
from gauge_mc.console import Console
from gauge_mc.exports import EXPORTS, export_to
from gauge_mc.exports import export as write
from gauge_mc.fits import FITS, fit_all
from gauge_mc.quoting import counted
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.stored import runs_of


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


_endings = in_words([x.ending for x in EXPORTS.values()], "or")


@documented
@dataclass(frozen=True)
class ExportReport:
    """The document of ``export``."""

    file: str = result_field("File that was written or read.")
    tables: Sequence[str] = result_field("Names of the tables in the file.")
    left_out: Sequence[str] = result_field("Names of the tables that have too few records.")


@prints(ExportReport)
@o.listed("Endings", [(x.ending, x.summary) for x in EXPORTS.values()])
def export(
    run: Annotated[Path, o.argument("Run, or scan or folder of runs.", metavar="RUN|SCAN")],
    out: Annotated[Path, o.argument(f"File to write; its name ends in {_endings}.", metavar="OUT")],
    table: Annotated[
        list[str] | None,
        o.option("Name of a table to write; may be repeated.", "all", metavar="NAME"),
    ] = None,
    json: o.Json = False,
) -> None:
    """Write the tables of a run to one file for other tools.

    The ending of OUT determines the format. An existing export is replaced. A Parquet file has one
    table, of a run or of all runs of a scan.

    gauge-mc export RUN tables.h5
    gauge-mc export RUN tables.parquet --table plaquette
    gauge-mc export SCAN tables.pobs.xml.gz
    """
    runs = runs_of([run])
    tables = write(run if runs == [run] else runs, out, table)
    names = table or [path.stem for path in Run(runs[0]).tables()]
    left_out = sorted({*names} - {*tables})
    lines = [f"{out}: {', '.join(tables)}"]
    if left_out:
        least = export_to(out).least_records
        lines.append(f"left out, with fewer than {least} records: {', '.join(left_out)}")
    show_result("export", ExportReport(str(out), tables, left_out), json, *lines)
