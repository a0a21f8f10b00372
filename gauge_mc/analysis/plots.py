"""Figures: potential, effective potential, histories and Polyakov loops, as PDF, PNG or SVG.

Runs differ by colour and by marker, with the palette of M. Okabe and K. Ito (2008), which is
made for all kinds of colour vision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.extra import load
from gauge_mc.analysis.loops import Loops, effective_potential_grid
from gauge_mc.analysis.plateau import Point
from gauge_mc.analysis.potential import Fit, StaticPotential
from gauge_mc.analysis.timeseries import Estimate, estimate, with_error
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Curves = Sequence[tuple[str, Sequence[tuple[float, Estimate]]]]

ENDINGS = ("pdf", "png", "svg")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>PX"
WIDTH = 6.3
"""Inches: the text width of a printed page."""
STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11.0,
    "legend.fontsize": 9.5,
    "axes.linewidth": 0.8,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.minor.visible": True,
    "ytick.minor.visible": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.0,
    "legend.frameon": False,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "svg.hashsalt": "gauge-mc",
    "savefig.dpi": 200,
}


@dataclass(frozen=True)
class History:
    """A time series of one run.

    Attributes
    ----------
    label : str
        Name of the run.
    sweeps : ndarray of int64, shape (samples,)
        Sweep of every measurement, ascending.
    values : ndarray of float64 (complex128 for a Polyakov loop), shape (samples,)
    """

    label: str
    sweeps: NDArray[np.int64]
    values: NDArray[Any]


def plot_potential(runs: Sequence[tuple[str, StaticPotential]], path: Path) -> None:
    """Plot V(R) with the fit of free B, its error band, and the residuals, for one or more runs.

    Points outside the fitted window are hollow, and the fit is dashed there; the scale of the
    residuals is that of the points fitted. For a single run the upper axis gives R in fm.

    Parameters
    ----------
    runs : sequence of (str, StaticPotential)
        A label and a result for each run.
    path : Path
        File to write; its ending says the format.

    Raises
    ------
    UsageError
        If the ending is none of pdf, png and svg.
    GaugeError
        If there is no run, Matplotlib is missing, or the file cannot be written.
    """
    _require(runs)
    several = len(runs) > 1
    with _figure(path, (WIDTH, 5.4 + several * 0.25 * (len(runs) + 1))) as figure:
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
        lower.axhspan(-1, 1, color="0.9", zorder=-2)
        lower.axhline(0, color="0.4", linewidth=0.8, zorder=-1)
        residuals = [
            _draw_potential(
                upper, lower, _look(i), _legend(label, result.free.fit, several), result
            )
            for i, (label, result) in enumerate(runs)
        ]
        limit = max(3.0, max(residuals) + 1.3)
        lower.set_ylim(-limit, limit)
        lower.set_xlim(0, 1.04 * max(one.distance for _, result in runs for one in result.points))
        lower.set_xlabel("$R/a$")
        upper.set_ylabel(r"$a\,V(R)$")
        lower.set_ylabel("residual/error")
        figure.align_ylabels()
        if several:
            figure.legend(loc="outside upper center", ncols=2, columnspacing=1.0)
        else:
            upper.legend(loc="lower right")
            _add_physical_axis(upper, runs[0][1].free.fit.spacing.value)


def plot_effective_potential(
    loops: Loops, path: Path, potential: StaticPotential | None = None
) -> None:
    """Plot V(R, t) = ln W(R, t) / W(R, t + 1) against t for every R along one path.

    Values with errors so large that they would hide the others are left out.

    Parameters
    ----------
    loops : Loops
    path : Path
        File to write; its ending says the format.
    potential : StaticPotential, optional
        The plateaus found in these loops, to be drawn as bands.

    Raises
    ------
    UsageError
        If the ending is none of pdf, png and svg.
    GaugeError
        If there are too few loops or configurations, Matplotlib is missing, or the file cannot
        be written.
    """
    grid = effective_potential_grid(loops)
    known = np.where(grid.error < 0.1, grid.value, np.nan)
    if not np.isfinite(known).any():
        raise GaugeError("The Wilson loops are too noisy for an effective potential to be plotted.")
    points = potential.points if potential else ()
    plateaus = {one.steps: one for one in points if one.path == loops.path}
    with _figure(path, (WIDTH, 5.6)) as figure:
        axes = figure.subplots()
        shades = load("matplotlib").colormaps["viridis"](np.linspace(0, 0.8, grid.r.size))
        shown = [i for i in range(grid.r.size) if np.isfinite(known[i]).any()]
        levels = []
        for i in shown:
            axes.errorbar(
                grid.t, known[i], grid.error[i], color=shades[i], fmt=MARKERS[i % len(MARKERS)]
            )
            level = known[i][np.isfinite(known[i])][-1]
            if point := plateaus.get(int(grid.r[i])):
                level = point.potential.value
                _draw_plateau(axes, point, shades[i])
            levels.append(level)
        low, high = axes.get_ylim()
        for i, level in zip(shown, _apart(levels, 0.025 * (high - low)), strict=True):
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
        axes.set_xlabel("$t/a$")
        axes.set_ylabel(r"$a\,V(R,t)=\ln[W(R,t)/W(R,t+a)]$")


def _apart(levels: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Return levels at least `gap` apart, in the same order and as near as can be."""
    order, steps = np.argsort(levels), gap * np.arange(len(levels))
    even = np.sort(levels) - steps
    from_below = np.maximum.accumulate(even)
    from_above = np.minimum.accumulate(even[::-1])[::-1]
    result = np.empty(len(levels))
    result[order] = (from_below + from_above) / 2 + steps
    return result


