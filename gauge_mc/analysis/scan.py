"""A scan's results: averages at every point of its grid, in one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError
from gauge_mc.formats.table import TableData, Value, read_table, write_table
from gauge_mc.lattice import Lattice

Array = NDArray[np.float64]

NUMBERS = ("", "_error", "_tau_int")
"""Endings of a quantity's columns: its average, the error, and tau_int."""

MODULUS, SUSCEPTIBILITY = "polyakov_abs", "polyakov_susceptibility"

NOTES = {
    "units": "dimensionless; tau_int in composite sweeps",
    "errors": "Gamma method on all chains of a point together, about their common mean",
    SUSCEPTIBILITY: "V (<|P|^2> - <|P|>^2) of the average P over the V sites of space; jackknife",
}

LEAST_BINS, TAUS_IN_A_BIN = 20, 10


def average(
    observable: str, paths: Sequence[Path], every: int, lattice: Lattice
) -> dict[str, float]:
    """Average an observable over the chains of one point.

    Parameters
    ----------
    observable : str
    paths : sequence of Path
        Its table in each run.
    every : int
        Sweeps from one measurement to the next.
    lattice : Lattice

    Returns
    -------
    dict of str to float
        For each column of the tables its average, the error, and tau_int in sweeps; for the
        Polyakov loop also the susceptibility of its modulus. Named as in a scan's table.

    Raises
    ------
    GaugeError
        If a table cannot be read, or has other columns than the others.
    """
    tables = [read_table(path).columns for path in paths]
    result: dict[str, float] = {}
    for column in tables[0]:
        if column == "sweep":
            continue
        chains = [_series(table, column, path) for table, path in zip(tables, paths, strict=True)]
        name = observable if column == observable else f"{observable}_{column}"
        found = estimate(*chains)
        numbers = (found.value, found.error, every * found.tau_int)
        result |= {name + ending: one for ending, one in zip(NUMBERS, numbers, strict=True)}
        if name == MODULUS:
            value, error = susceptibility(*chains, volume=lattice.x * lattice.y * lattice.z)
            result |= {SUSCEPTIBILITY: value, f"{SUSCEPTIBILITY}_error": error}
    return result


def susceptibility(*chains: ArrayLike, volume: int) -> tuple[float, float]:
    """Susceptibility V (<x^2> - <x>^2) and its error by the jackknife.

    What is left out at a time is a bin of at least 10 tau_int of x or of (x - <x>)^2, whichever
    is longer, or shorter so that there are 20 bins.

    Parameters
    ----------
    *chains : array_like of float, shape (samples,)
        Measurements of x in the order of each Markov chain.
    volume : int
        V.

    Returns
    -------
    float, float
        NaN as the error of less than two bins.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    mean = np.concatenate(parts).mean()
    parts = [part - mean for part in parts]  # the result is the same, but not its rounding
    samples = sum(part.size for part in parts)
    tau = max(estimate(*parts).tau_int, estimate(*(part**2 for part in parts)).tau_int)
    length = max(1, min(math.ceil(TAUS_IN_A_BIN * np.nan_to_num(tau)), samples // LEAST_BINS))
    bins = [one for part in parts for one in np.array_split(part, max(1, part.size // length))]
    sums = np.array([(one.size, one.sum(), (one**2).sum()) for one in bins])
    value = volume * _variance(sums.sum(axis=0))
    if len(bins) < 2:
        return float(value), math.nan
    without = volume * _variance((sums.sum(axis=0) - sums).T)
    return float(value), float(np.sqrt((len(bins) - 1) * without.var()))


def write_scan(path: Path, header: Mapping[str, str], rows: Sequence[Mapping[str, Value]]) -> None:
    """Write a scan's table, whole or not at all.

    Parameters
    ----------
    path : Path
        The CSV file.
    header : mapping of str to str
        What the scan is.
    rows : sequence of mappings
        Of each point its beta and lattice, the numbers of its chains and of their measured
        sweeps, and what `average` gives.

    Raises
    ------
    GaugeError
        If it cannot be written.
    """
    columns = list(rows[0]) if rows else ["beta", "lattice"]
    write_table(path, {**header, **NOTES}, columns, [list(row.values()) for row in rows])


def read_curves(path: Path) -> dict[str, list[tuple[str, list[tuple[float, Estimate]]]]]:
    """Read a scan's table as curves against beta, one a lattice.

    Returns
    -------
    dict of str to list of (str, list of (float, Estimate))
        By quantity (a column such as ``plaquette`` that has one of errors): for each lattice its
        name and the averages by beta, ascending; their tau_int in sweeps, if known, and no samples.

    Raises
    ------
    GaugeError
        If there is no such table, or it is none of a scan.
    """
    table = read_table(path, text=("lattice",))
    columns = table.columns
    words = [name for name, column in columns.items() if column.dtype.kind == "U"]
    if "beta" not in columns or words != ["lattice"]:
        raise GaugeError(f"{path} is no table of a scan; make it by gauge-mc scan.")
    names = [name for name in columns if f"{name}_error" in columns]
    lattices = dict.fromkeys(columns["lattice"].tolist())
    return {name: [(each, _curve(table, name, each)) for each in lattices] for name in names}


def _curve(table: TableData, name: str, lattice: str) -> list[tuple[float, Estimate]]:
    """Return the averages of a quantity on one lattice by beta."""
    columns = table.columns
    here = np.flatnonzero(columns["lattice"] == lattice)
    curve = []
    for row in here[np.argsort(columns["beta"][here])]:
        known = [columns.get(f"{name}{ending}") for ending in NUMBERS]
        value, error, tau = (math.nan if one is None else float(one[row]) for one in known)
        curve.append((float(columns["beta"][row]), Estimate(value, error, tau, math.nan, 0)))
    return curve


def _series(columns: Mapping[str, NDArray[np.generic]], name: str, path: Path) -> Array:
    series = columns.get(name)
    if series is None or series.dtype.kind not in "if" or not series.size:
        raise GaugeError(f"The table {path} is damaged: it has no numbers for {name}.")
    return series.astype(np.float64)


def _variance(sums: Array) -> Array:
    """Return <x^2> - <x>^2 from the number of samples and the sums of x and x^2."""
    count, first, second = sums
    return np.asarray(second / count - (first / count) ** 2)
