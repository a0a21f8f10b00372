"""The effective potential from Wilson loops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.figures import GREY, MARKERS, WIDTH, add_heading, figure_file
from gauge_mc.analysis.libraries import load
from gauge_mc.analysis.loops import LOOP_COLUMNS, Loops, effective_potential_grid, read_loops
from gauge_mc.analysis.plateau import PlateauPoint
from gauge_mc.analysis.potential import StaticPotential
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import LEVEL, find_table_by_columns
from gauge_mc.fits.potential import PotentialFit
from gauge_mc.observables.wilson_loops import PATHS
from gauge_mc.options import Option, check_options
from gauge_mc.plots import PLOTS, Plot, labels_of, one_run
from gauge_mc.plots.potential import read_potential
from gauge_mc.registry import in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_ERROR = 0.1
"""Maximum error of a value that is drawn; larger errors would hide the other values."""

SHIFTS = (-0.1, 0.0, 0.1)
"""Shifts in t of the points of successive distances, which set error bars side by side."""

GAP = 0.025
"""Minimum distance between two labels, in units of the height of the frame."""


class WilsonLoopsPlot(Plot):
    """The effective potential ln W(R,T)/W(R,T+1) of one run, with the plateaus of its fit."""

    name = "wilson-loops"
    summary = "effective potential ln W(R,T)/W(R,T+1) with plateaus"
    options: ClassVar[tuple[Option, ...]] = (
        LEVEL,
        Option("path", str, f"Direction of the loops: {in_words(PATHS, 'or')}.", PATHS[0], "PATH"),
    )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the loops along one direction; see `Plot.draw`."""
        given = check_options(self.options, options, f"plot {self.name}")
        run, path = one_run(runs, "The effective potential"), given.get("path", PATHS[0])
        loops, _ = read_loops(find_table_by_columns(run, LOOP_COLUMNS), given.get(LEVEL.name))
        chosen = [one for one in loops if one.path == path]
        if not chosen:
            known = ", ".join(one.path for one in loops)
            raise UsageError(f"{run} has no loops along {path}, only along {known}.")
        potential = read_potential(run) if (run / PotentialFit().file).exists() else None
        if potential and potential.smearing != chosen[0].smearing:
            potential = None
        title = f"{labels_of([run])[0]}, {_description(chosen[0])}"
        plot_effective_potential(chosen[0], file, potential, title)
        return []


PLOTS.register(WilsonLoopsPlot())


def _description(loops: Loops) -> str:
    """Return the direction and the smearing level of loops in words."""
    steps = "iteration" if loops.smearing == 1 else "iterations"
    smearing = f"{loops.smearing} smearing {steps}" if loops.smearing else "no smearing"
    return f"path ({','.join(loops.path)}), {smearing}"


def plot_effective_potential(
    loops: Loops, path: Path, potential: StaticPotential | None = None, title: str = ""
) -> None:
    """Plot V(R, t) = ln [W(R, t) / W(R, t + 1)] against t for every R along one direction.

    Parameters
    ----------
    loops : Loops
        Wilson loops along one direction.
    path : Path
        File to write; its ending determines the format.
    potential : StaticPotential, optional
        Result of a fit to these loops, whose plateaus are drawn as bands.
    title : str
        Title above the frame.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there are too few loops or configurations,
        or all errors are too large.
    """
    grid = effective_potential_grid(loops)
    known = np.where(grid.error < LARGEST_ERROR, grid.value, np.nan)
    if not np.isfinite(known).any():
        raise GaugeError(
            "The Wilson loops are too noisy to plot an effective potential; measure on more "
            "configurations, or with more smearing."
        )
    points = potential.points if potential else ()
    plateaus = {one.steps: one for one in points if one.path == loops.path}
    with figure_file(path, (WIDTH, 5.6)) as figure:
        axes = figure.subplots()
        shades = load("matplotlib").colormaps["viridis"](np.linspace(0, 0.8, grid.r.size))
        shown = [i for i in range(grid.r.size) if np.isfinite(known[i]).any()]
        levels = []
        for i in shown:
            t = grid.t + SHIFTS[i % len(SHIFTS)]
            style = {"color": shades[i], "fmt": MARKERS[i % len(MARKERS)]}
            axes.errorbar(t, known[i], grid.error[i], **style)
            level = known[i][np.isfinite(known[i])][-1]
            if point := plateaus.get(int(grid.r[i])):
                level = point.potential.value
                _draw_plateau(axes, point, shades[i])
            levels.append(level)
        low, high = axes.get_ylim()
        for i, level in zip(shown, _spread(levels, GAP * (high - low)), strict=True):
            axes.annotate(
                f"{loops.distances[i]:.4g}",
                (1.015, level),
                xycoords=("axes fraction", "data"),
                color=shades[i],
                va="center",
            )
        axes.annotate("$R/a$", (1.015, 1.01), xycoords="axes fraction")
        axes.set_xlim(0.5, grid.t[-1] + 0.5)
        axes.locator_params(axis="x", integer=True)
        axes.tick_params(which="minor", bottom=False, top=False)
        axes.set_xlabel("$t/a$ (points are shifted sideways for clarity)")
        axes.set_ylabel(r"$a\,V(R,t)=\ln[W(R,t)/W(R,t+a)]$")
        bands = not plateaus.keys().isdisjoint(grid.r[shown].tolist())
        add_heading(figure, axes, _key_of_bands() if bands else [], title)


def _spread(levels: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Move levels apart to distances of at least `gap`, without changing their order."""
    order, steps = np.argsort(levels), gap * np.arange(len(levels))
    even = np.sort(levels) - steps
    from_below = np.maximum.accumulate(even)
    from_above = np.minimum.accumulate(even[::-1])[::-1]
    result = np.empty(len(levels))
    result[order] = (from_below + from_above) / 2 + steps
    return result


def _key_of_bands() -> list[tuple[Any, str]]:
    """Return the handle and the label of a legend that says what the bands are."""
    line, patch = load("matplotlib.lines").Line2D, load("matplotlib.patches").Patch
    band = (patch(color=GREY, alpha=0.3, linewidth=0), line([], [], color=GREY, linewidth=0.8))
    return [(band, "plateau $a\\,V(R)$ of the fit, with its error")]


def _draw_plateau(axes: Axes, point: PlateauPoint, colour: Any) -> None:
    """Draw V(R) with its error over the plateau."""
    ends = (point.t_min - 0.3, point.t_max + 0.3)
    value, error = point.potential.value, point.potential.error
    axes.plot(ends, (value, value), color=colour, linewidth=0.8)
    axes.fill_between(ends, value - error, value + error, color=colour, alpha=0.3, linewidth=0)
