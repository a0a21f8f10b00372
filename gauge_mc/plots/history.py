"""Time series of observables, with running means and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc import defaults
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading, side_by_side
from gauge_mc.plots.figures.looks import LINE, WIDTH, look
from gauge_mc.plots.figures.series import (
    History,
    check_history,
    describe_history,
    draw_distribution,
    draw_history,
    finish_distribution,
    key_of_lines,
    mean_line,
    shade_skipped,
)
from gauge_mc.plots.runs.labels import labels_of
from gauge_mc.plots.runs.tables import (
    TableKind,
    filled_tables,
    history_of,
    missing_table,
    table_kinds,
)
from gauge_mc.run.thermalisation import SKIP

ROW = 2.1
"""Height of a row of panels in inches, without its legend."""

FEW_RUNS = 3
"""Maximum number of runs that are named in one column of a legend, beside the key of the lines."""

MOST_MEANS = 6
"""Maximum number of runs whose averages are printed."""


class HistoryPlot(Plot):
    """Time series with running means, distributions and integrated autocorrelation times.

    Parameters
    ----------
    kind : TableKind, optional
        Table of which all quantities are drawn; by default the main quantities of all observables
        are drawn.
    """

    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def __init__(self, kind: TableKind | None = None) -> None:
        self._kind = kind
        self.name = kind.name if kind else "history"
        self.summary = (
            f"time series: {', '.join(one.average for one in kind.columns.averaged)}"
            if kind
            else "time series with running means and autocorrelation times"
        )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame per quantity; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        labels = dict(zip(runs, labels_of(runs), strict=True))
        kinds = [self._kind] if self._kind else list(table_kinds(runs).values())
        quantities = []
        for one, tables in filled_tables(runs, kinds):
            for column in one.columns.averaged[: None if self._kind else 1]:
                series = [
                    history_of(labels[run], table, column.name) for run, table in tables.items()
                ]
                if series:
                    quantities.append((column.label, series))
        if not quantities:
            raise missing_table(runs, self._kind.name if self._kind else defaults.MEASURE[0])
        plot_history(quantities, file, skip)
        return []


PLOTS.register(HistoryPlot())


def plot_history(
    quantities: Sequence[tuple[str, Sequence[History]]], path: Path, skip: int = 0
) -> None:
    """Plot time series with running means and distributions, and print averages and tau_int.

    The averages of more than `MOST_MEANS` runs are not printed, since they would fill the figure.

    Parameters
    ----------
    quantities : sequence of (str, sequence of History)
        For each quantity, the label of its axis and the series of the runs. A run has the same
        label in all of them.
    path : Path
        File to write; its ending determines the format.
    skip : int
        Last update that is left out of averages and distributions.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file` and `check_history`. GaugeError is also raised if there is no data to
        plot.
    """
    require(quantities)
    for _, histories in quantities:
        require(histories)
        for history in histories:
            check_history(history, skip)
    labels = dict.fromkeys(one.label for _, histories in quantities for one in histories)
    looks = {label: look(i) for i, label in enumerate(labels)}
    rows, several = len(quantities), len(looks) > 1
    columns = 2 if len(looks) > FEW_RUNS else 1
    lines = -(-len(looks) // columns) if len(looks) <= MOST_MEANS else 0
    size = (WIDTH, 0.6 + rows * (ROW + LINE * lines) + LINE * (1.5 + len(looks) / 2))
    with figure_file(path, size) as figure:
        panels = figure.subplots(rows, 2, squeeze=False, sharey="row", width_ratios=(4, 1))
        shaded = False
        for (name, histories), (series, distribution) in zip(quantities, panels, strict=True):
            for history in histories:
                kept, own = history.after(skip), looks[history.label]
                words = (
                    describe_history(kept) if columns == 1 else describe_history(kept, "", False)
                )
                draw_history(series, history, own, skip, words)
                draw_distribution(distribution, kept, own, filled=len(looks) <= FEW_RUNS)
            shaded |= shade_skipped(series, histories, skip)
            series.margins(x=0.02)
            series.sharex(panels[-1, 0])
            series.tick_params(labelbottom=series is panels[-1, 0])
            series.set_ylabel(name)
            if lines:
                series.legend(
                    loc="lower left",
                    bbox_to_anchor=(0, 1),
                    borderpad=0,
                    borderaxespad=0.3,
                    ncols=columns,
                    columnspacing=1.5,
                )
            finish_distribution(distribution)
        panels[-1, 0].set_xlabel("update")
        panels[-1, 1].set_xlabel("distribution")
        figure.align_ylabels(panels[:, 0])
        key = key_of_lines(list(looks.values()), shaded)
        if columns > 1 and lines:
            unit = r"mean, $\tau_\mathrm{int}$ in updates"
            key.append((load("matplotlib.lines").Line2D([], [], linestyle="none"), unit))
        if not several:
            add_heading(figure, panels[0, 0], key, title=next(iter(looks)), columns=len(key))
        else:
            line = load("matplotlib.lines").Line2D
            names = [(line([], [], **mean_line(own)), typeset(one)) for one, own in looks.items()]
            few = len(looks) <= FEW_RUNS
            add_heading(
                figure, panels[0, 0], side_by_side(names, key) if few else names + key, columns=2
            )
