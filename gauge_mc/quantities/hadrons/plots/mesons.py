"""Correlators of mesons with their fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.looks import GREY, WIDTH, look
from gauge_mc.plots.figures.pictures import (
    Frame,
    KeyEntry,
    Mark,
    Picture,
    Stroke,
    Symbols,
)
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.hadrons.analysis.correlators import describe_quarks
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.states import HadronState
from gauge_mc.quantities.hadrons.fits.mesons import MesonFit
from gauge_mc.quoting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Marks = Callable[[MassSeries, HadronState, dict[str, Any], float], Iterable[Mark]]
"""The content of a frame of a hadron; see `picture_of_frames`."""

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

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the correlators; see `correlators_picture`."""
        chosen = chosen_hadrons(options)
        return correlators_picture(MesonFit().fitted(table, options)[1], chosen)


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


def picture_of_frames(
    frames: Mapping[str, Sequence[tuple[MassSeries, HadronState]]],
    marks: Marks,
    scale: str = "linear",
    key: Sequence[KeyEntry] = (),
) -> Picture:
    """Return a frame for each hadron, in rows and columns; a colour stands for quarks and a source.

    Parameters
    ----------
    frames : mapping of str to sequence of (MassSeries, HadronState)
        Hadrons of each frame, by the label of its axis.
    marks : callable
        Returns what is drawn of a hadron, given its series, the hadron, its colour and marker, and
        its shift along t.
    scale : str
        Scale of the axes, as Matplotlib names it.
    key : sequence of KeyEntry
        Entries of the legend that explain the fits, if there are any.

    Raises
    ------
    GaugeError
        If there is no frame.
    """
    if not frames:
        raise GaugeError("All correlators are too noisy to be drawn; measure more configurations.")
    names = dict.fromkeys(quarks(one) for pairs in frames.values() for _, one in pairs)
    looks = {name: look(i) for i, name in enumerate(names)}
    step = min(SHIFT, MOST_SHIFT / len(names))
    shifts = {name: step * (i - (len(names) - 1) / 2) for i, name in enumerate(names)}
    legend = [
        KeyEntry(style={**own, "linestyle": "none"}, text=name) for name, own in looks.items()
    ]
    if any(state in series.masses for pairs in frames.values() for series, state in pairs):
        legend += key
    columns = columns_of(len(frames))
    sideways = " (points are shifted sideways for clarity)" if len(names) > 1 else ""
    made = []
    for number, (name, pairs) in enumerate(frames.items(), 1):
        drawn = [
            mark
            for series, state in pairs
            for mark in marks(series, state, looks[quarks(state)], shifts[quarks(state)])
        ]
        one = Frame([*legend, *drawn], "", name, {"yscale": scale})
        legend = []
        if number > len(frames) - columns:  # the lowest frame of each column
            said = sideways if columns == 1 or number == len(frames) else ""
            one = replace(one, x=f"$t/a${said}", finish=_finish_lowest)
        made.append(one)
    rows = math.ceil(len(frames) / columns)
    return Picture(
        made,
        HEAD + HEIGHT * rows,
        columns=3,
        layout={"nrows": rows, "ncols": columns, "sharex": True},
        aligned=True,
        width=WIDTH * (1 + WIDER * (columns - 1)),
    )


def _finish_lowest(axes: Axes) -> None:
    """Show the times below the lowest frame of a column."""
    axes.tick_params(labelbottom=True)
    integer_ticks(axes)


def correlators_picture(series: MassSeries, chosen: Sequence[str] = ()) -> Picture:
    """Return correlators on a logarithmic scale with their fits, dashed where not fitted.

    Parameters
    ----------
    series : MassSeries
        Fitted correlators.
    chosen : sequence of str
        Names of the hadrons to draw; all if there are none.

    Raises
    ------
    UsageError, GaugeError
        See `frames_of` and `picture_of_frames`.
    """
    found = frames_of([series], _points, chosen)
    frames = {f"$C_{{{symbol(name)}}}(t)$": pairs for name, pairs in found.items()}
    key = [
        KeyEntry(style={"color": GREY, "linewidth": 1.5, "linestyle": dashes}, text=text)
        for text, dashes in (("fit", "-"), ("its continuation", "--"))
    ]
    return picture_of_frames(frames, _marks, "log", key)


def _points(correlator: Correlator) -> ErrorBars:
    """Return the moduli of a correlator with their errors, unless the errors are larger."""
    found = [estimate(one) for one in correlator.values.T]
    known = [(t, abs(one.value), one.error) for t, one in enumerate(found) if t]
    return [one for one in known if one[1] > one[2]]  # others would hide the rest


def _marks(
    series: MassSeries, state: HadronState, own: dict[str, Any], shift: float
) -> Iterator[Mark]:
    """Yield a correlator and its fit, if there is one."""
    correlator = series.correlators[state]
    at, value, error = np.transpose(_points(correlator))
    yield Symbols(at + shift, value, error, style=own)
    if state not in series.masses:
        return
    fit, _ = series.masses[state]
    parameters = np.array([np.log(abs(fit.amplitude.value)), fit.mass.value])
    for low, high, dashes in ((1, fit.t_min, "--"), (fit.t_min, fit.t_max, "-")):
        t = np.linspace(low, high, 100)
        curve = np.abs(correlator.curve(t)(parameters)[0])
        yield Stroke(t + shift, curve, style={"color": own["color"], "linestyle": dashes})
