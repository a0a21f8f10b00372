"""Legends above figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gauge_mc.libraries import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from gauge_mc.plots.figures.labels import typeset


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
