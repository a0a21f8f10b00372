"""Tables of the static potential and its fits."""

from __future__ import annotations

import math
from itertools import zip_longest

from rich.table import Table

from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.quantities.potential.analysis.static_potential import (
    CORRELATORS,
    LOOPS,
    StaticPotential,
    short_chi2,
)
from gauge_mc.quantities.potential.analysis.window_fits import (
    LATTICE,
    ROOT_SIGMA,
    WindowFit,
    WindowScan,
)
from gauge_mc.results import headings

LABELS = headings(WindowFit)
"""The fitted quantities by the names of their attributes, and their symbols in tables."""


def fit_table(result: StaticPotential) -> Table:
    """Return a table of all fits, and of the scales from the force."""
    table = Table(title="V(R) = A + B/R + σR", caption=caption(result), caption_justify="left")
    columns: dict[str, list[str]] = {"quantity": [*LABELS.values(), "χ²/dof"]}
    for heading, scan in (("B free", result.free), ("B = −π/12", result.string)):
        if scan is None:
            continue
        columns[heading] = [*(_value(scan.fit, name) for name in LABELS), _quality(scan.fit)]
        if scan.fit.systematic:
            columns[f"± range of {heading}"] = [_range(scan.fit, name) for name in LABELS]
        columns[f"± window of {heading}"] = [_shift(scan, name) for name in LABELS]
    for name in columns:
        heading = name.partition(" of ")[0]
        table.add_column(heading, justify="left" if name == "quantity" else "right")
    for label, *row in zip_longest(*columns.values(), fillvalue=""):
        if any(row):
            table.add_row(label, *row)
    return table


def further_table(result: StaticPotential) -> Table | None:
    """Return a table of the scales from the force and of further fits, or None without any."""
    columns: dict[str, list[str]] = {}
    if result.force_scales:
        scales = [result.force_scales.get(name) for name in LABELS]
        columns["force"] = [str(one.value) if one else "" for one in scales]
        columns["± f₃"] = [_rounded(one.systematic) if one else "" for one in scales]
        if any(one and math.isfinite(one.ranges) for one in scales):
            columns["± range of force"] = [_rounded(one.ranges) if one else "" for one in scales]
    if result.nambu_goto:
        fit = result.nambu_goto.fit
        columns["Nambu–Goto"] = [_value(fit, name) for name in LABELS]
        if fit.systematic:
            columns["± range of string"] = [_range(fit, name) for name in LABELS]
        columns["± window"] = [_shift(result.nambu_goto, name) for name in LABELS]
    if result.averaged:
        means = [result.averaged.get(name) for name in LABELS]
        columns["B free, AIC"] = [str(one.value) if one else "" for one in means]
        columns["± AIC"] = [_rounded(one.systematic) if one else "" for one in means]
    if not columns:
        return None
    string = result.nambu_goto.fit if result.nambu_goto else None
    lines = {
        "force": "force: on axis at improved distances; ± f₃: largest change with a further term "
        "f₃/r⁴, beyond its statistical error.",
        "Nambu–Goto": f"Nambu–Goto: from R = {string.r_min:.4g} on, χ²/dof {_quality(string)}."
        if string
        else "",
        "B free, AIC": "AIC: averages over windows in R; ± AIC: their scatter, the change with the "
        f"other form of 1/R{', and ± range' * bool(result.free and result.free.fit.systematic)}.",
    }
    caption = "\n".join(line for name, line in lines.items() if name in columns)
    table = Table(title="Other determinations", caption=caption, caption_justify="left")
    table.add_column("quantity")
    for name in columns:
        table.add_column(name.partition(" of ")[0], justify="right")
    for label, *row in zip(LABELS.values(), *columns.values(), strict=True):
        if any(row):
            table.add_row(label, *row)
    return table


def force_table(result: StaticPotential) -> Table:
    """Return a table of the force at improved distances."""
    table = Table(title="Force F = [V(R) − V(R − d)]/d at tree-level improved distances")
    for name in ("path", "r_I/a", "F a²", "r_I² F"):
        table.add_column(name, justify="right")
    for one in result.force:
        if one.scaled.error < abs(one.scaled.value):
            table.add_row(one.path, f"{one.distance:.4f}", str(one.force), str(one.scaled))
    return table


