"""Time series of observables, with running means and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gauge_mc.analysis.figures import (
    WIDTH,
    History,
    check_history,
    describe_history,
    draw_distribution,
    draw_history,
    figure_file,
    look,
    require,
)
from gauge_mc.observables import OBSERVABLES, Observable
from gauge_mc.plots import PLOTS, Plot, find_table, history_of, labels_of, missing_table

ROW = 2.6
"""Height of a row of panels in inches."""


class HistoryPlot(Plot):
    """Time series with running means, distributions and integrated autocorrelation times.

    Parameters
    ----------
    observable : type of Observable, optional
        Observable of which all quantities are drawn; by default the main quantities of all
        observables are drawn.
    """

    def __init__(self, observable: type[Observable] | None = None) -> None:
        self._observable = observable
        self.name = observable.name if observable else "history"
        self.summary = (
            f"time series: {', '.join(one.label for one in observable.quantities)}"
            if observable
            else "time series with running means and autocorrelation times"
        )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame per quantity; see `Plot.draw`."""
        labels = labels_of(runs)
        observables = [self._observable] if self._observable else list(OBSERVABLES.values())
        quantities = []
        for one in observables:
            shown = one.quantities if self._observable else one.quantities[:1]
            for quantity in shown:
                pairs = zip(labels, (find_table(run, one) for run in runs), strict=True)
                series = [
                    history_of(name, table, quantity.column) for name, table in pairs if table
                ]
                if series:
                    quantities.append((quantity.symbol, series))
        if not quantities:
            raise missing_table(runs, observables[0])
        plot_history(quantities, file)
        return []


PLOTS.register(HistoryPlot())


def plot_history(quantities: Sequence[tuple[str, Sequence[History]]], path: Path) -> None:
    """Plot time series with running means and distributions, and print tau_int in the legends.

    Parameters
    ----------
    quantities : sequence of (str, sequence of History)
        For each quantity, the label of its axis and the series of the runs.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no data to plot.
    """
    require(quantities)
    for _, histories in quantities:
        require(histories)
        for history in histories:
            check_history(history)
    rows = len(quantities)
    with figure_file(path, (WIDTH, 0.8 + ROW * rows)) as figure:
        panels = figure.subplots(rows, 2, squeeze=False, sharey="row", width_ratios=(4, 1))
        for (name, histories), (series, distribution) in zip(quantities, panels, strict=True):
            for i, history in enumerate(histories):
                draw_history(series, history, look(i), describe_history(history))
                draw_distribution(distribution, history, look(i))
            series.sharex(panels[-1, 0])
            series.tick_params(labelbottom=series is panels[-1, 0])
            series.set_ylabel(name)
            series.legend(
                loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, title="running mean"
            )
            distribution.set_xlim(left=0)
            distribution.tick_params(which="both", bottom=False, top=False, labelbottom=False)
        panels[-1, 0].set_xlabel("update")
        panels[-1, 1].set_xlabel("distribution")
