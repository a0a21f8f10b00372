"""The static potential as a JSON file, and as tables for the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from gauge_mc.analysis.loops import Grid, Loops
from gauge_mc.analysis.plateau import Point
from gauge_mc.analysis.potential import ROOT_SIGMA, Fit, Scan, StaticPotential
from gauge_mc.analysis.timeseries import Estimate, with_error
from gauge_mc.errors import GaugeError
from gauge_mc.formats.files import replacing

OBSERVABLE = "static potential V(R) = A + B/R + sigma R"
UNITS = f"lattice units; spacing in fm, from sqrt(sigma) = {ROOT_SIGMA:g} MeV"
LABELS = {
    "A": "A a",
    "B": "B",
    "sigma": "σ a²",
    "spacing": "a (fm)",
    "r0": "r₀/a",
    "r1": "r₁/a",
}


def write_json(result: StaticPotential, path: Path) -> None:
    """Write a result as JSON, whole or not at all; numbers that are not finite become null.

    Raises
    ------
    GaugeError
        If the file cannot be written.
    """
    content = {"observable": OBSERVABLE, "units": UNITS, **_without_nan(asdict(result))}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> StaticPotential:
    """Read a result that `write_json` has written.

    Raises
    ------
    GaugeError
        If there is no such file, or it is damaged.
    """
    try:
        content = _with_nan(json.loads(path.read_text(encoding="utf-8")))
        del content["observable"], content["units"]
        points = tuple(
            Point(**{**one, "potential": Estimate(**one["potential"])})
            for one in content.pop("points")
        )
        free, string = (_scan(content.pop(name)) for name in ("free", "string"))
        return StaticPotential(points=points, free=free, string=string, **content)
    except OSError as error:
        raise GaugeError(
            f"Cannot read {path} ({error.strerror}); make it by gauge-mc fit potential."
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is damaged, or no result of a fit; make it again by gauge-mc fit potential."
        ) from error


def fit_table(result: StaticPotential) -> Table:
    """Return a table of both fits: values with statistical errors, and shifts with the window."""
    table = Table(title="V(R) = A + B/R + σR", caption=_caption(result), caption_justify="left")
    table.add_column("quantity")
    for name in ("B free", "B = −π/12"):
        table.add_column(name, justify="right")
        table.add_column("± window", justify="right")
    scans = (result.free, result.string)
    for name, label in LABELS.items():
        row = [cell for scan in scans for cell in (_value(scan.fit, name), _shift(scan, name))]
        table.add_row(label, *row)
    table.add_row("χ²/dof", *(cell for scan in scans for cell in (_quality(scan.fit), "")))
    return table


def plateau_table(result: StaticPotential) -> Table:
    """Return a table of V(R) with the plateau that each value comes from."""
    table = Table(title="Plateaus of V(R, t) = ln W(R, t) / W(R, t + 1)")
    for name in ("path", "R/a", "a V(R)", "τ_int", "t", "χ²/expected"):
        table.add_column(name, justify="right")
    for one in result.points:
        table.add_row(
            one.path,
            f"{one.distance:.4g}",
            one.potential.format(),
            with_error(one.potential.tau_int, one.potential.tau_int_error),
            f"{one.t_min} to {one.t_max}",
            f"{one.chi2:.1f}/{one.chi2_expected:.1f}",
        )
    return table


def window_table(result: StaticPotential) -> Table:
    """Return a table of fits with B free to other windows, of at least half the points."""
    table = Table(title="V(R) = A + B/R + σR in other windows")
    for name in ("R/a", "B", "σ a²", "r₀/a", "χ²/dof"):
        table.add_column(name, justify="right")
    scan = result.free
    others = [one for one in scan.to_r if one.r_max != scan.fit.r_max]
    for one in (*scan.from_r, *others):
        if one.points < scan.fit.points / 2:  # too few to tell anything
            continue
        style = "bold" if (one.r_min, one.r_max) == (scan.fit.r_min, scan.fit.r_max) else None
        row = (_value(one, "B"), _value(one, "sigma"), _value(one, "r0"), _quality(one))
        table.add_row(f"{one.r_min:.4g} to {one.r_max:.4g}", *row, style=style)
    return table


def write_creutz(grid: Grid, loops: Loops, ensemble: Mapping[str, str], path: Path) -> None:
    """Write Creutz ratios as JSON, whole or not at all; what is not known becomes null.

    Parameters
    ----------
    grid : Grid
        The ratios.
    loops : Loops
        From which they are.
    ensemble : mapping of str to str
        What the ensemble is: group, beta, lattice.
    path : Path
        The file.

    Raises
    ------
    GaugeError
        If the file cannot be written.
    """
    content = {
        "observable": "Creutz ratios chi = -ln W(r,t) W(r-1,t-1) / (W(r,t-1) W(r-1,t))",
        "units": "lattice units",
        "smearing": loops.smearing,
        "configurations": int(loops.sweeps.size),
        "ensemble": dict(ensemble),
        "r": grid.r.tolist(),
        "t": grid.t.tolist(),
        "chi": _without_nan(grid.value.tolist()),
        "error": _without_nan(grid.error.tolist()),
    }
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")


def creutz_table(grid: Grid) -> Table:
    """Return a table of the Creutz ratios chi(R, T) from the diagonal T = R on.

    The diagonal tends to the string tension; for large T chi tends to V(R) - V(R - 1). Ratios
    with errors beyond themselves are left out.
    """
    table = Table(title="Creutz ratios χ(R, T) in lattice units")
    table.add_column("R")
    later = range(4)
    for k in later:
        table.add_column(f"T = R + {k}" if k else "T = R", justify="right")
    for i, r in enumerate(grid.r):
        known = [k for k in later if i + k < grid.t.size]
        pairs = [(float(grid.value[i, i + k]), float(grid.error[i, i + k])) for k in known]
        cells = [with_error(*pair) if pair[1] < abs(pair[0]) else "" for pair in pairs]
        if any(cells):
            table.add_row(str(r), *cells)
    return table


def _caption(result: StaticPotential) -> str:
    lines = [
        f"{result.configurations} configurations, {result.smearing} smearing iterations.",
        f"Plateaus in t: {result.plateau}.",
        f"Fits: {result.window}.",
        "± window: largest change if one end of the window moves by up to one lattice unit.",
        f"a is from √σ = {ROOT_SIGMA:g} MeV.",
        *result.cautions,
    ]
    return "\n".join(lines)


def _value(fit: Fit, name: str) -> str:
    if name == "B" and not fit.b_free:
        return "−π/12"
    return str(getattr(fit, name))


def _shift(scan: Scan, name: str) -> str:
    shift = scan.shift(name)
    return f"{shift:.1g}" if math.isfinite(shift) else ""


def _quality(fit: Fit) -> str:
    if fit.correlated:
        return f"{fit.chi2:.1f}/{fit.dof}"
    return f"{fit.chi2:.1f}/{fit.chi2_expected:.1f} expected"


def _scan(content: dict[str, Any]) -> Scan:
    rows = (tuple(map(_fit, content[name])) for name in ("from_r", "to_r"))
    return Scan(_fit(content["fit"]), *rows)


def _fit(content: dict[str, Any]) -> Fit:
    estimates = {name: Estimate(**content[name]) for name in LABELS}
    covariance = tuple(map(tuple, content["covariance"]))
    return Fit(**{**content, **estimates, "covariance": covariance})


def _without_nan(content: Any) -> Any:
    """Replace numbers that JSON cannot hold by None, throughout a tree."""
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _with_nan(content: Any) -> Any:
    """Replace None by NaN throughout a tree."""
    if isinstance(content, dict):
        return {key: _with_nan(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_with_nan(value) for value in content]
    return math.nan if content is None else content
