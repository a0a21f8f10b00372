"""Figures of V(R), of its force and scaling, and of ratios of Wilson loops."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.states import EffectiveEnergies
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.domain.lattice import PATHS, bracketed
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import ContentMatch
from gauge_mc.fits import files
from gauge_mc.fits.quoted import LEVEL, tag_of_levels
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.pictures import (
    GREY,
    HOLLOW,
    LINE,
    MARKERS,
    WIDTH,
    Abscissa,
    Frame,
    Guide,
    KeyEntry,
    Mark,
    Picture,
    Sketch,
    Stroke,
    Symbols,
    add_heading,
    look,
    typeset,
)
from gauge_mc.plots.runs import TablePlot, caution, labels_of, one_run
from gauge_mc.quantities.potential import loop_tables
from gauge_mc.quantities.potential.fit import LEVELS, TABLES, PotentialFit, read_result, states_of
from gauge_mc.quantities.potential.forms import FORCES, LUSCHER, ROOT_SIGMA, FormFit
from gauge_mc.quantities.potential.loop_tables import AXIS
from gauge_mc.quantities.potential.ratios import AnisotropyFit
from gauge_mc.quantities.potential.static_potential import ForcePoint, StaticPotential
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_LIMIT = 3.0
"""Minimum half-width of the axis of residuals, in standard deviations."""


RESULT = Option(
    "result",
    str,
    "Name of the file of fit potential in each run, such as potential_25.json.",
    default="potential.json, or the only potential_*.json",
    metavar="NAME",
)
"""The option of all plots that show the result of a fit of the potential."""


RESIDUAL = r"$(V-V_\mathrm{fit})/\delta V$"
"""Label of the residuals of V(R), in units of its error."""

Runs = Sequence[tuple[str, StaticPotential]]
"""Label and result of each run."""


class PlotOfPotentials(Plot):
    """A plot that shows the results of fits of the potential, of one or more runs in one frame."""

    options: ClassVar[tuple[Option, ...]] = (RESULT,)
    fit: ClassVar[str] = "potential"

    @abstractmethod
    def picture(self, runs: Runs) -> Picture:
        """Return the figure of the results.

        Raises
        ------
        GaugeError
            If there is no run, or a run has nothing to draw.
        """

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame; see `Plot.draw`."""
        results = [read_potential(run, options.get(RESULT.name)) for run in runs]
        for run, result in zip(runs, results, strict=True):
            caution(*(f"{run}: {c}" if len(runs) > 1 else c for c in result.cautions))
        self.picture(list(zip(labels_of(runs), results, strict=True))).draw(file)
        return []


class PotentialPlot(PlotOfPotentials):
    """V(R) of one or more runs with fits, error bands and residuals."""

    name = "potential"
    summary = "V(R) with its fit and residuals (needs fit potential)"

    def picture(self, runs: Runs) -> Picture:
        """Return V(R) with the most probable fit, its error band, and the residuals.

        Points outside its window are hollow, and the fit is dashed there. Without a fit the points
        stand alone, and the legend says so. For a single run, the upper axis shows R in fm.

        For errors see `PlotOfPotentials.picture`.
        """
        require(runs)
        several, fits = len(runs) > 1, [(i, x) for i, (_, x) in enumerate(runs) if x.best]
        upper, lower = list[Mark](), list[Mark]()
        for i, (label, result) in enumerate(runs):
            if result.best:
                upper += _potential(result, result.best, look(i), _legend(label, result, several))
                lower += _parted(result, _residuals(result), np.ones(len(result.points)), look(i))
            else:
                text = f"{typeset(label)}\ntoo few distances for a fit"
                style = {**look(i), "markerfacecolor": "white", "zorder": 3, "label": text}
                values = [point.potential for point in result.points]
                upper.append(Symbols.of([point.distance for point in result.points], values, style))

        def finish(axes: Axes) -> None:
            if several:
                axes.figure.legend(loc="outside upper center", ncols=2, columnspacing=1.0)
            else:
                axes.legend(loc="lower right")
                for _, result in fits:
                    spacing = result.scales.get("spacing")
                    if spacing and math.isfinite(a := spacing.value.value):
                        axes.tick_params(which="both", top=False)
                        both = (lambda r, a=a: r * a, lambda x, a=a: x / a)
                        label = rf"$R$ (fm), with $a$ from $\sqrt{{\sigma}}={ROOT_SIGMA:g}$ MeV"
                        axes.secondary_xaxis("top", functions=both).set_xlabel(label, labelpad=6)

        largest_r = max(point.distance for _, result in runs for point in result.points)
        ends = {"xlim": (0, 1.04 * largest_r)}
        frames = [Frame(upper, "" if fits else "$R/a$", r"$a\,V(R)$", ends, finish)]
        if fits:
            largest = [np.abs(_residuals(x)[_in_window(x)]).max() + 1.0 for _, x in fits]
            limit = max(LEAST_LIMIT, 1.1 * max(largest))
            lower += [mark for i, x in fits for mark in _outside(x, look(i), limit)]
            lower.append(Sketch(lambda axes: axes.axhspan(-1, 1, color="0.9", zorder=-2)))
            lower.append(Guide(0, style={"color": "0.4", "linewidth": 0.8, "zorder": -1}))
            frames.append(Frame(lower, "$R/a$", RESIDUAL, {"ylim": (-limit, limit)}))
        height = 4.05 + 1.35 * bool(fits) + several * 0.25 * (len(runs) + 1)
        ratios = (3, 1)[: len(frames)]
        layout = {"nrows": len(frames), "sharex": True, "height_ratios": ratios}
        return Picture(frames, height, layout=layout, aligned=bool(fits), heading=False)


