"""Figures: files, style, and the elements that several plots share.

Each run has its own colour and marker. The palette is that of M. Okabe and K. Ito, "Color universal
design" (2008), whose colours can be distinguished with every kind of colour vision.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action
from gauge_mc.analysis.timeseries import Estimate, estimate, with_error
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.libraries import load
from gauge_mc.quoting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curves = Sequence[tuple[str, Sequence[tuple[float, Estimate]]]]
"""Curves of a plot: each has a label and points (value of the abscissa, average)."""

MARKS = {"pdf": b"%PDF-", "png": b"\x89PNG\r\n", "svg": b"<svg"}
"""Marks among the first `MARK_BYTES` of a figure, by the ending of its name."""

MARK_BYTES = 4096

ENDINGS = tuple(MARKS)
"""File formats of figures, by the ending of the file name."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>PX"

WIDTH = 6.3
"""Width of a figure in inches: the text width of an A4 page with margins of 25 mm."""

STYLE_DPI = 200
"""Usual resolution of PNG files in pixels per inch."""

SIDES = 1.0, 60.0
"""Bounds of the sides of a figure in inches."""

DPIS = 20, 2400
"""Bounds of the resolution in pixels per inch."""

MOST_PIXELS = 20_000
"""Maximum number of pixels of a side of a figure, which otherwise could fill the memory."""

STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11.0,
    "legend.fontsize": 9.5,
    "legend.title_fontsize": 9.5,
    "legend.handlelength": 1.6,
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
}

GREY = "0.35"
"""Colour of lines in a legend that stand for the lines of all runs."""

SHADE = "0.9"
"""Colour of the updates that are left out of the averages."""

LINE = 0.2
"""Height of a line of a legend in inches."""

DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
"""The digits 0 to 9 as superscripts, for exponents."""
SUPERSCRIPTS, NORMAL = str.maketrans("0123456789", DIGITS), str.maketrans(DIGITS, "0123456789")
"""Translation tables from digits to superscripts, and back."""


@dataclass(frozen=True)
class History:
    """A time series of one run.

    Attributes
    ----------
    label : str
        Name of the run in the legend.
    sweeps : ndarray of int64, shape (samples,)
        Number of the update after which each measurement was made, ascending.
    values : ndarray of float64 or complex128, shape (samples,)
        The measurements.
    """

    label: str
    sweeps: NDArray[np.int64]
    values: NDArray[Any]

    def after(self, update: int) -> History:
        """Return the measurements that were made after an update."""
        later = self.sweeps > update
        return History(self.label, self.sweeps[later], self.values[later])


def named_apart(action: Action) -> tuple[list[str], list[str]]:
    """Return the name of an action, unless it is the usual one, and its unusual options."""
    name = [] if action.name == defaults.ACTION else [action.name]
    return name, [one.drawn(value) for one, value in action.changed.items()]


def physics_label(group: str, lattice: Lattice, beta: float | None = None) -> str:
    """Return a short description of an ensemble, such as ``SU(3), β = 6, 16³×32``."""
    factors = []
    for extent, same in groupby(lattice.extents):
        count = len(list(same))
        factors.append(f"{extent}{str(count).translate(SUPERSCRIPTS) if count > 1 else ''}")
    coupling = [] if beta is None else [f"β = {beta:g}"]
    return ", ".join([group, *coupling, "×".join(factors)])