def plot_history(quantities: Sequence[tuple[str, Sequence[History]]], path: Path) -> None:
    """Plot time series with their running means and distributions, and state tau_int.

    Parameters
    ----------
    quantities : sequence of (str, sequence of History)
        For each quantity the label of its axis and the series of the runs.
    path : Path
        File to write; its ending says the format.

    Raises
    ------
    UsageError
        If the ending is none of pdf, png and svg.
    GaugeError
        If there is nothing to plot, Matplotlib is missing, or the file cannot be written.
    """
    _require(quantities)
    for _, histories in quantities:
        _require(histories)
        for history in histories:
            _check_history(history)
    rows = len(quantities)
    with _figure(path, (WIDTH, 0.8 + 2.6 * rows)) as figure:
        panels = figure.subplots(rows, 2, squeeze=False, sharey="row", width_ratios=(4, 1))
        for (name, histories), (series, distribution) in zip(quantities, panels, strict=True):
            for i, history in enumerate(histories):
                _draw_history(series, history, _look(i), _summary(history))
                _draw_distribution(distribution, history, _look(i))
            series.sharex(panels[-1, 0])
            series.tick_params(labelbottom=series is panels[-1, 0])
            series.set_ylabel(name)
            series.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
            distribution.set_xlim(left=0)
            distribution.tick_params(which="both", bottom=False, top=False, labelbottom=False)
        panels[-1, 0].set_xlabel("sweep")
        panels[-1, 1].set_xlabel("distribution")


def plot_polyakov(runs: Sequence[History], path: Path) -> None:
    """Plot Polyakov loops in the complex plane, and the history of their absolute value.

    Dotted lines are the directions of the centre: of Z(3), or the real axis if all loops are
    real, as they are in SU(2), which are shown as a distribution.

    Parameters
    ----------
    runs : sequence of History
        Complex values: the lattice average of Tr/N for every configuration.
    path : Path
        File to write; its ending says the format.

    Raises
    ------
    UsageError
        If the ending is none of pdf, png and svg.
    GaugeError
        If there is nothing to plot, Matplotlib is missing, or the file cannot be written.
    """
    _require(runs)
    for run in runs:
        _check_history(run)
    real = all(np.abs(np.imag(run.values)).max() < 1e-12 for run in runs)
    with _figure(path, (WIDTH, 3.2 + 0.2 * len(runs))) as figure:
        plane, series = figure.subplots(1, 2, width_ratios=(1, 1.2))
        for i, run in enumerate(runs):
            size = History(run.label, run.sweeps, np.abs(run.values))
            _draw_history(series, size, _look(i), _summary(size))
            if real:
                _draw_distribution(plane, run, _look(i), horizontal=False)
            else:
                plane.scatter(
                    run.values.real, run.values.imag, s=9, alpha=0.6, linewidth=0, **_look(i)
                )
        if real:
            _finish_line(plane)
        else:
            _finish_plane(plane)
        series.set_xlabel("sweep")
        series.set_ylabel("$|L|$")
        series.set_ylim(bottom=0)
        figure.legend(loc="outside upper center")


