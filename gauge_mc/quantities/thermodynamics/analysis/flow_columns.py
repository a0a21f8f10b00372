"""Columns of tables of the gradient flow at T > 0."""

from __future__ import annotations

from gauge_mc.files.columns import SWEEP, Column, TableColumns

COLUMNS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("electric", float, "a⁴E of the planes with t from the clover, averaged over the sites"),
    Column("magnetic", float, "a⁴E of the planes in space from the clover"),
    Column("electric_plaquette", float, "a⁴E of the planes with t from plaquettes"),
    Column("magnetic_plaquette", float, "a⁴E of the planes in space from plaquettes"),
    Column("loop_re", float, "real part of the Polyakov loop, averaged over space"),
    Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
)
"""Columns of a table of the electric and magnetic energy and the Polyakov loop along the flow."""

THERMAL_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of such a table."""

CORRELATORS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("tau", int, "distance along t of the two fields", index=True),
    Column("electric_re", float, "a⁴ C_E, real part, summed over directions and averaged"),
    Column("electric_im", float, "its imaginary part; 0 for SU(2)"),
    Column("magnetic_re", float, "a⁴ C_B, real part"),
    Column("magnetic_im", float, "its imaginary part; 0 for SU(2)"),
    Column("loop_re", float, "real part of the Polyakov loop of the flowed links"),
    Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
)
"""Columns of a table of electric and magnetic correlators on the Polyakov loop."""

FIELD_COLUMNS = (SWEEP, *CORRELATORS.names)
"""Names of the columns of such a table."""
