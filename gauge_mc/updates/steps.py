"""The number of steps of trajectories, found for a wanted acceptance."""

from __future__ import annotations

import math
from functools import cache

from gauge_mc.rounded import complementary_error_function, power

FIRST = 8
"""Number of steps of the first trajectory, unless the step would be too large."""

MOST = 10_000
"""Largest number of steps that is tried."""

FACTORS = (0.5, 4.0)
"""Bounds of the factor by which the number of steps changes at a time."""

WINDOW = 8
"""Smallest number of trajectories from which the last choice is made."""

LARGEST_CHANGE = 1e3
"""Changes of the energy that are larger count as this one."""


class StepTuner:
    """Finds the number of steps of the trajectories of a chain.

    In equilibrium the change of the energy is normal with the mean m and the variance 2 m, so that
    exp(-dH) is 1 on average and the acceptance erfc(sqrt(m) / 2); S. Gupta, A. Irbaeck, F. Karsch
    and B. Petersson, Phys. Lett. B 242 (1990) 437. m decreases with the power 2 p of the step for
    an integrator of order p. It is estimated from the mean square of dH, m^2 + 2 m, over windows of
    1, 1, 2, 4, 8, … trajectories, after each of which the number is chosen anew.

    Parameters
    ----------
    numbers : dict of str to float
        The state of the search, which is changed; empty before the first trajectory.
    updates : int
        Number of trajectories since the start of the chain after which the number is fixed.
    steps : int
        Fixed number of steps; 0 if it is to be found.
    acceptance : float
        The wanted acceptance.
    order : int
        Order of the integrator.
    least : int
        Smallest number of steps.
    """

    def __init__(
        self,
        numbers: dict[str, float],
        updates: int,
        steps: int,
        acceptance: float,
        order: int,
        least: int,
    ) -> None:
        self._numbers, self.updates = numbers, updates
        self._fixed, self._least = steps, max(least, 1)
        self._goal, self._power = mean_change(acceptance), 1 / (2 * order)
        if not steps and not numbers:
            numbers.update(steps=max(FIRST, self._least), trajectories=0, squares=0.0)

    @property
    def steps(self) -> int:
        """Number of steps of the next trajectory."""
        return self._fixed or int(self._numbers["steps"])

    def take(self, change: float, done: int) -> None:
        """Take the change of the energy in a trajectory.

        Parameters
        ----------
        change : float
            The change dH of the energy.
        done : int
            Number of trajectories since the start of the chain, this one included.
        """
        if self._fixed or done > self.updates:
            return
        numbers = self._numbers
        size = min(abs(change), LARGEST_CHANGE) if math.isfinite(change) else LARGEST_CHANGE
        numbers["trajectories"] += 1
        numbers["squares"] += size * size
        last = done == self.updates
        if done & (done - 1) == 0 or (last and numbers["trajectories"] >= WINDOW):
            mean = math.sqrt(1 + numbers["squares"] / numbers["trajectories"]) - 1
            factor = power(mean / self._goal, self._power) if mean else 0.0
            low, high = FACTORS
            wanted = math.ceil(self.steps * min(max(factor, low), high))
            chosen = min(max(wanted, self._least), max(MOST, self._least))
            numbers.update(steps=chosen, trajectories=0, squares=0.0)


@cache
def mean_change(acceptance: float) -> float:
    """Return the mean m of dH with which the acceptance erfc(sqrt(m) / 2) is the given one."""
    low, high = 0.0, 5.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if complementary_error_function(middle) > acceptance else (low, middle)
        )
    return 4 * low * low
