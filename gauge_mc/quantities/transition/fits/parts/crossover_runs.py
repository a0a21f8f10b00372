"""Runs that differ in one parameter, with Polyakov loops or condensates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.actions import Coupling, couplings
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.analysis.timeseries.bins import phase_of_mean, susceptibility
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_heading, read_table
from gauge_mc.fits.shared.tables import find_table_by_columns, tables_with_columns
from gauge_mc.quantities.condensate.analysis.condensate import disconnected, read_condensates
from gauge_mc.quantities.condensate.analysis.records import CONDENSATE_COLUMNS
from gauge_mc.quantities.hadrons.analysis.correlators import Quark
from gauge_mc.quantities.transition.analysis.peaks import CrossoverPoint
from gauge_mc.quarks.vectors.angles import IMAGINARY_MU
from gauge_mc.quoting import quoted
from gauge_mc.registry import in_words
from gauge_mc.run.thermalisation import Skip, last_skipped
from gauge_mc.scans.thermal_runs import LOOP_COLUMNS, WEIGHTS, check_equal
from gauge_mc.updates.quarks import DynamicalQuarks

SHARED = ("group", "action", *(one for one in WEIGHTS if one != "quarks"))
"""Keys of headers that all runs share."""


@dataclass(frozen=True)
class CrossoverRun:
    """A run that has measured Polyakov loops or the condensate.

    Attributes
    ----------
    path : Path
        The run directory.
    header : mapping of str to str
        Header of one of its tables.
    loops, condensates : Path or None
        Its tables.
    """

    path: Path
    header: Mapping[str, str]
    loops: Path | None
    condensates: Path | None

    @property
    def quarks(self) -> Sequence[DynamicalQuarks]:
        """The dynamical quarks."""
        return tuple(DynamicalQuarks.several(self.header.get("quarks", "")))

    @property
    def numbers(self) -> dict[str, float]:
        """The coupling, the options of the action, and the numbers of the quarks, by name.

        From the second table of quarks on, its number follows.
        """
        coupling = Coupling.of_metadata(self.header)
        action = {one.name: coupling.action.values.get(one.name) for one in couplings()}
        found = {"beta": coupling.beta, **{k: v for k, v in action.items() if v is not None}}
        for n, one in enumerate(self.quarks, 1):
            own = {**one.couplings, IMAGINARY_MU.name: one.imaginary_mu}
            found |= {f"{name}{n if n > 1 else ''}": value for name, value in own.items()}
        return found


def read_crossover_runs(folder: Path, extent: int | None = None) -> list[CrossoverRun]:
    """Return the runs in a folder that have measured something.

    Raises
    ------
    GaugeError
        If there is none, or they differ in group, action or number of time slices.
    """
    found: list[CrossoverRun] = []
    for path in sorted(one for one in folder.iterdir() if one.is_dir()):
        kinds = (LOOP_COLUMNS, CONDENSATE_COLUMNS)
        tables = [
            find_table_by_columns(path, one) if tables_with_columns(path, one) else None
            for one in kinds
        ]
        known = [one for one in tables if one]
        if not known:
            continue
        run = CrossoverRun(path, read_heading(known[0])[0], *tables)
        if extent and Lattice.parse(run.header["lattice"]).t != extent:
            continue
        if found:
            first, own = ({k: one.header.get(k, "") for k in SHARED} for one in (found[0], run))
            check_equal(first, own, path)
        found.append(run)
    if not found:
        raise GaugeError(
            f"There is no run with Polyakov loops or condensates in {folder}; name the folder of "
            "runs that have measured them."
        )
    return found


def parameters_of(
    folder: Path, runs: Sequence[CrossoverRun], over: str | None = None
) -> tuple[str, list[str]]:
    """Return the name of the number over which runs are compared, and the others that differ.

    Of numbers that have the same values, such as those of several quarks, the first one counts.

    Parameters
    ----------
    folder : Path
        The folder, for messages.
    runs : sequence of CrossoverRun
        The runs.
    over : str, optional
        The number; it must be given if several differ.

    Raises
    ------
    GaugeError
        If the runs differ in no number, or in several of which none is chosen.
    UsageError
        If they do not differ in the one that is chosen.
    """
    numbers = [one.numbers for one in runs]
    names = dict.fromkeys(name for one in numbers for name in one)
    series = {name: tuple(one.get(name, 0.0) for one in numbers) for name in names}
    different = [name for name, values in series.items() if len({*values}) > 1]
    if not different:
        raise GaugeError(
            f"The runs in {folder} have the same parameters; add runs with another coupling, mass "
            "or chemical potential."
        )
    if over is not None and over not in different:
        raise UsageError(
            f"--over is {quoted(over)}, but the runs in {folder} differ in {in_words(different)}; "
            f"give {in_words(different, 'or')}."
        )
    distinct = list({series[name]: name for name in reversed(different)}.values())[::-1]
    if over is None and len(distinct) > 1:
        raise GaugeError(
            f"The runs in {folder} differ in {in_words(distinct)}; say with --over {distinct[0]} "
            "which of them is varied along a curve."
        )
    chosen = over or distinct[0]
    return chosen, [name for name in distinct if series[name] != series[chosen]]


def crossover_points(
    runs: Sequence[CrossoverRun], over: str, others: Sequence[str], skip: Skip
) -> list[CrossoverPoint]:
    """Return what was measured, by lattice, other numbers and `over`, all chains together.

    Raises
    ------
    GaugeError
        If a table is damaged, or it is not known which of its quarks is meant.
    """
    groups: dict[tuple[Lattice, tuple[float, ...], float], list[CrossoverRun]] = {}
    for one in runs:
        rest = tuple(one.numbers.get(name, 0.0) for name in others)
        key = Lattice.parse(one.header["lattice"]), rest, one.numbers.get(over, 0.0)
        groups.setdefault(key, []).append(one)
    order = sorted(groups, key=lambda key: (key[0].sites, str(key[0]), *key[1:]))
    return [_point(key, others, groups[key], skip) for key in order]


def _point(
    key: tuple[Lattice, tuple[float, ...], float],
    others: Sequence[str],
    runs: Sequence[CrossoverRun],
    skip: Skip,
) -> CrossoverPoint:
    lattice, rest, x = key
    pairs = [(one, last_skipped(one.path, skip)) for one in runs]
    loops = [_loop(one.loops, last) for one, last in pairs if one.loops]
    scalars = [_scalar(one, one.condensates, last) for one, last in pairs if one.condensates]
    modulus = phase = chi_loop = condensate = chi = None
    if loops:
        sizes = [np.abs(one) for one in loops]
        modulus, phase = estimate(*sizes), _estimate(phase_of_mean(*loops), sizes)
        chi_loop = _estimate(susceptibility(*sizes, volume=lattice.slice_sites), sizes)
    if scalars:
        condensate = estimate(*(one.mean(axis=1) for one in scalars))
        if min(one.shape[1] for one in scalars) > 1:
            chi, _ = disconnected(*scalars, volume=lattice.sites)
    at = ", ".join(f"{name} = {value:.12g}" for name, value in zip(others, rest, strict=True))
    return CrossoverPoint(str(lattice), at or None, x, modulus, phase, chi_loop, condensate, chi)


def _loop(path: Path, last: int) -> Array:
    table = read_table(path).after(last, str(path))
    return np.asarray(table["re"] + 1j * table["im"])


def _scalar(run: CrossoverRun, path: Path, last: int) -> Array:
    """Return the estimates of the condensate of the dynamical quark, or of the only one."""
    values = read_condensates(path, last).values
    dynamical = [
        Quark(one.values.get("kappa") or 0.0, one.values.get("mu") or 0.0) for one in run.quarks[:1]
    ]
    chosen = [one for one in values if one in dynamical] or [*values]
    if len(chosen) > 1:
        raise GaugeError(
            f"{path} has condensates of {len(chosen)} quarks, none of which is that of the run; "
            "measure the condensate of one quark alone."
        )
    return values[chosen[0]]["scalar"]


def _estimate(pair: tuple[float, float], series: Sequence[Array]) -> Estimate:
    nan = float("nan")
    return Estimate(*pair, nan, nan, sum(map(len, series)))