@dataclass(frozen=True)
class FigureFormat:
    """The size and the resolution of figures, as the user wants them.

    Attributes
    ----------
    size : (float, float) or None
        Width and height in inches; None for the size that suits a figure.
    dpi : int
        Pixels per inch of a PNG file.

    Raises
    ------
    UsageError
        If a side or the resolution is out of bounds, or the figure has too many pixels.
    """

    size: tuple[float, float] | None = None
    dpi: int = STYLE_DPI

    def __post_init__(self) -> None:
        least, most = SIDES
        for side in self.size or ():
            if not least <= side <= most:
                raise UsageError(
                    f"--size has a side of {side:g} inches; choose {least:g} to {most:g}."
                )
        if not DPIS[0] <= self.dpi <= DPIS[1]:
            raise UsageError(f"--dpi is {self.dpi}; choose {DPIS[0]} to {DPIS[1]}.")
        if max(self.size or (0,)) * self.dpi > MOST_PIXELS:
            raise UsageError(
                f"--size and --dpi make more than {MOST_PIXELS} pixels; choose a smaller one."
            )

    @classmethod
    def parse(cls, size: str | None, dpi: int | None) -> FigureFormat:
        """Return the form for a size such as ``6x4`` and a resolution, if they are given.

        Raises
        ------
        UsageError
            If the size is not of this form; see also the class.
        """
        sides = None
        if size is not None:
            found = re.fullmatch(
                r"([0-9]{1,3}(?:\.[0-9]{1,6})?)x([0-9]{1,3}(?:\.[0-9]{1,6})?)", size
            )
            if not found:
                raise UsageError(
                    f"--size is '{shortened(size, 40)}'; give width and height in inches, as in "
                    "6.3x4."
                )
            sides = float(found[1]), float(found[2])
        return cls(sides, STYLE_DPI if dpi is None else dpi)


USUAL = FigureFormat()
"""The form of figures outside `drawn_as`."""

_form: ContextVar[FigureFormat] = ContextVar("form", default=USUAL)


@contextmanager
def drawn_as(form: FigureFormat) -> Iterator[None]:
    """Give all figures that are drawn in a context a size and a resolution."""
    before = _form.set(form)
    try:
        yield
    finally:
        _form.reset(before)


_kept: ContextVar[list[Figure] | None] = ContextVar("kept", default=None)
"""Figures that have been drawn within `kept_figures`."""


@contextmanager
def kept_figures() -> Iterator[list[Figure]]:
    """Collect all figures that are drawn in a context, instead of writing them to files."""
    figures: list[Figure] = []
    token = _kept.set(figures)
    try:
        yield figures
    finally:
        _kept.reset(token)


