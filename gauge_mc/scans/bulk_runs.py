"""Runs for bulk thermodynamics: the action at T > 0 and at T = 0, and the scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gauge_mc.actions import Coupling, ensemble_keys
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_heading
from gauge_mc.groups import GROUPS, Group
from gauge_mc.quantities.flow.analysis.records import FLOW_COLUMNS, read_flow
from gauge_mc.quantities.flow.analysis.scales import flow_scales
from gauge_mc.quantities.thermodynamics.analysis.integral import ActionDifferences
from gauge_mc.quantities.thermodynamics.analysis.scale import MeasuredLength
from gauge_mc.run.thermalisation import Skip, last_skipped
from gauge_mc.scans.thermal_runs import (
    LEAST_MEASUREMENTS,
    VARYING,
    WEIGHTS,
    action_series,
    check_equal,
)


@dataclass(frozen=True)
class BulkRun:
    """One run with the action along its chain."""

    path: Path
    """The run directory."""
    coupling: Coupling
    """The action with its coupling."""
    lattice: Lattice
    """Extents."""
    density: Array
    """The action per site divided by beta, of shape (samples,)."""

    @property
    def cold(self) -> bool:
        """Whether the temperature is that of T = 0: N_t is not below the extents in space."""
        return self.lattice.t >= min(self.lattice.extents[:3])


@dataclass(frozen=True)
class BulkRuns:
    """Runs with one action at T > 0 on one lattice, and at T = 0."""

    ensemble: Mapping[str, str]
    """Keys of the headers that all runs share, such as group and action."""
    lattice: Lattice
    """The lattice at T > 0."""
    hot: Sequence[BulkRun]
    """The runs on it."""
    cold: Sequence[BulkRun]
    """The runs at T = 0, at every coupling those on the largest lattice."""
    cautions: list[str] = field(default_factory=list)
    """Sentences about what was left out."""

    @property
    def group(self) -> Group:
        """The gauge group."""
        return GROUPS[self.ensemble["group"]]

    @property
    def coupling(self) -> Coupling:
        """The action, with the coupling of the first run."""
        return self.hot[0].coupling

    def differences(self) -> ActionDifferences:
        """Return the differences of the action at all couplings with runs at both temperatures.

        Raises
        ------
        GaugeError
            If there are fewer than two such couplings.
        """
        beta = sorted({one.coupling.beta for one in self.hot})
        pairs = [(b, _at(self.hot, b), _at(self.cold, b)) for b in beta]
        found = [(b, hot, cold) for b, hot, cold in pairs if cold]
        if len(found) < 2:
            raise GaugeError(
                f"The pressure is an integral over couplings at which there are runs on "
                f"{self.lattice} and at T = 0, on a lattice of equal extents, and there are "
                f"{len(found)}; add runs, or name the folder of those at T = 0 with --cold."
            )
        return ActionDifferences(
            np.array([b for b, _, _ in found]),
            [estimate(*hot) for _, hot, _ in found],
            [estimate(*cold) for _, _, cold in found],
        )

    @property
    def missing(self) -> list[float]:
        """Couplings with runs at T > 0 but none at T = 0."""
        beta = sorted({one.coupling.beta for one in self.hot})
        return [one for one in beta if not _at(self.cold, one)]

    def lengths(self, energy: str, target: float, skip: Skip) -> tuple[list[MeasuredLength], str]:
        """Return sqrt(t0)/a of the runs at T = 0 that measured the gradient flow.

        Parameters
        ----------
        energy : str
            Discretisation of E.
        target : float
            Value of t^2 <E> at t0.
        skip : int or str
            Last update that is left out, or `AUTO`.

        Returns
        -------
        lengths : list of MeasuredLength
            The lengths.
        complaint : str
            Why that of a run is not known, in a sentence; empty if all are.
        """
        found, complaint = [], ""
        for run in self.cold:
            path = table_with(run.path, FLOW_COLUMNS)
            if path is None:
                continue
            try:
                t0 = flow_scales(read_flow(path, last_skipped(run.path, skip)), energy, target).t0
            except GaugeError as error:
                complaint = complaint or f"√t₀ at β = {run.coupling.beta:.12g} is left out: {error}"
                continue
            root = math.sqrt(t0.value)
            found.append(MeasuredLength(run.coupling.beta, root, t0.error / (2 * root)))
        return found, complaint


def _at(runs: Iterable[BulkRun], beta: float) -> list[Array]:
    """Return the chains at a coupling."""
    return [one.density for one in runs if one.coupling.beta == beta]


def read_bulk_runs(
    folder: Path,
    cold: Path | None = None,
    skip: Skip = 0,
    extent: int | None = None,
) -> BulkRuns:
    """Read the runs in a folder that are needed for the equation of state.

    Parameters
    ----------
    folder : Path
        Folder of run directories at T > 0, such as a scan, perhaps also with those at T = 0.
    cold : Path, optional
        Another folder with runs at T = 0.
    skip : int or str
        Last update that is left out, or `AUTO`.
    extent : int, optional
        Number of links N_t along t at T > 0.

    Raises
    ------
    GaugeError
        If there are no runs at T > 0, runs differ in their action, group or quarks, there are
        several N_t, or the lattices are anisotropic.
    """
    every, shared = _read(folder, skip, {})
    if cold:
        more, shared = _read(cold, skip, shared)
        if not any(one.cold for one in more):
            raise GaugeError(
                f"There is no run at T = 0 in {cold}, on a lattice with at least as many links "
                "along t as in some direction of space; name another folder, or leave --cold out."
            )
        every += [one for one in more if one.cold]
    hot = [one for one in every if not one.cold and extent in (None, one.lattice.t)]
    if not hot:
        raise GaugeError(
            f"There is no run at T > 0 in {folder}, with fewer links along t"
            f"{f', {extent},' if extent else ''} than in space; name the folder of a scan that has "
            "measured the loops of its action."
        )
    extents = sorted({one.lattice.t for one in hot})
    if len(extents) > 1:
        raise GaugeError(
            f"The runs in {folder} have several temporal extents, {', '.join(map(str, extents))}; "
            "choose one with --nt."
        )
    lattice = max((one.lattice for one in hot), key=lambda one: one.sites)
    others = sorted({str(one.lattice) for one in hot} - {str(lattice)})
    cautions = [
        f"The runs on {one} are left out, which is smaller than {lattice}." for one in others
    ]
    return BulkRuns(
        shared,
        lattice,
        [one for one in hot if one.lattice == lattice],
        _largest([one for one in every if one.cold]),
        cautions,
    )


def _largest(runs: Sequence[BulkRun]) -> list[BulkRun]:
    """Return the runs on the largest lattice at each coupling."""
    sites: dict[float, int] = {}
    for one in runs:
        sites[one.coupling.beta] = max(sites.get(one.coupling.beta, 0), one.lattice.sites)
    return [one for one in runs if one.lattice.sites == sites[one.coupling.beta]]


def _read(
    folder: Path, skip: Skip, shared: Mapping[str, str]
) -> tuple[list[BulkRun], Mapping[str, str]]:
    """Return the runs in a folder, and the keys of their headers that they share."""
    if not folder.is_dir():
        raise GaugeError(f"{folder} is not a folder; name one that has runs.")
    found = []
    for path in sorted(one for one in folder.iterdir() if one.is_dir()):
        header = _header(path)
        if header is None:
            continue
        keys = (*(one for one in ensemble_keys() if one not in VARYING), *WEIGHTS)
        own = {one: header[one] for one in keys if one in header}
        check_equal(shared or own, own, path)
        shared = own
        coupling = Coupling.of_metadata(header)
        if coupling.action.factors:
            raise GaugeError(
                f"{path} has the bare anisotropy {coupling.action.anisotropy:g}, and the equation "
                "of state is for equal lattice spacings in space and along t; use isotropic runs."
            )
        updates, density = action_series(path, coupling)
        last = last_skipped(path, skip)
        density = density[updates > last]
        if density.size < LEAST_MEASUREMENTS:
            raise GaugeError(
                f"{path} has measured the loops of its action at {density.size} updates after "
                f"update {last}, and {LEAST_MEASUREMENTS} are needed; continue the run."
            )
        found.append(BulkRun(path, coupling, Lattice.parse(header["lattice"]), density))
    return found, shared


def _header(run: Path) -> Mapping[str, str] | None:
    """Return the header of some table of a run that states its ensemble, or None."""
    for path in sorted(run.glob("*.csv")):
        header = read_heading(path)[0]
        if {"group", "beta", "lattice"} <= header.keys():
            return header
    return None


def table_with(run: Path, columns: Sequence[str]) -> Path | None:
    """Return the table of a run that has some columns, or None."""
    for path in sorted(run.glob("*.csv")):
        if set(columns) <= set(read_heading(path)[1]):
            return path
    return None
