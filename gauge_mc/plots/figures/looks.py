"""Colours and markers, of which each run has its own.

The palette is that of M. Okabe and K. Ito, "Color universal design" (2008), whose colours can be
distinguished with every kind of colour vision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from gauge_mc import defaults
from gauge_mc.actions import Action
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.libraries import load

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
    return name, [one.drawn(value) for one, value in action.changed.items()]


def physics_label(group: str, lattice: Lattice, beta: float | None = None) -> str:
    """Return a short description of an ensemble, such as ``SU(3), β = 6, 16³×32``."""
    factors = []
    for extent, same in groupby(lattice.extents):
        count = len(list(same))
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
    return re.sub(f"[{DIGITS}]+", lambda found: f"$^{{{found[0].translate(NORMAL)}}}$", text)


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
    """Add a legend above all frames, which begins at the left edge of one of them.

    Parameters
    ----------
    figure : Figure
        The figure that gets the legend.
    axes : Axes
        Frame at the left. Everything else must have been drawn.
    entries : sequence of (handle, str)
        Entries of the legend, which may be empty.
    title : str
        Title above the entries.
    columns : int
        Number of columns. There are fewer if they would be wider than the figure.
    """
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
        left = axes.get_position().x0
        if ncols == 1 or legend.get_window_extent().width <= (1 - left) * figure.bbox.width:
            break
        legend.remove()
    figure.set_layout_engine("none")
    legend.set_bbox_to_anchor((left, 0, 1 - left, 1))
