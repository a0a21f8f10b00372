"""The static potential from Wilson loops."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis import potential as analysis
from gauge_mc.analysis.loops import LOOP_COLUMNS, read_loops
from gauge_mc.analysis.plateau import PlateauPoint
from gauge_mc.analysis.potential import ROOT_SIGMA, StaticPotential, WindowScan, static_potential
from gauge_mc.analysis.timeseries import Estimate, with_error
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import check_types, parse_json
from gauge_mc.fits import FITS, LEVEL, Fit, FitResult, with_nan
from gauge_mc.options import Option

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
"""The fitted quantities by the names of their attributes, and their symbols in tables."""


@dataclass(frozen=True, repr=False)
class PotentialResult(FitResult):
    """The result of a fit of the static potential.

    Attributes
    ----------
    potential : StaticPotential
        V(R) and its fits.
    """

    potential: StaticPotential

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.potential)}

    def report(self) -> list[Any]:
        """Return tables of the plateaus, of fits to other windows, and of the two main fits."""
        result = self.potential
        return [plateau_table(result), window_table(result), fit_table(result)]


class PotentialFit(Fit):
    """V(R) = A + B/R + sigma R, fitted to plateaus of ln W(R,T)/W(R,T+1)."""

    name: ClassVar[str] = "potential"
    summary: ClassVar[str] = "V(R) from Wilson loops, with A + B/R + σR fitted to it"
    columns: ClassVar[tuple[str, ...]] = tuple(LOOP_COLUMNS)
    options: ClassVar[tuple[Option, ...]] = (
        Option("t_min", int, "First t of all plateaus.", "for each R where its plateau begins"),
        Option("t_max", int, "Last t of all plateaus.", "as far as the errors allow"),
        Option("r_min", float, "Smallest distance fitted.", "2, or r₀/3 if larger"),
        Option("r_max", float, "Largest distance fitted.", "the largest with a plateau"),
        LEVEL,
    )

    def carry_out(self, table: Path, **options: Any) -> PotentialResult:
        """Fit the loops of a table along all paths; see `Fit.carry_out`."""
        loops, ensemble = read_loops(table, options.pop(LEVEL.name, None))
        return PotentialResult(static_potential(loops, **options, ensemble=ensemble))


FITS.register(PotentialFit())

MAX_RESULT = 2**24
"""Maximum size of a result in bytes."""


def read_result(path: Path) -> StaticPotential:
    """Read a result from its JSON file.

    Raises
    ------
    GaugeError
        If the file does not exist or is damaged.
    """
    try:
        content = with_nan(parse_json(read_text(path, MAX_RESULT)))
        del content["observable"], content["units"]
        points = tuple(
            PlateauPoint(**{**one, "potential": Estimate(**one["potential"])})
            for one in content.pop("points")
        )
        free, string = (_scan(content.pop(name)) for name in ("free", "string"))
        result = StaticPotential(points=points, free=free, string=string, **content)
        check_types(result, StaticPotential)
        return result
    except GaugeError as error:
        sentence = str(error).partition(":")[0]
        raise GaugeError(f"{sentence}; make it with gauge-mc fit potential.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(
            f"{path} is damaged or not the result of a fit; make it again with gauge-mc fit "
            "potential."
        ) from error


def fit_table(result: StaticPotential) -> Table:
    """Return a table of both fits: values with statistical errors, and changes with the window."""
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
    """Return a table of V(R) with the plateau from which each value was determined."""
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
    """Return a table of fits with free B to other windows, which have at least half the points."""
    table = Table(title="V(R) = A + B/R + σR in other windows")
    for name in ("R/a", "B", "σ a²", "r₀/a", "χ²/dof"):
        table.add_column(name, justify="right")
    scan = result.free
    others = [one for one in scan.to_r if one.r_max != scan.fit.r_max]
    for one in (*scan.from_r, *others):
        if one.points < scan.fit.points / 2:  # fits to few points say little
            continue
        style = "bold" if (one.r_min, one.r_max) == (scan.fit.r_min, scan.fit.r_max) else None
        row = (_value(one, "B"), _value(one, "sigma"), _value(one, "r0"), _quality(one))
        table.add_row(f"{one.r_min:.4g} to {one.r_max:.4g}", *row, style=style)
    return table


def _caption(result: StaticPotential) -> str:
    lines = [
        f"{result.configurations} configurations, {result.smearing} smearing iterations.",
        f"Plateaus in t: {result.plateau}.",
        f"Fits: {result.window}.",
        "± window: largest change when one end of the window moves by up to one lattice unit.",
        f"a is from √σ = {ROOT_SIGMA:g} MeV.",
        *result.cautions,
    ]
    return "\n".join(lines)


def _value(fit: analysis.WindowFit, name: str) -> str:
    if name == "B" and not fit.b_free:
        return "−π/12"
    return str(getattr(fit, name))


def _shift(scan: WindowScan, name: str) -> str:
    shift = scan.shift(name)
    return f"{shift:.1g}" if math.isfinite(shift) else ""


def _quality(fit: analysis.WindowFit) -> str:
    if fit.correlated:
        return f"{fit.chi2:.1f}/{fit.dof}"
    return f"{fit.chi2:.1f}/{fit.chi2_expected:.1f} expected"


def _scan(content: dict[str, Any]) -> WindowScan:
    rows = (tuple(map(_fit, content[name])) for name in ("from_r", "to_r"))
    return WindowScan(_fit(content["fit"]), *rows)


def _fit(content: dict[str, Any]) -> analysis.WindowFit:
    estimates = {name: Estimate(**content[name]) for name in LABELS}
    covariance = tuple(map(tuple, content["covariance"]))
    return analysis.WindowFit(**{**content, **estimates, "covariance": covariance})
