"""The scales t0 and w0 of the gradient flow, and the lattice spacing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.errors import UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field, quoted_number
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option, flag_of
from gauge_mc.quantities.flow.analysis.records import (
    ENERGIES,
    FLOW_ANISOTROPY,
    FLOW_COLUMNS,
    read_flow,
)
from gauge_mc.quantities.flow.analysis.scales import (
    TARGET,
    FlowScales,
    Reference,
    Spacing,
    flow_scales,
)
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP

ENERGY = Option(
    "energy",
    str,
    "Discretisation of E, for t0 and w0.",
    next(iter(ENERGIES)),
    choices=tuple(ENERGIES),
)
GOAL = Option(
    "target",
    float,
    "Value of t²<E> at t0, and of t d/dt t²<E> at w0². The literature has 0.3 for SU(3) and also "
    "0.1 for SU(2).",
    f"{TARGET:g}",
)
TREE_LEVEL = Option(
    "tree_level", bool, "Divide E by its lattice artefacts at tree level (arXiv:1406.0827)."
)
SQRT_T0 = Option(
    "sqrt_t0",
    float,
    "√t0 in fm, which sets the scale.",
    f"that of the group at the target {TARGET:g}, if it is known",
    "FM",
)
SQRT_T0_ERROR = Option("sqrt_t0_error", float, "Error of √t0 in fm.", "0", "FM")
W0 = Option("w0", float, "w0 in fm, for a second lattice spacing.", metavar="FM")
W0_ERROR = Option("w0_error", float, "Error of w0 in fm.", "0", "FM")

OBSERVABLE = (
    "t0 and w0 of the gradient flow: t²<E> at t0, and t d/dt t²<E> at w0², equal the target"
)
UNITS = "lattice units; tau_int in configurations; spacings in fm"


@dataclass(frozen=True, repr=False)
class ScaleResult(FitResult):
    """Scales of the gradient flow of an ensemble."""

    scales: FlowScales
    """t0, w0 and the lattice spacing."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.scales)}

    def report(self) -> list[Any]:
        """Return a table of the scales with their errors."""
        found = self.scales
        title = f"t²<E> = {found.target:g} at t0, t d/dt t²<E> = {found.target:g} at w0²"
        table = Table(title=title, caption=self._caption(), caption_justify="left")
        table.add_column("quantity")
        for name in ("value", "± interpolation", "± scale", "τ_int"):
            table.add_column(name, justify="right")
        for name, heading in headings(FlowScales).items():
            one = getattr(found, name)
            if isinstance(one, Spacing):
                table.add_row(heading, *_cells(one.value, scale=one.scale_error))
            elif one:
                interpolation = getattr(found, f"{name}_interpolation", math.nan)
                table.add_row(heading, *_cells(one, interpolation))
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return t0, w0 and the lattice spacing; the second error of the latter is of the scale."""
        found = self.scales
        known = headings(FlowScales)
        spacings = [
            quoted_number(known[name].partition(" (")[0], one.value, one.scale_error or None, "fm")
            for name in ("spacing_t0", "spacing_w0")
            if (one := getattr(found, name))
        ]
        return [
            *(
                quoted_field(found, name, getattr(found, f"{name}_interpolation"))
                for name in ("t0", "w0")
            ),
            *spacings,
        ]

    def _caption(self) -> str:
        found = self.scales
        corrected = "divided by its tree-level artefacts" if found.tree_level else "uncorrected"
        lines = [
            f"{found.configurations} configurations{spaced(found.updates)}, E from the "
            f"{found.energy} discretisation, {corrected}.",
            "L is the smallest extent of the lattice. τ_int is in configurations.",
        ]
        if FLOW_ANISOTROPY in found.ensemble:
            xi = found.ensemble[FLOW_ANISOTROPY]
            lines.append(f"a is the lattice spacing in space; the flow has the anisotropy {xi}.")
        for name, one in (("√t0", found.spacing_t0), ("w0", found.spacing_w0)):
            if one:
                lines.append(f"Scale: {name} = {_reference(one)} fm, {one.source}.")
        if not found.spacing_t0:
            lines.append(f"Give √t0 in fm with {SQRT_T0.flag} for a lattice spacing.")
        return "\n".join([*lines, *found.cautions])


def spaced(updates: int | None) -> str:
    """Return the separation of configurations in words, which may be empty."""
    return f", {updates} updates apart" if updates else ""


def _cells(value: Estimate, interpolation: float = math.nan, scale: float = math.nan) -> list[str]:
    if math.isnan(value.value):
        return ["unknown", "", "", ""]
    spline = f"{interpolation:.1g}" if math.isfinite(interpolation) else ""
    return [str(value), spline, f"{scale:.2g}" if scale > 0 else "", value.format_tau()]


def _reference(spacing: Spacing) -> str:
    return with_error(spacing.reference, spacing.reference_error)


class ScaleFit(Fit):
    """t0 and w0, at which t^2 <E> and t d/dt t^2 <E> reach a target."""

    name: ClassVar[str] = "scale"
    isotropic: ClassVar[bool] = True
    knows: ClassVar[str] = FLOW_ANISOTROPY
    summary: ClassVar[str] = "t0 and w0 from the gradient flow, and the lattice spacing in fm"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FlowScales,)
    options: ClassVar[tuple[Option, ...]] = (
        ENERGY,
        GOAL,
        TREE_LEVEL,
        SQRT_T0,
        SQRT_T0_ERROR,
        W0,
        W0_ERROR,
        SKIP,
    )

    def carry_out(self, table: Path, **options: Any) -> ScaleResult:
        """Determine the scales from the flow of a table; see `Fit.carry_out`."""
        flow = read_flow(table, options.get(SKIP.name, 0))
        choice = definition(options)
        sqrt_t0 = reference_t0(flow.ensemble, choice["target"], options)
        w0 = given_reference(W0.name, options)
        return ScaleResult(flow_scales(flow, **choice, sqrt_t0=sqrt_t0, w0=w0))


FITS.register(ScaleFit())


def definition(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of t0 that options choose, as arguments of `flow_scales`.

    Raises
    ------
    UsageError
        If the target is not positive.
    """
    target = options.get(GOAL.name, TARGET)
    if not 0 < target < math.inf:
        raise UsageError(f"{GOAL.flag} is {target:g}; give a positive number, such as {TARGET:g}.")
    return {
        "energy": options.get(ENERGY.name, ENERGY.default),
        "target": target,
        "corrected": options.get(TREE_LEVEL.name, False),
    }


