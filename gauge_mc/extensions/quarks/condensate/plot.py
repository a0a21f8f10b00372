"""The chiral condensate against the quark mass, and its history."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.extensions.quarks.condensate.analysis import (
    CondensateFit,
    CondensateResults,
    CondensateTable,
)
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look, typeset
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols
from gauge_mc.plots.runs import TablePlot


class CondensatePlot(TablePlot):
    """The condensate of every configuration, and for several quarks against their mass."""

    name = "condensate"
    summary = "chiral condensate: history, and dependence on the quark mass"
    subject: ClassVar[str] = "The condensate"
    columns: ClassVar[tuple[str, ...]] = CondensateFit.columns
    options: ClassVar[tuple[Option, ...]] = CondensateFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the condensate; see `condensate_picture`."""
        return condensate_picture(*CondensateFit().fitted(table, options))


PLOTS.register(CondensatePlot())


def condensate_picture(table: CondensateTable, fitted: CondensateResults) -> Picture:
    """Return the series of the condensate with its average, and lines in the quark mass if any.

    The bars of a configuration are the errors by its sources alone.

    Parameters
    ----------
    table : CondensateTable
        Estimates by all sources.
    fitted : CondensateResults
        Their averages.
    """
    marks: list[Mark] = []
    for n, one in enumerate(fitted.quarks):
        values, own = table.values[one.quark]["scalar"], look(n)
        sources = values.shape[1]
        error = values.std(axis=1, ddof=1) / np.sqrt(sources) if sources > 1 else None
        y, text = values.mean(axis=1), typeset(one.where)
        marks.append(Symbols(table.sweeps, y, error, style=own, text=text))
        ends = float(table.sweeps[0]), float(table.sweeps[-1])
        marks.append(Stroke.plateau(ends, one.condensate, {"color": own["color"]}))
    quantity = r"$-\langle\bar\psi\psi\rangle$"
    frames = [Frame(marks, "update", quantity)]
    for n, line in enumerate(fitted.lines):
        x, y, error = np.transpose([(one.x, one.value, one.error) for one in line.points])
        at = np.array([0.0, x.max()])
        straight = line.intercept.value + line.slope.value * at
        colour = {"color": look(n)["color"]}
        both = [Symbols(x, y, error, style=look(n)), Stroke(at, straight, style=colour)]
        frames.append(Frame(both, r"$a\,m$", quantity))
    return Picture(frames, 2.8 * len(frames), columns=2, layout={"nrows": len(frames)})