PLOTS.register(PotentialPlot())


def result_of(run: Path, name: str | None = None) -> Path:
    """Return the file of a fit of the potential of a run, which need not exist."""
    usual = Path(PotentialFit().file)
    path = run / (name or usual)
    if name or path.exists():
        return path
    paths = sorted(run.glob(f"{usual.stem}_*{usual.suffix}"))
    if len(paths) > 1:
        names = ", ".join(x.name for x in paths)
        raise UsageError(
            f"{run} has several results of fit potential; choose one of {names} with {RESULT.flag}."
        )
    return paths[0] if paths else path


def read_potential(run: Path, name: str | None = None) -> StaticPotential:
    """Return the fitted potential of a run, if it belongs to the table that the run has now.

    A caution is noted if rows have been added to the table since. Without a table the result
    stands for itself.
    """
    path = result_of(run, name)
    result = read_result(path)
    tables = [*files.tables_with_columns(run, TABLES[result.source])]
    if not tables:
        return result
    match = files.match_of(files.tables_of_result(path), tables)
    if files.refuses(match):
        raise _of_other_tables(path, tables[0], match, ", so that it is not shown")
    if match is not ContentMatch.SAME:
        caution(str(_of_other_tables(path, tables[0], match)))
    return result


def _of_other_tables(
    path: Path, table: Path, match: ContentMatch | None, then: str = ""
) -> files.FitOfOtherTablesError:
    """Return the error for a result that a run has kept, but that is not of its table."""
    reason = {
        ContentMatch.GROWN: f"was made before the last rows of {table.name}",
        ContentMatch.OTHER: f"was made from another table than {table.name} is now",
        None: f"does not say whether it was made from the present {table.name}",
    }[match]
    return files.FitOfOtherTablesError(
        f"{path} {reason}{then}; make it again with "
        f"`{CommandLine('fit', 'potential', path.parent)}`."
    )


def _in_window(result: StaticPotential) -> NDArray[np.bool_]:
    """Return which points were part of the most probable fit."""
    ends = (result.best.r_min, result.best.r_max) if result.best else (math.inf, 0.0)
    r = result.distances
    return np.asarray((r >= ends[0] - 1e-9) & (r <= ends[1] + 1e-9))


def _parted(
    result: StaticPotential, value: NDArray[Any], error: NDArray[Any], symbol: dict[str, Any]
) -> Iterator[Symbols]:
    """Yield the points that were fitted, and the others, which are hollow."""
    r, fitted = result.distances, _in_window(result)
    for some, face in ((fitted, symbol["color"]), (~fitted, "white")):
        style = {**symbol, "markerfacecolor": face, "zorder": 3}
        yield Symbols(r[some], value[some], error[some], style=style)


def _potential(
    result: StaticPotential, fit: FormFit, symbol: dict[str, Any], label: str
) -> Iterator[Mark]:
    """Yield the points, the fit with its band, and what the legend in the frame says of them."""
    error = np.array([point.error for point in result.points])
    yield from _parted(result, result.continuum, error, symbol)
    first = 0.9 * result.points[0].distance
    for low, high, dashes in ((first, fit.r_min, "--"), (fit.r_min, fit.r_max, "-")):
        x = np.linspace(low, high, 200)
        yield Stroke(x, *fit.curve(x), style={"color": symbol["color"], "linestyle": dashes})
    yield Symbols([], [], [], style={**symbol, "linestyle": "-", "label": label})


def _residuals(result: StaticPotential) -> NDArray[np.float64]:
    """Return the residuals of all points, in units of their errors."""
    error = np.array([point.error for point in result.points])
    curve = result.best.curve(result.distances)[0] if result.best else result.continuum
    return np.asarray((result.continuum - curve) / error)


