"""A command: the means of the columns of a table."""

from pathlib import Path
from typing import Annotated

from gauge_mc.cli import ANALYSE, Command, say
from gauge_mc.cli import options as o
from gauge_mc.files.table import read_table


def print_means(table: Annotated[Path, o.argument("A table.", metavar="TABLE")]) -> None:
    """Print the means of the columns of a table that have numbers.

    gauge-mc column-means TABLE
    """
    for name, values in read_table(table).columns.items():
        if values.dtype.kind in "if":
            say(f"{name} {values.mean():.12g}")


COLUMN_MEANS = Command(
    ANALYSE, "Print the means of the columns of a table.", f"{__name__}:print_means", "column-means"
)
