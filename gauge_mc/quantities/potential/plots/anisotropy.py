"""Ratios of Wilson loops in space and along t, and the anisotropy at which they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import GREY, look
from gauge_mc.plots.figures.pictures import (
    Frame,
    KeyEntry,
    Mark,
    Picture,
    Sketch,
    Symbols,
)
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.potential.fits.anisotropy import AnisotropyFit

LARGEST_ERROR = 0.25
"""Relative error above which a point is not drawn; it would hide the others."""


class AnisotropyPlot(TablePlot):
    """Ratios of Wilson loops in space and along t, and xi(x, y) with its average."""

    name = "anisotropy"
    summary = "ratios of Wilson loops in space and along t, and ξ(x, y)"
    subject: ClassVar[str] = "The anisotropy"
    columns: ClassVar[tuple[str, ...]] = AnisotropyFit.columns
    options: ClassVar[tuple[Option, ...]] = AnisotropyFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show ln R_s(x, y) against y and ln R_t(x, t) against t / xi, and below them xi(x, y)."""
        found = AnisotropyFit().carry_out(table, **options).found
        xi, ratios, points = found.xi, list[Mark](), list[Mark]()
        for i, x in enumerate(sorted({one.x for one in found.space})):
            full = {**look(i), "linestyle": "none"}
            hollow = {**full, "markerfacecolor": "white"}
            along_t = [(one.t / xi.value, one.value) for one in found.time if one.x == x]
            in_space = [(one.t, one.value) for one in found.space if one.x == x]
            ratios += [*_known(along_t, hollow), *_known(in_space, full)]
            ratios.append(KeyEntry(style=full, text=f"$x={x}$"))
            points += _known(
                [(one.y + 0.06 * i, one.xi) for one in found.points if one.x == x], full
            )
        band: dict[str, Any] = {"color": GREY, "alpha": 0.4}
        ends = xi.value - xi.error, xi.value + xi.error
        points.append(Sketch(lambda axes: axes.axhspan(*ends, zorder=0, **band)))
        ratios.append(KeyEntry(style={**band, "linewidth": 6}, text=rf"$\xi={xi}$"))
        label = r"$\ln R_s(x,y)$ (full), $\ln R_t(x,\xi y)$ (hollow)"
        frames = Frame(ratios, "", label), Frame(points, "$y$", r"$\xi(x,y)$")
        layout = {"nrows": 2, "sharex": True, "height_ratios": (3, 2)}
        return Picture(frames, 6.4, columns=3, layout=layout)


PLOTS.register(AnisotropyPlot())


def _known(values: Sequence[tuple[float, Estimate]], style: Mapping[str, Any]) -> list[Symbols]:
    """Return points of the values that are known well enough to be drawn, if there are any."""
    known = [(x, one) for x, one in values if one.error < LARGEST_ERROR * abs(one.value)]
    return [Symbols.of([x for x, _ in known], [one for _, one in known], style)] if known else []
