"""Time series of observables, with running means and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gauge_mc.analysis.figures import (
    LINE,
    WIDTH,
    History,
    check_history,
    describe_history,
    draw_distribution,
    draw_history,
    figure_file,
    look,
    mean_line,
    require,
    series_line,
    typeset,
)
from gauge_mc.analysis.libraries import load
from gauge_mc.options import Option, check_options
from gauge_mc.plots import (
    PLOTS,
    SKIP,
    Plot,
    TableKind,
    caution_unthermalised,
    find_tables,
    history_of,
    labels_of,
    missing_table,
    table_kinds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

ROW = 2.1
"""Height of a row of panels in inches, without its legend."""

LONG = 40
"""Maximum length of a label in a legend with two columns."""

GREY = "0.35"
"""Colour of lines in a legend that stand for the lines of all runs."""

SHADE = "0.9"
"""Colour of the updates that are left out of the averages."""


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
            f"time series: {', '.join(one.label for one in kind.quantities)}"
            if kind
            else "time series with running means and autocorrelation times"
        )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame per quantity; see `Plot.draw`."""
        skip = check_options(self.options, options, f"plot {self.name}").get(SKIP.name, 0)
        labels = dict(zip(runs, labels_of(runs), strict=True))
        kinds = [self._kind] if self._kind else list(table_kinds(runs).values())
        quantities = []
        for one in kinds:
            tables = find_tables(runs, one) if one.quantities else {}
            for quantity in one.quantities if self._kind else one.quantities[:1]:
                series = [
                    history_of(labels[run], table, quantity.column) for run, table in tables.items()
                ]
                if series:
                    quantities.append((quantity.symbol, series))
        if not quantities:
            raise missing_table(runs, kinds[0].name)
        plot_history(quantities, file, skip)
        if not skip:
            caution_unthermalised(runs)
        return []


PLOTS.register(HistoryPlot())


def plot_history(
    quantities: Sequence[tuple[str, Sequence[History]]], path: Path, skip: int = 0
) -> None:
    """Plot time series with running means and distributions, and print tau_int in the legends.

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
    rows, lines = len(quantities), max(len(histories) for _, histories in quantities)
    labels = dict.fromkeys(one.label for _, histories in quantities for one in histories)
    looks = {label: look(i) for i, label in enumerate(labels)}
    size = (WIDTH, 0.6 + rows * (ROW + LINE * lines) + LINE * (2 + len(looks) / 2))
    with figure_file(path, size) as figure:
        panels = figure.subplots(rows, 2, squeeze=False, sharey="row", width_ratios=(4, 1))
        for (name, histories), (series, distribution) in zip(quantities, panels, strict=True):
            for history in histories:
                kept, own = history.after(skip), looks[history.label]
                draw_history(series, history, own, describe_history(kept), skip)
                draw_distribution(distribution, kept, own)
            series.margins(x=0.02)
            first = min(history.sweeps[0] for history in histories)
            if skip >= first:
                series.axvspan(first, skip + 0.5, color=SHADE, zorder=0)
            series.sharex(panels[-1, 0])
            series.tick_params(labelbottom=series is panels[-1, 0])
            series.set_ylabel(name)
            legend = series.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
            if series is panels[0, 0]:
                _add_key(series, legend, looks, skip if skip >= first else 0)
            distribution.set_xlim(left=0)
            distribution.tick_params(which="both", bottom=False, top=False, labelbottom=False)
        panels[-1, 0].set_xlabel("update")
        panels[-1, 1].set_xlabel("distribution")
        figure.align_ylabels(panels[:, 0])


def _add_key(axes: Axes, below: Legend, looks: dict[str, dict[str, Any]], skip: int) -> None:
    """Add a legend that names the runs and the kinds of lines, above another legend.

    Parameters
    ----------
    axes : Axes
    below : Legend
        The other legend, which stands on the upper edge of the frame.
    looks : dict of str to dict
        Colours and markers of the runs, by label.
    skip : int
        Last update that is left out of the averages; 0 if there is none.
    """
    line, patch = load("matplotlib.lines").Line2D, load("matplotlib.patches").Patch
    title, *others = looks
    one = looks[title] if not others else {"color": GREY, "marker": ""}
    entries = [
        (line([], [], **series_line(one["color"])), "each measurement"),
        (line([], [], **mean_line(one)), "running mean"),
    ]
    if skip:
        entries.append((patch(color=SHADE), f"not averaged: updates up to {skip}"))
    columns = len(entries)
    if others:
        runs = [(line([], [], **mean_line(own)), typeset(name)) for name, own in looks.items()]
        entries, columns = [*runs, *entries], 1 if max(map(len, looks)) > LONG else 2
    height = below.get_window_extent().height / axes.figure.dpi
    inches = axes.figure.dpi_scale_trans
    above = load("matplotlib.transforms").ScaledTranslation(0, height, inches)
    axes.add_artist(below)
    below.set_clip_on(False)  # or the layout would leave no room for it
    axes.legend(
        *zip(*entries, strict=True),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=axes.transAxes + above,
        borderaxespad=0.2,
        title=typeset(title) if not others else None,
        alignment="left",
        ncols=columns,
        columnspacing=1.5,
    )
