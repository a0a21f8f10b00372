"""Tables of the masses of hadrons and of their extrapolations."""

from __future__ import annotations

import math

from rich.table import Table

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.quantities.hadrons.analysis.correlators import Quark, describe_quarks
from gauge_mc.quantities.hadrons.analysis.masses import MassFit
from gauge_mc.quantities.hadrons.analysis.results import Spectrum
from gauge_mc.quantities.hadrons.analysis.states import HadronState, describe

IN_KAPPA = "1/κ, which vanish at 1/κ_c"
"""Where the lines of quarks with a hopping parameter vanish, in words."""


def mass_table(found: Spectrum) -> Table:
    """Return a table of all masses."""
    lines = [f"{found.configurations} configurations. τ_int is in configurations."]
    lines += [*_left_out(found), *found.cautions]
    table = Table(title="Masses a m", caption="\n".join(lines), caption_justify="left")
    averaged = any(math.isfinite(one.fit.systematic) for one in found.masses)
    table.add_column("hadron")
    names = ["source", "a m", "τ_int", "t", "χ²/expected", *["± range"] * averaged]
    for name in names:
        table.add_column(name, justify="right")
    for one in found.masses:
        state = HadronState(*(getattr(one, name) for name in HadronState._fields))
        table.add_row(describe(state), one.source, *_cells(one.fit, averaged))
    return table


def _left_out(found: Spectrum) -> list[str]:
    """Return a line for each reason why hadrons have no mass."""
    reasons: dict[str, list[str]] = {}
    for one in found.left_out:
        reasons.setdefault(one.reason, []).append(one.name)
    return [f"Left out: {'; '.join(names)}. {reason}" for reason, names in reasons.items()]


def _cells(fit: MassFit, averaged: bool) -> list[str]:
    return [
        str(fit.mass),
        fit.mass.format_tau(),
        f"{fit.t_min} to {fit.t_max}",
        quality(fit.chi2, fit.chi2_expected),
        *[f"{fit.systematic:.1g}"] * averaged,
    ]


def quality(chi2: float, expected: float) -> str:
    """Return chi2 and its expectation as text."""
    return f"{chi2:.1f}/{expected:.1f}"


def pcac_table(found: Spectrum) -> Table:
    """Return a table of the PCAC masses."""
    caption = "Neither renormalised nor improved."
    table = Table(title="PCAC masses", caption=caption, caption_justify="left")
    for name in ("quarks", "source", "a m", "τ_int", "t", "χ²/expected"):
        table.add_column(name, justify="right")
    for one in found.pcac:
        quarks = Quark(one.kappa1, one.mu1, one.m1), Quark(one.kappa2, one.mu2, one.m2)
        table.add_row(
            describe_quarks(*quarks),
            one.source,
            str(one.mass),
            one.mass.format_tau(),
            f"{one.t_min} to {one.t_max}",
            quality(one.chi2, one.chi2_expected),
        )
    return table


def chiral_table(found: Spectrum) -> Table:
    """Return a table of the extrapolations in the quark mass."""
    massive = any(one.m_c for one in found.chiral)
    critical, where = ("m_c", "m, which vanish at m_c") if massive else ("κ_c", IN_KAPPA)
    lines = [f"pion^2 and pcac: lines in {where}. Hadrons: lines in the squared mass of the pion."]
    if poor := dict.fromkeys(one.quantity for one in found.chiral if one.p_value < POOR):
        lines.append(f"Not on a line (p < {POOR:g}): {', '.join(poor)}; use lighter quarks alone.")
    table = Table(title="Extrapolations", caption="\n".join(lines), caption_justify="left")
    twisted = any(one.mu for one in found.chiral)
    names = ["source", *["μ"] * twisted, critical, "at x = 0", "slope", "χ²/expected"]
    table.add_column("quantity")
    for name in names:
        table.add_column(name, justify="right")
    for one in found.chiral:
        vanishing: Estimate | str = one.kappa_c or one.m_c or ""
        fit = quality(one.chi2, one.chi2_expected) if one.dof else "exact"
        row = (
            one.quantity,
            one.source,
            *[f"{one.mu:g}"] * twisted,
            str(vanishing),
            str(one.intercept),
            str(one.slope),
            fit,
        )
        table.add_row(*row)
    return table
