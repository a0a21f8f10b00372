"""Electric and magnetic correlators on the Polyakov loop, in units of leading order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Picture, Symbols
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.thermodynamics.analysis.field_correlators import (
    FieldCorrelatorPoint,
    field_correlators,
    read_field_series,
)
from gauge_mc.quantities.thermodynamics.analysis.flow_columns import FIELD_COLUMNS
from gauge_mc.run.thermalisation import SKIP

MOST_CURVES = 6
"""Maximum number of flow times that are shown."""


class FieldCorrelatorsPlot(TablePlot):
    """G_E and G_B of one run in units of leading order, against tau T, at several flow times."""

    name = "field-correlators"
    summary = "electric and magnetic correlators on the Polyakov loop against τT"
    subject: ClassVar[str] = "A correlator on the Polyakov loop"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show G_E and G_B divided by G_norm, a curve for each flow time."""
        found = field_correlators(read_field_series(table, options.get(SKIP.name, 0)))
        shown = [one for one in found.points if one.inside and one.electric_ratio is not None]
        if not shown:
            raise GaugeError(
                "There is no correlator with a smoothing radius √(8t) between a and τ/3 whose "
                "leading order is known; measure the flow at more times, or choose a larger N_t."
            )
        times = sorted({one.t for one in shown})
        some = np.unique(np.linspace(0, len(times) - 1, MOST_CURVES).astype(int))
        chosen = [times[n] for n in some]
        frames = [
            Frame(_curves(shown, chosen, "electric_ratio"), r"$\tau T$", r"$G_E/G_\mathrm{norm}$"),
            Frame(
                _curves(shown, chosen, "magnetic_ratio", named=False),
                r"$\tau T$",
                r"$G_B/G_\mathrm{norm}$",
            ),
        ]
        return Picture(frames, 3.4, columns=3)


PLOTS.register(FieldCorrelatorsPlot())


def _curves(
    points: Sequence[FieldCorrelatorPoint], times: Sequence[float], name: str, named: bool = True
) -> list[Symbols]:
    """Return the points whose leading order is known, by flow time, which the legend may name."""
    curves = []
    for n, t in enumerate(times):
        own = [one for one in points if one.t == t and getattr(one, name) is not None]
        style = {**look(n), "linestyle": "-", "linewidth": 0.8, "markersize": 4}
        text = rf"$\sqrt{{8t}}={np.sqrt(8 * t):.2f}\,a$" if named else ""
        values = [getattr(one, name) for one in own]
        curves.append(Symbols.of([one.scaled for one in own], values, style, text))
    return curves