def reference_t0(
    ensemble: Mapping[str, str], target: float, options: Mapping[str, Any]
) -> Reference | None:
    """Return sqrt(t0) in fm: the one that was given, or that of the group if it is known.

    Raises
    ------
    UsageError
        If the given value or its error is invalid.
    """
    given = given_reference(SQRT_T0.name, options)
    group = GROUPS[ensemble["group"]] if ensemble.get("group") in GROUPS else None
    if given or target != TARGET or group is None or group.sqrt_t0 is None:
        return given
    return Reference(*group.sqrt_t0)


def given_reference(name: str, options: Mapping[str, Any]) -> Reference | None:
    """Return a scale in fm that was given by options, or None.

    Raises
    ------
    UsageError
        If the scale is not positive, its error is negative, or only the error is given.
    """
    value, error = options.get(name), options.get(f"{name}_error")
    flag, error_flag = flag_of(name), flag_of(f"{name}_error")
    if value is None and error is None:
        return None
    if value is None:
        raise UsageError(f"{error_flag} has no effect without {flag}; give {flag} as well.")
    if not 0 < value < math.inf:
        raise UsageError(f"{flag} is {value:g}; give a positive length in fm.")
    error = 0.0 if error is None else error
    if not 0 <= error < math.inf:
        raise UsageError(f"{error_flag} is {error:g}; give 0 or a positive length in fm.")
    return Reference(value, error, f"given with {flag}")
