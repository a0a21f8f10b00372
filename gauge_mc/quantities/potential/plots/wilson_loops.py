"""The effective potential from Wilson loops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.domain.paths import PATHS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits.shared.fitted_tables import FitOfOtherTablesError, wants_exact
from gauge_mc.fits.shared.options import LEVEL, tag_of_levels
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, MARKERS, WIDTH
from gauge_mc.plots.runs.cautions import caution
from gauge_mc.plots.runs.labels import labels_of, one_run
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.gevp import HALF, reference_time, variational
from gauge_mc.quantities.potential.analysis.loop_ratios import LoopGrid, effective_potential_grid
from gauge_mc.quantities.potential.analysis.loop_tables import (
    LOOP_COLUMNS,
    read_loops,
    read_matrices,
)
from gauge_mc.quantities.potential.analysis.loops import LoopMatrices, PathLoops
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential
from gauge_mc.quantities.potential.fits.potential import (
    LEVELS,
    REFERENCE,
    PotentialFit,
    parse_levels,
)
from gauge_mc.quantities.potential.plots.potential import read_potential
from gauge_mc.registry import in_words
from gauge_mc.run.thermalisation import SKIP

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
        LEVELS,
        REFERENCE,
        SKIP,
        Option("path", str, f"Direction of the loops: {in_words(PATHS, 'or')}.", PATHS[0], "PATH"),
    )

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the loops along one direction; see `Plot.draw`."""
        run, path = one_run(runs, "The effective potential"), options.get("path", PATHS[0])
        table, skip = find_table_by_columns(run, LOOP_COLUMNS), options.get(SKIP.name, 0)
        if LEVELS.name in options:
            return self._draw_energies(run, table, path, skip, file, options)
        loops, _ = read_loops(table, options.get(LEVEL.name), skip)
        chosen = _along(loops, path, run)
        tag = tag_of_levels([chosen.smearing], chosen.levels)
        potential = _potential_of(run, tag)
        if potential and (potential.smearing != chosen.smearing or potential.levels):
            potential = None
        title = f"{labels_of([run])[0]}, {_description(chosen)}"
        plot_effective_potential(chosen, file, potential, title)
        return []

    def _draw_energies(
        self, run: Path, table: Path, path: str, skip: int, file: Path, given: dict[str, Any]
    ) -> list[Any]:
        """Draw the lowest two energies of a variational analysis."""
        levels = parse_levels(given[LEVELS.name])
        matrices = _along(read_matrices(table, levels, skip)[0], path, run)
        text = given.get(REFERENCE.name, HALF)
        ground, excited = variational(matrices, reference_time(text))[:2]
        potential = _potential_of(run, tag_of_levels(levels, levels))
        title = (
            f"{labels_of([run])[0]}, path ({','.join(path)}), levels "
            f"{', '.join(map(str, levels))}, t0 = {'t/2' if text == HALF else text}"
        )
        plot_effective_potential(ground, file, potential, title, excited)
        return []


PLOTS.register(WilsonLoopsPlot())


LoopsLike = TypeVar("LoopsLike", PathLoops, LoopMatrices)


def _along(loops: Sequence[LoopsLike], path: str, run: Path) -> LoopsLike:
    """Return the loops along a path."""
    for one in loops:
        if one.path == path:
            return one
    known = ", ".join(one.path for one in loops)
    raise UsageError(f"{run} has no loops along {path}, only along {known}.")


def _potential_of(run: Path, tag: str) -> StaticPotential | None:
    """Return the result of the fit whose file has a tag, if there is one of this table."""
    file = Path(PotentialFit().file)
    name = f"{file.stem}{tag}{file.suffix}"
    if not (run / name).exists():
        return None
    try:
        return read_potential(run, name)
    except FitOfOtherTablesError as error:
        if wants_exact():
            raise
        caution(str(error))
        return None


def _description(loops: PathLoops) -> str:
    """Return the direction and the smearing level of loops in words."""
    steps = "iteration" if loops.smearing == 1 else "iterations"
    smearing = f"{loops.smearing} smearing {steps}" if loops.smearing else "no smearing"
    return f"path ({','.join(loops.path)}), {smearing}"


