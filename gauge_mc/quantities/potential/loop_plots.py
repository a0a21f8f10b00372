"""The effective potential from Wilson loops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.states import EffectiveEnergies
from gauge_mc.domain.lattice import PATHS, bracketed
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits.files import FitOfOtherTablesError, find_table_by_columns, wants_exact
from gauge_mc.fits.quoted import LEVEL, tag_of_levels
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.pictures import GREY, MARKERS, WIDTH, add_heading
from gauge_mc.plots.runs import caution, labels_of, one_run
from gauge_mc.quantities.potential import loop_tables
from gauge_mc.quantities.potential.fit import LEVELS, PotentialFit, states_of
from gauge_mc.quantities.potential.plots import read_potential
from gauge_mc.quantities.potential.static_potential import StaticPotential
from gauge_mc.registry import in_words
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    pass

DIRECTIONS = in_words([*map(bracketed, PATHS)], "or")
"""The directions of loops in words."""

LARGEST_ERROR = 0.1
"""Maximum error of a value that is drawn; larger errors would hide the other values."""

SHIFTS = (-0.1, 0.0, 0.1)
"""Shifts in t of the points of successive distances, which set error bars side by side."""

GAP = 0.025
"""Minimum distance between two labels, in units of the height of the frame."""


class WilsonLoopsPlot(Plot):
    """The effective potential ln W(R,T)/W(R,T+1) of one run, with the V(R) of its fit."""

    name = "wilson-loops"
    summary = "effective potential ln W(R,T)/W(R,T+1) with V(R)"
    options: ClassVar[tuple[Option, ...]] = (
        LEVEL,
        LEVELS,
        SKIP,
        Option(
            "path",
            str,
            f"Direction of the loops: {DIRECTIONS}.",
            default=bracketed(PATHS[0]),
            metavar="PATH",
        ),
    )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the loops along one direction; see `Plot.draw`."""
        run = one_run(runs, "The effective potential")
        path = options.get("path", PATHS[0]).translate(dict.fromkeys(map(ord, "(,) ")))
        loops = loop_tables.read_loops(
            find_table_by_columns(run, loop_tables.LOOP_COLUMNS), options.get(SKIP.name, 0)
        )
        if path not in loop_tables.paths_of(loops):
            raise UsageError(f"{run} has {loop_tables.no_loops_along(path, loops)}")
        selection = options.get(LEVEL.name), options.get(LEVELS.name)
        states, levels = states_of(loops, *selection)
        ground, *excited = (state[loop_tables.paths_of(loops).index(path)] for state in states)
        every = loop_tables.smearing_levels(loops)
        tag = "" if levels == tuple(every) else tag_of_levels(levels, every)
        title = f"{labels_of([run])[0]}, path {bracketed(path)}, {_in_words(levels)}"
        fit, potential = Path(PotentialFit().file), None
        name = f"{fit.stem}{tag}{fit.suffix}"
        if (run / name).exists():
            try:
                potential = read_potential(run, name)
            except FitOfOtherTablesError as error:
                if wants_exact():
                    raise
                caution(str(error))
        if potential and potential.levels != levels:
            potential = None
        plot_effective_potential(ground, file, potential, title, next(iter(excited), None))
        return []


PLOTS.register(WilsonLoopsPlot())


def _in_words(levels: Sequence[int]) -> str:
    """Return the smearing levels of loops in words."""
    if len(levels) > 1:
        return f"variational analysis of levels {', '.join(map(str, levels))}"
    steps = "iteration" if levels[0] == 1 else "iterations"
    return f"{levels[0]} smearing {steps}" if levels[0] else "no smearing"


