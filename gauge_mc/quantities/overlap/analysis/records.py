"""Tables of the spectrum of the overlap operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.registry import in_words

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


Series = TypeVar("Series", Array, Integers)


@dataclass(frozen=True)
class SpectrumTable:
    """The low spectrum of the overlap operator on an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the operator."""
    lattice: Lattice
    """Extents of the lattice."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in a chain, of shape (configurations,)."""
    chains: Integers
    """Number of the Markov chain of every configuration, from 0, ascending."""
    index: Integers
    """The index on every configuration, of shape (configurations,)."""
    projected: Array
    """The lowest eigenvalues that are not 0, projected to the imaginary axis, of shape
    (configurations, eigenvalues)."""
    bound: float
    """Largest bound of the error of D(0)."""

    def parts(self, series: Series) -> list[Series]:
        """Return the parts of a series, with a value or row for each configuration, by chain."""
        return split_by_chain(series, self.chains)


def split_by_chain(series: Series, chains: Integers) -> list[Series]:
    """Return the parts of a series with equal numbers of the chain, which are ascending."""
    return np.split(series, np.flatnonzero(np.diff(chains)) + 1)


def joined_spectra(tables: Sequence[SpectrumTable]) -> SpectrumTable:
    """Return the spectra of several Markov chains of one ensemble.

    Parameters
    ----------
    tables : sequence of SpectrumTable
        The spectra of each chain.

    Raises
    ------
    GaugeError
        If the ensembles, the operators or the numbers of eigenvalues differ.
    """
    first, *others = tables
    for one in others:
        different = [
            name
            for name in {**first.ensemble, **one.ensemble}
            if first.ensemble.get(name) != one.ensemble.get(name)
        ]
        if first.projected.shape[1] != one.projected.shape[1]:
            different.append("the number of eigenvalues")
        if different:
            raise GaugeError(
                f"The chains do not belong together, since they differ in {in_words(different)}; "
                "fit them one by one."
            )
    return replace(
        first,
        sweeps=np.concatenate([one.sweeps for one in tables]),
        chains=np.repeat(np.arange(len(tables)), [one.sweeps.size for one in tables]),
        index=np.concatenate([one.index for one in tables]),
        projected=np.concatenate([one.projected for one in tables]),
        bound=max(one.bound for one in tables),
    )


def eigenvalue_table(path: Path) -> Path:
    """Return the file of the secondary table, given that of the main one."""
    return path.with_name(f"{path.stem}_{EIGENVALUES}{path.suffix}")


def read_spectrum(path: Path, skip: int = 0, fewest: int = MIN_CONFIGURATIONS) -> SpectrumTable:
    """Read the spectrum of an ensemble.

    Parameters
    ----------
    path : Path
        File of the main table; that of the eigenvalues is beside it.
    skip : int
        Last update that is left out.
    fewest : int
        Minimum number of configurations.

    Raises
    ------
    GaugeError
        If a table cannot be read or does not fit the other one, or there are too few
        configurations.
    UsageError
        If nothing was measured after the update `skip`.
    """
    found = read_series(path, COLUMNS, "spectra of the overlap operator", skip, fewest)
    return SpectrumTable(
        found.stated(METADATA),
        found.lattice,
        found.sweeps,
        np.zeros(found.sweeps.size, np.int64),
        np.asarray(found.values["index"][:, 0], np.int64),
        _projected(path, found.sweeps),
        float(found.values["bound"].max()),
    )


def check_number(configurations: int, source: str, fewest: int = MIN_CONFIGURATIONS) -> None:
    """Refuse too few configurations.

    Raises
    ------
    GaugeError
        If there are fewer than `fewest`.
    """
    if configurations < fewest:
        raise GaugeError(
            f"The index needs at least {fewest} configurations; measure more than the "
            f"{configurations} of {source}."
        )


def _projected(path: Path, sweeps: Integers) -> Array:
    """Return the projected eigenvalues of some configurations."""
    beside = eigenvalue_table(path)
    if not beside.is_file():
        raise GaugeError(f"There is no table {beside} beside {path}; measure the spectrum again.")
    found = read_series(
        beside,
        EIGENVALUE_COLUMNS,
        "eigenvalues of the overlap operator",
        fewest=1,
        rows=lambda table: np.isin(table[SWEEP], sweeps),
    )
    if not np.array_equal(found.sweeps, sweeps):
        raise GaugeError(
            f"{beside} does not have eigenvalues of every configuration; measure the spectrum "
            "again."
        )
    return np.asarray(found.values["projected"], np.float64)
