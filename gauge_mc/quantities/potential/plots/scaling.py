"""The potential of several couplings in units of r0."""

from __future__ import annotations

import math

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.looks import GREY, look
from gauge_mc.plots.figures.pictures import (
    HOLLOW,
    Frame,
    KeyEntry,
    Mark,
    Picture,
    Stroke,
    Symbols,
)
from gauge_mc.quantities.potential.analysis.derived import FORCES
from gauge_mc.quantities.potential.analysis.loops import AXIS
from gauge_mc.quantities.potential.analysis.strings import LUSCHER
from gauge_mc.quantities.potential.plots.potential import PlotOfPotentials, Runs

HEADROOM = 0.15
"""Free space above and below the points, in units of their range."""


class ScalingPlot(PlotOfPotentials):
    """r0 [V(R) - V(r0)] of several runs against R/r0, where all couplings should agree."""

    name = "scaling"
    summary = "r₀ [V(R) − V(r₀)] against R/r₀ for several β (needs fit potential)"

    def picture(self, runs: Runs) -> Picture:
        """Return r0 [V(R) - V(r0)] against R/r0 for several runs, with the string of Luescher.

        r0 and V(r0) are from the fit with B free. The error bars are those of V(R); the error of r0
        is in the legend. Points off axis are hollow.

        For errors see `PlotOfPotentials.picture`.
        """
        require(runs)
        for label, result in runs:
            if not (result.free and math.isfinite(result.free.fit.r0.value)):
                raise GaugeError(
                    f"r0 of {label or 'the run'} is not known; leave it out, or fit another window."
                )
        marks, least, largest, values, hollow = list[Mark](), 1.0, 1.0, [], False
        for i, (label, result) in enumerate(runs):
            fit, own = result.trusted().fit, look(i)
            r0 = fit.r0.value
            x = np.array([one.distance for one in result.points]) / r0
            y = r0 * (fit.continuum(result.points) - fit.potential(np.array([r0]))[0])
            error = r0 * np.array([one.potential.error for one in result.points])
            on_axis = np.array([one.path == AXIS for one in result.points])
            for some, face in ((on_axis, own["color"]), (~on_axis, "white")):
                inner = {**own, "capsize": 0, "markerfacecolor": face, "zorder": 2}
                marks.append(Symbols(x[some], y[some], error[some], style=inner))
            hollow |= not on_axis.all()
            text = f"{typeset(label)}:  $r_0/a={fit.r0}$"
            marks.append(KeyEntry(style={**own, "linestyle": "none"}, text=text))
            least, largest = min(least, float(x.min())), max(largest, float(x.max()))
            values += y.tolist()
        fine = np.linspace(least, 1.05 * largest, 300)
        slope = FORCES["r0"] + LUSCHER
        string = slope * (fine - 1) + LUSCHER * (1 / fine - 1)
        text = r"string with $B=-\pi/12$, no parameter"
        marks.append(Stroke(fine, string, style={"color": GREY, "zorder": 1}, text=text))
        if hollow:
            marks.append(KeyEntry(style=HOLLOW, text="hollow: off axis"))
        margin = HEADROOM * (max(values) - min(values))
        ends = {"xlim": (0, 1.05 * largest), "ylim": (min(values) - margin, max(values) + margin)}
        return Picture([Frame(marks, "$R/r_0$", r"$r_0\,[V(R)-V(r_0)]$", ends)], 4.6, columns=2)


PLOTS.register(ScalingPlot())
