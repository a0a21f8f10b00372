"""Averages of runs against the coupling, with one curve per lattice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc import defaults
from gauge_mc.actions import Action, action_of
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.domain.lattice import any_lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import AGAINST_BETA, PLOTS, Plot
from gauge_mc.plots.figures.averages import AveragesTable
from gauge_mc.plots.figures.curves import Curves, draw_panels
from gauge_mc.plots.figures.labels import named_apart, physics_label
from gauge_mc.plots.runs.tables import (
    TableKind,
    filled_tables,
    missing_table,
    table_kinds,
)
from gauge_mc.run.thermalisation import SKIP, last_skipped


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

    def __init__(self, kind: TableKind | None = None) -> None:
        self._kind = kind
        self.name = f"{kind.name}{AGAINST_BETA}" if kind else "averages"
        self.summary = (
            f"average against β: {kind.columns.averaged[0].average}"
            if kind
            else "all averages against β, one curve per lattice"
        )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs, and return the averages as tables; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        wanted = [self._kind] if self._kind else list(table_kinds(runs).values())
        drawn = []
        for one, tables in filled_tables(runs, wanted):
            column = one.columns.averaged[0]
            kept = [table.after(last_skipped(run, skip), str(run)) for run, table in tables.items()]
            drawn.append((column, _curves(kept, column.name)))
        if not drawn:
            raise missing_table(runs, self._kind.name if self._kind else defaults.MEASURE[0])
        draw_panels([(one.label_of_average, curves) for one, curves in drawn], r"$\beta$", file)
        return [AveragesTable.of(one.average, curves) for one, curves in drawn]


PLOTS.register(AveragesPlot())


def _curves(tables: Sequence[TableData], column: str) -> Curves:
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
        (
            _label(*ensemble),
            [(beta, estimate(*chains)) for beta, chains in sorted(points.items())],
        )
        for ensemble, points in sorted(curves.items(), key=lambda one: str(one[0]))
    ]


def _label(group: str, extents: tuple[int, ...], action: Action) -> str:
    """Return the label of a curve: group, unusual action, lattice and options of the action."""
    name, options = named_apart(action)
    words = [GROUPS[group].label, *name]
    return ", ".join([physics_label(", ".join(words), any_lattice(extents)), *options])