def plot_scan(panels: Sequence[tuple[str, Curves]], path: Path) -> None:
    """Plot averages of several quantities against beta, one below the other.

    Parameters
    ----------
    panels : sequence of (str, curves)
        For each quantity the label of its axis, and its curves, one a lattice: a label, and the
        averages by beta, ascending.
    path : Path
        File to write; its ending says the format.

    Raises
    ------
    UsageError
        If the ending is none of pdf, png and svg.
    GaugeError
        If there is nothing to plot, Matplotlib is missing, or the file cannot be written.
    """
    _require(panels)
    for _, curves in panels:
        _require(curves)
    with _figure(path, (WIDTH, 2.4 + 1.8 * len(panels))) as figure:
        rows = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for axes, (name, curves) in zip(rows, panels, strict=True):
            _draw_curves(axes, curves)
            axes.set_ylabel(name)
        rows[-1].set_xlabel(r"$\beta$")
        rows[0].legend(loc="best")
        figure.align_ylabels()


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """Open an empty figure, and write it to `path` when it is drawn."""
    ending = path.suffix.lower().lstrip(".")
    if ending not in ENDINGS:
        raise UsageError(f"The name of a plot has to end in .pdf, .png or .svg; {path} does not.")
    matplotlib = load("matplotlib")
    date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[ending]
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        figure = load("matplotlib.figure").Figure(figsize=size, layout="constrained")
        yield figure
        with replacing(path) as file:
            figure.savefig(file, format=ending, metadata=date)


def _draw_curves(axes: Axes, curves: Curves) -> None:
    """Draw averages with errors against beta; lines guide the eye."""
    for i, (label, points) in enumerate(curves):
        beta = np.array([one for one, _ in points])
        value = np.array([found.value for _, found in points])
        error = np.nan_to_num([found.error for _, found in points])
        axes.plot(beta, value, color=_look(i)["color"], alpha=0.4, linewidth=0.8)
        axes.errorbar(beta, value, error, **_look(i), linestyle="none", label=_plain(label))


def _look(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th run."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def _draw_potential(
    upper: Axes, lower: Axes, look: dict[str, Any], label: str, result: StaticPotential
) -> float:
    """Draw one run: points, fit with band, and residuals; return the largest residual fitted."""
    fit = result.free.fit
    r = np.array([one.distance for one in result.points])
    value = np.array([one.potential.value for one in result.points])
    error = np.array([one.potential.error for one in result.points])
    residual = (value - fit.potential(r)[0]) / error
    fitted = (r >= fit.r_min - 1e-9) & (r <= fit.r_max + 1e-9)
    for some, face in ((fitted, look["color"]), (~fitted, "white")):
        style = {**look, "linestyle": "none", "markerfacecolor": face}
        upper.errorbar(r[some], value[some], error[some], zorder=3, **style)
        lower.errorbar(r[some], residual[some], np.ones(some.sum()), zorder=3, **style)
    for low, high, dashes in ((0.9 * r[0], fit.r_min, "--"), (fit.r_min, fit.r_max, "-")):
        x = np.linspace(low, high, 200)
        y, band = fit.potential(x)
        upper.plot(x, y, dashes, color=look["color"])
        upper.fill_between(x, y - band, y + band, color=look["color"], alpha=0.25, linewidth=0)
    upper.errorbar([], [], [], **look, label=label)
    return float(np.abs(residual[fitted]).max())


def _add_physical_axis(axes: Axes, spacing: float) -> None:
    """Add an upper axis with R in fm, if the lattice spacing in fm is known."""
    if math.isfinite(spacing):
        axes.tick_params(which="both", top=False)
        functions = (lambda r: r * spacing, lambda x: x / spacing)
        axes.secondary_xaxis("top", functions=functions).set_xlabel("$R$ (fm)")


def _legend(label: str, fit: Fit, brief: bool) -> str:
    """Return a run and the results of its fit as text for a legend."""
    lines = [
        [rf"$\sigma a^2={fit.sigma}$", f"$B={_minus(fit.B)}$", f"$aA={_minus(fit.A)}$"],
        [f"$r_0/a={fit.r0}$", _quality(fit), f"$a={fit.spacing}$ fm"],
    ]
    known = [[item for item in line[: 3 - brief] if "nan" not in item] for line in lines]
    return "\n".join([_plain(label), *(",  ".join(line) for line in known)])


