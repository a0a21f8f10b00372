"""Coefficients of conjugate gradients for several shifts, on the host and in memory of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.slab import work
from gauge_mc.fields.sums import SUM_BYTES
from gauge_mc.quarks.vectors.algebra import OnDevice
from gauge_mc.quarks.vectors.device_iterations import (
    EXACTLY,
    MOST_SHARES,
    DeviceIterations,
    SlabState,
)
from gauge_mc.quarks.vectors.spinors import SpinorField

Numbers = NDArray[np.float64]

SHIFT_COEFFICIENTS = Kernel("shift_coefficients")

ROWS, PAST_NUMBERS, FACTORS_OF_SHIFTS = map(
    SHIFT_COEFFICIENTS.constant, ("ROWS", "PAST_NUMBERS", "FACTORS_OF_SHIFTS")
)

MOST_STEPS = 256
"""Largest number of steps whose coefficients devices keep until the host reads them."""


class ShiftCoefficients:
    """Coefficients of all shifts, which follow from those of the lowest one.

    Parameters
    ----------
    shifts : sequence of float
        Shifts in ascending order.
    count : int
        Number of vectors.

    Attributes
    ----------
    zeta, older : ndarray of float64, shape (shifts, count)
        Residuals for a shift, as multiples of those for the lowest one, and those of the step
        before.
    active : ndarray of bool, shape (shifts, count)
        Shifts that go on.
    alpha, beta : ndarray of float64, shape (count,)
        The coefficients of the last step for the lowest shift.
    """

    def __init__(self, shifts: Sequence[float], count: int) -> None:
        self.shifts = np.array(shifts, np.float64)
        self.lowest = float(shifts[0])
        self.above = (self.shifts - self.lowest)[:, None]
        shape = (len(shifts), count)
        self.zeta, self.older = np.ones(shape), np.ones(shape)
        self.active = np.ones(shape, np.bool_)
        self.alpha, self.beta = np.ones(count), np.zeros(count)

    def unfinished(self, norms: Numbers, targets: Numbers) -> NDArray[np.bool_]:
        """Return the vectors for which a shift goes on, given the norms for the lowest one."""
        self.active &= np.abs(self.zeta) * norms > targets
        return np.asarray(self.active.any(axis=0))

    def ends_with_lowest(self, live: NDArray[np.bool_]) -> bool:
        """Return whether no shift of some vectors, if there are any, outlasts the lowest one."""
        outlast = self.active.any(axis=0) & ~self.active[0]
        return bool(live.any() and not outlast[live].any())

    def advance(self, alpha: Numbers, beta: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the factors of `AdvanceShifts` for shifts that go on, given those of a step."""
        zeta, older = self.zeta, self.older
        down = alpha * self.beta * (older - zeta)
        down += older * self.alpha * (1 + alpha * self.above)
        new = np.where(down == 0, 0, zeta * older * self.alpha / _nonzero(down))
        ratio = np.where(zeta == 0, 0, new / _nonzero(zeta))
        self.zeta, self.older = new, zeta
        self.alpha, self.beta = alpha, beta
        # Large shifts need fewest iterations, so that those that are done are the last ones.
        shifts = 1 + int(np.flatnonzero(self.active.any(axis=1))[-1])
        active = self.active[:shifts]
        a, b = (
            np.where(active, one[:shifts], 0) for one in (alpha * ratio, beta * np.square(ratio))
        )
        return a, b, np.where(active, new[:shifts], 0)


@dataclass(frozen=True)
class PastSteps:
    """Coefficients of steps for the lowest shift, of shape (steps, count).

    Attributes
    ----------
    norm2 : ndarray of float64
        Squared norms of the residuals before the steps.
    alpha, beta : ndarray of float64
        The coefficients.
    """

    norm2: Numbers
    alpha: Numbers
    beta: Numbers

    @classmethod
    def of(cls, norm2: Numbers, alpha: Numbers, beta: Numbers) -> Self:
        """Return those of one step, given its numbers, of shape (count,)."""
        return cls(norm2[None], alpha[None], beta[None])


