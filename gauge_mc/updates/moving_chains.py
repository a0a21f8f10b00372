"""Chains that move along their trajectories together, each of which is accepted or rejected."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gauge_mc.devices import BACKENDS
from gauge_mc.errors import ChainError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.solvers import Failures
from gauge_mc.updates.energy import Energy, acceptance, total
from gauge_mc.updates.levels import TimeScales
from gauge_mc.updates.molecular_dynamics import Forces, MolecularDynamics, TrajectoryPlan
from gauge_mc.updates.momenta import Draw
from gauge_mc.updates.steps import StepTuner

MEMORY_SHARE = 0.5
"""Fraction of the free memory of a device that trajectories may take."""

FAILURES = "failures"
"""Key of the number of trajectories in a row in which a solver has failed, in checkpoints."""


class Outcome(NamedTuple):
    """The result of a trajectory: whether it was accepted, its energy, and its forces.

    Attributes
    ----------
    change : float
        Change of the energy; 0 if a solver has failed.
    accepted : bool
        Whether its links are now those of the chain.
    probability : float
        Probability with which it was accepted.
    steps : int
        Number of steps of the outermost level.
    action : float
        The gauge action of the links after the update.
    kinetic : float
        Kinetic energy at the end of the trajectory; at its beginning if a solver has failed.
    forces : Forces or None
        The forces; None if a solver has failed.
    iterations : list of int
        Numbers of iterations of the terms other than the gauge action.
    measured : list of tuple of float
        What these terms have measured; see `Monomial.measured`.
    """

    change: float
    accepted: bool
    probability: float
    steps: int
    action: float
    kinetic: float
    forces: Forces | None
    iterations: list[int]
    measured: list[tuple[float, ...]]


def divided(links: Field, each: int, share: float = 1.0, most: float = math.inf) -> list[slice]:
    """Divide the replicas of a field into groups, each of which moves together.

    Groups are as large as keeps the device busy, or as its memory allows. They move one after the
    other, and results do not depend on them.

    Parameters
    ----------
    links : Field
        A field on one device.
    each : int
        Bytes that the trajectory of a replica takes.
    share : float
        Share of the sites that keep a device busy which a group has at most.
    most : float
        Number of replicas which a group has at most.
    """
    slab, count = links.slabs[0], len(links.replicas)
    busy = int(share * BACKENDS[slab.device.backend].busy_sites) // links.lattice.sites
    fitting = MEMORY_SHARE * slab.device.free_bytes() // each
    groups = math.ceil(count / max(1, min(busy, int(fitting), most)))
    size = math.ceil(count / groups)
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def decided(change: float, uniform: float, step: int, tuner: StepTuner) -> tuple[float, bool]:
    """Decide about a trajectory, and let the number of steps be chosen from it.

    Parameters
    ----------
    change : float
        Change of the energy.
    uniform : float
        A random number between 0 and 1.
    step : int
        Number of trajectories since the start of the chain, this one included.
    tuner : StepTuner
        Chooses the number of steps.

    Returns
    -------
    tuple of float and bool
        The probability with which the trajectory is accepted, and whether it is.
    """
    probability = acceptance(change)
    # Far from equilibrium the energy may change so much that nothing would ever be accepted.
    always = 2 * step <= tuner.updates and math.isfinite(change)
    tuner.take(change, step)
    return probability, always or uniform < probability


@dataclass
class MovingChains:
    """Chains whose launches are those of all of them.

    Each chain has its own number of steps and of iterations of solvers, and its trajectories are
    accepted or rejected alone. The trajectory of a chain in which a solver fails is rejected.

    Attributes
    ----------
    dynamics : MolecularDynamics
        The links of the chains, and memory for their trajectories.
    levels : sequence of sequence of str
        Names of the terms of the action by the level on which they act, the outermost level first.
    scales : TimeScales
        The time scales of a trajectory.
    length : float
        Its length.
    randoms : sequence of Random
        The random numbers of every chain.
    tuners : sequence of StepTuner
        Choose the number of steps of every chain.
    numbers : sequence of dict of str to float
        Numbers that the checkpoint of every chain contains besides links and random numbers.
    failures : int
        Number of trajectories in a row in which a solver fails, after which a chain ends.
    actions : list of Energy or None
        The gauge actions of the links, once they are known. Nothing else changes links between
        updates.
    reasons : dict of int to str
        Why a solver of a chain has failed the last time.
    """

    dynamics: MolecularDynamics
    levels: Sequence[Sequence[str]]
    scales: TimeScales
    length: float
    randoms: Sequence[Random]
    tuners: Sequence[StepTuner]
    numbers: Sequence[dict[str, float]]
    failures: int
    actions: list[Energy] | None = None
    reasons: dict[int, str] = dataclasses.field(default_factory=dict)
    _plans: dict[tuple[int, ...], TrajectoryPlan] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        """End a chain in which solvers have failed too often in a row.

        The next session tries as many trajectories again.

        Raises
        ------
        ChainError
            If this is so. No chain has changed.
        """
        for n, numbers in enumerate(self.numbers):
            if numbers.get(FAILURES, 0) >= self.failures:
                numbers[FAILURES] = 0
                reason = self.reasons.get(n, "")
                raise ChainError(
                    f"Solvers have failed in {self.failures} trajectories in a row, the last time "
                    f"because {reason[:1].lower()}{reason[1:]}"
                )

    def update(self) -> list[Outcome]:
        """Do one trajectory of every chain, and accept or reject each."""
        dynamics = self.dynamics
        for random in self.randoms:
            random.step += 1
        plan = self._plan(tuple(one.steps for one in self.tuners))
        dynamics.update_halos()
        # Sums of kernels are fetched at the end, so that the device need not wait in between.
        draw = dynamics.begin_momenta()
        before = self.actions or dynamics.begin_actions(dynamics.start)()
        outcomes, after = self._move(plan, draw, before)
        dynamics.accept([one.accepted for one in outcomes], plan.ends)
        self.actions = [
            new if one.accepted else old
            for one, new, old in zip(outcomes, after, before, strict=True)
        ]
        return outcomes

    def _move(
        self, plan: TrajectoryPlan, draw: Callable[[], list[Draw]], before: list[Energy]
    ) -> tuple[list[Outcome], list[Energy]]:
        """Do a trajectory of every chain; return the outcomes and the gauge actions at the end."""
        dynamics, terms, failures = self.dynamics, self.dynamics.terms, Failures()
        dynamics.show(dynamics.start)
        others_before = [one.draw(self.randoms, failures) for one in terms]
        moving, actions = dynamics.begin(plan, failures), dynamics.begin_actions(plan.ends)
        others_after = []
        if len(failures.errors) < len(before):
            dynamics.show(plan.ends)
            others_after = [one.actions(failures) for one in terms]
        drawn, forces, after = draw(), moving(), actions()
        outcomes = []
        for n, own in enumerate(forces):
            if own is None:
                outcomes.append(self._fail(n, str(failures.errors[n]), drawn[n], before[n]))
                continue
            start = total([drawn[n].kinetic, before[n], *(one[n] for one in others_before)])
            end = total([own.kinetic, after[n], *(one[n] for one in others_after)])
            change, steps = end.minus(start), self.tuners[n].steps
            if terms:
                self.numbers[n][FAILURES] = 0
            step = self.randoms[n].step
            probability, accepted = decided(change, drawn[n].uniform, step, self.tuners[n])
            action, kinetic = float(after[n] if accepted else before[n]), float(own.kinetic)
            counts, measured = self._iterations(n), self._measured(n)
            found = change, accepted, probability, steps, action, kinetic, own, counts, measured
            outcomes.append(Outcome(*found))
        return outcomes, after

    def _fail(self, n: int, reason: str, drawn: Draw, before: Energy) -> Outcome:
        """Reject the trajectory of a chain in which a solver has failed, and count it."""
        numbers, tuner = self.numbers[n], self.tuners[n]
        self.reasons[n], steps = reason, tuner.steps
        numbers[FAILURES] = numbers.get(FAILURES, 0) + 1
        tuner.take(math.inf, self.randoms[n].step)
        action, kinetic = float(before), float(drawn.kinetic)
        own = self._iterations(n), self._measured(n)
        return Outcome(0.0, False, 0.0, steps, action, kinetic, None, *own)

    def _iterations(self, n: int) -> list[int]:
        """Return the numbers of iterations of the terms of a chain."""
        return [int(one.iterations[n]) for one in self.dynamics.terms]

    def _measured(self, n: int) -> list[tuple[float, ...]]:
        """Return what the terms of a chain have measured."""
        return [one.measured(n) for one in self.dynamics.terms]

    def _plan(self, steps: tuple[int, ...]) -> TrajectoryPlan:
        """Return the launches of trajectories with these numbers of steps; the last are kept."""
        if steps not in self._plans:
            self._plans.clear()
            made = {count: self.scales.trajectory(self.length, count) for count in {*steps}}
            self._plans[steps] = self.dynamics.plan(self.levels, [made[one] for one in steps])
        return self._plans[steps]
