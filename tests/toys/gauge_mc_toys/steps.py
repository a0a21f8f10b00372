"""A plot: the number of rows of every table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gauge_mc.files.table import read_table
from gauge_mc.plots import Plot
from gauge_mc.run.directory import Run


class StepsPlot(Plot):
    """A bar chart of the numbers of rows."""

    name = "steps"
    summary = "the number of rows of every table"

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw one bar per table."""
        from matplotlib.figure import Figure

        figure = Figure()
        tables = [path for run in runs for path in Run(run).tables()]
        rows = [len(next(iter(read_table(path).columns.values()))) for path in tables]
        figure.add_subplot().bar([path.stem for path in tables], rows)
        figure.savefig(file)
        return [f"{len(tables)} tables"]


STEPS = StepsPlot()
