"""``gauge-mc export``: write the tables of a run to one file for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli.document import prints, show_result
from gauge_mc.exports import EXPORTS, export_to
from gauge_mc.exports import export as write
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run

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
    from gauge_mc.stored import runs_of

    runs = runs_of([run])
    tables = write(run if runs == [run] else runs, out, table)
    names = table or [path.stem for path in Run(runs[0]).tables()]
    left_out = sorted({*names} - {*tables})
    lines = [f"{out}: {', '.join(tables)}"]
    if left_out:
        least = export_to(out).least_records
        lines.append(f"left out, with fewer than {least} records: {', '.join(left_out)}")
    show_result("export", ExportReport(str(out), tables, left_out), json, *lines)
