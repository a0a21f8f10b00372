"""Plots of any observable: histories, averages against the coupling, and scans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import BETA, Action, action_of
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.domain.lattice import Lattice, any_lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import TableData, read_table
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import AGAINST_BETA, PLOTS, Plot
from gauge_mc.plots import runs as run_tables
from gauge_mc.plots.figures import curves as graphics
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.quoting import CommandLine
from gauge_mc.run.thermalisation import SKIP, last_skipped
from gauge_mc.scans.averages import panels
from gauge_mc.scans.grid import numbers_in
from gauge_mc.scans.scan import Scan


class AveragesPlot(Plot):
    """Average of the main quantity of each observable against beta.

    Parameters
    ----------
    kind : TableKind, optional
        Table to draw; by default all observables that any of the runs has measured, one below the
        other.
    """

    options: ClassVar[tuple[Option, ...]] = (SKIP,)
    skips_each: ClassVar[bool] = True

    def __init__(self, kind: run_tables.TableKind | None = None) -> None:
        self._kind = kind
        self.name = f"{kind.name}{AGAINST_BETA}" if kind else "averages"
        summary = "all averages against β, one curve per lattice"
        self.summary = f"average against β: {kind.columns.averaged[0].average}" if kind else summary

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs, and return the averages as tables; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        kinds = [self._kind] if self._kind else list(run_tables.table_kinds(runs).values())
        drawn = []
        for kind, tables in run_tables.filled_tables(runs, kinds):
            column = kind.columns.averaged[0]
            thermalised = [
                table.after(last_skipped(run, skip), str(run)) for run, table in tables.items()
            ]
            drawn.append((column, _curves(thermalised, column.name)))
        if not drawn:
            raise run_tables.missing_table(
                runs, self._kind.name if self._kind else defaults.MEASURE[0]
            )
        graphics.draw_panels(
            [(x.label_of_average, curves) for x, curves in drawn], r"$\beta$", file
        )
        return [graphics.AveragesTable.of(x.average, curves) for x, curves in drawn]


PLOTS.register(AveragesPlot())


def _curves(tables: Sequence[TableData], column: str) -> graphics.Curves:
    """Return the averages of a column over the chains at each beta, for each kind of ensemble."""
    curves: dict[tuple[str, tuple[int, ...], Action], dict[float, list[Any]]] = {}
    for table in tables:
        header = table.header
        try:
            beta, lattice = float(header["beta"]), any_lattice(header["lattice"])
            action = action_of(header)
            ensemble = (header["group"], lattice.extents, action)
        except (KeyError, ValueError) as error:
            raise GaugeError(
                "A table does not state its group, lattice and beta; measure it again."
            ) from error
        curves.setdefault(ensemble, {}).setdefault(beta, []).append(table.columns[column])
    return [
        (_label(*ensemble), [(beta, estimate(*chains)) for beta, chains in sorted(points.items())])
        for ensemble, points in sorted(curves.items(), key=lambda x: str(x[0]))
    ]


def _label(group: str, extents: tuple[int, ...], action: Action) -> str:
    """Return the label of a curve: group, unusual action, lattice and options of the action."""
    name, options = pictures.named_apart(action)
    words = [GROUPS[group].label, *name]
    return ", ".join([pictures.physics_label(", ".join(words), any_lattice(extents)), *options])


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

    def __init__(self, kind: run_tables.TableKind | None = None) -> None:
        self._kind = kind
        self.name = kind.name if kind else "history"
        shown = [x.average for x in kind.columns.averaged] if kind else []
        usual = "time series with running means and autocorrelation times"
        self.every_column = kind is not None
        self.summary = f"time series: {', '.join(shown)}" if kind else usual

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame per quantity; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        labels = dict(zip(runs, run_tables.labels_of(runs), strict=True))
        kinds = [self._kind] if self._kind else list(run_tables.table_kinds(runs).values())
        quantities = []
        for kind, tables in run_tables.filled_tables(runs, kinds):
            for column in kind.columns.averaged[: None if self._kind else 1]:
                series = [
                    graphics.History(labels[run], table[SWEEP], table[column.name])
                    for run, table in tables.items()
                ]
                quantities.append((column.label, series))
        if not quantities:
            raise run_tables.missing_table(
                runs, self._kind.name if self._kind else defaults.MEASURE[0]
            )
        plot_history(quantities, file, skip)
        return []


PLOTS.register(HistoryPlot())


def plot_history(
    quantities: Sequence[tuple[str, Sequence[graphics.History]]], path: Path, skip: int = 0
) -> None:
    """Plot time series with running means and distributions, and print averages and tau_int.

    The averages of more than `MOST_MEANS` runs are not printed, since they would fill the figure.
    """
    graphics.require(quantities)
    for _, histories in quantities:
        graphics.require(histories)
        for history in histories:
            graphics.check_history(history, skip)
    labels = dict.fromkeys(h.label for _, histories in quantities for h in histories)
    looks = {label: pictures.look(i) for i, label in enumerate(labels)}
    rows = len(quantities)
    columns = 2 if len(looks) > FEW_RUNS else 1
    lines = -(-len(looks) // columns) if len(looks) <= MOST_MEANS else 0
    size = (
        pictures.WIDTH,
        0.6 + rows * (ROW + pictures.LINE * lines) + pictures.LINE * (1.5 + len(looks) / 2),
    )
    with figure_file(path, size) as figure:
        panels = figure.subplots(rows, 2, squeeze=False, sharey="row", width_ratios=(4, 1))
        shaded = False
        for (name, histories), (series, distribution) in zip(quantities, panels, strict=True):
            for history in histories:
                thermalised, style = history.after(skip), looks[history.label]
                words = graphics.describe_history(
                    thermalised, *(() if columns == 1 else ("", False))
                )
                graphics.draw_history(series, history, style, skip, words)
                graphics.draw_distribution(
                    distribution, thermalised, style, filled=len(looks) <= FEW_RUNS
                )
            shaded |= graphics.shade_skipped(series, histories, skip)
            series.margins(x=0.02)
            series.sharex(panels[-1, 0])
            series.tick_params(labelbottom=series is panels[-1, 0])
            series.set_ylabel(name)
            if lines:
                place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderpad": 0}
                series.legend(**place, borderaxespad=0.3, ncols=columns, columnspacing=1.5)
            graphics.finish_distribution(distribution)
        panels[-1, 0].set_xlabel("update")
        panels[-1, 1].set_xlabel("distribution")
        figure.align_ylabels(panels[:, 0])
        key, line = (
            graphics.key_of_lines(list(looks.values()), shaded),
            load("matplotlib.lines").Line2D,
        )
        if columns > 1 and lines:
            key.append((line([], [], linestyle="none"), r"mean, $\tau_\mathrm{int}$ in updates"))
        if len(looks) == 1:
            pictures.add_heading(
                figure, panels[0, 0], key, title=next(iter(looks)), columns=len(key)
            )
        else:
            names = [
                (line([], [], **graphics.mean_line(look)), pictures.typeset(name))
                for name, look in looks.items()
            ]
            entries = pictures.side_by_side(names, key) if len(looks) <= FEW_RUNS else names + key
            pictures.add_heading(figure, panels[0, 0], entries, columns=2)


class ScanPlot(Plot):
    """Averages and derived quantities of a scan against beta, one below the other.

    If all runs have one beta, they are drawn against the first number in which runs differ.
    """

    name = "scan"
    summary = "averages and susceptibilities of a scan against β, or κ, m or μ of quarks"
    of_scans: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one scan; see `Plot.draw`."""
        draw_scan(Scan.read(run_tables.one_scan(runs)).table, file)
        return []


