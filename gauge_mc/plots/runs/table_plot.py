"""Plots of one table of one run, and of one scan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.plots import Plot
from gauge_mc.plots.figures.pictures import Picture
from gauge_mc.plots.runs.labels import labels_of, one_run, one_scan


class TablePlot(Plot):
    """A figure that shows one table of one run."""

    subject: ClassVar[str]
    """The subject of a sentence that says what is drawn, such as ``The residual mass``."""
    columns: ClassVar[tuple[str, ...]]
    """Columns that the table must have."""

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one run, whose label begins the title; see `Plot.draw`."""
        run = one_run(runs, self.subject)
        picture = self.picture(find_table_by_columns(run, self.columns), options)
        title = ", ".join(filter(None, (labels_of([run])[0], picture.title)))
        replace(picture, title=title).draw(file)
        return []

    @abstractmethod
    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Return the figure of a table, without the label of the run.

        Parameters
        ----------
        table : Path
            File of the table.
        options : dict of str to object
            Options of the plot by name, whose names and types have been checked.

        Raises
        ------
        UsageError, GaugeError
            See `Plot.draw`.
        """


class ScanFigure(Plot):
    """A figure that shows the results of one scan."""

    of_scans: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw one scan; see `Plot.draw`."""
        self.picture(one_scan(runs), options).draw(file)
        return []

    @abstractmethod
    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Return the figure of a scan; for options and errors see `TablePlot.picture`."""
