"""``gauge-mc export``: the tables of a run as one file for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.run import Run


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Ends in .h5 or .json.gz.")],
) -> None:
    """Write the tables of a run to one file for other tools: HDF5, or pyerrors' JSON.

    OUT.h5 has a group for each table, with its header and the run's parameters as attributes.
    OUT.json.gz is read by pyerrors.input.json.load_json_dict. OUT is replaced if it is there.
    """
    from gauge_mc.export import LEAST
    from gauge_mc.export import export as write

    there = Run(run)
    tables = write(there, out)
    print(f"{out}: {', '.join(tables)}")
    left_out = sorted({path.stem for path in there.path.glob("*.csv")} - set(tables))
    if left_out:
        print(f"left out, with less than {LEAST} records: {', '.join(left_out)}")
