"""Trajectories of hybrid Monte Carlo: acceptance, energies, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import read_table
from gauge_mc.results import documented, result_field

TRAJECTORY_COLUMNS = ("delta_h", "accepted", "steps", "action", "force", "largest_force")
"""Columns of the table of trajectories that are analysed."""

CHOICES = ("integrator", "length")
"""Keys of the header that say what the trajectories are."""


@dataclass(frozen=True)
class TrajectoryTable:
    """The trajectories of an ensemble.

    Attributes
    ----------
    ensemble : dict of str to str
        Group, beta, lattice, action, integrator and length, as far as the header states them.
    sweeps : ndarray of int64, shape (trajectories,)
        Numbers of the updates, ascending.
    columns : dict of str to ndarray, shape (trajectories,)
        The columns of the table.
    """

    ensemble: dict[str, str]
    sweeps: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]


@documented
@dataclass(frozen=True)
class Trajectories:
    """Averages over the trajectories of an ensemble."""

    acceptance: Estimate = result_field("Fraction of the trajectories that were accepted.")
    predicted: float = result_field(
        "erfc(sqrt(<dH>) / 2), the acceptance if dH is normal; NaN if <dH> is negative.",
    )
    change: Estimate = result_field("<dH>.")
    weight: Estimate = result_field("<exp(-dH)>, which is 1 in equilibrium.")
    action: Estimate = result_field("Action per site.")
    steps: int = result_field("Number of steps of a trajectory.")
    forces: int = result_field("Number of forces in a trajectory.")
    cost: float = result_field(
        "Number of forces for one independent configuration: 2 tau_int of the action times "
        "`forces`.",
    )
    force: float = result_field(
        "Root mean square of the force of a link at the end of a trajectory.",
    )
    largest_force: float = result_field("Largest force of a link at the end of a trajectory.")
    trajectories: int = result_field("Number of trajectories.")
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice, action, integrator and length, as far as the header states them.",
    )
    cautions: list[str] = result_field("Cautions about the series.")


def read_trajectories(path: Path, skip: int = 0) -> TrajectoryTable:
    """Read the table of trajectories.

    Parameters
    ----------
    path : Path
        File of the table.
    skip : int
        Last update that is left out.

    Raises
    ------
    GaugeError
        If the table is damaged, or has fewer than two trajectories.
    UsageError
        If `skip` is negative, or leaves none.
    """
    table = read_table(path).after(skip, str(path))
    if len(table) < 2:
        raise GaugeError(
            f"{path} has {len(table)} trajectories after update {skip}; at least two are needed, "
            "so continue the run with more --configs."
        )
    columns = {name: np.asarray(table[name], float) for name in TRAJECTORY_COLUMNS}
    if not all(np.isfinite(one).all() for one in columns.values()):
        raise GaugeError(
            f"{path} contains a value that is not a number, as from steps that were much too large;"
            " generate it again with more --steps."
        )
    keys = (*ensemble_keys(), *CHOICES)
    ensemble = {key: table.header[key] for key in keys if key in table.header}
    return TrajectoryTable(ensemble, table[SWEEP], columns)


def trajectory_averages(table: TrajectoryTable, forces_per_step: int) -> Trajectories:
    """Return averages over trajectories.

    Parameters
    ----------
    table : TrajectoryTable
        The trajectories.
    forces_per_step : int
        Number of forces in a step of the integrator.
    """
    c = table.columns
    accepted, change, weight, action = (
        estimate(one) for one in (c["accepted"], c["delta_h"], np.exp(-c["delta_h"]), c["action"])
    )
    slowest = max((accepted, change, weight, action), key=lambda one: one.tau_int)
    steps = int(c["steps"][-1])
    forces = forces_per_step * steps + 1
    return Trajectories(
        accepted,
        math.erfc(math.sqrt(change.value) / 2) if change.value >= 0 else math.nan,
        change,
        weight,
        action,
        steps,
        forces,
        2 * action.tau_int * forces,
        float(np.sqrt(np.mean(c["force"] ** 2))),
        float(c["largest_force"].max()),
        table.sweeps.size,
        table.ensemble,
        [*caution_series(table.sweeps, c["action"]), *slowest.cautions],
    )
