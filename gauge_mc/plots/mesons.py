"""Correlators of mesons with their fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.hadrons.correlators import describe_quarks
from gauge_mc.analysis.hadrons.folded import Correlator
from gauge_mc.analysis.hadrons.mass_series import MassSeries
from gauge_mc.analysis.hadrons.states import HadronState
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits.mesons import MesonFit
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quoting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[[Axes, MassSeries, HadronState, dict[str, Any], float], None]

ErrorBars = list[tuple[int, float, float]]
"""Times, values and errors."""

SYMBOLS = {
    "pion": r"\pi",
    "rho": r"\rho",
    "a0": "a_0",
    "a1": "a_1",
    "b1": "b_1",
    "nucleon": "N",
    "delta": r"\Delta",
}
"""Symbols of hadrons, as mathematical text; others are shown by their names."""

HEIGHT, HEAD = 1.9, 0.9
"""Height of a frame, and of what is above all frames and below them, in inches."""

HADRONS = Option(
    "hadrons",
    str,
    "Hadrons to draw, such as pion,rho,nucleon+; a baryon without a sign has both parities.",
    "all",
    "NAME,...",
)
"""The option of plots with a frame for each hadron."""

WIDER = 0.35
"""Growth of the width of a figure with every further column of frames, relative to one column."""

SHIFT, MOST_SHIFT = 0.06, 0.36
"""Distance of the symbols of different quarks at the same t, and of the outermost ones, in t/a."""

MOST = 7
"""Largest number of quark masses in a figure, which is that of the colours."""


class MesonPlot(TablePlot):
    """Correlators of mesons at rest, with their fits; a frame for each meson."""

    name = "mesons"
    summary = "correlators of mesons with their fits"
    subject: ClassVar[str] = "A correlator"
    columns: ClassVar[tuple[str, ...]] = MesonFit.columns
    options: ClassVar[tuple[Option, ...]] = (*MesonFit.options, HADRONS)

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the correlators; see `TablePlot.draw_table`."""
        chosen = chosen_hadrons(options)
        _, series = MesonFit().fitted(table, options)
        plot_correlators(series, file, label, chosen)


PLOTS.register(MesonPlot())


def symbol(name: str) -> str:
    """Return the symbol of a hadron with its parity, as mathematical text."""
    bare = name.rstrip("+-")
    parity = f"^{{{name[len(bare) :]}}}" if name != bare else ""
    return SYMBOLS.get(bare, rf"\mathrm{{{bare}}}") + parity


def label_of(state: HadronState) -> str:
    """Return the name of a hadron with its parity, as in the results of fits."""
    return state.name + {1: "+", -1: "-", 0: ""}[state.parity]


def chosen_hadrons(given: dict[str, Any]) -> list[str]:
    """Take the names of the hadrons out of the options of a plot; none stands for all."""
    return [name.strip() for name in given.pop(HADRONS.name, "").split(",") if name.strip()]


def frames_of(
    fits: Sequence[MassSeries],
    points: Callable[[Correlator], ErrorBars],
    chosen: Sequence[str] = (),
) -> dict[str, list[tuple[MassSeries, HadronState]]]:
    """Return the hadrons at rest by name, fitted or not, if there are points to draw.

    They come in the order in which they were chosen, or else in that of `SYMBOLS`. If there are
    many combinations of two quarks, only those of two equal quarks are returned.

    Raises
    ------
    UsageError
        If there is no such hadron.
    """
    found: dict[str, list[tuple[MassSeries, HadronState]]] = {}
    for series in fits:
        for state, correlator in series.correlators.items():
            if state.at_rest and points(correlator):
                found.setdefault(label_of(state), []).append((series, state))
    usual = sorted(found, key=_place)
    wanted = [name for one in chosen for name in usual if one in (name, name.rstrip("+-"))]
    for one in chosen:
        if not any(one in (name, name.rstrip("+-")) for name in usual):
            raise UsageError(
                f"{HADRONS.flag}: there is no correlator of '{shortened(one, 40)}' that could be "
                f"drawn; choose from {', '.join(usual)}."
            )
    return {
        name: pairs
        if len(pairs) <= MOST
        else [one for one in pairs if one[1].quarks[0] == one[1].quarks[1]][:MOST]
        for name, pairs in ((name, found[name]) for name in (wanted if chosen else usual))
    }


def _place(name: str) -> tuple[int, str]:
    """Return what the names of hadrons are sorted by: the order of `SYMBOLS`, then the parity."""
    known, bare = list(SYMBOLS), name.rstrip("+-")
    return (known.index(bare) if bare in known else len(known), name)