@contextmanager
def figure_file(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """Open an empty figure of the given size in inches, and write it to `path` on leaving.

    Within `drawn_as` its size and resolution are those of the form. Within `kept_figures` it is not
    written.

    Raises
    ------
    UsageError
        If `path` does not end in one of `ENDINGS`, or something else than a figure is there.
    GaugeError
        If Matplotlib is missing, or the file cannot be written.
    """
    kept = _kept.get()
    if kept is None:
        figure_kind(path).check(path)
    with _style():
        from gauge_mc.plots.figures.inline_figure import InlineFigure  # Matplotlib is here by now

        figure = InlineFigure(figsize=_form.get().size or size, layout="constrained")
        yield figure
    if kept is None:
        write_figure(figure, path)
    else:
        kept.append(figure)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file; for errors see `figure_file`."""
    kind = figure_kind(path)
    kind.check(path)
    ending = _ending(path)
    date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[ending]
    with _style(), replacing(path, kind=kind) as file:
        figure.savefig(file, format=ending, metadata=date, dpi=_form.get().dpi)


def figure_kind(path: Path) -> FileKind:
    """Return the kind of figures with the ending of a path.

    Raises
    ------
    UsageError
        If the path does not end in one of `ENDINGS`.
    """
    ending = _ending(path)
    if ending not in ENDINGS:
        raise UsageError(
            f"The plot {path} has an unknown format; let its name end in .pdf, .png or .svg."
        )
    return FileKind(f"a figure in {ending.upper()}", partial(_is_figure, ending))


def _ending(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


@contextmanager
def _style() -> Iterator[None]:
    """Draw and write figures in the style of this package, whatever the user has set."""
    matplotlib = load("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        yield


def _is_figure(ending: str, path: Path) -> bool:
    """Return whether a file begins like a figure of a format."""
    with suppress(OSError), path.open("rb") as file:
        return MARKS[ending] in file.read(MARK_BYTES)
    return False


def look(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th run."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def draw_curves(axes: Axes, curves: Curves) -> None:
    """Draw averages with errors against a variable, joined by lines to guide the eye."""
    for i, (label, points) in enumerate(curves):
        x = np.array([one for one, _ in points])
        value = np.array([found.value for _, found in points])
        error = np.nan_to_num([found.error for _, found in points])
        axes.plot(x, value, color=look(i)["color"], alpha=0.4, linewidth=0.8)
        axes.errorbar(x, value, error, **look(i), linestyle="none", label=typeset(label))


def draw_panels(panels: Sequence[tuple[str, Curves]], abscissa: str, path: Path) -> None:
    """Draw averages of several quantities against one variable, in panels below each other.

    Parameters
    ----------
    panels : sequence of (str, curves)
        For each quantity the label of its axis and its curves, sorted by the variable.
    abscissa : str
        The label of the variable.
    path : Path
        The file to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is nothing to plot.
    """
    require(panels)
    for _, curves in panels:
        require(curves)
    with figure_file(path, (WIDTH, 2.4 + 1.8 * len(panels))) as figure:
        rows = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        values = {x for _, curves in panels for _, points in curves for x, _ in points}
        for axes, (name, curves) in zip(rows, panels, strict=True):
            draw_curves(axes, curves)
            axes.set_ylabel(name)
            if len(values) == 1:
                _write_values(axes, curves)
        if len(values) == 1:
            rows[-1].set_xticks(list(values), [f"{x:.12g}" for x in values])
            rows[-1].tick_params(which="minor", bottom=False, top=False)
        rows[-1].set_xlabel(abscissa)
        rows[0].legend(loc="best")
        figure.align_ylabels()


def _write_values(axes: Axes, curves: Curves) -> None:
    """Write the averages of points with the same abscissa next to them."""
    for i, (_, points) in enumerate(curves):
        for x, found in points:
            axes.annotate(
                f"${minus(found)}$",
                (x, found.value),
                (12, 0),
                textcoords="offset points",
                va="center",
                color=look(i)["color"],
            )


def integer_ticks(axes: Axes) -> None:
    """Put the ticks of the abscissa at integers only."""
    ticker = load("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def draw_history(
    axes: Axes, history: History, look: dict[str, Any], skip: int = 0, label: str = ""
) -> None:
    """Draw a series and its running mean, which is the mean of all values up to each update.

    Parameters
    ----------
    axes : Axes
    history : History
    look : dict
        Colour and marker of the run.
    skip : int
        Last update that is left out of the running mean.
    label : str
        Label of the running mean in the legend.
    """
    axes.plot(history.sweeps, history.values, **series_line(look["color"]), zorder=1)
    kept = history.after(skip)
    running = np.cumsum(kept.values) / np.arange(1, kept.values.size + 1)
    every = max(1, running.size // 8)  # about eight markers are legible
    marks = (every // 2, every)
    axes.plot(kept.sweeps, running, **mean_line(look), markevery=marks, zorder=3, label=label)


def series_line(colour: str) -> dict[str, Any]:
    """Return the style of the line that joins the measurements of a run."""
    return {"color": colour, "alpha": 0.55, "linewidth": 0.6}


def mean_line(look: dict[str, Any]) -> dict[str, Any]:
    """Return the style of a running mean, which is darker than the measurements below it."""
    rgb = load("matplotlib.colors").to_rgb(look["color"])
    return {**look, "color": tuple(0.6 * one for one in rgb), "linewidth": 1.4}


def shade_skipped(axes: Axes, histories: Sequence[History], skip: int) -> bool:
    """Shade the measurements that are left out of averages; return whether there are any."""
    first = min(history.sweeps[0] for history in histories)
    if skip >= first:
        axes.axvspan(first, skip + 0.5, color=SHADE, zorder=0)
    return bool(skip >= first)


def key_of_lines(looks: Sequence[dict[str, Any]], shaded: bool) -> list[tuple[Any, str]]:
    """Return handles and labels of a legend that says what the lines of a time series show.

    Parameters
    ----------
    looks : sequence of dict
        Colours and markers of the runs. If there are several, the key is grey.
    shaded : bool
        Whether measurements are shaded, because they are left out of averages.
    """
    own = looks[0] if len(looks) == 1 else {"color": GREY, "marker": ""}
    line, patch = load("matplotlib.lines").Line2D, load("matplotlib.patches").Patch
    entries = [
        (line([], [], **series_line(own["color"])), "each measurement"),
        (line([], [], **mean_line(own)), "running mean"),
    ]
    return [*entries, (patch(color=SHADE), "not averaged")] if shaded else entries


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


def draw_distribution(
    axes: Axes,
    history: History,
    look: dict[str, Any],
    horizontal: bool = True,
    filled: bool = True,
) -> None:
    """Draw a histogram of a series; for complex values, of their real parts."""
    values = np.real(history.values)
    bins = min(40, max(5, math.isqrt(values.size)))  # square-root rule, within legible limits
    density, edges = np.histogram(values, bins, density=True)
    orientation: Any = "horizontal" if horizontal else "vertical"
    axes.stairs(density, edges, orientation=orientation, color=look["color"])
    if filled:
        shade = {"color": look["color"], "fill": True, "alpha": 0.2}
        axes.stairs(density, edges, orientation=orientation, **shade)


def describe_history(
    history: History, symbol: str = r"\mathrm{mean}", with_unit: bool = True
) -> str:
    """Return the mean, its error and tau_int of a series as text for a legend.

    Parameters
    ----------
    history : History
    symbol : str
        Symbol of the mean, as mathematical text; empty for the number alone.
    with_unit : bool
        Whether to state the unit of tau_int, if that is updates.
    """
    result = estimate(history.values)
    steps = np.diff(history.sweeps)
    even = steps.size > 0 and (steps == steps[0]).all()
    step, unit = (int(steps[0]), "updates") if even else (1, "measurements")
    mean = f"${symbol}{'=' if symbol else ''}{minus(result)}$"
    if not math.isfinite(result.error):
        return mean
    tau_int = with_error(result.tau_int * step, result.tau_int_error * step)
    words = f" {unit}" if with_unit or not even else ""
    return f"{mean},  $\\tau_\\mathrm{{int}}={tau_int}${words}"


def check_history(history: History, skip: int = 0) -> None:
    """Refuse a series that cannot be drawn.

    Raises
    ------
    GaugeError
        If the series is empty or contains a value that is not a number.
    UsageError
        If `skip` is negative, or no measurement was made after the update `skip`.
    """
    if history.values.size == 0 or not np.isfinite(history.values).all():
        raise GaugeError(
            f"The series of {history.label or 'the run'} is empty or contains a value that is not "
            "a number."
        )
    if skip < 0:
        raise UsageError(f"--skip is {skip}; give 0 or a positive number of updates.")
    last = history.sweeps[-1]
    if skip >= last:
        raise UsageError(
            f"--skip {skip} leaves no measurements of {history.label or 'the run'}, whose last one "
            f"was made after update {last}; skip less."
        )


def require(items: Sequence[object]) -> None:
    """Refuse an empty list of things to plot.

    Raises
    ------
    GaugeError
        If `items` is empty.
    """
    if not items:
        raise GaugeError("There is nothing to plot: no run with measurements was given.")


COMMANDS = {"β": r"\beta", "κ": r"\kappa", "μ": r"\mu", "×": r"\times"}
"""Commands of mathematical text for characters of labels."""


def typeset(label: str) -> str:
    """Return a label as Matplotlib text, with symbols and exponents in mathematical mode."""
    text = label.replace("$", r"\$")
    for character, command in COMMANDS.items():
        text = text.replace(character, f"${command}$")
    return re.sub(f"[{DIGITS}]+", lambda found: f"$^{{{found[0].translate(NORMAL)}}}$", text)


def minus(result: Estimate) -> str:
    """Return an estimate as mathematical text, with a minus sign that is set without spacing."""
    text = str(result).replace("-", "{-}", 1) if result.value < 0 else str(result)
    return re.sub(r"e([+-]?)0*(\d+)$", r"\\times10^{\1\2}", text)
