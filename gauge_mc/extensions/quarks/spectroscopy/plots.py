"""Figures of hadrons: correlators, effective masses, chiral limits, and the residual mass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.states import Correlator
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy import spectrum
from gauge_mc.extensions.quarks.spectroscopy.correlators import HadronState, describe_quarks
from gauge_mc.extensions.quarks.spectroscopy.fits import BaryonFit, MesonFit, ResidualMassFit
from gauge_mc.extensions.quarks.spectroscopy.spectrum import ChiralFit, MassSeries
from gauge_mc.fits.files import find_table_by_columns
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.runs import TablePlot, labels_of, one_run
from gauge_mc.quoting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Marks = Callable[[MassSeries, HadronState, dict[str, Any], float], Iterable[pictures.Mark]]
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
    default="all",
    metavar="NAME,...",
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

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show the correlators; see `correlators_picture`."""
        hadrons = chosen_hadrons(options)
        return correlators_picture(MesonFit().fitted(table, options)[1], hadrons)


PLOTS.register(MesonPlot())


def symbol(name: str) -> str:
    """Return the symbol of a hadron with its parity, as mathematical text."""
    bare = name.rstrip("+-")
    parity = f"^{{{name[len(bare) :]}}}" if name != bare else ""
    return SYMBOLS.get(bare, rf"\mathrm{{{bare}}}") + parity


def chosen_hadrons(options: dict[str, Any]) -> list[str]:
    """Take the names of the hadrons out of the options of a plot; none stands for all."""
    return [name.strip() for name in options.pop(HADRONS.name, "").split(",") if name.strip()]


def frames_of(
    fits: Sequence[MassSeries],
    points: Callable[[Correlator], ErrorBars],
    hadrons: Sequence[str] = (),
) -> dict[str, list[tuple[MassSeries, HadronState]]]:
    """Return the hadrons at rest by name, fitted or not, if there are points to draw.

    They come in the order in which they were chosen, or else in that of `SYMBOLS`. If there are
    many combinations of two quarks, only those of two equal quarks are returned.
    """
    frames: dict[str, list[tuple[MassSeries, HadronState]]] = {}
    for series in fits:
        for state, correlator in series.correlators.items():
            if state.at_rest and points(correlator):
                frames.setdefault(state.label, []).append((series, state))
    usual = sorted(frames, key=_place)
    selection = [name for x in hadrons for name in usual if x in (name, name.rstrip("+-"))]
    for word in hadrons:
        if not any(word in (name, name.rstrip("+-")) for name in usual):
            raise UsageError(
                f"{HADRONS.flag}: there is no correlator of '{shortened(word, 40)}' that could be "
                f"drawn; choose from {', '.join(usual)}."
            )
    for name, pairs in frames.items():
        if len(pairs) > MOST:
            frames[name] = [x for x in pairs if x[1].quarks[0] == x[1].quarks[1]][:MOST]
    return {name: frames[name] for name in (selection if hadrons else usual)}


def _place(name: str) -> tuple[int, str]:
    """Return what the names of hadrons are sorted by: the order of `SYMBOLS`, then the parity."""
    symbols, bare = list(SYMBOLS), name.rstrip("+-")
    return (symbols.index(bare) if bare in symbols else len(symbols), name)


def quarks(state: HadronState) -> str:
    """Return the quarks and the source of a hadron as text for a legend."""
    return pictures.typeset(f"{describe_quarks(*state.quarks)}, {state.source}")