def _quality(fit: Fit) -> str:
    """Return chi2 over what it is to be compared with."""
    if fit.correlated:
        return rf"$\chi^2/\mathrm{{dof}}={fit.chi2:.1f}/{fit.dof}$"
    return rf"$\chi^2/\langle\chi^2\rangle={fit.chi2:.1f}/{fit.chi2_expected:.1f}$"


def _draw_plateau(axes: Axes, point: Point, colour: Any) -> None:
    """Draw V(R) and its error over its plateau."""
    ends = (point.t_min - 0.3, point.t_max + 0.3)
    value, error = point.potential.value, point.potential.error
    axes.plot(ends, (value, value), color=colour, linewidth=0.8)
    axes.fill_between(ends, value - error, value + error, color=colour, alpha=0.3, linewidth=0)


def _draw_history(axes: Axes, history: History, look: dict[str, Any], label: str) -> None:
    """Draw a series, and its mean up to each sweep."""
    colour = look["color"]
    axes.plot(history.sweeps, history.values, color=colour, alpha=0.35, linewidth=0.6, zorder=1)
    running = np.cumsum(history.values) / np.arange(1, history.values.size + 1)
    every = max(1, running.size // 8)
    axes.plot(history.sweeps, running, color="white", linewidth=3, zorder=2)
    marks = (every // 2, every)
    axes.plot(history.sweeps, running, **look, markevery=marks, zorder=3, label=label)


def _draw_distribution(
    axes: Axes, history: History, look: dict[str, Any], horizontal: bool = True
) -> None:
    """Draw the distribution of a series as the outline of a histogram."""
    values = np.real(history.values)
    bins = min(40, max(5, math.isqrt(values.size)))
    density, edges = np.histogram(values, bins, density=True)
    orientation: Any = "horizontal" if horizontal else "vertical"
    axes.stairs(density, edges, orientation=orientation, color=look["color"])
    axes.stairs(density, edges, orientation=orientation, color=look["color"], fill=True, alpha=0.2)


def _finish_line(axes: Axes) -> None:
    """Label a distribution of real Polyakov loops."""
    axes.axvline(0, color="0.5", linestyle=":", linewidth=0.8)
    axes.set_box_aspect(1)
    axes.set_ylim(bottom=0)
    axes.tick_params(which="both", left=False, right=False, labelleft=False)
    axes.set_xlabel("$L$")
    axes.set_ylabel("distribution")


def _finish_plane(axes: Axes) -> None:
    """Draw the directions of the centre of SU(3), and make the plane square about 0."""
    reach = 1.1 * max(np.abs(axes.dataLim.get_points()).max(), 1e-6)
    for k in range(3):
        direction = 2 * reach * np.exp(2j * np.pi * k / 3)
        ends = (0, direction.real), (0, direction.imag)
        axes.plot(*ends, color="0.5", linestyle=":", linewidth=0.8, zorder=0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_box_aspect(1)
    axes.set_xlabel(r"Re$\,L$")
    axes.set_ylabel(r"Im$\,L$")


def _summary(history: History) -> str:
    """Return mean, error and tau_int of a series as text for a legend."""
    result = estimate(history.values)
    steps = np.diff(history.sweeps)
    even = steps.size > 0 and (steps == steps[0]).all()
    step, unit = (int(steps[0]), "sweeps") if even else (1, "measurements")
    name = f"{_plain(history.label)}: " if history.label else ""
    if not math.isfinite(result.error):
        return f"{name}${_minus(result)}$"
    tau_int = with_error(result.tau_int * step, result.tau_int_error * step)
    return f"{name}mean ${_minus(result)}$,  $\\tau_\\mathrm{{int}}={tau_int}$ {unit}"


def _check_history(history: History) -> None:
    if history.values.size == 0 or not np.isfinite(history.values).all():
        raise GaugeError(
            f"The series of {history.label or 'the run'} is empty or holds what is no number."
        )


def _require(runs: Sequence[object]) -> None:
    if not runs:
        raise GaugeError("There is nothing to plot: no run with measurements was given.")


def _plain(label: str) -> str:
    """Return a label with no sign that Matplotlib would take for mathematics."""
    return label.replace("$", r"\$")


def _minus(result: Estimate) -> str:
    return str(result).replace("-", "{-}") if result.value < 0 else str(result)