class DeviceCoefficients:
    """`ShiftCoefficients` in the memory of the devices of some iterations.

    Parameters
    ----------
    ahead : DeviceIterations
        The iterations for the lowest shift.
    part : int
        The part of these after which coefficients are computed.
    r : SpinorField
        Their residuals.
    number : int
        Largest number of shifts.
    """

    def __init__(self, ahead: DeviceIterations, part: int, r: SpinorField, number: int) -> None:
        self._number, self._count = number, r.count
        self._slabs = [_SlabShifts(one, part, number, r.count, r.fifth or 1) for one in ahead.slabs]

    @property
    def factors(self) -> list[OnDevice]:
        """The factors of `AdvanceShifts` on every slab."""
        return [one.factors for one in self._slabs]

    @cached_property
    def launches(self) -> list[Launch]:
        """Calls that compute the coefficients of a step, one for every slab."""
        return [one.launch() for one in self._slabs]

    def write(self, own: ShiftCoefficients, targets: Numbers) -> None:
        """Write the coefficients of the first shifts to the devices; further ones do not go on."""
        state, some = np.zeros((ROWS, self._number, self._count)), slice(len(own.shifts))
        rows = {"ZETA": own.zeta, "OLDER": own.older, "ACTIVE": own.active, "ABOVE": own.above}
        last = {"LAST_ALPHA": own.alpha, "LAST_BETA": own.beta, "TARGET": targets}
        for name, values in (rows | last).items():
            state[SHIFT_COEFFICIENTS.constant(name), some] = values
        for slab in self._slabs:
            slab.write(state)

    def read(self, own: ShiftCoefficients) -> PastSteps:
        """Read the coefficients, and return those of the steps for the lowest shift."""
        state, past = self._slabs[0].read()
        rows = ("ZETA", "OLDER", "ACTIVE", "LAST_ALPHA", "LAST_BETA", "STEPS")
        found = [state[SHIFT_COEFFICIENTS.constant(name)] for name in rows]
        own.zeta, own.older, active = (one[: len(own.shifts)] for one in found[:3])
        own.active = active != 0
        own.alpha, own.beta = found[3][0], found[4][0]
        return PastSteps(*past[: int(found[5][0, 0])].swapaxes(0, 1))


class _SlabShifts:
    """Coefficients of all shifts on the device of a slab, where they are the same as on all others.

    Parameters
    ----------
    slab : SlabState
        The state of the iterations for the lowest shift there.
    part : int
        See `DeviceCoefficients`.
    shifts, vectors, fifth : int
        Numbers of shifts and of vectors, and their extent along a fifth direction, or 1.
    """

    def __init__(self, slab: SlabState, part: int, shifts: int, vectors: int, fifth: int) -> None:
        self._slab, self._part, self._fifth = slab, part, fifth
        self._state = (ROWS, shifts, vectors)
        self._past = (MOST_STEPS, PAST_NUMBERS, vectors)
        self._memory: Buffer = slab.device.allocate(
            SUM_BYTES * sum(int(np.prod(one)) for one in (self._state, self._past))
        )

    @property
    def factors(self) -> OnDevice:
        """The factors of `AdvanceShifts`."""
        _, shifts, vectors = self._state
        address = self._memory.address + FACTORS_OF_SHIFTS * shifts * vectors * SUM_BYTES
        return replace(self._slab.found(self._part), factors={"factors": address})

    def write(self, state: Numbers) -> None:
        """Write the state."""
        self._slab.device.write(self._memory, 0, state.view(np.uint8))

    def read(self) -> tuple[Numbers, Numbers]:
        """Wait for all work, and read the state and the coefficients of past steps."""
        found = self._slab.device.read(self._memory, 0, self._memory.nbytes).view(np.float64)
        size = int(np.prod(self._state))
        return found[:size].reshape(self._state), found[size:].reshape(self._past)

    def launch(self) -> Launch:
        """Return a call that computes the coefficients of a step."""
        (x, y, z), (_, shifts, vectors) = self._slab.layout.extents, self._state
        found = self._slab.found(self._part, alpha="ALPHA", beta="BETA")
        arguments = SHIFT_COEFFICIENTS.arguments(
            EXACTLY,
            geometry=self._slab.layout.geometry,
            work=work(0, 1, 1, parity=0, slots=x // 2, rows=(y, z)),
            norm2=self._slab.row("NORM2"),
            **found.factors,
            halted=found.halted,
            state=self._memory.address,
            past=self._memory.address + int(np.prod(self._state)) * SUM_BYTES,
            shifts=shifts,
            vectors=vectors,
            fifth=self._fifth,
            shares=geometry_structure("Shares")(
                threads=min(shifts * vectors, MOST_SHARES), blocks=1
            ),
        )
        kernel: Any = self._slab.device.kernel(SHIFT_COEFFICIENTS, EXACTLY)
        made: Launch = kernel.prepared(repeated([arguments], 1))
        return made


def _nonzero(numbers: Numbers) -> Numbers:
    return np.where(numbers == 0, 1.0, numbers)
