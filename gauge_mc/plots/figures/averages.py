"""Averages of runs, as a table for the terminal and as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.plots.figures.curves import Curves
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class AveragePoint:
    """A point of a plot of averages."""

    quantity: str = result_field("Name of the quantity.")
    ensemble: str = result_field("Group and lattice of the ensemble.")
    beta: float = result_field("Coupling.")
    average: Estimate = result_field("The average.")


@dataclass(frozen=True)
class AveragesTable:
    """The averages that a plot shows, as a table for the terminal."""

    label: str
    """Name of the quantity."""
    points: Sequence[AveragePoint]
    """Averages, in the order of the curves."""

    @classmethod
    def of(cls, label: str, curves: Curves) -> AveragesTable:
        """Return the averages of curves."""
        named = [
            AveragePoint(label, name, beta, found)
            for name, points in curves
            for beta, found in points
        ]
        return cls(label, named)

    def __rich__(self) -> Table:
        """Return a table for the terminal."""
        shown = Table("ensemble", "β", self.label, "τ_int", "measurements")
        for one in self.points:
            found = one.average
            tau = with_error(found.tau_int, found.tau_int_error)
            shown.add_row(one.ensemble, f"{one.beta:g}", str(found), tau, str(found.samples))
        return shown