def plateau_table(result: StaticPotential) -> Table:
    """Return a table of V(R) with the plateau from which each value was determined."""
    if result.source == CORRELATORS:
        return _correlator_table(result)
    excited = {(one.path, one.steps): one for one in result.excited}
    averaged = any(math.isfinite(one.systematic) for one in result.points)
    title = "Plateaus of V(R, t) = ln W(R, t) / W(R, t + 1)"
    if result.t_step > 1:
        title = f"Plateaus of V(R, t) = ln [W(R, t) / W(R, t + {result.t_step})] / {result.t_step}"
    if result.levels:
        title = f"Plateaus of the energies of levels {', '.join(map(str, result.levels))}"
    table = Table(title=title)
    names = ["path", "R/a", "a V(R)", "τ_int", "t", "χ²/expected"]
    names += ["± range"] * averaged + ["excited"] * bool(excited)
    for name in names:
        table.add_column(name, justify="right")
    for one in result.points:
        more = [f"{one.systematic:.1g}"] if averaged else []
        if excited:
            state = excited.get((one.path, one.steps))
            more.append(state.potential.format() if state else "")
        table.add_row(
            one.path,
            f"{one.distance:.4g}",
            one.potential.format(),
            with_error(one.potential.tau_int, one.potential.tau_int_error),
            f"{one.t_min} to {one.t_max}",
            f"{one.chi2:.1f}/{one.chi2_expected:.1f}",
            *more,
        )
    return table


def _correlator_table(result: StaticPotential) -> Table:
    """Return a table of V(R) from correlators."""
    table = Table(title="V(R) = −ln[N² C(R)]/N_t")
    for name in ("path", "R/a", "a V(R)", "τ_int"):
        table.add_column(name, justify="right")
    for one in result.points:
        tau = with_error(one.potential.tau_int, one.potential.tau_int_error)
        table.add_row(one.path, f"{one.distance:.4g}", one.potential.format(), tau)
    return table


def window_table(scan: WindowScan) -> Table:
    """Return a table of fits with free B to other windows, which have at least half the points."""
    table = Table(title="V(R) = A + B/R + σR in other windows")
    for name in ("R/a", "B", "σ a²", "r₀/a", "χ²/dof"):
        table.add_column(name, justify="right")
    others = [one for one in scan.to_r if one.r_max != scan.fit.r_max]
    for one in (*scan.from_r, *others):
        if one.points < scan.fit.points / 2:  # fits to few points say little
            continue
        style = "bold" if (one.r_min, one.r_max) == (scan.fit.r_min, scan.fit.r_max) else None
        row = (_value(one, "B"), _value(one, "sigma"), _value(one, "r0"), _quality(one))
        table.add_row(f"{one.r_min:.4g} to {one.r_max:.4g}", *row, style=style)
    return table


def caption(result: StaticPotential) -> str:
    """Return how the results were determined, and the cautions about them, in sentences."""
    lines = [
        f"{result.configurations} configurations{_levels(result)}.",
        f"{'Plateaus in t: ' if result.source == LOOPS else ''}{result.plateau}.",
    ]
    for scan in list(result.fits.values())[:1]:
        lines += [
            f"Fits: {result.window}.",
            f"Term 1/R: {_coulomb(scan.fit)}.",
            f"Errors in brackets are statistical. {RANGE_NOTE * bool(scan.fit.systematic)}"
            "± window: largest change when one end of the window moves by up to one lattice unit, "
            "or 1/√3 of it when 1/R takes its other form, among fits that are not poor. Both are "
            "what the statistical error of the change does not explain.",
            f"a is from √σ = {ROOT_SIGMA:g} MeV.",
        ]
    return "\n".join([*lines, *result.cautions])


RANGE_NOTE = (
    "± range: change when all plateaus begin one step later, or scatter among averaged ranges of "
    "t. "
)
"""Explanation of systematic errors from the range of t."""


def _levels(result: StaticPotential) -> str:
    if result.source == CORRELATORS:
        return ""
    if not result.levels:
        return f", {result.smearing} smearing iterations"
    levels = ", ".join(map(str, result.levels))
    return f", variational analysis of {levels} smearing iterations, {result.reference}"


def _coulomb(fit: WindowFit) -> str:
    lattice = "the Coulomb potential on the lattice at tree level"
    return lattice if fit.coulomb == LATTICE else "geometric distances"


def _value(fit: WindowFit, name: str) -> str:
    if name == "B" and not fit.b_free:
        return "−π/12"
    found = getattr(fit, name)
    return str(found) if math.isfinite(found.value) else ""


def _range(fit: WindowFit, name: str) -> str:
    known = not (name == "B" and not fit.b_free)
    return _rounded(fit.systematic.get(name, math.nan)) if known else ""


def _shift(scan: WindowScan, name: str) -> str:
    return _rounded(scan.window.get(name, math.nan))


def _rounded(number: float) -> str:
    return f"{number:.1g}" if math.isfinite(number) else ""


def _quality(fit: WindowFit) -> str:
    if fit.correlated:
        return f"{fit.chi2:.1f}/{fit.dof}"
    return f"{short_chi2(fit.chi2)}/{short_chi2(fit.chi2_expected)} expected"
