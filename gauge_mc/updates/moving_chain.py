"""Trajectories of a chain, each of which is accepted or rejected."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gauge_mc.errors import ChainError, ConvergenceError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.energy import Energy, acceptance, total
from gauge_mc.updates.integrators import Move
from gauge_mc.updates.levels import TimeScales
from gauge_mc.updates.molecular_dynamics import Forces, Levels, MolecularDynamics
from gauge_mc.updates.momenta import Draw, begin_momenta
from gauge_mc.updates.monomials import Monomial
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from gauge_mc.updates.steps import StepTuner

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


def check_failures(numbers: dict[str, float], most: int, reason: str) -> None:
    """End a chain in which solvers have failed too often in a row; see `MovingChain.check`."""
    if numbers.get(FAILURES, 0) >= most:
        numbers[FAILURES] = 0
        raise ChainError(
            f"Solvers have failed in {most} trajectories in a row, the last time because "
            f"{reason[:1].lower()}{reason[1:]}"
        )


@dataclass
class MovingChain:
    """A chain that moves along trajectories.

    Attributes
    ----------
    field : Field
        The links of the chain.
    gauge : GaugeMonomial
        The gauge action.
    others : sequence of Monomial
        The other terms of the action.
    levels : sequence of sequence of Monomial
        All terms by the level on which they act, the outermost level first.
    dynamics : MolecularDynamics
        Memory for trajectories, which chains share.
    scales : TimeScales
        The time scales of a trajectory.
    length : float
        Its length.
    random : Random
        The random numbers.
    tuner : StepTuner
        Chooses the number of steps.
    numbers : dict of str to float
        What a checkpoint contains besides links and random numbers.
    failures : int
        Number of trajectories in a row in which a solver fails, after which the chain ends.
    action : Energy or None
        The gauge action of the links, once it is known. Nothing else changes links between updates.
    reason : str
        Why a solver has failed the last time.
    """

    field: Field
    gauge: GaugeMonomial
    others: Sequence[Monomial]
    levels: Levels
    dynamics: MolecularDynamics
    scales: TimeScales
    length: float
    random: Random
    tuner: StepTuner
    numbers: dict[str, float]
    failures: int
    action: Energy | None = None
    reason: str = ""
    _trajectories: dict[int, list[Move]] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        """End a chain in which solvers have failed too often in a row.

        The next session tries as many trajectories again.

        Raises
        ------
        ChainError
            If this is so. The chain has not changed.
        """
        check_failures(self.numbers, self.failures, self.reason)

    def update(self) -> Outcome:
        """Do one trajectory, and accept or reject it.

        A trajectory in which a solver fails is rejected.
        """
        dynamics, tuner, random = self.dynamics, self.tuner, self.random
        random.step += 1
        steps = tuner.steps
        dynamics.start(self.field, self.gauge.halo_depth)
        # Sums of kernels are fetched at the end, so that the device need not wait in between.
        draw = begin_momenta(dynamics.momenta, [random], None)
        before = self.action or self.gauge.action(dynamics.links)
        try:
            moved = self._move(draw, before, steps)
        except ConvergenceError as error:
            return self._fail(before, draw()[0], steps, error)
        drawn, forces, after, change = moved
        if self.others:
            self.numbers[FAILURES] = 0
        probability, accepted = decided(change, drawn.uniform, random.step, tuner)
        if accepted:
            self.field.copy(dynamics.links)
            self.field.exchange_halo(self.gauge.halo_depth)
        self.action = after if accepted else before
        action, kinetic = float(self.action), float(forces.kinetic)
        own = self._iterations(), self._measured()
        return Outcome(change, accepted, probability, steps, action, kinetic, forces, *own)

    def _move(
        self, draw: Callable[[], list[Draw]], before: Energy, steps: int
    ) -> tuple[Draw, Forces, Energy, float]:
        """Return what was drawn, the forces, the gauge action at the end, the change of energy."""
        dynamics = self.dynamics
        if self.others:
            dynamics.update_quark_links()
        for term in self.others:
            term.draw(dynamics.links, self.random)
        others_before = self._others()
        moving = dynamics.begin(self.levels, self._trajectory(steps))
        action = self.gauge.begin_action(dynamics.links)
        if self.others:
            dynamics.update_quark_links()
        others_after = self._others()
        (drawn,), forces, after = draw(), moving(), action()
        start = total([drawn.kinetic, before, *others_before])
        end = total([forces.kinetic, after, *others_after])
        return drawn, forces, after, end.minus(start)

    def _trajectory(self, steps: int) -> list[Move]:
        """Return the kicks and drifts of trajectories with this number of steps; they are kept."""
        if steps not in self._trajectories:
            self._trajectories.clear()
            self._trajectories[steps] = list(self.scales.trajectory(self.length, steps))
        return self._trajectories[steps]

    def _others(self) -> list[Energy]:
        """Return the actions of the terms other than the gauge action."""
        return [term.action(self.dynamics.links) for term in self.others]

    def _fail(self, before: Energy, drawn: Draw, steps: int, error: ConvergenceError) -> Outcome:
        """Reject a trajectory in which a solver has failed, and count it."""
        self.action, self.reason = before, str(error)
        self.numbers[FAILURES] = self.numbers.get(FAILURES, 0) + 1
        self.tuner.take(math.inf, self.random.step)
        action, kinetic = float(before), float(drawn.kinetic)
        own = self._iterations(), self._measured()
        return Outcome(0.0, False, 0.0, steps, action, kinetic, None, *own)

    def _iterations(self) -> list[int]:
        return [term.iterations for term in self.others]

    def _measured(self) -> list[tuple[float, ...]]:
        return [term.measured for term in self.others]