def plot_effective_potential(
    energies: EffectiveEnergies,
    path: Path,
    potential: StaticPotential | None = None,
    title: str = "",
    excited: EffectiveEnergies | None = None,
) -> None:
    """Plot V(R, t) = ln [W(R, t) / W(R, t + d)] / d against t for every R along one direction.

    Here d is the distance of the values of t, which usually is 1. V(R) is stated with its error at
    the right.
    """
    grid = loop_tables.effective_potential_grid(energies)
    values = np.where(grid.error < LARGEST_ERROR, grid.value, np.nan)
    if not np.isfinite(values).any():
        raise GaugeError(
            "The Wilson loops are too noisy to plot an effective potential; measure on more "
            "configurations, or with more smearing."
        )
    points = potential.points if potential else ()
    plateaus = {point.steps: point for point in points if point.path == energies.path}
    with figure_file(path, (WIDTH, 5.6)) as figure:
        axes = figure.subplots()
        shades = load("matplotlib").colormaps["viridis"](np.linspace(0, 0.8, grid.r.size))
        shown = [i for i in range(grid.r.size) if np.isfinite(values[i]).any()]
        levels, points_of = [], {}
        for i in shown:
            t = grid.t + SHIFTS[i % len(SHIFTS)]
            style = {"color": shades[i], "fmt": MARKERS[i % len(MARKERS)]}
            axes.errorbar(t, values[i], grid.error[i], **style)
            level = values[i][np.isfinite(values[i])][-1]
            points_of[i] = plateaus.get(int(grid.r[i]))
            if point := points_of[i]:
                level = point.potential.value
                ends, error = (point.t_min - 0.3, point.t_max + 0.3), point.error
                axes.plot(ends, (level, level), color=shades[i], linewidth=0.8)
                band = {"color": shades[i], "alpha": 0.3, "linewidth": 0}
                axes.fill_between(ends, level - error, level + error, **band)
            levels.append(level)
        low, high = axes.get_ylim()
        for i, level in zip(shown, _spread(levels, GAP * (high - low)), strict=True):
            value = f": {point.potential}" if (point := points_of[i]) else ""
            place = {"xycoords": ("axes fraction", "data"), "color": shades[i], "va": "center"}
            axes.annotate(f"{energies.distances[i]:.4g}{value}", (1.015, level), **place)
        heading = "$R/a$: $a\\,V(R)$" if any(points_of.values()) else "$R/a$"
        axes.annotate(heading, (1.015, 1.01), xycoords="axes fraction")
        if excited:
            above = loop_tables.effective_potential_grid(excited)
            heights = np.where(above.error < LARGEST_ERROR, above.value, np.nan)
            for i in shown:
                style = {"color": shades[i], "fmt": MARKERS[i % len(MARKERS)]}
                style |= {"markerfacecolor": "white", "alpha": 0.6}
                t = above.t + SHIFTS[i % len(SHIFTS)]
                axes.errorbar(t, heights[i], above.error[i], **style)
        axes.set_xlim(0.5, grid.t[-1] + 0.5)
        axes.locator_params(axis="x", integer=True)
        axes.tick_params(which="minor", bottom=False, top=False)
        axes.set_xlabel("$t/a$ (points are shifted sideways for clarity)")
        d = "" if energies.step == 1 else energies.step
        axes.set_ylabel(rf"$a\,V(R,t)=\ln[W(R,t)/W(R,t+{d}a)]{f'/{d}' if d else ''}$")
        bands = not plateaus.keys().isdisjoint(grid.r[shown].tolist())
        key: list[tuple[Any, str]] = []
        line = load("matplotlib.lines").Line2D
        if bands:
            patch = load("matplotlib.patches").Patch(color=GREY, alpha=0.3, linewidth=0)
            handles = patch, line([], [], color=GREY, linewidth=0.8)
            key.append((handles, "$a\\,V(R)$ of the fits, with its total error"))
        if excited:
            style = {"color": GREY, "marker": MARKERS[0], "linestyle": "none"}
            handle = line([], [], **style, markerfacecolor="white")
            key.append((handle, "hollow: first excited energy"))
        add_heading(figure, axes, key, title)


def _spread(levels: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Move levels apart to distances of at least `gap`, without changing their order."""
    order, steps = np.argsort(levels), gap * np.arange(len(levels))
    even = np.sort(levels) - steps
    from_below = np.maximum.accumulate(even)
    from_above = np.minimum.accumulate(even[::-1])[::-1]
    result = np.empty(len(levels))
    result[order] = (from_below + from_above) / 2 + steps
    return result
