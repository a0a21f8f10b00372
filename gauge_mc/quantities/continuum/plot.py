"""The continuum limit of a product of quoted numbers, with its points."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import with_error
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Picture, Stroke, Symbols
from gauge_mc.plots.runs import caution
from gauge_mc.quantities.continuum.fit import OF, ContinuumFit
from gauge_mc.quantities.continuum.numbers import powers_of


class ContinuumPlot(Plot):
    """A product of quoted numbers against the squared lattice spacing, with its limit."""

    name = "continuum"
    summary = "continuum limit of a product of quoted numbers (needs the fits that quote them)"
    fit: ClassVar[str] = "continuum"
    of_scans: ClassVar[bool] = True
    of_several: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (OF,)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the points of all runs, the averaged curve with its error, and the limit."""
        result = ContinuumFit().carry_out(runs, **options)
        limit, style, mark = result.found, look(0), look(1)
        caution(*limit.cautions)
        x = np.linspace(0, 1.05 * limit.points[-1].x, 200)
        y, error, spread = result.curve.at(x)
        points = [(point.x, point.y, point.y_error) for point in limit.points]
        total = float(np.hypot(limit.error, limit.spread))
        product, scale = map(_typeset, (limit.product, limit.abscissa))
        words = f"{product} = {with_error(limit.value, limit.error, limit.spread)}"
        marks = [
            Stroke(x, y, np.hypot(error, spread), style={"color": style["color"]}),
            Symbols(*zip(*points, strict=True), style=style, text=limit.action),
            Symbols([0], [limit.value], [total], style=mark, text=words),
        ]
        ends = {"xlim": (-0.03 * x[-1], x[-1])}
        Picture([Frame(marks, scale, product, ends)], 4.0, columns=2).draw(file)
        return []


def _typeset(product: str) -> str:
    """Return a product of symbols as mathematical text."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for name, power in (powers_of(product) or {}).items():
        word = name.rstrip("0123456789").partition("_")[0]
        index = name[len(word) :].lstrip("_")
        with suppress(KeyError):
            word = unicodedata.lookup(f"GREEK SMALL LETTER {word}")
        symbol = f"{word}_{{{index}}}" if index else word
        roots = {1: symbol, 0.5: rf"\sqrt{{{symbol}}}"}
        sides[power > 0].append(roots.get(abs(power), f"{symbol}^{{{abs(power):g}}}"))
    above, below = (r"\,".join(sides[side]) for side in (True, False))
    return f"${above or 1}{'/' if below else ''}{below}$"


PLOTS.register(ContinuumPlot())
