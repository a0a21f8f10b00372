"""Plots of one table of one run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.plots import Plot
from gauge_mc.plots.runs.labels import labels_of, one_run


class TablePlot(Plot):
    """A figure that shows one table of one run."""

    subject: ClassVar[str]
    """The subject of a sentence that says what is drawn, such as ``The residual mass``."""
    columns: ClassVar[tuple[str, ...]]
    """Columns that the table must have."""

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one run; see `Plot.draw`."""
        run = one_run(runs, self.subject)
        table = find_table_by_columns(run, self.columns)
        self.draw_table(table, file, labels_of([run])[0], options)
        return []

    @abstractmethod
    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw a figure of a table and write it to a file.

        Parameters
        ----------
        table : Path
            File of the table.
        file : Path
            File to write; its ending determines the format.
        label : str
            Group, coupling and lattice of the run.
        options : dict of str to object
            Options of the plot by name, whose names and types have been checked.

        Raises
        ------
        UsageError, GaugeError
            See `Plot.draw`.
        """
