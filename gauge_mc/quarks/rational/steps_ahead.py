"""Steps of conjugate gradients for several shifts that do not wait for the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gauge_mc.devices.base import Launch
from gauge_mc.quarks.rational.shift_coefficients import (
    MOST_STEPS,
    DeviceCoefficients,
    Numbers,
    PastSteps,
    ShiftCoefficients,
)
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply, OnDevice
from gauge_mc.quarks.vectors.device_iterations import (
    CURVATURE,
    DIRECTION,
    REAL,
    RESIDUAL,
    UNWATCHED,
    DeviceIterations,
)
from gauge_mc.quarks.vectors.spinors import SpinorField

END = RESIDUAL | DIRECTION

MOST_PREPARED = 32
"""Number of lowest shifts whose steps are kept."""


class StepsAhead:
    """Steps of conjugate gradients for (A + sigma) y = r and several shifts sigma.

    Parameters
    ----------
    r, p, q : SpinorField
        Residual, direction and q = (A + sigma) p for the lowest shift sigma.
    apply_shifted : callable
        Computes q, given the lowest shift.
    number : int
        Largest number of shifts.
    advancing : callable
        Returns a call that advances solutions and directions of all shifts, given their factors on
        every slab.

    Attributes
    ----------
    gradient : DeviceIterations
        The iterations for the lowest shift.
    """

    def __init__(
        self,
        r: SpinorField,
        p: SpinorField,
        q: SpinorField,
        apply_shifted: Callable[[float], object],
        number: int,
        advancing: Callable[[Sequence[OnDevice]], Launch],
    ) -> None:
        self.gradient = gradient = DeviceIterations(r, (CURVATURE, END))
        self._coefficients = DeviceCoefficients(gradient, END, r, number)
        self._apply_shifted, self._multiply = apply_shifted, Multiply(q, p)
        self._take_curvature = gradient.take(CURVATURE, self._multiply.sums, REAL)
        self._step = Advance(r, q, found=gradient.factors(CURVATURE, c="STEP"))
        self._take_residual = gradient.take(END, self._step.sums)
        self._advance = advancing(self._coefficients.factors)
        self._turn = Combine(p, r, found=gradient.factors(END, a="BETA"))
        self._recorded: dict[float, Launch] = {}

    def run(self, own: ShiftCoefficients, targets: Numbers, most: float, **rows: Any) -> PastSteps:
        """Carry out steps until a vector has reached its target for the lowest shift.

        Parameters
        ----------
        own : ShiftCoefficients
            The coefficients, which go on.
        targets : ndarray of float64, shape (count,)
            Norms of the residuals at which shifts end.
        most : int
            Largest number of steps, one of which is left to the host.
        **rows : object
            LIVE, NORM2 and TARGET of the iterations for the lowest shift.

        Returns
        -------
        PastSteps
            The steps that have been carried out.
        """
        self.gradient.iterate = self._iterating(own.lowest)
        self._coefficients.write(own, targets)
        self.gradient.run(**UNWATCHED | rows | {"MOST": min(most, MOST_STEPS)})
        return self._coefficients.read(own)

    def _iterating(self, lowest: float) -> Launch:
        """Return a call that carries out a step for a lowest shift."""
        if lowest not in self._recorded:
            if len(self._recorded) >= MOST_PREPARED:
                self._recorded.clear()
            self._recorded[lowest] = self._iteration(lowest)
        return self._recorded[lowest]

    def _iteration(self, lowest: float) -> Launch:
        apply_shifted, multiply, step, turn = (
            self._apply_shifted,
            self._multiply,
            self._step,
            self._turn,
        )
        take_curvature, take_residual = self._take_curvature, self._take_residual
        take_shifts, advance = self._coefficients.launches, self._advance

        def iterate() -> None:
            apply_shifted(lowest)
            multiply.launch()
            take_curvature()
            step(0)
            take_residual()
            for take in take_shifts:
                take()
            advance()
            turn(0, 1)

        return self.gradient.record(iterate)
