"""Figures of Matplotlib as charts that zoom and show values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.libraries import load
from gauge_mc.plots.figures.labels import SUPERSCRIPTS
from gauge_mc.reports.charts import Chart, ChartLine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 2000
"""Number of points of a frame above which it has no chart."""

SYMBOLS = {
    "langle": "⟨", "rangle": "⟩", "beta": "β", "kappa": "κ", "mu": "μ", "tau": "τ", "chi": "χ",
    "sigma": "σ", "rho": "ρ", "lambda": "λ", "Delta": "Δ", "delta": "δ", "xi": "ξ", "gamma": "γ",
    "epsilon": "ε", "Lambda": "Λ", "Sigma": "Σ", "pi": "π", "alpha": "α", "nu": "ν", "times": "×",
    "sqrt": "√", "pm": "±", "ell": "ℓ", "infty": "∞", "cdot": "·", "approx": "≈", "Gamma": "Γ",
    "hat": "", "mathrm": "", "mathit": "", "bar": "", "left": "", "right": "", "quad": " ",
}  # fmt: skip
"""Symbols of mathematical text as letters."""


def plain(label: str) -> str:
    """Return a label of Matplotlib as plain text, such as ``⟨|L|⟩`` for its mathematical text."""

    def words(found: re.Match[str]) -> str:
        inner = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", found[1])
        inner = re.sub(r"\\([A-Za-z]+) ?", lambda one: SYMBOLS.get(one[1], one[1]), inner)
        inner = re.sub(r"\\[,;:! ]", " ", inner).replace("{-}", "−").replace("{=}", "=")
        inner = re.sub(r"\^\{?(\d+)\}?", lambda one: one[1].translate(SUPERSCRIPTS), inner)
        return re.sub(r"[{}\\]", "", inner).replace(" ⟩", "⟩")

    text = re.sub(r"(?<!\\)\$(.*?)(?<!\\)\$", words, label, flags=re.S)
    return " ".join(text.replace(r"\$", "$").split())


def charts_of(figure: Figure, title: str) -> list[Chart]:
    """Return a chart for every frame of a figure that consists of curves and points with errors.

    Frames with logarithmic axes, with clouds of points, and with more than `MOST_POINTS` points
    have none.

    Parameters
    ----------
    figure : Figure
        The figure.
    title : str
        Subject of the figure, for titles and descriptions.
    """
    found, cloud = [], load("matplotlib.collections").PathCollection
    for axes in figure.axes:
        curves = _without_guides([*_curves(axes)])
        if any(isinstance(one, cloud) for one in axes.collections):
            continue
        size = sum(one.x.size for one in curves)
        if {axes.get_xscale(), axes.get_yscale()} != {"linear"} or not 0 < size <= MOST_POINTS:
            continue
        x = np.unique(np.concatenate([one.x for one in curves]))
        lines = [one.line(x, number) for number, one in enumerate(curves)]
        across, up = (plain(one) for one in (_across(axes), axes.get_ylabel()))
        heading = f"{up} against {across}" if up and across else up or across or title
        found.append(Chart(heading, across, up, x, lines, f"{title}: {heading}."))
    return found


def _without_guides(curves: list[_DrawnCurve]) -> list[_DrawnCurve]:
    """Return curves without lines that have no name and only join the points of others."""
    points = [(one.x.tolist(), one.y.tolist()) for one in curves if not one.joined]
    return [
        one
        for one in curves
        if not one.joined or one.label or (one.x.tolist(), one.y.tolist()) not in points
    ]


def _across(axes: Axes) -> str:
    """Return the label of the horizontal axis, which may be that of a frame that shares it."""
    own = axes.get_xlabel()
    others = axes.get_shared_x_axes().get_siblings(axes)
    return own or next((one.get_xlabel() for one in others if one.get_xlabel()), "")


@dataclass(frozen=True)
class _DrawnCurve:
    """A curve of a frame, or points with errors."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64] | None
    joined: bool

    def line(self, x: NDArray[np.float64], number: int) -> ChartLine:
        """Return the curve at the places of all curves."""
        places = np.searchsorted(x, self.x)
        values, errors = (np.full(x.size, math.nan) for _ in range(2))
        values[places] = self.y
        if self.error is not None:
            errors[places] = self.error
        look = "line" if self.joined else "points"
        error = None if self.error is None else errors
        label = self.label or f"curve {number + 1}"
        return ChartLine(label, values, error, number, look, joined=self.joined)


def _curves(axes: Axes) -> Iterator[_DrawnCurve]:
    """Yield the curves and the points with errors of a frame, as far as x tells points apart."""
    bars = load("matplotlib.container").ErrorbarContainer
    known: set[int] = set()
    for one in axes.containers:
        if isinstance(one, bars):
            data, caps, segments = one.lines
            known |= {id(line) for line in (data, *caps)}
            if data is not None:
                error = _error(segments[-1], one) if one.has_yerr else None
                yield from _curve(data, str(one.get_label()), error)
    for line in axes.lines:
        if id(line) not in known and line.get_transform() == axes.transData:
            yield from _curve(line, str(line.get_label()), None)


def _error(segments: Any, container: Any) -> NDArray[np.float64] | None:
    """Return half of the lengths of vertical bars; None if some points have none."""
    found = [np.asarray(one, dtype=np.float64) for one in segments.get_segments()]
    if len(found) != np.size(container.lines[0].get_xdata()) or any(len(one) < 2 for one in found):
        return None
    return np.array([abs(one[1, 1] - one[0, 1]) / 2 for one in found])


def _curve(line: Any, label: str, error: NDArray[np.float64] | None) -> Iterator[_DrawnCurve]:
    x, y = (np.asarray(one, dtype=np.float64) for one in line.get_data())
    there = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[there], kind="stable")
    x, y = x[there][order], y[there][order]
    joined = line.get_linestyle() not in ("None", "none", " ", "")
    if x.size == 0 or np.unique(x).size < x.size or (joined and (np.diff(order) < 0).any()):
        return
    own = None if error is None else error[there][order]
    yield _DrawnCurve("" if label.startswith("_") else plain(label), x, y, own, joined)