def quarks(state: HadronState) -> str:
    """Return the quarks and the source of a hadron as text for a legend."""
    return typeset(f"{describe_quarks(*state.quarks)}, {state.source}")


def columns_of(frames: int) -> int:
    """Return the number of columns of frames: one for few of them, at most three."""
    return 1 if frames <= 3 else 2 if frames <= 6 else 3


def draw_frames(
    frames: Mapping[str, Sequence[tuple[MassSeries, HadronState]]],
    draw: Draw,
    path: Path,
    title: str = "",
    scale: str = "linear",
    key: Sequence[tuple[Any, str]] = (),
) -> None:
    """Draw a frame for each hadron, in rows and columns; a colour stands for quarks and a source.

    Parameters
    ----------
    frames : mapping of str to sequence of (MassSeries, HadronState)
        Hadrons of each frame, by the label of its axis.
    draw : callable
        Draws a hadron, given the frame, its series, the hadron, its colour and marker, and its
        shift along t.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.
    scale : str
        Scale of the axes, as Matplotlib names it.
    key : sequence of (handle, str)
        Entries of the legend that explain the fits, if there are any.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no frame.
    """
    if not frames:
        raise GaugeError("All correlators are too noisy to be drawn; measure more configurations.")
    line = load("matplotlib.lines").Line2D
    names = dict.fromkeys(quarks(one) for pairs in frames.values() for _, one in pairs)
    looks = {name: look(i) for i, name in enumerate(names)}
    step = min(SHIFT, MOST_SHIFT / len(names))
    shifts = {name: step * (i - (len(names) - 1) / 2) for i, name in enumerate(names)}
    columns = columns_of(len(frames))
    rows = math.ceil(len(frames) / columns)
    size = WIDTH * (1 + WIDER * (columns - 1)), HEAD + HEIGHT * rows
    with figure_file(path, size) as figure:
        every = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
        used, unused = every[: len(frames)], every[len(frames) :]
        for axes in unused:
            axes.remove()
        for axes, (name, pairs) in zip(used, frames.items(), strict=True):
            for series, state in pairs:
                draw(axes, series, state, looks[quarks(state)], shifts[quarks(state)])
            axes.set_yscale(scale)
            axes.set_ylabel(name)
        sideways = " (points are shifted sideways for clarity)" if len(names) > 1 else ""
        for axes in used[-columns:]:  # the lowest frame of each column
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(f"$t/a${sideways if columns == 1 or axes is used[-1] else ''}")
            integer_ticks(axes)
        figure.align_ylabels()
        entries = [(line([], [], **own, linestyle="none"), name) for name, own in looks.items()]
        if any(state in series.masses for pairs in frames.values() for series, state in pairs):
            entries += key
        add_heading(figure, used[0], entries, title, 3)


def plot_correlators(
    series: MassSeries, path: Path, title: str = "", chosen: Sequence[str] = ()
) -> None:
    """Plot correlators on a logarithmic scale with their fits, which are dashed where not fitted.

    Parameters
    ----------
    series : MassSeries
        Fitted correlators.
    path, title
        See `draw_frames`.
    chosen : sequence of str
        Names of the hadrons to draw; all if there are none.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file` and `frames_of`.
    """
    frames = {
        f"$C_{{{symbol(name)}}}(t)$": pairs
        for name, pairs in frames_of([series], _points, chosen).items()
    }
    line = load("matplotlib.lines").Line2D
    key = [
        (line([], [], color=GREY), "fit"),
        (line([], [], color=GREY, linestyle="--"), "its continuation"),
    ]
    draw_frames(frames, _draw, path, title, "log", key)


def _points(correlator: Correlator) -> ErrorBars:
    """Return the moduli of a correlator with their errors, unless the errors are larger."""
    found = [estimate(one) for one in correlator.values.T]
    known = [(t, abs(one.value), one.error) for t, one in enumerate(found) if t]
    return [one for one in known if one[1] > one[2]]  # others would hide the rest


def _draw(
    axes: Axes, series: MassSeries, state: HadronState, own: dict[str, Any], shift: float
) -> None:
    """Draw a correlator and its fit, if there is one."""
    correlator = series.correlators[state]
    at, value, error = np.transpose(_points(correlator))
    axes.errorbar(at + shift, value, error, **own, linestyle="none")
    if state not in series.masses:
        return
    fit, _ = series.masses[state]
    parameters = np.array([np.log(abs(fit.amplitude.value)), fit.mass.value])
    for low, high, dashes in ((1, fit.t_min, "--"), (fit.t_min, fit.t_max, "-")):
        t = np.linspace(low, high, 100)
        curve = np.abs(correlator.curve(t)(parameters)[0])
        axes.plot(t + shift, curve, dashes, color=own["color"])
