"""The quality of the overlap operator on a field of links, for tables."""

from __future__ import annotations

from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import Value
from gauge_mc.quarks.overlap.quarks import Overlap

SIGN_COLUMNS = TableColumns(
    Column("modes", int, "number of low modes of H that are treated exactly"),
    Column("lowest", float, "smallest |eigenvalue| of H that was found; 0 if none was looked for"),
    Column("edge", float, "number below the |eigenvalues| of all other modes"),
    Column("norm", float, "number above all |eigenvalues|"),
    Column("gap", float, "|eigenvalue| of the first mode left, divided by that of the last one"),
    Column("approximation", str, "approximation of the sign of the other modes"),
    Column("size", int, "its degree, or its number of poles"),
    Column("bound", float, "bound of the norm of the error of the sign function"),
    Column("squared", float, "norm of (sgn² - 1) v for a random vector v, divided by that of v"),
    Column("relation", float, "residual of the Ginsparg-Wilson relation, in the same way"),
    Column("applications", int, "number of applications of H in the search for low modes"),
)
"""A row for a field of links. Eigenvalues are those of H = gamma_5 (D_w - rho)."""


def sign_report(overlap: Overlap) -> tuple[Value, ...]:
    """Return the values of `SIGN_COLUMNS`."""
    modes, approximation = overlap.kernel_modes, overlap.sign.approximation
    unit = overlap.unit
    squared, relation = overlap.ginsparg_wilson()
    return (
        modes.number,
        float(modes.found[0]) * unit if modes.found.size else 0.0,
        modes.edge * unit,
        modes.norm * unit,
        modes.gap,
        approximation.name,
        approximation.size,
        overlap.sign.error_bound,
        squared,
        relation,
        modes.applications,
    )
