"""Trajectories of hybrid Monte Carlo: acceptance, energies, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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

CHOICES = ("integrator", "length", "levels", "quarks", "monomials")
"""Keys of the header that say what the trajectories are."""

FAILED = "failed"
"""Column that says whether a solver has failed in a trajectory; only runs with quarks have it."""

FORCE, LARGEST_FORCE, ITERATIONS = "force", "largest_force", "iterations"
"""Columns of a term of the action of quarks, before an underscore and its name. Those of the gauge
action have no name."""

SMALLEST, LARGEST = "smallest_eigenvalue", "largest_eigenvalue"
"""Columns of terms with rational functions: the ends of the spectrum."""

OF_TERMS = (FORCE, LARGEST_FORCE, ITERATIONS, SMALLEST, LARGEST)
"""Columns of terms of the action of quarks, without their names."""

GAUGE = "gauge"
"""Name of the gauge action among the terms of the action."""

UNEQUAL = 4.0
"""Ratio of the products of force and step of two levels from which on it is said."""


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

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether a solver has failed, so that the energy is not known, in each trajectory."""
        return self.columns.get(FAILED, np.zeros(self.sweeps.size)) > 0

    @property
    def terms(self) -> list[str]:
        """Names of the terms of the action of quarks."""
        return [name.removeprefix(f"{FORCE}_") for name in self.columns if _is_of_term(name)]


class ActionTerm(NamedTuple):
    """Where a term of the action acts.

    Attributes
    ----------
    name : str
        Its name.
    level : int
        Its level, from 0 for the outermost one.
    forces : int
        Number of its forces in a trajectory.
    """

    name: str
    level: int
    forces: int


@documented
@dataclass(frozen=True)
class TermForces:
    """Forces of a term of the action, and what they cost."""

    name: str = result_field("Name of the term.")
    level: int = result_field("Level on which it acts, from 0 for the outermost one.")
    forces: int = result_field("Number of its forces in a trajectory.")
    step: float = result_field("Mean time between two of them.")
    force: float = result_field("Root mean square of the force on a link.")
    largest_force: float = result_field("Largest force on a link.")
    kick: float = result_field("`force` times `step`.")
    iterations: float = result_field("Iterations of its solvers in a trajectory.")


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
    failed: int = result_field("Number of those in which a solver has failed.")
    terms: list[TermForces] = result_field("The terms of the action, from the outermost level.")
    iterations: float = result_field("Iterations of all solvers in a trajectory.")
    cost_in_iterations: float = result_field(
        "Iterations for one independent configuration: 2 tau_int of the action times `iterations`.",
    )
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
            f"{path} has {len(table) or 'no'} trajectory after update {skip}; at least two are "
            "needed, so continue the run with more --configs."
        )
    more = [name for name in table if name == FAILED or _is_of_term(name, OF_TERMS)]
    columns = {name: np.asarray(table[name], float) for name in (*TRAJECTORY_COLUMNS, *more)}
    if not all(np.isfinite(one).all() for one in columns.values()):
        raise GaugeError(
            f"{path} contains a value that is not a number, as from steps that were much too large;"
            " generate it again with more --steps."
        )
    keys = (*ensemble_keys(), *CHOICES)
    ensemble = {key: table.header[key] for key in keys if key in table.header}
    return TrajectoryTable(ensemble, table[SWEEP], columns)


def _is_of_term(column: str, kinds: Sequence[str] = (FORCE,)) -> bool:
    return column.startswith(tuple(f"{kind}_" for kind in kinds))


def trajectory_averages(
    table: TrajectoryTable, gauge: ActionTerm, quarks: Sequence[ActionTerm] = ()
) -> Trajectories:
    """Return averages over trajectories.

    Parameters
    ----------
    table : TrajectoryTable
        The trajectories.
    gauge : ActionTerm
        The gauge action.
    quarks : sequence of ActionTerm
        The terms of the action of quarks.

    Raises
    ------
    GaugeError
        If the energies of fewer than two trajectories are known.
    """
    c, done = table.columns, ~table.failed
    if done.sum() < 2:
        raise GaugeError(
            f"Solvers have failed in {(~done).sum()} of {done.size} trajectories; averages need at "
            "least two others."
        )
    accepted, change, weight, action = (
        estimate(one)
        for one in (
            c["accepted"],
            c["delta_h"][done],
            np.where(done, np.exp(-c["delta_h"]), 0.0),
            c["action"],
        )
    )
    slowest = max((accepted, change, weight, action), key=lambda one: one.tau_int)
    length = float(table.ensemble.get("length", "nan"))
    terms = [_forces(c, done, one, length, f"_{one.name}") for one in quarks]
    own = _forces(c, done, gauge, length)
    iterations = sum(one.iterations for one in terms)
    return Trajectories(
        accepted,
        math.erfc(math.sqrt(change.value) / 2) if change.value >= 0 else math.nan,
        change,
        weight,
        action,
        int(c["steps"][-1]),
        gauge.forces,
        2 * action.tau_int * gauge.forces,
        own.force,
        own.largest_force,
        table.sweeps.size,
        int((~done).sum()),
        sorted([*terms, own], key=lambda one: one.level),
        iterations,
        2 * action.tau_int * iterations,
        table.ensemble,
        [*caution_series(table.sweeps, c["action"]), *slowest.length_cautions],
    )


def _forces(
    columns: Mapping[str, NDArray[np.float64]],
    done: NDArray[np.bool_],
    term: ActionTerm,
    length: float,
    ending: str = "",
) -> TermForces:
    """Return the forces of a term, whose columns have an ending."""
    force = float(np.sqrt(np.mean(columns[f"{FORCE}{ending}"][done] ** 2)))
    step = length / max(term.forces - 1, 1)
    counts = columns.get(f"{ITERATIONS}{ending}", np.zeros(1))
    largest = float(columns[f"{LARGEST_FORCE}{ending}"][done].max())
    return TermForces(*term, step, force, largest, force * step, float(counts.mean()))


def unequal_levels(terms: Sequence[TermForces]) -> str:
    """Return which level is too coarse or too fine for its forces, in a sentence; or nothing.

    The error of an integrator grows with the product of force and step, so that the steps of a
    level are spent in vain if that of another one is much larger. This is a rule of thumb: what
    counts in the end is how forces change.
    """
    kicks: dict[int, float] = {}
    for one in terms:
        kicks[one.level] = max(kicks.get(one.level, 0.0), one.kick)
    coarse, fine = (pick(kicks, key=lambda level: kicks[level]) for pick in (max, min))
    if not kicks[coarse] >= UNEQUAL * kicks[fine]:
        return ""
    return (
        f"The force times the step is {kicks[coarse]:.2g} on level {coarse}, but "
        f"{kicks[fine]:.2g} on level {fine}: give level {coarse} more steps if the acceptance is "
        f"low, or level {fine} fewer if it is high."
    )