def _outside(result: StaticPotential, symbol: dict[str, Any], limit: float) -> Iterator[Stroke]:
    """Yield arrows at the edge for residuals outside the frame, of points that were not fitted."""
    for point, residual in zip(result.points, _residuals(result), strict=True):
        if abs(residual) > limit:
            side = math.copysign(1, residual)
            style = {**HOLLOW, "color": symbol["color"], "marker": "^" if side > 0 else "v"}
            yield Stroke([point.distance], [0.9 * side * limit], style=style)


def _legend(label: str, result: StaticPotential, brief: bool) -> str:
    """Return the label of a run and its scales as text for a legend."""
    names = {"sigma": r"\sigma a^2", "r0": "r_0/a", "spacing": "a"}
    values = [
        f"${symbol}={result.scales[name]}${r' fm' * (name == 'spacing')}"
        for name, symbol in names.items()
        if name in result.scales
    ]
    return "\n".join([typeset(label), ",  ".join(values[: 3 - brief])])


SYMBOLS = {"r0": "r_0", "r1": "r_1", "rc": "r_c"}
"""Symbols of the scales, as mathematical text."""

FORCE_HEADROOM = 1.06
"""Upper end of the axis in units of the largest force, with its error, and of that at r0."""

LARGEST_FORCE_ERROR = 0.25
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
        shown = [x for _, result in runs for x in result.force if _is_known(x)]
        if not shown:
            raise GaugeError(
                f"All forces have errors of more than {LARGEST_FORCE_ERROR:.0%}; measure more "
                "configurations."
            )

        def name_scales(axes: Axes) -> None:
            place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
            for name, target in FORCES.items():
                axes.annotate(f"${SYMBOLS[name]}$", (1.01, target), **place)

        marks: list[Mark] = []
        for i, (label, result) in enumerate(runs):
            symbol = look(i)
            for on_axis, face in ((True, symbol["color"]), (False, "white")):
                some = [p for p in result.force if (p.path == AXIS) == on_axis and _is_known(p)]
                style = {**symbol, "markerfacecolor": face}
                x, y = [point.distance for point in some], [point.scaled for point in some]
                marks.append(Symbols.of(x, y, style))
            scales = {name: result.scales[name] for name in FORCES if name in result.scales}
            words = ",  ".join(f"${SYMBOLS[name]}/a={x}$" for name, x in scales.items())
            text = "\n".join(filter(None, (typeset(label), words)))
            marks.append(KeyEntry(style={**symbol, "linestyle": "none"}, text=text))
            for name, scale in scales.items() if len(runs) == 1 else ():
                marks.append(Abscissa(scale.value, FORCES[name], style={"color": symbol["color"]}))
        dotted = {"color": GREY, "linestyle": ":", "linewidth": 0.8, "zorder": 0}
        marks += [Guide(target, style=dotted) for target in FORCES.values()]
        marks += _key(runs, len(shown))
        highest = max(x.scaled.value + x.scaled.error for x in shown)
        lowest = min(x.scaled.value - x.scaled.error for x in shown)
        low, high = FORCE_HEADROOM * lowest, FORCE_HEADROOM * max(highest, *FORCES.values())
        largest = max(x.distance for x in shown)
        ends = {"xlim": (0, 1.05 * largest), "ylim": (min(0, low), high)}
        axis = r"$r_\mathrm{I}^2\,F(r_\mathrm{I})$"
        frame = Frame(marks, r"$r_\mathrm{I}/a$", axis, ends, name_scales)
        return Picture([frame], 3.6 + 2.6 * LINE * len(runs))


PLOTS.register(ForcePlot())


def _is_known(force: ForcePoint) -> bool:
    """Return whether a force is known well enough to be drawn."""
    return force.scaled.error < LARGEST_FORCE_ERROR * abs(force.scaled.value)


def _key(runs: Runs, shown: int) -> list[Mark]:
    """Return the entries of the legend that explain symbols, errors, and what is left out."""
    every = [x for _, result in runs for x in result.force]
    hollow = any(x.path != AXIS for x in every)
    entries = [KeyEntry(style=HOLLOW, text="hollow: off axis")] if hollow else []
    words = []
    if any(FORCES.keys() & result.scales.keys() for _, result in runs):
        words.append("errors of the scales: statistical, and the scatter of forms and windows")
    if left_out := len(every) - shown:
        points = f"{left_out} points" if left_out > 1 else "one point"
        words.append(f"not drawn: {points} with errors of more than {LARGEST_FORCE_ERROR:.0%}")
    return [*entries, *(KeyEntry(style={"linestyle": "none"}, text=word) for word in words)]


HEADROOM = 0.15
"""Free space above and below the points, in units of their range."""


