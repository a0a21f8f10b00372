"""The energies of trajectories of hybrid Monte Carlo."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import (
    ZERO,
    History,
    draw_distribution,
    finish_distribution,
    integer_ticks,
    normal_distribution,
    series_line,
)
from gauge_mc.plots.figures.looks import look, minus
from gauge_mc.plots.figures.pictures import Frame, KeyEntry, Mark, Picture, Sketch, Stroke
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quantities.trajectories.fit import (
    FORCE,
    GAUGE,
    ITERATIONS,
    LARGEST,
    SMALLEST,
    TRAJECTORY_COLUMNS,
    TrajectoryTable,
    read_trajectories,
    terms_of,
    trajectory_averages,
)
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.2
"""Height of the frame of the energy in inches."""

LOWER = 1.8
"""Height of the frames of forces and of iterations in inches."""


class HmcPlot(TablePlot):
    """The change of the energy in every trajectory of a run, and its distribution.

    With quarks, the forces of all terms of the action and the iterations of their solvers as well.
    """

    name = "hmc"
    summary = "ΔH with its distribution, acceptance; forces and iterations of quarks"
    fit: ClassVar[str] = "hmc"
    subject: ClassVar[str] = "The energy of trajectories"
    columns: ClassVar[tuple[str, ...]] = TRAJECTORY_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the change of the energy along the Markov chain beside its distribution.

        Rejected trajectories are marked. The normal distribution with the measured <dH>, whose
        variance is 2 <dH>, is drawn for comparison.
        """
        read = read_trajectories(table, options.get(SKIP.name, 0))
        caution(*trajectory_averages(read, *terms_of(read)).cautions)
        done = ~read.failed  # the energy of the others is not known
        sweeps, change = read.sweeps[done], read.columns["delta_h"][done]
        rejected = read.columns["accepted"][done] == 0
        mean, weight = estimate(change), estimate(np.exp(-change))
        acceptance = estimate(read.columns["accepted"])
        style = series_line(look(0)["color"])
        crosses = {"marker": "x", "markersize": 3, "linestyle": "none", "color": look(1)["color"]}
        energies = rf"$\langle\Delta H\rangle={minus(mean)}$"
        weights = rf"$\langle e^{{-\Delta H}}\rangle={minus(weight)}$"
        series = [
            ZERO,
            Stroke(sweeps, change, style=style),
            Stroke(sweeps[rejected], change[rejected], style=crosses),
            KeyEntry(style=style, text=energies),
            KeyEntry(style=crosses, text=f"rejected; acceptance {acceptance}"),
            KeyEntry(style={"linestyle": "none"}, text=weights),
        ]
        beside: list[Mark] = [
            Sketch(lambda axes: axes.sharey(axes.figure.axes[0])),
            Sketch(partial(draw_distribution, history=History("", sweeps, change), look=look(0))),
        ]
        if mean.value > 0:
            words = r"normal distribution of variance $2\,\langle\Delta H\rangle$"
            fine = np.linspace(change.min(), change.max(), 200)
            beside.append(normal_distribution(fine, mean.value, 2 * mean.value, words))
        lower = _lower_frames(read) if read.terms else []
        rows = 1 + len(lower) // 2
        frames = [
            Frame(series, "", r"$\Delta H$", finish=_finish_series),
            Frame(beside, "distribution", finish=_finish_distribution),
            *lower,
        ]
        frames[-2] = replace(frames[-2], x="update")
        ratios = (HEIGHT, *[LOWER] * (rows - 1))
        layout = {"nrows": rows, "ncols": 2, "width_ratios": (4, 1.2), "height_ratios": ratios}
        return Picture(frames, sum(ratios), columns=2, layout=layout)


PLOTS.register(HmcPlot())


def _finish_series(axes: Axes) -> None:
    """Put the ticks of updates at integers, in all frames of time series."""
    axes.margins(x=0.02)
    integer_ticks(axes)


def _finish_distribution(axes: Axes) -> None:
    """Leave the labels of the energies to the time series."""
    axes.tick_params(labelleft=False)
    finish_distribution(axes)


def _lower_frames(table: TrajectoryTable) -> list[Frame]:
    """Return the forces of the terms of the action, and the iterations of their solvers.

    The ends of the spectrum follow where there is a rational function. Each row of frames has a
    series, and room for the names of the terms beside it.
    """
    done = ~table.failed
    share = Sketch(lambda axes: axes.sharex(axes.figure.axes[0]))
    forces, iterations, ends = (list[Mark]([share]) for _ in range(3))
    names = list[Mark]()
    endings = {GAUGE: "", **{name: f"_{name}" for name in table.terms}}
    for place, (name, ending) in enumerate(endings.items()):
        style = series_line(look(place)["color"])

        def curve(kind: str, of: Any = done, style: Any = style, ending: str = ending) -> Stroke:
            values = table.columns[f"{kind}{ending}"]
            return Stroke(table.sweeps[of], values[of], style=style)

        forces.append(curve(FORCE))
        names.append(Stroke([], [], style={**style, "label": name}))
        if table.columns.get(f"{ITERATIONS}{ending}", np.zeros(1)).any():
            iterations.append(curve(ITERATIONS, slice(None)))
        ends += [curve(kind) for kind in (SMALLEST, LARGEST) if f"{kind}{ending}" in table.columns]
    rows = [
        Frame(forces, "", r"rms $|F|$", {"yscale": "log"}),
        Frame(names, finish=_finish_names),
        Frame(iterations, "", "iterations", {"ylim": (0, None)}),
        NOTHING,
        Frame(ends, "", "ends of the spectrum", {"yscale": "log"}),
        NOTHING,
    ]
    return rows if any(name.startswith(f"{SMALLEST}_") for name in table.columns) else rows[:4]


def _finish_names(axes: Axes) -> None:
    """Show the names of the terms instead of a frame."""
    axes.axis("off")
    axes.legend(loc="upper left", borderaxespad=0)


NOTHING = Frame([], finish=lambda axes: axes.axis("off"))
"""Room without a frame."""
