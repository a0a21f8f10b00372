"""The figure of a comparison: ours and the published numbers, and the pulls."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.papers.comparison import LARGE_PULL, ComparedEntry, Comparison
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.looks import GREY, SHADE, WIDTH, look

LONGEST = 34
"""Number of characters after which the name of an entry is cut at an axis."""


def draw_comparison(found: Comparison, path: Path) -> None:
    """Draw the entries that have a value, one below the other, and their pulls beside them.

    If all have an abscissa, values are drawn against it, and the pulls below; otherwise every entry
    has a line with our value relative to the published one.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if no entry has a value.
    """
    drawn = [one for one in found.entries if one.pull is not None]
    if not drawn:
        raise GaugeError(f"The comparison {found.card} has no value to draw yet.")
    title = typeset(f"{found.paper}, {found.where}")
    if all(one.at is not None for one in drawn) and len({one.at for one in drawn}) > 1:
        _draw_against(drawn, path, title)
    else:
        _draw_lines(drawn, path, title)


def _draw_against(drawn: list[ComparedEntry], path: Path, title: str) -> None:
    x = np.array([one.at for one in drawn], float)
    with figure_file(path, (WIDTH, 5.0)) as figure:
        above, below = figure.subplots(2, sharex=True, height_ratios=(3, 1.4))
        for i, (label, value, error) in enumerate(
            (
                ("published", _column(drawn, "published"), _column(drawn, "published_error")),
                ("gauge-mc", _column(drawn, "ours"), _errors(drawn)),
            )
        ):
            above.errorbar(x, value, error, **look(i), linestyle="none", label=label)
        above.set_title(title, fontsize="medium")
        above.legend(loc="best")
        pulls = [one.pull for one in drawn]
        below.axhspan(-1, 1, color=SHADE)
        below.axhline(0, color=GREY, linewidth=0.8)
        below.plot(x, pulls, **look(1), linestyle="none")
        most = max(LARGE_PULL, *(abs(one or 0) for one in pulls)) * 1.15
        below.set_ylim(-most, most)
        below.set_ylabel("pull")


def _draw_lines(drawn: list[ComparedEntry], path: Path, title: str) -> None:
    y = np.arange(len(drawn))[::-1]
    published = _column(drawn, "published")
    scale = np.where(published == 0, 1.0, np.abs(published))
    with figure_file(path, (WIDTH, 1.6 + 0.32 * len(drawn))) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1.4))
        shift = 0.12
        left.axvline(0, color=GREY, linewidth=0.8)
        left.errorbar(
            np.zeros(len(drawn)),
            y + shift,
            xerr=100 * _column(drawn, "published_error") / scale,
            **look(0),
            linestyle="none",
            label="published",
        )
        left.errorbar(
            100 * (_column(drawn, "ours") - published) / scale,
            y - shift,
            xerr=100 * _errors(drawn) / scale,
            **look(1),
            linestyle="none",
            label="gauge-mc",
        )
        left.set_yticks(y, [typeset(_short(one.name)) for one in drawn], fontsize="small")
        left.tick_params(axis="y", which="minor", left=False, right=False)
        left.set_xlabel("difference from the published value [%]")
        left.set_title(title, fontsize="medium")
        left.legend(loc="best")
        right.axvspan(-1, 1, color=SHADE)
        right.axvline(0, color=GREY, linewidth=0.8)
        pulls = [one.pull or 0.0 for one in drawn]
        right.plot(pulls, y, **look(1), linestyle="none")
        most = max(LARGE_PULL, *map(abs, pulls)) * 1.15
        right.set_xlim(-most, most)
        right.set_ylim(-0.6, len(drawn) - 0.4)
        right.set_xlabel("pull")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _column(drawn: list[ComparedEntry], name: str) -> np.ndarray:
    return np.array([getattr(one, name) for one in drawn], float)


def _errors(drawn: list[ComparedEntry]) -> np.ndarray:
    return np.array([math.hypot(one.error or 0.0, one.systematic) for one in drawn])
