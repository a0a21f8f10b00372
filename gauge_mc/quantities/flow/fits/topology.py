"""The topological charge and its susceptibility."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field
from gauge_mc.options import Option
from gauge_mc.quantities.flow.analysis.records import CHARGES, FLOW_COLUMNS, read_flow
from gauge_mc.quantities.flow.analysis.topology import (
    ADMISSIBLE,
    TopologicalCharge,
    topological_charge,
)
from gauge_mc.quantities.flow.fits.scale import (
    ENERGY,
    GOAL,
    SQRT_T0,
    SQRT_T0_ERROR,
    TREE_LEVEL,
    definition,
    reference_t0,
    spaced,
)
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP

CHARGE = Option(
    "charge",
    str,
    "Discretisation of Q.",
    next(iter(CHARGES)),
    choices=tuple(CHARGES),
)
TIME = Option(
    "t",
    float,
    "Flow time t/a² at which Q is taken; the first measured time that is not smaller.",
    "t0, or the last time if the flow does not reach t0",
)
ROUND = Option(
    "round", bool, "Round αQ to integers, with the α that brings the charges nearest to integers."
)

OBSERVABLE = "topological charge Q and susceptibility chi_t = <Q²>/V"
UNITS = "lattice units; tau_int in configurations; fourth_root in MeV"


@dataclass(frozen=True, repr=False)
class TopologyResult(FitResult):
    """The topological charge of an ensemble."""

    topology: TopologicalCharge
    """Moments of the charge, and the susceptibility."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.topology)}

    def report(self) -> list[Any]:
        """Return a table of the moments and of the susceptibility."""
        found = self.topology
        table = Table(
            title=f"Topological charge at t/a² = {found.t:g}",
            caption=self._caption(),
            caption_justify="left",
        )
        table.add_column("quantity")
        for name in ("value", "± scale", "τ_int"):
            table.add_column(name, justify="right")
        for name, heading in headings(TopologicalCharge).items():
            one = getattr(found, name)
            if one and math.isfinite(one.value):
                scale = getattr(found, f"{name}_scale_error", None)
                table.add_row(heading, str(one), f"{scale:.2g}" if scale else "", one.format_tau())
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return the susceptibility; the second error in MeV is that of the scale."""
        found = self.topology
        return [
            quoted_field(found, "susceptibility"),
            quoted_field(found, "susceptibility_t0"),
            quoted_field(found, "fourth_root", found.fourth_root_scale_error),
        ]

    def unquoted(self) -> str:
        """Return why the susceptibility has no error; see `FitResult.unquoted`."""
        return "Q changes too rarely to estimate errors"

    def _caption(self) -> str:
        found = self.topology
        rounding = "rounded" if found.rounded else "not rounded"
        lines = [
            f"{found.configurations} configurations{spaced(found.updates)}; "
            f"Q from the {found.charge} discretisation, {rounding}.",
            f"Flow time: {found.rule}" + (f"; t0/a² = {found.t0}." if found.t0 else "."),
            f"α = {found.alpha:.4f} brings αQ nearest to integers, within {found.deviation:.3f}; "
            f"the integers change {found.changes} times.",
            f"Largest Re Tr(1 − U_p): {found.s_max:.3g}; it reaches {ADMISSIBLE:g} in "
            f"{found.inadmissible:.1%} of the configurations.",
            "τ_int is in configurations.",
        ]
        if found.fourth_root:
            lines.append(f"Scale: √t0 from {found.source}.")
        return "\n".join([*lines, *found.cautions])


class TopologyFit(Fit):
    """Moments of the topological charge, and its susceptibility."""

    name: ClassVar[str] = "topology"
    isotropic: ClassVar[bool] = True
    summary: ClassVar[str] = "topological charge and susceptibility from the gradient flow"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (TopologicalCharge,)
    options: ClassVar[tuple[Option, ...]] = (
        CHARGE,
        TIME,
        ROUND,
        ENERGY,
        GOAL,
        TREE_LEVEL,
        SQRT_T0,
        SQRT_T0_ERROR,
        SKIP,
    )

    def carry_out(self, table: Path, **options: Any) -> TopologyResult:
        """Determine the distribution of the charge from a table; see `Fit.carry_out`."""
        flow = read_flow(table, options.get(SKIP.name, 0))
        choice = choice_of_charge(options)
        sqrt_t0 = reference_t0(flow.ensemble, choice["target"], options)
        return TopologyResult(topological_charge(flow, **choice, sqrt_t0=sqrt_t0))


FITS.register(TopologyFit())


def choice_of_charge(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the charge that options choose, as arguments of `charges_at`.

    Raises
    ------
    UsageError
        If the target is not positive.
    """
    return {
        **definition(options),
        "charge": options.get(CHARGE.name, CHARGE.default),
        "t": options.get(TIME.name),
        "rounded": options.get(ROUND.name, False),
    }
