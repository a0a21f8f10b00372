"""Masses of hadrons against the quark mass, with their extrapolations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import (
    HOLLOW,
    Frame,
    Guide,
    KeyEntry,
    Mark,
    Picture,
    Stroke,
    Symbols,
)
from gauge_mc.plots.runs.labels import labels_of, one_run
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit
from gauge_mc.quantities.hadrons.fits.baryons import BaryonFit
from gauge_mc.quantities.hadrons.fits.mesons import MesonFit
from gauge_mc.quantities.hadrons.plots.mesons import symbol

FRAME, HEAD = 2.6, 1.0
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
        fits = list(MesonFit().carry_out(table, **options).spectrum.chiral)
        try:
            baryons = find_table_by_columns(run, BaryonFit.columns)
        except GaugeError:  # the plot does not need them
            baryons = None
        if baryons:
            fits += BaryonFit().carry_out(baryons, **options).spectrum.chiral
        replace(chiral_picture(fits), title=labels_of([run])[0]).draw(file)
        return []


PLOTS.register(ChiralPlot())


def chiral_picture(fits: Sequence[ChiralFit]) -> Picture:
    """Return masses against the quark mass, with straight lines to the chiral limit.

    Parameters
    ----------
    fits : sequence of ChiralFit
        Straight lines, with the points that they were fitted to.

    Raises
    ------
    GaugeError
        If there is nothing to draw.
    """
    if not fits:
        raise GaugeError(
            "An extrapolation needs masses for at least two values of kappa, or of m; measure "
            "another one."
        )
    frames, order = [], 0
    for vanishing in (True, False):
        group = [one for one in fits if (one.quantity in QUARKS) == vanishing]
        marks = [mark for n, one in enumerate(group, order) for mark in _marks(one, n)]
        order += len(group)
        if group and vanishing:
            marks.append(Guide(0, style={"color": "0.4", "linewidth": 0.8, "zorder": 0}))
            names = dict.fromkeys(QUARKS[one.quantity] for one in group)
            abscissa = r"$a\,m$" if group[0].m_c else r"$1/\kappa$"
            frames.append(Frame(marks, abscissa, ", ".join(f"${name}$" for name in names)))
        elif group:
            frames.append(Frame(marks, r"$(a\,m_\pi)^2$", r"$a\,m$"))
    key = KeyEntry(style=HOLLOW, text="hollow: chiral limit")
    frames[-1] = replace(frames[-1], marks=[*frames[-1].marks, key])
    height = HEAD + FRAME * len(frames)
    return Picture(frames, height, columns=2, layout={"nrows": len(frames)})


def _marks(fit: ChiralFit, order: int) -> list[Mark]:
    """Return the points of a line, the line, and its end in the chiral limit."""
    own = look(order)
    x, value, error = np.transpose([(one.x, one.value, one.error) for one in fit.points])
    zero = fit.kappa_c or fit.m_c
    limit = 1 / fit.kappa_c.value if fit.kappa_c else fit.m_c.value if fit.m_c else 0.0
    ends = np.array([limit, x.max()])
    hollow = {**own, "markerfacecolor": "white"}
    if zero:
        scatter = fit.kappa_c.error / fit.kappa_c.value**2 if fit.kappa_c else zero.error
        end = Symbols([limit], [0.0], None, style={**hollow, "xerr": [scatter]})
        name = r"\kappa_c" if fit.kappa_c else "m_c"
        text = rf"${QUARKS[fit.quantity]}$: ${name}={minus(zero)}$"
    else:
        end = Symbols.of([0.0], [fit.intercept], hollow)
        text = rf"$a\,m_{{{symbol(fit.quantity)}}}\to{minus(fit.intercept)}$"
    twisted = rf"$\mu={fit.mu:g}$, " if fit.mu else ""
    return [
        Symbols(x, value, error, style=own, text=f"{text}, {twisted}{typeset(fit.source)}"),
        Stroke(ends, fit.intercept.value + fit.slope.value * ends, style={"color": own["color"]}),
        end,
    ]
