"""Tables of estimates of the chiral condensate, with one row per source."""

from __future__ import annotations

from gauge_mc.files.columns import SWEEP, Column, TableColumns

SOURCE = "source"
"""Name of the column with the number of the source."""

COLUMNS = TableColumns(
    Column("kappa", float, "hopping parameter of the quark", index=True),
    Column("mu", float, "twisted mass of the quark", index=True),
    Column("m", float, "mass of the quark", index=True, optional=True),
    Column(SOURCE, int, "number of the source, from 0", index=True),
    Column("scalar", float, "estimate of Re Tr S / V"),
    Column("scalar_im", float, "estimate of Im Tr S / V, 0 without a twisted mass", rounding=True),
    Column("pseudoscalar", float, "estimate of Re Tr γ₅S / V"),
    Column(
        "pseudoscalar_im",
        float,
        "estimate of Im Tr γ₅S / V, 0 without a twisted mass",
        rounding=True,
    ),
    Column("connected", float, "estimate of Re Tr S S / V"),
    Column("pion", float, "estimate of Tr S†S / V"),
)
"""Columns of the table."""

CONDENSATE_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that all tables have."""

WHAT = "condensates"
"""Content of the tables, for messages."""
