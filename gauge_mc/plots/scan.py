"""The averages of a scan against the coupling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import BETA
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.curves import Curves, draw_panels
from gauge_mc.plots.figures.labels import physics_label
from gauge_mc.plots.runs.labels import one_scan
from gauge_mc.scans.averages import panels
from gauge_mc.scans.grid import numbers_in
from gauge_mc.scans.scan import Scan


class ScanPlot(Plot):
    """Averages and derived quantities of a scan against beta, one below the other.

    If all runs have one beta, they are drawn against the first number in which runs differ.
    """

    name = "scan"
    summary = "averages and susceptibilities of a scan against β, or κ, m or μ of quarks"
    of_scans: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one scan; see `Plot.draw`."""
        draw_scan(Scan.read(one_scan(runs)).table, file)
        return []


PLOTS.register(ScanPlot())


def draw_scan(table: Path, figure: Path) -> None:
    """Draw the table of a scan, with one curve per lattice; see `ScanPlot`.

    Raises
    ------
    GaugeError
        If the table does not exist, is not the table of a scan, or contains no data to draw.
    """
    data = read_table(table, text=("lattice",))
    words = [name for name, column in data.columns.items() if column.dtype.kind == "U"]
    if "beta" not in data.columns or words != ["lattice"]:
        folder = Path(table).parent
        if (folder / "scan.toml").is_file():
            again = f"gauge-mc scan --collect --output {quote(str(folder))}"
            raise GaugeError(f"{table} is not the table of a scan; make it again with {again}.")
        raise GaugeError(f"{table} is not the table of a scan; name a scan, or its scan.csv.")
    lattices = dict.fromkeys(data.columns["lattice"].tolist())
    options = numbers_in(data.columns)
    over = next((one for one in options if len({*data[one.name].tolist()}) > 1), BETA)
    over = BETA if len({*data[BETA.name].tolist()}) > 1 else over
    options = [one for one in options if one is not over]
    kinds = sorted({*zip(*(data[one.name].tolist() for one in options), strict=True)} or {()})
    name = data.header.get("group", "")
    group = GROUPS[name].label if name in GROUPS else name
    drawn: list[tuple[str, Curves]] = [
        (
            panel.symbol,
            [
                (
                    ", ".join([physics_label(group, Lattice.parse(each)), *_said(options, kind)]),
                    _curve(data, panel.column, over.name, each, options, kind),
                )
                for each in lattices
                for kind in kinds
            ],
        )
        for panel in panels()
        if panel.column in data.columns
    ]
    if not (drawn and lattices):
        raise GaugeError(f"{table} contains no data to draw yet; continue the scan.")
    draw_panels(drawn, over.label, figure)


def _said(options: Sequence[Option], values: Sequence[float]) -> list[str]:
    """Return the options that are not usual, in words."""
    pairs = zip(options, values, strict=True)
    return [one.drawn(value) for one, value in pairs if value != one.usual]


def _curve(
    table: TableData,
    name: str,
    over: str,
    lattice: str,
    options: Sequence[Option],
    kind: Sequence[float],
) -> list[tuple[float, Estimate]]:
    """Return the averages on one lattice, with one kind of action and quarks, sorted by `over`."""
    columns = table.columns
    chosen = columns["lattice"] == lattice
    for one, value in zip(options, kind, strict=True):
        chosen &= columns[one.name] == value
    here = np.flatnonzero(chosen)
    curve = []
    for row in here[np.argsort(columns[over][here])]:
        value, error = float(columns[name][row]), float(columns[f"{name}_error"][row])
        curve.append((float(columns[over][row]), Estimate(value, error, math.nan, math.nan, 0)))
    return curve
