"""Averages of runs, as a table for the terminal and as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.plots.figures.curves import Curves


@dataclass(frozen=True)
class AveragePoint:
    """A point of a plot of averages.

    Attributes
    ----------
    quantity : str
        Name of the quantity.
    ensemble : str or mapping of str to str
        Group and lattice of the ensemble.
    beta : float
        Coupling.
    average : Estimate
        The average.
    """

    quantity: str
    ensemble: str
    beta: float
    average: Estimate


@dataclass(frozen=True)
class AveragesTable:
    """The averages that a plot shows, as a table for the terminal.

    Attributes
    ----------
    label : str
        Name of the quantity.
    points : sequence of AveragePoint
        Averages, in the order of the curves.
    """

    label: str
    points: Sequence[AveragePoint]

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