PLOTS.register(ScanPlot())


def draw_scan(table: Path, figure: Path) -> None:
    """Draw the table of a scan, with one curve per lattice; see `ScanPlot`."""
    data = read_table(table, text=("lattice",))
    words = [name for name, column in data.columns.items() if column.dtype.kind == "U"]
    if "beta" not in data.columns or words != ["lattice"]:
        folder = Path(table).parent
        if (folder / "scan.toml").is_file():
            again = CommandLine("scan", collect=True, output=folder)
            raise GaugeError(f"{table} is not the table of a scan; make it again with `{again}`.")
        raise GaugeError(f"{table} is not the table of a scan; name a scan, or its scan.csv.")
    lattices = dict.fromkeys(data.columns["lattice"].tolist())
    options = numbers_in(data.columns)
    over = next((option for option in options if len({*data[option.name].tolist()}) > 1), BETA)
    over = BETA if len({*data[BETA.name].tolist()}) > 1 else over
    options = [option for option in options if option is not over]
    kinds = sorted({*zip(*(data[option.name].tolist() for option in options), strict=True)} or {()})
    name = data.header.get("group", "")
    group = GROUPS[name].label if name in GROUPS else name
    ensembles = []
    for lattice, values in product(lattices, kinds):
        pairs = [*zip(options, values, strict=True)]
        unusual = [x.drawn(value) for x, value in pairs if value != x.usual]
        label = ", ".join([pictures.physics_label(group, Lattice.parse(lattice)), *unusual])
        ensembles.append((label, {"lattice": lattice} | {x.name: value for x, value in pairs}))
    drawn = [
        (
            panel.symbol,
            [(label, _curve(data, panel.column, over.name, x)) for label, x in ensembles],
        )
        for panel in panels()
        if panel.column in data.columns
    ]
    if not (drawn and lattices):
        raise GaugeError(f"{table} contains no data to draw yet; continue the scan.")
    graphics.draw_panels(drawn, over.label, figure)


def _curve(
    table: TableData, name: str, over: str, ensemble: Mapping[str, Any]
) -> list[tuple[float, Estimate]]:
    """Return the averages on one lattice, with one kind of action and quarks, sorted by `over`."""
    mask = np.logical_and.reduce([table[key] == value for key, value in ensemble.items()])
    rows = zip(*(table[x][mask].tolist() for x in (over, name, f"{name}_error")), strict=True)
    ordered = sorted(rows, key=lambda row: row[0])
    return [(x, Estimate(value, error, math.nan, math.nan, 0)) for x, value, error in ordered]
