"""Tables of eigenvalues of the overlap operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import Skips, TableSeries, joined_series, read_series
from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns

COLUMNS = TableColumns(
    Column(
        "index", int, "index of D(0), zero_down − zero_up; it has the sign of the flow's charge",
        symbol="index", average="index of D",
    ),
    Column("zero_up", int, "zero modes of the chirality 1"),
    Column("zero_down", int, "zero modes of the chirality −1"),
    Column(
        "lowest", float, "smallest |λ| of the eigenvalues of D(0) that are not 0",
        symbol="|λ₁|", axis=r"$|\lambda_1|$", average="lowest |λ| of D",
    ),
    Column("bound", float, "bound of the norm of the error of D(0), without rounding errors"),
)  # fmt: skip
"""Columns of a table of the spectrum, with a row for each configuration."""

SPECTRUM_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of such a table."""

EIGENVALUES = "eigenvalues"
"""Name of the secondary table."""

EIGENVALUE_COLUMNS = TableColumns(
    Column("k", int, "number of the eigenvalue, from 1 for the smallest one", index=True),
    Column(
        "size", float,
        "|λ| of an eigenvalue of D(0) that is not 0, one of each pair of complex conjugates",
    ),
    Column(
        "projected", float,
        "|λ| / √(1 − |λ|²/4ρ²), the eigenvalue projected to the imaginary axis",
    ),
    Column("residual", float, "|A v − |λ|²/(4ρ²) v| for A = D(0)†D(0)/(4ρ²) and its mode v"),
)  # fmt: skip
"""Columns of the table of the eigenvalues that are not 0."""

RHO_KEY = "rho"
"""Key of the header with rho."""

METADATA = (*ensemble_keys(), RHO_KEY, "csw", "boundary", "accuracy")
"""Keys of the header that identify the ensemble and the operator."""


@dataclass(frozen=True)
class SpectrumTable:
    """The low spectrum of the overlap operator on an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the operator."""
    lattice: Lattice
    """Extents of the lattice."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in a chain, of shape (configurations,)."""
    replicas: Replicas
    """Division of the configurations into Markov chains."""
    index: Integers
    """The index on every configuration, of shape (configurations,)."""
    projected: Array
    """The lowest eigenvalues that are not 0, projected to the imaginary axis, of shape
    (configurations, eigenvalues)."""
    bound: float
    """Largest bound of the error of D(0)."""


def eigenvalue_table(path: Path) -> Path:
    """Return the file of the secondary table, given that of the main one."""
    return path.with_name(f"{path.stem}_{EIGENVALUES}{path.suffix}")


def read_spectra(tables: Sequence[Path], skips: Skips = 0) -> SpectrumTable:
    """Read the spectra of Markov chains of one ensemble.

    Parameters
    ----------
    tables : sequence of Path
        The main table of each chain; that of the eigenvalues is beside it.
    skips : int or sequence of int
        Last update that is left out, of all chains or of each.

    Raises
    ------
    GaugeError
        If a table cannot be read or does not fit the other one, the ensembles, the operators or
        the numbers of eigenvalues differ, or there are too few configurations.
    UsageError
        If nothing was measured after the update that is left out.
    """
    spectra = read_series(tables, COLUMNS, "spectra of the overlap operator", skips)
    chains = zip(tables, spectra.replicas.split(spectra.sweeps), strict=True)
    projected = joined_series([_eigenvalues(*chain) for chain in chains]).values["projected"]
    index, bound = spectra.values["index"][:, 0].astype(np.int64), spectra.values["bound"].max()
    configurations = spectra.lattice, spectra.sweeps, spectra.replicas, index, projected
    return SpectrumTable(spectra.stated(METADATA), *configurations, float(bound))


def _eigenvalues(path: Path, sweeps: Integers) -> TableSeries:
    """Return the eigenvalues of some configurations."""
    beside = eigenvalue_table(path)
    if not beside.is_file():
        raise GaugeError(f"There is no table {beside} beside {path}; measure the spectrum again.")
    what = "eigenvalues of the overlap operator"
    series = read_series(
        beside, EIGENVALUE_COLUMNS, what, fewest=1, rows=lambda table: np.isin(table[SWEEP], sweeps)
    )
    if not np.array_equal(series.sweeps, sweeps):
        raise GaugeError(
            f"{beside} does not have eigenvalues of every configuration; measure the spectrum "
            "again."
        )
    return series
