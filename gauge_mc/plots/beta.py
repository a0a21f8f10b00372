"""Averages of many runs against the coupling, a curve for each lattice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from gauge_mc.analysis.figures import draw_panels
from gauge_mc.analysis.timeseries import Estimate, estimate, with_error
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable
from gauge_mc.plots import AGAINST_BETA, PLOTS, Plot, require_table


class BetaPlot(Plot):
    """The average of an observable's main quantity against beta.

    Parameters
    ----------
    observable : type of Observable, optional
        The observable; by default the first one that has a quantity to show.
    """

    def __init__(self, observable: type[Observable] | None = None) -> None:
        self._observable = observable
        self.name = f"{observable.name}{AGAINST_BETA}" if observable else "beta"
        what = observable.summary if observable else "the first observable"
        self.summary = f"averages of {what} against β, a curve for each lattice"

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs, and return a table of their averages."""
        shown = (one for one in OBSERVABLES.values() if one.quantities)
        observable = self._observable or next(shown)
        quantity = observable.quantities[0]
        curves: dict[tuple[str, Lattice], list[tuple[float, Estimate]]] = {}
        for run in runs:
            table = require_table(run, observable)
            try:
                beta = float(table.header["beta"])
                kind = (table.header["group"], Lattice.parse(table.header["lattice"]))
            except (KeyError, ValueError) as error:
                raise GaugeError(
                    f"The table of {observable.name} in {run} does not state its beta."
                ) from error
            curves.setdefault(kind, []).append((beta, estimate(table.columns[quantity.column])))
        named = [
            (f"{GROUPS[group].label}, {lattice}", sorted(points, key=lambda point: point[0]))
            for (group, lattice), points in sorted(
                curves.items(), key=lambda item: (item[0][0], item[0][1].extents)
            )
        ]
        draw_panels([(quantity.symbol, named)], r"$\beta$", file)
        return [_averages(named)]


PLOTS.register(BetaPlot())


def _averages(named: Sequence[tuple[str, Sequence[tuple[float, Estimate]]]]) -> Table:
    """Return the averages as a table."""
    shown = Table("lattice", "β", "average", "τ_int", "measurements")
    for name, points in named:
        for beta, found in points:
            tau = with_error(found.tau_int, found.tau_int_error)
            shown.add_row(name, f"{beta:g}", str(found), tau, str(found.samples))
    return shown
