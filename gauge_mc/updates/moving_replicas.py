"""Chains of equal lattices that move along their trajectories together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gauge_mc.devices import BACKENDS
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.levels import TimeScales
from gauge_mc.updates.momenta import Draw
from gauge_mc.updates.moving_chain import Outcome, decided
from gauge_mc.updates.replica_dynamics import (
    GaugeTrajectoryPlan,
    ReplicaDynamics,
    TrajectoryPlan,
    bytes_of_trajectory,
)
from gauge_mc.updates.steps import StepTuner

DynamicsKind = TypeVar("DynamicsKind", bound=ReplicaDynamics)
PlanKind = TypeVar("PlanKind", bound=TrajectoryPlan)

MEMORY_SHARE = 0.5
"""Fraction of the free memory of a device that trajectories may take."""


def divided(links: Field, each: int | None = None, share: float = 1.0) -> list[slice]:
    """Divide the replicas of a field into groups, each of which moves together.

    Groups are as large as keeps the device busy, or as its memory allows. They move one after the
    other, and results do not depend on them.

    Parameters
    ----------
    links : Field
        A field on one device.
    each : int, optional
        Bytes that the trajectory of a replica takes; by default without quarks.
    share : float
        Share of the sites that keep a device busy which a group has at most.
    """
    slab, count = links.slabs[0], len(links.replicas)
    busy = int(share * BACKENDS[slab.device.backend].busy_sites) // links.lattice.sites
    fitting = MEMORY_SHARE * slab.device.free_bytes() // (each or bytes_of_trajectory(links))
    groups = math.ceil(count / max(1, min(busy, int(fitting))))
    size = math.ceil(count / groups)
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


@dataclass
class ChainGroup(ABC, Generic[DynamicsKind, PlanKind]):
    """Chains whose launches are those of all of them.

    Each chain has its own number of steps, and its trajectories are accepted or rejected alone.

    Attributes
    ----------
    links : Field
        The links of the chains, one replica each.
    dynamics : ReplicaDynamics
        Memory for trajectories of all chains.
    scales : TimeScales
        The time scales of a trajectory.
    length : float
        Its length.
    randoms : sequence of Random
        The random numbers of every chain.
    tuners : sequence of StepTuner
        Choose the number of steps of every chain.
    actions : list of Energy or None
        The gauge actions of the links, once they are known. Nothing else changes links between
        updates.
    """

    links: Field
    dynamics: DynamicsKind
    scales: TimeScales
    length: float
    randoms: Sequence[Random]
    tuners: Sequence[StepTuner]
    actions: list[Energy] | None = field(default=None, kw_only=True)
    _plans: dict[tuple[int, ...], PlanKind] = field(default_factory=dict, kw_only=True)

    def check(self) -> None:
        """End a chain that cannot go on, of which there are none without quarks."""

    def update(self) -> list[Outcome]:
        """Do one trajectory of every chain, and accept or reject each."""
        dynamics = self.dynamics
        for random in self.randoms:
            random.step += 1
        plan = self._plan(tuple(one.steps for one in self.tuners))
        dynamics.start(self.links)
        draw = dynamics.begin_momenta()
        before = self.actions or dynamics.begin_actions()()
        outcomes, after = self._move(plan, draw, before)
        dynamics.accept(self.links, [one.accepted for one in outcomes], plan.ends)
        self.actions = [
            new if one.accepted else old
            for one, new, old in zip(outcomes, after, before, strict=True)
        ]
        return outcomes

    @abstractmethod
    def _move(
        self, plan: PlanKind, draw: Callable[[], list[Draw]], before: list[Energy]
    ) -> tuple[list[Outcome], list[Energy]]:
        """Do a trajectory of every chain; return the outcomes and the gauge actions at the end."""

    @abstractmethod
    def _planned(self, trajectories: Sequence[Sequence[Move]]) -> PlanKind:
        """Return the launches of trajectories."""

    def _plan(self, steps: tuple[int, ...]) -> PlanKind:
        """Return the launches of trajectories with these numbers of steps; the last are kept."""
        if steps not in self._plans:
            self._plans.clear()
            made = {count: self.scales.trajectory(self.length, count) for count in {*steps}}
            self._plans[steps] = self._planned([made[count] for count in steps])
        return self._plans[steps]


@dataclass
class MovingReplicas(ChainGroup[ReplicaDynamics, GaugeTrajectoryPlan]):
    """Chains of a gauge action without quarks."""

    def _planned(self, trajectories: Sequence[Sequence[Move]]) -> GaugeTrajectoryPlan:
        return self.dynamics.plan(trajectories)

    def _move(
        self, plan: GaugeTrajectoryPlan, draw: Callable[[], list[Draw]], before: list[Energy]
    ) -> tuple[list[Outcome], list[Energy]]:
        # Sums of kernels are fetched at the end, so that the device need not wait in between.
        moving, actions = self.dynamics.begin(plan), self.dynamics.begin_actions(plan.ends)
        drawn, forces, after = draw(), moving(), actions()
        outcomes = []
        for n, (random, tuner) in enumerate(zip(self.randoms, self.tuners, strict=True)):
            end, steps = forces[n].kinetic + after[n], tuner.steps
            change = end.minus(drawn[n].kinetic + before[n])
            probability, accepted = decided(change, drawn[n].uniform, random.step, tuner)
            action, kinetic = float(after[n] if accepted else before[n]), float(forces[n].kinetic)
            outcomes.append(
                Outcome(change, accepted, probability, steps, action, kinetic, forces[n], [], [])
            )
        return outcomes, after