def picture_of_frames(
    frames: Mapping[str, Sequence[tuple[MassSeries, HadronState]]],
    marks: Marks,
    scale: str = "linear",
    key: Sequence[pictures.KeyEntry] = (),
) -> pictures.Picture:
    """Return a frame for each hadron; a colour stands for quarks and a source."""
    if not frames:
        raise GaugeError("All correlators are too noisy to be drawn; measure more configurations.")
    names = dict.fromkeys(quarks(x) for pairs in frames.values() for _, x in pairs)
    looks = {name: pictures.look(i) for i, name in enumerate(names)}
    step = min(SHIFT, MOST_SHIFT / len(names))
    shifts = {name: step * (i - (len(names) - 1) / 2) for i, name in enumerate(names)}
    styles = {name: {**look, "linestyle": "none"} for name, look in looks.items()}
    legend = [pictures.KeyEntry(style=style, text=name) for name, style in styles.items()]
    if any(state in series.masses for pairs in frames.values() for series, state in pairs):
        legend += key
    columns = 1 if len(frames) <= 3 else 2 if len(frames) <= 6 else 3
    sideways = " (points are shifted sideways for clarity)" if len(names) > 1 else ""
    panels = []
    for number, (name, pairs) in enumerate(frames.items(), 1):
        drawn = [
            mark
            for series, state in pairs
            for mark in marks(series, state, looks[quarks(state)], shifts[quarks(state)])
        ]
        frame = pictures.Frame([*legend, *drawn], "", name, {"yscale": scale})
        legend = []
        if number > len(frames) - columns:  # the lowest frame of each column
            remark = sideways if columns == 1 or number == len(frames) else ""
            frame = replace(frame, x=f"$t/a${remark}", finish=_finish_lowest)
        panels.append(frame)
    rows = math.ceil(len(frames) / columns)
    layout = {"nrows": rows, "ncols": columns, "sharex": True}
    height, width = HEAD + HEIGHT * rows, pictures.WIDTH * (1 + WIDER * (columns - 1))
    return pictures.Picture(panels, height, columns=3, layout=layout, aligned=True, width=width)


def _finish_lowest(axes: Axes) -> None:
    """Show the times below the lowest frame of a column."""
    axes.tick_params(labelbottom=True)
    integer_ticks(axes)


def correlators_picture(series: MassSeries, hadrons: Sequence[str] = ()) -> pictures.Picture:
    """Return correlators on a logarithmic scale with their fits, dashed where not fitted."""
    states = frames_of([series], _points, hadrons)
    frames = {f"$C_{{{symbol(name)}}}(t)$": pairs for name, pairs in states.items()}
    grey = {"color": pictures.GREY, "linewidth": 1.5}
    key = [
        pictures.KeyEntry(style={**grey, "linestyle": dashes}, text=text)
        for text, dashes in (("fit", "-"), ("its continuation", "--"))
    ]
    return picture_of_frames(frames, _marks, "log", key)


def _points(correlator: Correlator) -> ErrorBars:
    """Return the moduli of a correlator with their errors, unless the errors are larger."""
    estimates = [estimate(x) for x in correlator.values.T]
    points = [(t, abs(x.value), x.error) for t, x in enumerate(estimates) if t]
    return [x for x in points if x[1] > x[2]]  # others would hide the rest


def _marks(
    series: MassSeries, state: HadronState, style: dict[str, Any], shift: float
) -> Iterator[pictures.Mark]:
    """Yield a correlator and its fit, if there is one."""
    correlator = series.correlators[state]
    at, value, error = np.transpose(_points(correlator))
    yield pictures.Symbols(at + shift, value, error, style=style)
    if state not in series.masses:
        return
    fit, _ = series.masses[state]
    parameters = np.array([np.log(abs(fit.amplitude.value)), fit.mass.value])
    for low, high, dashes in ((1, fit.t_min, "--"), (fit.t_min, fit.t_max, "-")):
        t = np.linspace(low, high, 100)
        curve = np.abs(correlator.curve(t)(parameters)[0])
        look = {"color": style["color"], "linestyle": dashes}
        yield pictures.Stroke(t + shift, curve, style=look)


LARGEST_ERROR = 0.25
"""Maximum relative error of an effective mass that is drawn; larger ones would hide the others."""

HADRON_FITS = (MesonFit(), BaryonFit())
"""The fits whose tables a run may have."""


