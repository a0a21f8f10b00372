"""Figures as declarations: frames of points, curves and lines, which one function draws."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import Action
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.libraries import load
from gauge_mc.plots.figures.files import figure_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

MARKERS = "os^Dv<>PX"

WIDTH = 6.3
"""Width of a figure in inches: the text width of an A4 page with margins of 25 mm."""

GREY = "0.35"
"""Colour of lines in a legend that stand for the lines of all runs."""

SHADE = "0.9"
"""Colour of the updates that are left out of the averages."""

LINE = 0.2
"""Height of a line of a legend in inches."""


def look(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th run."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
"""The digits 0 to 9 as superscripts, for exponents."""

SUPERSCRIPTS, NORMAL = str.maketrans("0123456789", DIGITS), str.maketrans(DIGITS, "0123456789")
"""Translation tables from digits to superscripts, and back."""


def named_apart(action: Action) -> tuple[list[str], list[str]]:
    """Return the name of an action, unless it is the usual one, and its unusual options."""
    name = [] if action.name == defaults.ACTION else [action.name]
    return name, [name.drawn(value) for name, value in action.changed.items()]


def physics_label(group: str, lattice: Lattice, beta: float | None = None) -> str:
    """Return a short description of an ensemble, such as ``SU(3), β = 6, 16³×32``."""
    factors = []
    for extent, repeats in groupby(lattice.extents):
        count = len(list(repeats))
        factors.append(f"{extent}{str(count).translate(SUPERSCRIPTS) if count > 1 else ''}")
    coupling = [] if beta is None else [f"β = {beta:g}"]
    return ", ".join([group, *coupling, "×".join(factors)])


COMMANDS = {"β": r"\beta", "κ": r"\kappa", "μ": r"\mu", "×": r"\times", "Nₜ": "N_t"}
"""Mathematical text for symbols of labels."""


def typeset(label: str) -> str:
    """Return a label as Matplotlib text, with symbols and exponents in mathematical mode."""
    text = label.replace("$", r"\$")
    for character, command in COMMANDS.items():
        text = text.replace(character, f"${command}$")
    return re.sub(f"[{DIGITS}]+", lambda x: f"$^{{{x[0].translate(NORMAL)}}}$", text)


def minus(result: Estimate) -> str:
    """Return an estimate as mathematical text, with a minus sign that is set without spacing."""
    text = str(result).replace("-", "{-}", 1) if result.value < 0 else str(result)
    return re.sub(r"e([+-]?)0*(\d+)$", r"\\times10^{\1\2}", text)


def side_by_side(
    left: Sequence[tuple[Any, str]], right: Sequence[tuple[Any, str]]
) -> list[tuple[Any, str]]:
    """Return the entries of a legend of two columns, with empty ones to align the columns."""
    empty = (load("matplotlib.lines").Line2D([], [], linestyle="none"), "")
    rows = max(len(left), len(right))
    return [*left, *[empty] * (rows - len(left)), *right, *[empty] * (rows - len(right))]


def add_heading(
    figure: Figure,
    axes: Axes,
    entries: Sequence[tuple[Any, str]],
    title: str = "",
    columns: int = 1,
) -> None:
    """Add a legend above all frames, which begins at the left edge of one of them."""
    for ncols in range(columns, 0, -1):
        used = [(handle, label) for handle, label in entries if ncols > 1 or label]
        legend = figure.legend(
            [handle for handle, _ in used],
            [label for _, label in used],
            loc="outside upper left",
            title=typeset(title) or None,
            alignment="left",
            ncols=ncols,
            columnspacing=1.5,
            borderpad=0,
            borderaxespad=0.3,
        )
        figure.draw_without_rendering()  # gives the frames their places, below the legend
        edge = axes.get_position().x0
        if ncols == 1 or legend.get_window_extent().width <= (1 - edge) * figure.bbox.width:
            break
        legend.remove()
    figure.set_layout_engine("none")
    legend.set_bbox_to_anchor((edge, 0, 1 - edge, 1))


HOLLOW = {"color": GREY, "marker": "o", "linestyle": "none", "markerfacecolor": "white"}
"""Style of a symbol in a legend that stands for the hollow ones of all runs."""


@dataclass(frozen=True, kw_only=True)
class Mark(ABC):
    """Something that is drawn in a frame."""

    text: str = ""
    """Its text in the legend above the frames; without a text it is not there."""
    style: Mapping[str, Any] = field(default_factory=dict)
    """Colour, marker and lines, as Matplotlib names them."""

    @property
    def filled(self) -> bool:
        """Whether it shows anything that was measured, by its abscissae if it has any."""
        return np.size(getattr(self, "x", 0)) > 0

    @abstractmethod
    def draw(self, axes: Axes) -> Any:
        """Draw it, and return its handle for the legend."""


@dataclass(frozen=True)
class Symbols(Mark):
    """Values with errors, as symbols that are joined only if the style has a line."""

    x: Any
    """Abscissae, of shape (points,)."""
    y: Any
    """Values, of the same shape."""
    error: Any
    """Errors of the values, of the same shape."""

    @classmethod
    def of(
        cls, x: Any, values: Sequence[Estimate], style: Mapping[str, Any], text: str = ""
    ) -> Symbols:
        """Return the points of estimates."""
        y, error = [value.value for value in values], [value.error for value in values]
        return cls(x, y, error, style=style, text=text)

    def draw(self, axes: Axes) -> Any:
        """Draw symbols with error bars."""
        return axes.errorbar(self.x, self.y, self.error, **{"linestyle": "none", **self.style})


@dataclass(frozen=True)
class Stroke(Mark):
    """A line, with its error as a band."""

    x: Any
    """Abscissae, of shape (points,)."""
    y: Any
    """Values, of the same shape."""
    error: Any = None
    """Errors of the values, of the same shape or a single one; None for a line without a band."""
    opacity: float = 0.25
    """Opacity of the band."""

    @classmethod
    def plateau(
        cls, ends: Sequence[float], value: Estimate, style: Mapping[str, Any], opacity: float = 0.25
    ) -> Stroke:
        """Return a constant with its error between two abscissae."""
        return cls(ends, np.full(2, value.value), value.error, opacity, style=style)

    def draw(self, axes: Axes) -> Any:
        """Draw the line and its band."""
        (line,) = axes.plot(self.x, self.y, **self.style)
        if self.error is not None:
            shade = {"color": self.style["color"], "alpha": self.opacity, "linewidth": 0}
            axes.fill_between(self.x, self.y - self.error, self.y + self.error, **shade)
        return line


@dataclass(frozen=True)
class Guide(Mark):
    """A horizontal line through the whole frame."""

    y: float
    """Its height."""
    filled = False

    def draw(self, axes: Axes) -> Any:
        """Draw the line."""
        return axes.axhline(self.y, **self.style)


@dataclass(frozen=True)
class Abscissa(Mark):
    """A number on the horizontal axis, with its error as a band up to some height."""

    value: Estimate
    """The number."""
    height: float
    """The height."""
    opacity: float = 0.25
    """Opacity of the band."""

    def draw(self, axes: Axes) -> Any:
        """Draw a vertical line and its band behind all others."""
        ends, colour = np.array([0, self.height]), self.style["color"]
        low, high = self.value.value - self.value.error, self.value.value + self.value.error
        axes.plot(2 * [self.value.value], ends, color=colour, linewidth=0.8, zorder=0)
        shade = {"color": colour, "alpha": self.opacity, "linewidth": 0, "zorder": 0}
        return axes.fill_betweenx(ends, low, high, **shade)


@dataclass(frozen=True)
class KeyEntry(Mark):
    """An entry of the legend that stands for nothing in particular in a frame."""

    filled = False

    def draw(self, axes: Axes) -> Any:
        """Draw nothing, and return a line for the legend."""
        return load("matplotlib.lines").Line2D([], [], **self.style)


@dataclass(frozen=True)
class BandEntry(KeyEntry):
    """An entry of the legend that stands for bands of errors."""

    def draw(self, axes: Axes) -> Any:
        """Draw nothing, and return a patch for the legend."""
        style = {"color": GREY, "alpha": 0.25, "linewidth": 0, **self.style}
        return load("matplotlib.patches").Patch(**style)


@dataclass(frozen=True)
class Sketch(Mark):
    """A mark that a function draws."""

    call: Callable[[Axes], Any]
    """Function that draws in a frame, and may return a handle."""

    def draw(self, axes: Axes) -> Any:
        """Call the function."""
        return self.call(axes)


@dataclass(frozen=True)
class Frame:
    """A frame of a figure."""

    marks: Sequence[Mark]
    """Its marks, in the order in which they are drawn, and stand in the legend."""
    x: str = ""
    """Label of the horizontal axis."""
    y: str = ""
    """Label of the vertical axis."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other properties of the axes by name, such as ``ylim``."""
    finish: Callable[[Axes], Any] = lambda axes: None
    """Function of the axes that is called in the end."""

    @property
    def filled(self) -> bool:
        """Whether it shows anything, or nothing on purpose, without a label."""
        return not self.x + self.y or any(mark.filled for mark in self.marks)


