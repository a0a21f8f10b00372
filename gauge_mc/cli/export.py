"""``gauge-mc export``: the tables of a run as one file for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.exports import EXPORTS
from gauge_mc.registry import in_words
from gauge_mc.run.directory import Run

_kinds = "; ".join(f"{one.ending}: {one.summary}" for one in EXPORTS.values())
_endings = in_words([one.ending for one in EXPORTS.values()], "or")


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help=f"Ends in {_endings}. {_kinds}.")],
) -> None:
    """Write the tables of a run to one file for other tools, chosen by the ending of OUT.

    OUT is replaced if it is there.
    """
    from gauge_mc.exports import export as write
    from gauge_mc.exports import export_to

    tables = write(run, out)
    print(f"{out}: {', '.join(tables)}")
    left_out = sorted({path.stem for path in Run(run).tables()} - set(tables))
    if left_out:
        least = export_to(out).least_records
        print(f"left out, with fewer than {least} records: {', '.join(left_out)}")