class EffectiveMassPlot(Plot):
    """Effective masses of hadrons at rest with fitted masses as bands; a frame for each hadron."""

    name = "effective-mass"
    summary = "effective masses of mesons and baryons with the fitted masses"
    options: ClassVar[tuple[Option, ...]] = (*MesonFit.options, HADRONS)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all hadrons that one run has measured; see `Plot.draw`."""
        hadrons = chosen_hadrons(options)
        run = one_run(runs, "The effective mass")
        picture = effective_masses_picture(fitted(run, options), hadrons)
        replace(picture, title=labels_of([run])[0]).draw(file)
        return []


PLOTS.register(EffectiveMassPlot())


def fitted(run: Path, options: dict[str, Any]) -> list[MassSeries]:
    """Return the fits to all tables of hadrons in a run."""
    fits, missing = [], []
    for fit in HADRON_FITS:
        try:
            table = find_table_by_columns(run, fit.columns)
        except GaugeError as error:
            missing.append(error)
            continue
        fits.append(fit.fitted(table, options)[1])
    if not fits:
        raise missing[0]
    return fits


def effective_masses_picture(
    fits: Sequence[MassSeries], hadrons: Sequence[str] = ()
) -> pictures.Picture:
    """Return effective masses and, over the fitted times, the masses with errors."""
    states = frames_of(fits, _mass_points, hadrons)
    frames = {rf"$a\,m_{{{symbol(name)}}}$": pairs for name, pairs in states.items()}
    key = [pictures.BandEntry(text="fitted mass, at the t of the fit")]
    return picture_of_frames(frames, _mass_marks, key=key)


def _mass_points(correlator: Correlator) -> ErrorBars:
    """Return the effective masses that are known well enough to be drawn."""
    energies = correlator.effective()
    estimates = [estimate(x) for x in energies.series[:, 0].T]
    points = [(t, x) for t, x in enumerate(estimates, energies.start)]
    return [(t, x.value, x.error) for t, x in points if x.error < LARGEST_ERROR * abs(x.value)]


def _mass_marks(
    series: MassSeries, state: HadronState, style: dict[str, Any], shift: float
) -> Iterator[pictures.Mark]:
    """Yield an effective mass, and the fitted mass if there is one."""
    t, value, error = np.transpose(_mass_points(series.correlators[state]))
    yield pictures.Symbols(t + shift, value, error, style=style)
    if state in series.masses:
        fit = series.masses[state][0]
        yield pictures.Stroke.plateau((fit.t_min, fit.t_max), fit.mass, {"color": style["color"]})


FRAME, CHIRAL_HEAD = 2.6, 1.0
"""Height of a frame, and of the legend above all frames, in inches."""

QUARKS = {"pion^2": r"(a\,m_\pi)^2", "pcac": r"a\,m_\mathrm{PCAC}"}
"""Symbols of the quantities that vanish with the quark mass, as mathematical text."""


class ChiralPlot(Plot):
    """m_pi^2 and m_PCAC against 1/kappa or m, and masses of hadrons against m_pi^2, of one run."""

    name = "chiral"
    summary = "extrapolations in the quark mass, with κ_c"
    options: ClassVar[tuple[Option, ...]] = MesonFit.options

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the extrapolations of mesons, and of baryons if there are any; see `Plot.draw`."""
        run = one_run(runs, "The extrapolation")
        table = find_table_by_columns(run, MesonFit.columns)
        fits = list(MesonFit().carry_out([table], **options).spectrum.chiral)
        try:
            baryons = find_table_by_columns(run, BaryonFit.columns)
        except GaugeError:  # the plot does not need them
            baryons = None
        if baryons:
            fits += BaryonFit().carry_out([baryons], **options).spectrum.chiral
        replace(chiral_picture(fits), title=labels_of([run])[0]).draw(file)
        return []


PLOTS.register(ChiralPlot())


def chiral_picture(fits: Sequence[ChiralFit]) -> pictures.Picture:
    """Return masses against the quark mass, with straight lines to the chiral limit."""
    if not fits:
        raise GaugeError(
            "An extrapolation needs masses for at least two values of kappa, or of m; measure "
            "another one."
        )
    frames, order = [], 0
    for vanishing in (True, False):
        group = [fit for fit in fits if (fit.quantity in QUARKS) == vanishing]
        marks = [mark for n, x in enumerate(group, order) for mark in _chiral_marks(x, n)]
        order += len(group)
        if group and vanishing:
            marks.append(pictures.Guide(0, style={"color": "0.4", "linewidth": 0.8, "zorder": 0}))
            names = dict.fromkeys(QUARKS[x.quantity] for x in group)
            abscissa = r"$a\,m$" if group[0].m_c else r"$1/\kappa$"
            frames.append(pictures.Frame(marks, abscissa, ", ".join(f"${name}$" for name in names)))
        elif group:
            frames.append(pictures.Frame(marks, r"$(a\,m_\pi)^2$", r"$a\,m$"))
    key = pictures.KeyEntry(style=pictures.HOLLOW, text="hollow: chiral limit")
    frames[-1] = replace(frames[-1], marks=[*frames[-1].marks, key])
    height = CHIRAL_HEAD + FRAME * len(frames)
    return pictures.Picture(frames, height, columns=2, layout={"nrows": len(frames)})