@dataclass(frozen=True)
class Picture:
    """A figure: frames, below the legend of all of them."""

    frames: Sequence[Frame]
    """The frames, from left to right and from top to bottom; those without values are left out."""
    height: float
    """Height of the figure in inches."""
    title: str = ""
    """Title above the legend."""
    columns: int = 1
    """Number of columns of the legend, if they find room."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of Matplotlib's ``subplots``; by default the frames are side by side."""
    aligned: bool = False
    """Whether the labels of the vertical axes are above each other."""
    heading: bool = True
    """Whether the legend and the title are drawn; frames may have legends of their own instead."""
    width: float = WIDTH
    """Width of the figure in inches."""

    def draw(self, path: Path) -> None:
        """Draw the figure and write it to a file; for errors see `figure_file`."""
        frames = [frame for frame in self.frames if frame.filled] or self.frames
        with figure_file(path, (self.width, self.height)) as figure:
            layout = self.layout or {"ncols": len(frames)}
            every = figure.subplots(**layout, squeeze=False).ravel()
            for axes in every[len(frames) :]:
                axes.remove()
            entries = []
            for axes, frame in zip(every, frames, strict=False):
                for mark in frame.marks:
                    handle = mark.draw(axes)
                    entries += [(handle, mark.text)] if mark.text else []
            for axes, frame in zip(every, frames, strict=False):
                axes.set(xlabel=frame.x, ylabel=frame.y, **frame.settings)
                frame.finish(axes)
            if self.aligned:
                figure.align_ylabels()
            if self.heading:
                add_heading(figure, every[0], entries, self.title, self.columns)
