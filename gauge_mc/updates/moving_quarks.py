"""Chains of equal lattices with quarks that move along their trajectories together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.energy import Energy, total
from gauge_mc.updates.levels import TimeScales
from gauge_mc.updates.momenta import Draw
from gauge_mc.updates.monomials.replica_quarks import Failures
from gauge_mc.updates.moving_chain import FAILURES, Outcome, check_failures, decided
from gauge_mc.updates.replica_quark_dynamics import QuarkReplicaDynamics, QuarkTrajectoryPlan
from gauge_mc.updates.steps import StepTuner


@dataclass
class MovingQuarkReplicas:
    """Chains with quarks, whose launches are those of all of them.

    Each chain has its own number of steps and of iterations, and its trajectories are accepted or
    rejected alone. The trajectory of a chain in which a solver fails is rejected.

    Attributes
    ----------
    links : Field
        The links of the chains, one replica each.
    dynamics : QuarkReplicaDynamics
        Memory for trajectories of all chains.
    scales : TimeScales
        The time scales of a trajectory.
    length : float
        Its length.
    randoms : sequence of Random
        The random numbers of every chain.
    tuners : sequence of StepTuner
        Choose the number of steps of every chain.
    levels : sequence of sequence of str
        Names of the terms of the action by the level on which they act, the outermost level first.
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

    links: Field
    dynamics: QuarkReplicaDynamics
    scales: TimeScales
    length: float
    randoms: Sequence[Random]
    tuners: Sequence[StepTuner]
    levels: Sequence[Sequence[str]]
    numbers: Sequence[dict[str, float]]
    failures: int
    actions: list[Energy] | None = None
    reasons: dict[int, str] = field(default_factory=dict)
    _plans: dict[tuple[int, ...], QuarkTrajectoryPlan] = field(default_factory=dict)

    def check(self) -> None:
        """End a chain in which solvers have failed too often; see `MovingChain.check`.

        Raises
        ------
        ChainError
            If this is so. No chain has changed.
        """
        for n, numbers in enumerate(self.numbers):
            check_failures(numbers, self.failures, self.reasons.get(n, ""))

    def update(self) -> list[Outcome]:
        """Do one trajectory of every chain, and accept or reject each."""
        dynamics, terms, failures = self.dynamics, self.dynamics.terms, Failures()
        for random in self.randoms:
            random.step += 1
        plan = self._plan(tuple(one.steps for one in self.tuners))
        dynamics.start(self.links)
        draw = dynamics.begin_momenta()
        before = self.actions or dynamics.begin_actions()()
        dynamics.take([0] * len(before))
        others_before = [one.draw(self.randoms, failures) for one in terms]
        forces = dynamics.move(plan, failures)
        actions = dynamics.begin_actions(plan.ends)
        dynamics.take(plan.ends)
        others_after = [one.actions(failures) for one in terms]
        drawn, after = draw(), actions()
        outcomes = []
        for n, own in enumerate(forces):
            if own is None or n in failures.errors:
                outcomes.append(self._fail(n, str(failures.errors[n]), drawn[n], before[n]))
                continue
            start = total([drawn[n].kinetic, before[n], *(one[n] for one in others_before)])
            end = total([own.kinetic, after[n], *(one[n] for one in others_after)])
            change, steps = end.minus(start), self.tuners[n].steps
            self.numbers[n][FAILURES] = 0
            step = self.randoms[n].step
            probability, accepted = decided(change, drawn[n].uniform, step, self.tuners[n])
            action = float(after[n] if accepted else before[n])
            kinetic, counts = float(own.kinetic), self._iterations(n)
            outcomes.append(
                Outcome(
                    change,
                    accepted,
                    probability,
                    steps,
                    action,
                    kinetic,
                    own,
                    counts,
                    [()] * len(terms),
                )
            )
        dynamics.accept(self.links, [one.accepted for one in outcomes], plan.ends)
        self.actions = [
            new if one.accepted else old
            for one, new, old in zip(outcomes, after, before, strict=True)
        ]
        return outcomes

    def _fail(self, n: int, reason: str, drawn: Draw, before: Energy) -> Outcome:
        """Reject the trajectory of a chain in which a solver has failed, and count it."""
        numbers, tuner = self.numbers[n], self.tuners[n]
        self.reasons[n], steps = reason, tuner.steps
        numbers[FAILURES] = numbers.get(FAILURES, 0) + 1
        tuner.take(math.inf, self.randoms[n].step)
        action, kinetic, counts = float(before), float(drawn.kinetic), self._iterations(n)
        none: list[tuple[float, ...]] = [()] * len(counts)
        return Outcome(0.0, False, 0.0, steps, action, kinetic, None, counts, none)

    def _iterations(self, n: int) -> list[int]:
        """Return the numbers of iterations of the terms of a chain."""
        return [int(one.iterations[n]) for one in self.dynamics.terms]

    def _plan(self, steps: tuple[int, ...]) -> QuarkTrajectoryPlan:
        """Return the launches of trajectories with these numbers of steps; the last are kept."""
        if steps not in self._plans:
            self._plans.clear()
            made = {count: self.scales.trajectory(self.length, count) for count in {*steps}}
            plan = self.dynamics.plan_with_quarks(self.levels, [made[count] for count in steps])
            self._plans[steps] = plan
        return self._plans[steps]