def _chiral_marks(fit: ChiralFit, order: int) -> list[pictures.Mark]:
    """Return the points of a line, its end in the chiral limit, and the line if it can be wrong."""
    style = pictures.look(order)
    x, value, error = np.transpose([(point.x, point.value, point.error) for point in fit.points])
    zero = fit.kappa_c or fit.m_c
    limit = 1 / fit.kappa_c.value if fit.kappa_c else fit.m_c.value if fit.m_c else 0.0
    ends = np.array([limit, x.max()])
    hollow = {**style, "markerfacecolor": "white"}
    if zero:
        scatter = fit.kappa_c.error / fit.kappa_c.value**2 if fit.kappa_c else zero.error
        end = pictures.Symbols([limit], [0.0], None, style={**hollow, "xerr": [scatter]})
        name = r"\kappa_c" if fit.kappa_c else "m_c"
        text = rf"${QUARKS[fit.quantity]}$: ${name}={pictures.minus(zero)}$"
    else:
        end = pictures.Symbols.of([0.0], [fit.intercept], hollow)
        text = rf"$a\,m_{{{symbol(fit.quantity)}}}\to{pictures.minus(fit.intercept)}$"
    twisted = rf"$\mu={fit.mu:g}$, " if fit.mu else ""
    text = f"{text}, {twisted}{pictures.typeset(fit.source)}"
    points = pictures.Symbols(x, value, error, style=style, text=text)
    line = fit.intercept.value + fit.slope.value * ends
    joined = [pictures.Stroke(ends, line, style={"color": style["color"]})] if fit.dof else []
    return [points, *joined, end]


class ResidualMassPlot(TablePlot):
    """m_res(t) of domain-wall quarks, with the plateaus that were fitted."""

    name = "residual-mass"
    summary = "residual mass of domain-wall quarks against t, with its plateau"
    subject: ClassVar[str] = "The residual mass"
    columns: ClassVar[tuple[str, ...]] = ResidualMassFit.columns
    options: ClassVar[tuple[Option, ...]] = ResidualMassFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show the residual mass; see `residual_mass_picture`."""
        return residual_mass_picture(*ResidualMassFit().fitted(table, options))


PLOTS.register(ResidualMassPlot())


def residual_mass_picture(
    table: spectrum.ResidualTable, fitted: spectrum.ResidualMasses
) -> pictures.Picture:
    """Return m_res(t) and, over the times that were fitted, its plateau with the error."""
    ratios = {quark: table.ratio(quark) for quark in table.values}
    if all(ratio is None for ratio in ratios.values()):
        raise GaugeError(
            "The table has no correlators at the midpoint; measure with an even extent of the "
            "fifth direction and weights that are all 1."
        )
    plateaus = {spectrum.WallQuark(mass.m, mass.source): mass for mass in fitted.masses}
    marks: list[pictures.Mark] = []
    for n, (quark, series) in enumerate(ratios.items()):
        if series is None:
            continue
        fit, estimates = plateaus[quark], [estimate(x) for x in series.T]
        text = rf"$m={quark.m:g}$, {pictures.typeset(quark.source)}"
        plateau = []
        if fit.m_res and fit.t_min is not None and fit.t_max is not None:
            line = {"color": pictures.look(n)["color"]}
            plateau = [pictures.Stroke.plateau((fit.t_min, fit.t_max), fit.m_res, line)]
            text += rf": $a\,m_\mathrm{{res}}={pictures.minus(fit.m_res)}$"
        t = 1 + np.arange(len(estimates)) + SHIFT * n
        marks += [pictures.Symbols.of(t, estimates, pictures.look(n), text), *plateau]
    frame = pictures.Frame(marks, "$t/a$", r"$a\,m_\mathrm{res}(t)$", finish=integer_ticks)
    return pictures.Picture([frame], 3.6, columns=2)
