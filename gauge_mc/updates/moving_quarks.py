"""Chains of equal lattices with quarks that move along their trajectories together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gauge_mc.updates.energy import Energy, total
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.momenta import Draw
from gauge_mc.updates.monomials.replica_quarks import Failures
from gauge_mc.updates.moving_chain import FAILURES, Outcome, check_failures, decided
from gauge_mc.updates.moving_replicas import ChainGroup
from gauge_mc.updates.replica_quark_dynamics import QuarkReplicaDynamics, QuarkTrajectoryPlan


@dataclass
class MovingQuarkReplicas(ChainGroup[QuarkReplicaDynamics, QuarkTrajectoryPlan]):
    """Chains with quarks, each with its own number of iterations.

    The trajectory of a chain in which a solver fails is rejected.

    Attributes
    ----------
    levels : sequence of sequence of str
        Names of the terms of the action by the level on which they act, the outermost level first.
    numbers : sequence of dict of str to float
        Numbers that the checkpoint of every chain contains besides links and random numbers.
    failures : int
        Number of trajectories in a row in which a solver fails, after which a chain ends.
    reasons : dict of int to str
        Why a solver of a chain has failed the last time.
    """

    levels: Sequence[Sequence[str]]
    numbers: Sequence[dict[str, float]]
    failures: int
    reasons: dict[int, str] = field(default_factory=dict)

    def check(self) -> None:
        """End a chain in which solvers have failed too often; see `MovingChain.check`.

        Raises
        ------
        ChainError
            If this is so. No chain has changed.
        """
        for n, numbers in enumerate(self.numbers):
            check_failures(numbers, self.failures, self.reasons.get(n, ""))

    def _planned(self, trajectories: Sequence[Sequence[Move]]) -> QuarkTrajectoryPlan:
        return self.dynamics.plan_with_quarks(self.levels, trajectories)

    def _move(
        self, plan: QuarkTrajectoryPlan, draw: Callable[[], list[Draw]], before: list[Energy]
    ) -> tuple[list[Outcome], list[Energy]]:
        dynamics, terms, failures = self.dynamics, self.dynamics.terms, Failures()
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
        return [() for _ in self.dynamics.terms]
