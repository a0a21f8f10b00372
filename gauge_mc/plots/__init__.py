"""Plots.

Each plot is a subclass of `Plot` that is registered in `PLOTS`. Every observable also has two plots
that need no module: its time series, which has the name of the observable, and its average against
the coupling, named ``NAME-beta``. So has every table that a run has measured with a function of the
user.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.options import Option
from gauge_mc.registry import Registry

AGAINST_BETA = "-beta"
"""Suffix of the name of a plot of averages against the coupling."""


class Plot(ABC):
    """A figure that shows results of runs."""

    name: str
    """Name on the command line."""
    summary: str
    """Short description of the figure."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of `draw`."""
    of_scans: ClassVar[bool] = False
    """Whether the figure shows a scan instead of runs."""
    fit: ClassVar[str] = ""
    """Name of the fit of the same quantity, if there is one. `draw` notes the cautions of its
    result with `gauge_mc.plots.runs.caution`.
    """
    every_column: bool = False
    """Whether it shows all columns of tables that have averages, not only the main one."""
    of_several: ClassVar[bool] = False
    """Whether it is of several ensembles that the user chooses, so that reports leave it out."""
    skips_each: ClassVar[bool] = False
    """Whether `draw` takes `gauge_mc.run.thermalisation.AUTO` and looks for the end of the
    thermalisation of every run, as figures of scans do. For all others, which show runs in one
    frame, the last end is found before.
    """

    @abstractmethod
    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw a figure and write it to a file.

        Parameters
        ----------
        runs : sequence of Path
            Run directories, or one scan directory.
        file : Path
            File to write; its ending determines the format.
        **options : object
            Options of the plot by name, whose names and types have been checked.

        Returns
        -------
        list
            Tables to print on the terminal, for Rich.

        Raises
        ------
        UsageError
            If the value of an option is invalid.
        GaugeError
            If there is no data to draw, or a table is damaged.
        """


PLOTS: Registry[Plot] = Registry("plot", __name__, Plot)