def plot_effective_potential(
    loops: PathLoops | EffectiveEnergies,
    path: Path,
    potential: StaticPotential | None = None,
    title: str = "",
    excited: EffectiveEnergies | None = None,
) -> None:
    """Plot V(R, t) = ln [W(R, t) / W(R, t + d)] / d against t for every R along one direction.

    Here d is the distance of the values of t, which usually is 1. The plateau of each R is stated
    with its error at the right.

    Parameters
    ----------
    loops : PathLoops or EffectiveEnergies
        Wilson loops along one direction, or the lowest energies of a variational analysis.
    path : Path
        File to write; its ending determines the format.
    potential : StaticPotential, optional
        Result of a fit to these loops, whose plateaus are drawn as bands.
    title : str
        Title above the frame.
    excited : EffectiveEnergies, optional
        First excited energies, which are drawn hollow and without plateaus.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there are too few loops or configurations,
        or all errors are too large.
    """
    grid = effective_potential_grid(loops) if isinstance(loops, PathLoops) else energy_grid(loops)
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
        levels, points_of = [], {}
        for i in shown:
            t = grid.t + SHIFTS[i % len(SHIFTS)]
            style = {"color": shades[i], "fmt": MARKERS[i % len(MARKERS)]}
            axes.errorbar(t, known[i], grid.error[i], **style)
            level = known[i][np.isfinite(known[i])][-1]
            points_of[i] = plateaus.get(int(grid.r[i]))
            if point := points_of[i]:
                level = point.potential.value
                _draw_plateau(axes, point, shades[i])
            levels.append(level)
        low, high = axes.get_ylim()
        for i, level in zip(shown, _spread(levels, GAP * (high - low)), strict=True):
            point = points_of[i]
            axes.annotate(
                f"{loops.distances[i]:.4g}: {point.potential}"
                if point
                else f"{loops.distances[i]:.4g}",
                (1.015, level),
                xycoords=("axes fraction", "data"),
                color=shades[i],
                va="center",
            )
        heading = "$R/a$: $a\\,V(R)$" if any(points_of.values()) else "$R/a$"
        axes.annotate(heading, (1.015, 1.01), xycoords="axes fraction")
        if excited:
            _draw_excited(axes, excited, shown, shades)
        axes.set_xlim(0.5, grid.t[-1] + 0.5)
        axes.locator_params(axis="x", integer=True)
        axes.tick_params(which="minor", bottom=False, top=False)
        axes.set_xlabel("$t/a$ (points are shifted sideways for clarity)")
        axes.set_ylabel(_definition(loops.t_step if isinstance(loops, PathLoops) else 1))
        bands = not plateaus.keys().isdisjoint(grid.r[shown].tolist())
        key = _key_of_bands() if bands else []
        if excited:
            style = {"color": GREY, "marker": MARKERS[0], "linestyle": "none"}
            handle = load("matplotlib.lines").Line2D([], [], **style, markerfacecolor="white")
            key.append((handle, "hollow: first excited energy"))
        add_heading(figure, axes, key, title)


def _definition(step: int) -> str:
    """Return the definition of V(R, t) for loops with a distance of t, as the label of an axis."""
    if step == 1:
        return r"$a\,V(R,t)=\ln[W(R,t)/W(R,t+a)]$"
    return rf"$a\,V(R,t)=\ln[W(R,t)/W(R,t+{step}a)]/{step}$"


def energy_grid(energies: EffectiveEnergies) -> LoopGrid:
    """Return effective energies with errors, in lattice units."""
    found = [[estimate(one) for one in row.T] for row in energies.series.transpose(1, 0, 2)]
    value, error = (np.array([[getattr(x, k) for x in row] for row in found]) for k in NUMBERS)
    return LoopGrid(energies.r, np.array(energies.t), value, error)


NUMBERS = ("value", "error")


def _draw_excited(
    axes: Axes, energies: EffectiveEnergies, shown: Sequence[int], shades: NDArray[np.float64]
) -> None:
    """Draw the first excited energies with hollow symbols."""
    grid = energy_grid(energies)
    known = np.where(grid.error < LARGEST_ERROR, grid.value, np.nan)
    for i in shown:
        t = grid.t + SHIFTS[i % len(SHIFTS)]
        style = {"color": shades[i], "fmt": MARKERS[i % len(MARKERS)], "markerfacecolor": "white"}
        axes.errorbar(t, known[i], grid.error[i], **style, alpha=0.6)


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
