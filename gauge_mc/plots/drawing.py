"""The choice of a plot and of the runs that it draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.input import Paths, paths_of
from gauge_mc.files.table import TableData, noted_tables
from gauge_mc.fits.files import kept_in_words, kept_skip, left_to_kept, sampling_cautions
from gauge_mc.options import check_options
from gauge_mc.plots import AGAINST_BETA, PLOTS, Plot
from gauge_mc.plots.figures import files
from gauge_mc.plots.runs import TableKind, noted_cautions, table_kinds
from gauge_mc.registry import nearest
from gauge_mc.run import thermalisation
from gauge_mc.signatures import checks_types, with_options
from gauge_mc.stored import folders, named_or_newest, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gauge_mc.keywords import PlotKeywords


def plot_names(runs: Sequence[Path] = ()) -> list[str]:
    """Return the names of all plots, including those of observables and of tables in the runs."""
    shown = [name for name, kind in table_kinds(runs).items() if kind.columns.averaged]
    names = {*PLOTS, *shown, *(name + AGAINST_BETA for name in shown)}
    return sorted(names)


def find_plot(name: str, runs: Sequence[Path] = ()) -> Plot:
    """Return a plot by name."""
    if name in PLOTS:
        return PLOTS[name]
    kinds = table_kinds(runs)
    kind = kinds.get(name.removesuffix(AGAINST_BETA))
    if kind and kind.columns.averaged:
        return _plot_of_table(name, kind)
    if kind and kind.name not in PLOTS:
        raise UsageError(
            f"There is no plot of the table {kind.name}: it has several rows per measurement, or "
            "no numbers; read it with Python."
        )
    raise UsageError(f"There is no plot '{name}'{nearest(name, plot_names(runs))}")


@with_options(lambda: ((name, x.options) for name, x in PLOTS.items()))
@checks_types
def plot(
    what: str,
    run: Paths | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    size: tuple[float, float] | None = None,
    dpi: int | None = None,
    **options: Unpack[PlotKeywords],
) -> Figure:
    """Draw a figure of the results of one run, or of several runs in one frame.

    A notebook shows the figure if this is the last expression of a cell.

    Parameters
    ----------
    what : str
        Name of the plot.
    run : path or sequence of paths, optional
        Run directories, or results of `gauge_mc.generate` and `gauge_mc.open_run`; a scan stands
        for its runs. By default the newest run in ``runs/``, or the newest scan for a plot of
        scans.
    output : path, optional
        File to write; its ending ``.pdf``, ``.png`` or ``.svg`` determines the format. By default
        none is written.
    size : tuple of float, optional
        Width and height of the figure in inches; by default as suits the plot.
    dpi : int, optional
        Pixels per inch of a PNG file.
    **options : object
        Options of the plot, by name.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which does not depend on pyplot.

    Raises
    ------
    UsageError
        If the plot or a run does not exist, or the value of an option is invalid.
    GaugeError
        If there is no data to draw, a table is damaged, Matplotlib is missing, or the file cannot
        be written.
    """
    _, runs = runs_to_draw(what, paths_of(run))
    kind, file = find_plot(what, runs), None if output is None else Path(output)
    values, sentences = options_to_draw(kind, runs, options)
    with files.drawn_as(files.FigureFormat(size, files.STYLE_DPI if dpi is None else dpi)):
        with files.kept_figures() as figures:
            _, cautions = draw(kind, runs, Path(f"{what}.pdf"), values)
        if len(figures) != 1:
            raise GaugeError(f"The plot {what} draws {len(figures)} figures, instead of one.")
        if file:
            files.write_figure(figures[0], file)
    for sentence in [*sentences, *thermalisation.sentences_about(cautions)]:
        print(f"gauge-mc: {sentence}", file=sys.stderr)
    return figures[0]


def draw(
    plot: Plot,
    runs: Sequence[Path],
    file: Path,
    options: Mapping[str, Any],
    judged: Callable[[TableData], bool] = lambda table: False,
) -> tuple[list[Any], list[thermalisation.Caution]]:
    """Draw a figure; return the tables to print, and cautions about what it shows.

    The cautions are those of the fit of the same quantity if there is one, and else those about the
    series of the tables that it has read; see `series_cautions`. The parameters and errors are
    those of `Plot.draw`.
    """
    with noted_cautions() as cautions, noted_tables() as tables:
        shown = plot.draw(runs, file, **options)
    skip = options.get(thermalisation.SKIP.name, 0) if thermalisation.SKIP in plot.options else None
    unjudged = {path: table for path, table in tables.items() if not judged(table)}
    if plot.fit and not plot.of_scans:
        cautions += sampling_cautions(tables, skip or 0)
    else:
        cautions += thermalisation.series_cautions(unjudged, skip, plot.every_column)
    chains = {path.parent for path in tables}.union([] if plot.of_scans else runs)
    return shown, [*dict.fromkeys([*cautions, *thermalisation.run_cautions(sorted(chains), skip)])]


def options_to_draw(
    plot: Plot, runs: Sequence[Path], options: Mapping[str, object]
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a plot, checked, with a number of updates in place of `AUTO`.

    Sentences say what is left out.
    """
    values = check_options(plot.options, options, f"plot {plot.name}")
    run_options = left_to_kept(runs[0], plot.fit, plot.options, values)
    if (
        thermalisation.SKIP in plot.options
        and thermalisation.SKIP.name not in values
        and (skip := kept_skip(runs, 0))
    ):
        run_options[thermalisation.SKIP.name] = skip
    values, words = {**run_options, **values}, kept_in_words(runs[0], run_options)
    if values.get(thermalisation.SKIP.name) != thermalisation.AUTO or plot.of_scans:
        return values, words
    cuts = [x for run in runs for x in thermalisation.found_in(run)]
    last = max((x.update for x in cuts), default=0)
    numbers = values if plot.skips_each else {**values, thermalisation.SKIP.name: last}
    return numbers, words + thermalisation.sentences_of(cuts)


def expected_plot(name: str) -> Plot:
    """Return a plot by name before its runs are known.

    A name that is unknown is taken for that of a table of a function of the user.
    """
    if name in plot_names():
        return find_plot(name)
    table = name.removesuffix(AGAINST_BETA)
    return _plot_of_table(name, TableKind(table, TableColumns.of_function(table, ["value"])))


def _plot_of_table(name: str, kind: TableKind) -> Plot:
    """Return the time series of a table, or its average against the coupling."""
    from gauge_mc.plots.standard import AveragesPlot, HistoryPlot

    return HistoryPlot(kind) if name == kind.name else AveragesPlot(kind)


def runs_to_draw(name: str, named: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the directories that a plot is asked for, and those that it draws."""
    of_scans = name in PLOTS and PLOTS[name].of_scans
    paths = folders(named_or_newest(named, of_scans))
    return paths, paths if of_scans else runs_of(paths)
