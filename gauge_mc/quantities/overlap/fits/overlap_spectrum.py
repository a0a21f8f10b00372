"""The index of the overlap operator, and its low eigenvalues against random-matrix theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field, quoted_number
from gauge_mc.fits.shared.tables import tables_with_columns
from gauge_mc.options import Option
from gauge_mc.quantities.flow.analysis.records import FLOW_COLUMNS, joined_flows, read_flow
from gauge_mc.quantities.flow.analysis.topology import charges_at
from gauge_mc.quantities.flow.fits.topology import CHARGE, TIME
from gauge_mc.quantities.overlap.analysis.records import (
    SPECTRUM_COLUMNS,
    SpectrumTable,
    check_number,
    joined_spectra,
    read_spectrum,
)
from gauge_mc.quantities.overlap.analysis.spectrum import (
    FlowedCharges,
    OverlapSpectrumSummary,
    overlap_spectrum,
)
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP, last_skipped

OBSERVABLE = "index of the overlap operator, and its low eigenvalues by topological sector"
UNITS = "lattice units; tau_int in configurations"


@dataclass(frozen=True, repr=False)
class OverlapSpectrumResult(FitResult):
    """The index and the low eigenvalues of an ensemble.

    Attributes
    ----------
    found : OverlapSpectrumSummary
        The result.
    """

    found: OverlapSpectrumSummary

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return tables of the index, of mean eigenvalues and of ratios."""
        return [self._index(), *self._eigenvalues()]

    def quoted(self) -> list[QuotedNumber]:
        """Return the susceptibility, and Sigma from the sector that determines it best.

        It is from smallest eigenvalues, which agree with random matrices in the smallest volumes.
        """
        found = self.found
        smallest = [one for one in found.sectors if one.k == 1]
        sigma = sorted(smallest, key=lambda one: one.sigma.error)[:1]
        return [
            quoted_field(found, "square"),
            quoted_field(found, "susceptibility"),
            *(quoted_number(f"Σ a³ from <λ_{one.k}>_{one.nu}", one.sigma) for one in sigma),
        ]

    def unquoted(self) -> str:
        """Return why the susceptibility has no error; see `FitResult.unquoted`."""
        return "the index changes too rarely to estimate errors"

    def _index(self) -> Table:
        found = self.found
        table = Table(
            title="Index of the overlap operator", caption=self._caption(), caption_justify="left"
        )  # fmt: skip
        for name in ("quantity", "value", "τ_int"):
            table.add_column(name, justify="left" if name == "quantity" else "right")
        for name, heading in headings(OverlapSpectrumSummary).items():
            one = getattr(found, name)
            table.add_row(heading, str(one), one.format_tau())
        if found.flow:
            table.add_row(
                "<Q²> of the flow", str(found.flow.square), found.flow.square.format_tau()
            )
            rounded = found.flow.square_rounded
            table.add_row("<Q²>, Q rounded", str(rounded), rounded.format_tau())
        return table

    def _caption(self) -> str:
        found = self.found
        counts = ", ".join(f"{v}: {n}" for v, n in found.histogram.items())
        chains = f" of {found.chains} chains" if found.chains > 1 else ""
        lines = [
            f"{found.configurations} configurations{chains}; by index {counts}.",
            f"Largest bound of the error of D: {found.bound:.1e}.",
        ]
        if found.flow:
            one = found.flow
            lines.append(
                f"Q of the flow: {one.charge}, t/a² = {one.t:g}, on {one.configurations} "
                f"configurations; rounded, it is not the index on {one.different:.0%} of them."
            )
        return "\n".join([*lines, *found.cautions])

    def _eigenvalues(self) -> list[Table]:
        found = self.found
        if not found.sectors:
            return []
        means = Table(title="Mean eigenvalues by sector, projected to the imaginary axis")
        for name in ("|index|", "configs", "k", "<λ_k>", "<λ_k> Σ V predicted", "Σ a³"):
            means.add_column(name, justify="right")
        for one in found.sectors:
            cells = str(one.nu), str(one.configurations), str(one.k)
            means.add_row(*cells, str(one.mean), f"{one.predicted:.4f}", str(one.sigma))
        ratios = Table(title=f"Ratios, against {found.matrices} matrices")
        for name in ("ratio", "value", "predicted", "difference/error"):
            ratios.add_column(name, justify="left" if name == "ratio" else "right")
        for ratio in found.ratios:
            name = f"<λ_{ratio.k}>_{ratio.nu} / <λ_{ratio.other_k}>_{ratio.other_nu}"
            cells = str(ratio.ratio), f"{ratio.predicted:.4f}", f"{ratio.deviation:.1f}"
            ratios.add_row(name, *cells)
        return [means, ratios] if found.ratios else [means]


class OverlapSpectrumFit(Fit):
    """Moments of the index, ratios of mean eigenvalues, and Sigma."""

    name: ClassVar[str] = "overlap-spectrum"
    summary: ClassVar[str] = "index, χ_t, random-matrix ratios and Σ of the overlap operator"
    columns: ClassVar[tuple[str, ...]] = SPECTRUM_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (OverlapSpectrumSummary,)
    options: ClassVar[tuple[Option, ...]] = (CHARGE, TIME, SKIP)
    isotropic: ClassVar[bool] = True
    joins_chains: ClassVar[bool] = True

    def carry_out(self, table: Path, **options: Any) -> OverlapSpectrumResult:
        """Determine the moments and the ratios from a table; see `Fit.carry_out`."""
        return self.carry_out_chains([table], **options)

    def carry_out_chains(self, tables: Sequence[Path], **options: Any) -> OverlapSpectrumResult:
        """Determine the moments and the ratios from chains; see `Fit.carry_out_chains`."""
        skip = options.get(SKIP.name, 0)
        last = max(last_skipped(one.parent, skip) for one in tables)
        return OverlapSpectrumResult(overlap_spectrum(*read_chains(tables, options), last))


FITS.register(OverlapSpectrumFit())


def read_chains(
    tables: Sequence[Path], options: Mapping[str, Any]
) -> tuple[SpectrumTable, FlowedCharges | None]:
    """Return the spectra of chains of one ensemble, and the charges of the flow.

    The charges are None if a chain has no table of them.

    Raises
    ------
    UsageError, GaugeError
        See `read_spectrum`, `joined_spectra`, `read_flow` and `charges_at`.
    """
    skip = options.get(SKIP.name, 0)
    spectra = joined_spectra(
        [read_spectrum(one, last_skipped(one.parent, skip), 1) for one in tables]
    )
    check_number(spectra.index.size, ", ".join(map(str, tables)))
    flows = []
    for one in tables:
        beside = tables_with_columns(one.parent, FLOW_COLUMNS)
        proper = [path for path, named in beside.items() if named] or list(beside)
        if not proper:
            return spectra, None
        flows.append(read_flow(proper[0], last_skipped(one.parent, skip), 1))
    chains = np.repeat(np.arange(len(flows)), [one.sweeps.size for one in flows])
    flow, name = joined_flows(flows), options.get(CHARGE.name, CHARGE.default)
    charges = charges_at(flow, name, options.get(TIME.name))
    return spectra, FlowedCharges(flow.sweeps, chains, charges, name, float(flow.t[charges.index]))
