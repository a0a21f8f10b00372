"""The force between static charges, and the scales that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gauge_mc.errors import GaugeError
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.looks import GREY, LINE, look
from gauge_mc.plots.figures.pictures import (
    HOLLOW,
    Abscissa,
    Frame,
    Guide,
    KeyEntry,
    Mark,
    Picture,
    Symbols,
)
from gauge_mc.quantities.potential.analysis.derived import FORCES
from gauge_mc.quantities.potential.analysis.forces import ForcePoint
from gauge_mc.quantities.potential.analysis.loops import AXIS
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential
from gauge_mc.quantities.potential.plots.potential import PlotOfPotentials, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYMBOLS = {"r0": "r_0", "r1": "r_1", "rc": "r_c"}
"""Symbols of the scales, as mathematical text."""

HEADROOM = 1.06
"""Upper end of the axis in units of the largest force, with its error, and of that at r0."""

LARGEST_ERROR = 0.25
"""Maximum relative error of a force that is drawn; larger errors would hide the others."""


class ForcePlot(PlotOfPotentials):
    """r^2 F(r) of one or more runs at tree-level improved distances, with r0, r1 and r_c."""

    name = "static-force"
    summary = "r² F(r) at improved distances, with r₀, r₁ and r_c (needs fit potential)"

    def picture(self, runs: Runs) -> Picture:
        """Return r^2 F(r) with its error against r, for one or more runs.

        Points off axis are hollow. Forces with errors of more than a quarter are left out, and
        their number is stated. Bands show the scales of a single run, between the axis and the
        value that defines each.

        For errors see `PlotOfPotentials.picture`.
        """
        require(runs)
        for label, result in runs:
            if not result.force:
                raise GaugeError(
                    f"The result of {label or 'the run'} has no forces; fit the potential again."
                )
        shown = [one for _, result in runs for one in result.force if _is_known(one)]
        if not shown:
            raise GaugeError(
                f"All forces have errors of more than {LARGEST_ERROR:.0%}; measure more "
                "configurations."
            )
        marks: list[Mark] = []
        for i, (label, result) in enumerate(runs):
            text = "\n".join(filter(None, (typeset(label), _scales(result))))
            marks += [
                *_points(result, look(i)),
                KeyEntry(style={**look(i), "linestyle": "none"}, text=text),
            ]
            if len(runs) == 1:
                style = {"color": look(i)["color"]}
                scales = result.force_scales.items()
                marks += [Abscissa(one.value, FORCES[name], style=style) for name, one in scales]
        dotted = {"color": GREY, "linestyle": ":", "linewidth": 0.8, "zorder": 0}
        marks += [Guide(target, style=dotted) for target in FORCES.values()]
        marks += _key(runs, len(shown))
        highest = max(one.scaled.value + one.scaled.error for one in shown)
        lowest = min(one.scaled.value - one.scaled.error for one in shown)
        ends = {
            "xlim": (0, 1.05 * max(one.distance for one in shown)),
            "ylim": (min(0, HEADROOM * lowest), HEADROOM * max(highest, *FORCES.values())),
        }
        axis = r"$r_\mathrm{I}^2\,F(r_\mathrm{I})$"
        frame = Frame(marks, r"$r_\mathrm{I}/a$", axis, ends, _name_scales)
        return Picture([frame], 3.6 + 2.6 * LINE * len(runs))


PLOTS.register(ForcePlot())


def _name_scales(axes: Axes) -> None:
    """Write the symbols of the scales beside the values that define them."""
    for name, target in FORCES.items():
        place: dict[str, Any] = {
            "xy": (1.01, target),
            "xycoords": ("axes fraction", "data"),
            "va": "center",
        }
        axes.annotate(f"${SYMBOLS[name]}$", **place)


def _is_known(force: ForcePoint) -> bool:
    """Return whether a force is known well enough to be drawn."""
    return force.scaled.error < LARGEST_ERROR * abs(force.scaled.value)


def _key(runs: Runs, shown: int) -> list[Mark]:
    """Return the entries of the legend that explain symbols, errors, and what is left out."""
    every = [one for _, result in runs for one in result.force]
    hollow = any(one.path != AXIS for one in every)
    entries = [KeyEntry(style=HOLLOW, text="hollow: off axis")] if hollow else []
    words = []
    if any(result.force_scales for _, result in runs):
        words.append("errors of the scales: statistical, and of the interpolation")
    if left_out := len(every) - shown:
        points = f"{left_out} points" if left_out > 1 else "one point"
        words.append(f"not drawn: {points} with errors of more than {LARGEST_ERROR:.0%}")
    return [*entries, *(KeyEntry(style={"linestyle": "none"}, text=one) for one in words)]


def _points(result: StaticPotential, own: dict[str, Any]) -> Iterator[Symbols]:
    """Yield the forces of a run on axis, and those off axis."""
    for on_axis in (True, False):
        some = [one for one in result.force if (one.path == AXIS) == on_axis and _is_known(one)]
        style = {**own, "markerfacecolor": own["color"] if on_axis else "white"}
        yield Symbols.of([one.distance for one in some], [one.scaled for one in some], style)


def _scales(result: StaticPotential) -> str:
    """Return the scales with their statistical and systematic errors as text."""
    found = result.force_scales
    return ",  ".join(f"${SYMBOLS[name]}/a={one}$" for name, one in found.items())
