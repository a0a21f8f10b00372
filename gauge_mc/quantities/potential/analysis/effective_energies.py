"""Effective energies E(R, t), which have plateaus at energy levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.quantities.potential.analysis.loop_ratios import effective_potential, log_loops
from gauge_mc.quantities.potential.analysis.loops import PathLoops


@dataclass(frozen=True)
class EffectiveEnergies:
    """Effective energies E(R, t) along one path, which tend to an energy level for large t."""

    path: str
    """Direction of the spatial lines; empty for energies without a distance, such as masses."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    r: Integers
    """Numbers of steps along the path, of shape (R,)."""
    distances: Array
    """Distances of the static charges in lattice units, of shape (R,)."""
    start: int
    """First t; the others follow in steps of `step`."""
    series: Array
    """Linearised time series of E(R, t), NaN where it is not known, of shape (configurations, R,
    T).
    """
    precision: Array
    """Larger one of the relative errors of the two correlators, at t and t + `step`, of shape (R,
    T).
    """
    step: int = 1
    """Distance of the values of t."""

    @property
    def t(self) -> range:
        """The values of t."""
        return range(self.start, self.start + self.series.shape[2] * self.step, self.step)


def effective_energies(loops: PathLoops) -> EffectiveEnergies:
    """Return the effective potential, with the relative errors of the loops."""
    logs = log_loops(loops)
    errors = np.array([[estimate(one).error for one in row.T] for row in logs.transpose(1, 0, 2)])
    precision = np.maximum(errors[:, :-1], errors[:, 1:])
    parts = loops.path, loops.sweeps, loops.r, loops.distances
    return EffectiveEnergies(
        *parts, loops.t_step, effective_potential(loops), precision, loops.t_step
    )