class ScalingPlot(PlotOfPotentials):
    """r0 [V(R) - V(r0)] of several runs against R/r0, where all couplings should agree."""

    name = "scaling"
    summary = "r₀ [V(R) − V(r₀)] against R/r₀ for several β (needs fit potential)"

    def picture(self, runs: Runs) -> Picture:
        """Return r0 [V(R) - V(r0)] against R/r0 for several runs, with the string of Luescher.

        V(r0) is from the most probable fit. The error bars are those of V(R); the error of r0 is in
        the legend. Points off axis are hollow.

        For errors see `PlotOfPotentials.picture`.
        """
        require(runs)
        for label, result in runs:
            if "r0" not in result.scales:
                raise GaugeError(
                    f"r0 of {label or 'the run'} is not known; leave it out, or measure larger R."
                )
        marks, least, largest, values, hollow = list[Mark](), 1.0, 1.0, [], False
        for i, (label, result) in enumerate(runs):
            symbol, scale = look(i), result.scales["r0"]
            r0 = scale.value.value
            nan = result.best.curve(np.array([r0]))[0] if result.best else math.nan
            x, y = result.distances / r0, r0 * (result.continuum - nan)
            error = r0 * np.array([point.error for point in result.points])
            on_axis = np.array([point.path == AXIS for point in result.points])
            for some, face in ((on_axis, symbol["color"]), (~on_axis, "white")):
                inner = {**symbol, "capsize": 0, "markerfacecolor": face, "zorder": 2}
                marks.append(Symbols(x[some], y[some], error[some], style=inner))
            hollow |= not on_axis.all()
            text = f"{typeset(label)}:  $r_0/a={scale}$"
            marks.append(KeyEntry(style={**symbol, "linestyle": "none"}, text=text))
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


LARGEST_ERROR = 0.25
"""Relative error above which a point is not drawn; it would hide the others."""


class AnisotropyPlot(TablePlot):
    """Ratios of Wilson loops in space and along t, and xi(x, y) with its average."""

    name = "anisotropy"
    summary = "ratios of Wilson loops in space and along t, and ξ(x, y)"
    fit: ClassVar[str] = "anisotropy"
    subject: ClassVar[str] = "The anisotropy"
    columns: ClassVar[tuple[str, ...]] = AnisotropyFit.columns
    options: ClassVar[tuple[Option, ...]] = AnisotropyFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show ln R_s(x, y) against y and ln R_t(x, t) against t / xi, and below them xi(x, y)."""
        anisotropy = AnisotropyFit().carry_out([table], **options).found
        xi, ratios, points = anisotropy.xi, list[Mark](), list[Mark]()
        caution(*xi.cautions)
        for i, x in enumerate(sorted({x.x for x in anisotropy.space})):
            full = {**look(i), "linestyle": "none"}
            hollow = {**full, "markerfacecolor": "white"}
            along_t = [(y.t / xi.value, y.value) for y in anisotropy.time if y.x == x]
            in_space = [(y.t, y.value) for y in anisotropy.space if y.x == x]
            ratios += [*_known(along_t, hollow), *_known(in_space, full)]
            ratios.append(KeyEntry(style=full, text=f"$x={x}$"))
            shifted = [(p.y + 0.06 * i, p.xi) for p in anisotropy.points if p.x == x]
            points += _known(shifted, full)
        band: dict[str, Any] = {"color": GREY, "alpha": 0.4}
        ends = xi.value - xi.error, xi.value + xi.error
        points.append(Sketch(lambda axes: axes.axhspan(*ends, zorder=0, **band)))
        ratios.append(KeyEntry(style={**band, "linewidth": 6}, text=rf"$\xi={xi}$"))
        label = r"$\ln R_s(x,y)$ (full), $\ln R_t(x,\xi y)$ (hollow)"
        frames = Frame(ratios, "", label), Frame(points, "$y$", r"$\xi(x,y)$")
        layout = {"nrows": 2, "sharex": True, "height_ratios": (3, 2)}
        return Picture(frames, 6.4, columns=3, layout=layout)


PLOTS.register(AnisotropyPlot())


def _known(values: Sequence[tuple[float, Estimate]], style: Mapping[str, Any]) -> list[Symbols]:
    """Return points of the values that are known well enough to be drawn, if there are any."""
    points = [(x, y) for x, y in values if y.error < LARGEST_ERROR * abs(y.value)]
    return [Symbols.of([x for x, _ in points], [x for _, x in points], style)] if points else []


DIRECTIONS = in_words([*map(bracketed, PATHS)], "or")
"""The directions of loops in words."""

LARGEST_LOOP_ERROR = 0.1
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
            files.find_table_by_columns(run, loop_tables.LOOP_COLUMNS), options.get(SKIP.name, 0)
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
            except files.FitOfOtherTablesError as error:
                if files.wants_exact():
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
    values = np.where(grid.error < LARGEST_LOOP_ERROR, grid.value, np.nan)
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
            heights = np.where(above.error < LARGEST_LOOP_ERROR, above.value, np.nan)
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
