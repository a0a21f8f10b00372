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
    SUSCEPTIBILITY: "V (<|L|^2> - <|L|>^2) of the average L over the V sites of space; jackknife",
}

PANELS = {
    "plaquette": "plaquette",
    MODULUS: r"$\langle|L|\rangle$",
    SUSCEPTIBILITY: r"$V\,(\langle|L|^2\rangle-\langle|L|\rangle^2)$",
}
"""What is drawn against beta, and the labels of the axes."""

LEAST_BINS, TAUS_IN_A_BIN = 20, 10


def average(
    observable: str, columns: Sequence[str], paths: Sequence[Path], every: int, lattice: Lattice
) -> dict[str, float]:
    """Average an observable over the chains of one point.

    Parameters
    ----------
    observable : str
    columns : sequence of str
        Of its tables.
    paths : sequence of Path
        Its table in each run.
    every : int
        Sweeps from one measurement to the next.
    lattice : Lattice

    Returns
    -------
    dict of str to float
        For each column its average, the error, and tau_int in sweeps; for the
        Polyakov loop also the susceptibility of its modulus. Named as in a scan's table.

    Raises
    ------
    GaugeError
        If a table cannot be read, or lacks a column.
    """
    tables = [read_table(path).columns for path in paths]
    result: dict[str, float] = {}
    for column in columns:
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
        NaN as the error of less than two bins, and for no measurements at all.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    samples = sum(part.size for part in parts)
    if not samples:
        return math.nan, math.nan
    mean = np.concatenate(parts).mean()
    parts = [part - mean for part in parts]  # the result is the same, but not its rounding
    tau = max(estimate(*parts).tau_int, estimate(*(part**2 for part in parts)).tau_int)
    length = max(1, min(math.ceil(TAUS_IN_A_BIN * np.nan_to_num(tau)), samples // LEAST_BINS))
    bins = [
        one
        for part in parts
        for one in np.array_split(part, max(1, part.size // length))
        if one.size
    ]
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


def draw_scan(table: Path, figure: Path) -> None:
    """Draw what a scan's table holds against beta, one curve a lattice; see `plot_scan`.

    Raises
    ------
    GaugeError
        If there is no such table, it is none of a scan, or it holds nothing to draw.
    """
    from gauge_mc.analysis.plots import plot_scan

    data = read_table(table, text=("lattice",))
    words = [name for name, column in data.columns.items() if column.dtype.kind == "U"]
    if "beta" not in data.columns or words != ["lattice"]:
        raise GaugeError(f"{table} is no table of a scan; make it by gauge-mc scan.")
    lattices = dict.fromkeys(data.columns["lattice"].tolist())
    group = f"SU({data.header.get('group', 'suN')[2:]})"
    panels = []
    for name, label in PANELS.items():
        if name in data.columns:
            curves = [(f"{group}, {each}", _curve(data, name, each)) for each in lattices]
            panels.append((label, curves))
    if not (panels and lattices):
        raise GaugeError(f"{table} holds nothing to draw yet; go on with the scan.")
    plot_scan(panels, figure)


def _curve(table: TableData, name: str, lattice: str) -> list[tuple[float, Estimate]]:
    """Return the averages of a quantity on one lattice by beta."""
    columns = table.columns
    here = np.flatnonzero(columns["lattice"] == lattice)
    curve = []
    for row in here[np.argsort(columns["beta"][here])]:
        value, error = float(columns[name][row]), float(columns[f"{name}_error"][row])
        curve.append((float(columns["beta"][row]), Estimate(value, error, math.nan, math.nan, 0)))
    return curve


def _series(columns: Mapping[str, NDArray[np.generic]], name: str, path: Path) -> Array:
    series = columns.get(name)
    if series is None or series.dtype.kind == "U":
        raise GaugeError(f"The table {path} is damaged: it has no numbers for {name}.")
    return series.astype(np.float64)


def _variance(sums: Array) -> Array:
    """Return <x^2> - <x>^2 from the number of samples and the sums of x and x^2."""
    count, first, second = sums
    return np.asarray(second / count - (first / count) ** 2)
