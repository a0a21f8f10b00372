"""Solutions of (A + sigma) y = b for several shifts sigma at once, with a positive operator A.

The Krylov space of A + sigma does not depend on sigma, and the residuals of all shifts are
parallel. So conjugate gradients for the smallest shift give the solutions for all others with no
further applications of A (B. Jegerlehner, hep-lat/9612014; A. Frommer et al., Int. J. Mod. Phys. C6
(1995) 627). Every shift stops when its own residual is small enough. On several replicas, each with
links of its own, the vectors of each have the bits that they have alone, and end or fail alone.

The coefficients of the iteration are those of the Lanczos algorithm, so that the ends of the
spectrum of A are found on the way (`gauge_mc.extensions.quarks.rational.rational_functions`).

A sum of the solutions needs no memory for each of them if the iteration is carried out twice: the
solutions are combinations of the residuals, whose factors are known after the first time (H.
Neuberger, Int. J. Mod. Phys. C10 (1999) 1051, hep-lat/9811019). That is faster for many shifts, too
(T.-W. Chiu and T.-H. Hsieh, Phys. Rev. E68 (2003) 066704, hep-lat/0306025).

Errors that products with an operator may have while conjugate gradients converge.

The larger the residuals that have been passed, the less a product matters: in step j an error of
the size epsilon sqrt(sum over i <= j of |r_i|^-2), divided by the norm of the direction, lets the
true residual differ from the iterated one by about epsilon (J. van den Eshof and G. Sleijpen, SIAM
J. Matrix Anal. Appl. 26 (2004) 125; for overlap quarks N. Cundy et al., Comput. Phys. Commun. 165
(2005) 221, hep-lat/0405003). It is a rule, not a bound: the caller computes the true residual.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Launch, repeated
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import work
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.hopping import InexactOperator, LinearOperator
from gauge_mc.extensions.quarks.preconditioned import norms_of
from gauge_mc.extensions.quarks.rational.rational_functions import Lanczos
from gauge_mc.extensions.quarks.solvers import ATTEMPTS, SMALLER, TIGHTER, Norms, SolverParameters
from gauge_mc.extensions.quarks.solvers.device_iterations import (
    CURVATURE,
    DIRECTION,
    EXACTLY,
    MOST_SHARES,
    REAL,
    RESIDUAL,
    UNWATCHED,
    DeviceIterations,
    SlabState,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors import algebra
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, in_turn
from gauge_mc.fields.sums import SUM_BYTES
from gauge_mc.updates.monomials import Mask, ReplicaProgress

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

    def unfinished(self, norms: Norms, targets: Norms) -> NDArray[np.bool_]:
        """Return the vectors for which a shift goes on, given the norms for the lowest one."""
        self.active &= np.abs(self.zeta) * norms > targets
        return np.asarray(self.active.any(axis=0))

    def ends_with_lowest(self, live: NDArray[np.bool_]) -> bool:
        """Return whether no shift of some vectors, if there are any, outlasts the lowest one."""
        outlast = self.active.any(axis=0) & ~self.active[0]
        return bool(live.any() and not outlast[live].any())

    def advance(self, alpha: Norms, beta: Norms) -> tuple[Norms, Norms, Norms]:
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
        factors = alpha * ratio, beta * np.square(ratio), new
        a, b, c = (np.where(active, factor[:shifts], 0) for factor in factors)
        return a, b, c


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

    norm2: Norms
    alpha: Norms
    beta: Norms


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
        self._slabs = [
            _SlabShifts(slab, part, number, r.count, r.fifth or 1) for slab in ahead.slabs
        ]
        self.factors = [slab.factors for slab in self._slabs]
        """The factors of `AdvanceShifts` on every slab."""

    @cached_property
    def launches(self) -> list[Launch]:
        """Calls that compute the coefficients of a step, one for every slab."""
        return [slab.launch() for slab in self._slabs]

    def write(self, coefficients: ShiftCoefficients, targets: Norms) -> None:
        """Write the coefficients of the first shifts to the devices; further ones do not go on."""
        state, some = np.zeros((ROWS, self._number, self._count)), slice(len(coefficients.shifts))
        rows = {
            "ZETA": coefficients.zeta,
            "OLDER": coefficients.older,
            "ACTIVE": coefficients.active,
            "ABOVE": coefficients.above,
        }
        last = {"LAST_ALPHA": coefficients.alpha, "LAST_BETA": coefficients.beta, "TARGET": targets}
        for name, values in (rows | last).items():
            state[SHIFT_COEFFICIENTS.constant(name), some] = values
        for slab in self._slabs:
            slab.write(state)

    def read(self, coefficients: ShiftCoefficients) -> PastSteps:
        """Read the coefficients, and return those of the steps for the lowest shift."""
        state, past = self._slabs[0].read()
        rows = ("ZETA", "OLDER", "ACTIVE", "LAST_ALPHA", "LAST_BETA", "STEPS")
        values = [state[SHIFT_COEFFICIENTS.constant(name)] for name in rows]
        coefficients.zeta, coefficients.older, active = (
            x[: len(coefficients.shifts)] for x in values[:3]
        )
        coefficients.active = active != 0
        coefficients.alpha, coefficients.beta = values[3][0], values[4][0]
        return PastSteps(*past[: int(values[5][0, 0])].swapaxes(0, 1))


class _SlabShifts:
    """Coefficients of all shifts on the device of a slab, where they are the same as on all others.

    Parameters
    ----------
    slab : SlabState
        The state of the iterations for the lowest shift there.
    part : int
        See `DeviceCoefficients`.
    shifts, vectors, fifth : int
        Norms of shifts and of vectors, and their extent along a fifth direction, or 1.
    """

    def __init__(self, slab: SlabState, part: int, shifts: int, vectors: int, fifth: int) -> None:
        self._slab, self._part, self._fifth = slab, part, fifth
        self._state = (ROWS, shifts, vectors)
        self._past = (MOST_STEPS, PAST_NUMBERS, vectors)
        numbers = sum(int(np.prod(shape)) for shape in (self._state, self._past))
        self._memory: Buffer = slab.device.allocate(SUM_BYTES * numbers)

    @property
    def factors(self) -> algebra.OnDevice:
        """The factors of `AdvanceShifts`."""
        _, shifts, vectors = self._state
        address = self._memory.address + FACTORS_OF_SHIFTS * shifts * vectors * SUM_BYTES
        return replace(self._slab.found(self._part), factors={"factors": address})

    def write(self, state: Norms) -> None:
        """Write the state."""
        self._slab.device.write(self._memory, 0, state.view(np.uint8))

    def read(self) -> tuple[Norms, Norms]:
        """Wait for all work, and read the state and the coefficients of past steps."""
        numbers = self._slab.device.read(self._memory, 0, self._memory.nbytes).view(np.float64)
        size = int(np.prod(self._state))
        return numbers[:size].reshape(self._state), numbers[size:].reshape(self._past)

    def launch(self) -> Launch:
        """Return a call that computes the coefficients of a step."""
        (x, y, z), (_, shifts, vectors) = self._slab.layout.extents, self._state
        scalars = self._slab.found(self._part, alpha="ALPHA", beta="BETA")
        arguments = SHIFT_COEFFICIENTS.arguments(
            EXACTLY,
            geometry=self._slab.layout.geometry,
            work=work(0, 1, 1, parity=0, slots=x // 2, rows=(y, z)),
            norm2=self._slab.row("NORM2"),
            **scalars.factors,
            halted=scalars.halted,
            state=self._memory.address,
            past=self._memory.address + int(np.prod(self._state)) * SUM_BYTES,
            shifts=shifts,
            vectors=vectors,
            fifth=self._fifth,
            shares=geometry_structure("Shares")(min(shifts * vectors, MOST_SHARES), 1),
        )
        kernel = self._slab.device.kernel(SHIFT_COEFFICIENTS, EXACTLY)
        return kernel.prepared(repeated([arguments], 1))


def _nonzero(numbers: Norms) -> Norms:
    return np.where(numbers == 0, 1.0, numbers)


SAFETY = 0.003
"""Difference of the residuals that is aimed at, as a part of the target.

For light quarks on larger lattices the difference was found to be up to 20 times what is aimed at.
Corrections, for every mass and with the smallest errors, would cost far more than these: with 0.1
polynomials took 6 % fewer steps on 6^3 x 12, where no correction was needed.
"""


class Relaxation:
    """Allows an operator larger errors as residuals fall.

    Parameters
    ----------
    operator : InexactOperator
        The operator.
    targets : ndarray of float64, shape (n,)
        The norms of residuals at which an iteration ends, for every vector.
    most : float
        Largest error that is allowed, which must be below the smallest eigenvalue: otherwise the
        operator with its error may not be positive, so that the iteration does not converge.
    """

    def __init__(
        self, operator: InexactOperator, targets: NDArray[np.float64], most: float = 1.0
    ) -> None:
        self._operator, self._targets, self._most = operator, targets, most
        self._sums = np.zeros_like(targets)

    def step(self, norms: NDArray[np.float64]) -> None:
        """Allow the error of the next product, given the norms of the residuals."""
        live = norms > 0
        self._sums[live] += 1 / norms[live] ** 2
        errors = SAFETY * (self._targets * np.sqrt(self._sums))[live]
        self._operator.allow(float(errors.min(initial=self._most)))

    def end(self) -> None:
        """Allow the smallest errors only."""
        self._operator.allow(0.0)


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
        advancing: Callable[[Sequence[algebra.OnDevice]], Launch],
    ) -> None:
        self.gradient = gradient = DeviceIterations(r, (CURVATURE, END))
        self._coefficients = DeviceCoefficients(gradient, END, r, number)
        self._apply_shifted, self._multiply = apply_shifted, algebra.Multiply(q, p)
        self._take_curvature = gradient.take(CURVATURE, self._multiply.sums, REAL)
        self._step = algebra.Advance(r, q, found=gradient.factors(CURVATURE, c="STEP"))
        self._take_residual = gradient.take(END, self._step.sums)
        self._advance = advancing(self._coefficients.factors)
        self._turn = algebra.Combine(p, r, found=gradient.factors(END, a="BETA"))
        self._recorded: dict[float, Launch] = {}

    def run(
        self, coefficients: ShiftCoefficients, targets: Norms, most: float, **rows: Any
    ) -> PastSteps:
        """Carry out steps until a vector has reached its target for the lowest shift."""
        self.gradient.iterate = self._iterating(coefficients.lowest)
        self._coefficients.write(coefficients, targets)
        self.gradient.run(**UNWATCHED | rows | {"MOST": min(most, MOST_STEPS)})
        return self._coefficients.read(coefficients)

    def _iterating(self, lowest: float) -> Launch:
        """Return a call that carries out a step for a lowest shift."""
        if lowest not in self._recorded:
            if len(self._recorded) >= MOST_PREPARED:
                self._recorded.clear()
            iterate = in_turn(
                partial(self._apply_shifted, lowest),
                self._multiply.launch,
                self._take_curvature,
                partial(self._step, 0),
                self._take_residual,
                *self._coefficients.launches,
                self._advance,
                partial(self._turn, 0, 1),
            )
            self._recorded[lowest] = self.gradient.record(iterate)
        return self._recorded[lowest]


EXACT, LOWER = "double", "single"
"""Precisions of the iterations. With 16-bit numbers the residuals of shifts do not stay parallel,
so that single precision stands for it."""

LEAST_LOWER = 1e-6
"""Smallest tolerance for which all shifts together iterate in single precision, which rounding
errors allow it to reach. For 17 shifts and a tolerance of 1e-8, to correct each shift alone took
six times as many iterations as all of them together in double precision (8^4, kappa = 0.1575)."""

REDUCTION = 1e-5
"""Factor by which the residual of a correction falls in single precision before the true one is
computed."""

LEAST = 1e-100
"""Size of a residual, divided by that of the right-hand side, whose square does not underflow."""


class _Iteration(ABC):
    """Conjugate gradients for (A + sigma) y = r and several shifts sigma, in one precision.

    Parameters
    ----------
    operator : LinearOperator
        The operator A, which `run` allows larger errors as residuals fall if it is inexact.
    like : SpinorField
        A field like r, in the precision of the iteration.

    Attributes
    ----------
    r : SpinorField
        The right-hand sides, which the caller sets, and then the residuals for the lowest shift.
    progress : ReplicaProgress
        Iterations and errors of the last search.
    lanczos : list of Lanczos
        The coefficients of the last search, for the first vector of every replica.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField) -> None:
        self._operator = operator
        self.r, self._p, self._q = like.like(), like.like(), like.like()
        self.progress, self.lanczos = ReplicaProgress.begin(like.replicas), [Lanczos()]
        self._apply_shifted = _shifted(operator, self._q, self._p)
        self._first = algebra.Combine(self._p, self.r)
        self._p_q = algebra.Multiply(self._q, self._p)
        self._step = algebra.Advance(self.r, self._q)

    @property
    def iterations(self) -> int:
        """Largest number of iterations of a replica in the last search."""
        return int(self.progress.iterations.max())

    @cached_property
    def _ahead(self) -> StepsAhead | None:
        """Steps that do not wait for the host, where there can be such."""
        if not runs_ahead(self.r):
            return None
        return StepsAhead(self.r, self._p, self._q, self._apply_shifted, self._number, self._found)

    @abstractmethod
    def _begin(self, shifts: int, count: int) -> None:
        """Set the solutions to 0, and the directions of all shifts to r."""

    @abstractmethod
    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        """Carry out a step of `AdvanceShifts` for the first shifts."""

    @property
    def _number(self) -> int:
        """Largest number of shifts whose coefficients devices compute."""
        return 1

    def _found(self, scalars: Sequence[algebra.OnDevice]) -> Launch:
        """Return a call that carries out a step of `AdvanceShifts` with factors on the devices."""
        return lambda: None

    def _on_devices(self, coefficients: ShiftCoefficients) -> ShiftCoefficients:
        """Return the coefficients that devices compute."""
        return coefficients

    def _repeat(self, coefficients: ShiftCoefficients, past: PastSteps, targets: Norms) -> None:
        """Do what devices have not done in steps that they have carried out; by default nothing."""
        return

    def run(self, shifts: Sequence[float], targets: Norms, most: int, relaxed: float = 1.0) -> None:
        """Compute solutions whose iterated residuals are at most the targets.

        Parameters
        ----------
        shifts : sequence of float
            Shifts in ascending order.
        targets : ndarray of float64, shape (n,)
            The largest norm of the residuals of every vector, for all shifts.
        most : int
            Largest number of iterations.
        relaxed : float
            Largest error that an operator which allows it may have as residuals fall; see
            `Relaxation`. With 0 its errors are the smallest ones.

        Raises
        ------
        ConvergenceError
            If there are too many iterations, or values are not numbers.
        """
        progress = ReplicaProgress.begin(self.r.replicas)
        self.search(shifts, targets, most, progress, relaxed)
        progress.check()

    def search(
        self,
        shifts: Sequence[float],
        targets: Norms,
        most: int,
        progress: ReplicaProgress,
        relaxed: float = 1.0,
    ) -> None:
        """Do `run`, but take note of the replicas on which it fails.

        Parameters
        ----------
        shifts, targets, most, relaxed
            See `run`. A target of infinity leaves a vector out, whose solution is 0.
        progress : ReplicaProgress
            Iterations, which are counted, and errors, which are added.
        """
        self.progress, coefficients = progress, ShiftCoefficients(shifts, self.r.count)
        operator, relaxation, ahead = self._operator, None, None
        if not isinstance(operator, InexactOperator):
            ahead = self._ahead
        elif relaxed:
            relaxation = Relaxation(operator, targets, relaxed)
        try:
            for norms in self._steps(coefficients, targets, most, ahead):
                if relaxation:
                    relaxation.step(norms)
        finally:
            if relaxation:
                relaxation.end()

    def steps(self, shifts: Sequence[float]) -> Iterator[Norms]:
        """Yield the norms of the residuals for the lowest shift before every iteration.

        The iteration ends when they have nearly underflown.
        """
        self.progress = ReplicaProgress.begin(self.r.replicas)
        return self._steps(ShiftCoefficients(shifts, self.r.count), LEAST * norms_of(self.r))

    def _steps(
        self,
        coefficients: ShiftCoefficients,
        targets: Norms,
        most: float = math.inf,
        ahead: StepsAhead | None = None,
    ) -> Iterator[Norms]:
        """Yield the norms for the lowest shift before an iteration, until all shifts are done.

        With steps that may run ahead, these come without norms before the iteration.
        """
        lowest, count, progress = coefficients.lowest, self.r.count, self.progress
        each = count // self.r.replicas
        self.lanczos = [Lanczos(lowest) for _ in range(self.r.replicas)]
        self._first(0, 1)
        self._begin(len(coefficients.shifts), count)
        norm2 = np.square(norms_of(self.r))
        while (going := self._going(coefficients, np.sqrt(norm2), targets, most)).any():
            yield np.sqrt(norm2)
            live, products, new = going.repeat(each) & (norm2 > 0), None, None
            if ahead and coefficients.ends_with_lowest(live):
                norm2, products, new = self._run_ahead(
                    ahead, coefficients, going, live, norm2, targets, most
                )
            progress.iterations[going] += 1
            if products is None:
                self._apply_shifted(lowest)
                products = self._p_q().mixed.real
            alpha = np.where(live, norm2 / _positive(products), 0)
            if new is None:
                self._step(-alpha)
                new = self._step.products().norm2
            if not np.isfinite(new[going.repeat(each)]).all():
                broken = going & on_replicas(self.r, ~np.isfinite(new))
                progress.fail(broken, "The iteration broke down; choose a smaller kappa.")
                going &= ~broken
                alpha, new = (np.where(broken.repeat(each), 0, x) for x in (alpha, new))
                if not going.any():
                    return
            beta = np.where(live, new / _positive(norm2), 0)
            self._advance(*coefficients.advance(alpha, beta))
            self._first(beta, 1)
            self._take_steps(going, alpha[None], beta[None])
            norm2 = new

    def _run_ahead(
        self,
        ahead: StepsAhead,
        coefficients: ShiftCoefficients,
        going: Mask,
        live: Mask,
        norm2: Norms,
        targets: Norms,
        most: float,
    ) -> tuple[Norms, Norms, Norms | None]:
        """Carry out steps, and begin the next one."""
        iterations, gradient = self.progress.iterations, ahead.gradient
        ends = np.where(coefficients.active[0], targets, -1.0)
        rows = {"LIVE": live, "NORM2": norm2, "TARGET": ends}
        remaining = most - iterations[going].max()
        past = ahead.run(self._on_devices(coefficients), targets, remaining, **rows)
        iterations[going] += len(past.norm2)
        self._take_steps(going, past.alpha, past.beta)
        self._repeat(coefficients, past, targets)
        before, new = gradient["NORM2"].copy(), gradient["SQUARES"].copy()
        coefficients.unfinished(np.sqrt(before), targets)
        return before, gradient["CURVATURES"].copy(), new if gradient.knows_residual else None

    def _take_steps(self, going: Mask, alphas: Norms, betas: Norms) -> None:
        """Take note of the coefficients of some steps, of shape (steps, count)."""
        each = self.r.count // self.r.replicas
        for n in np.flatnonzero(going).tolist():
            coefficients = alphas[:, n * each].tolist(), betas[:, n * each].tolist()
            for alpha, beta in zip(*coefficients, strict=True):
                self.lanczos[n].add(alpha, beta)

    def _going(
        self, coefficients: ShiftCoefficients, norms: Norms, targets: Norms, most: float
    ) -> Mask:
        """Return the replicas on which a shift goes on; those that have had their turn fail."""
        progress, shifts = self.progress, len(coefficients.shifts)
        going = progress.left(on_replicas(self.r, coefficients.unfinished(norms, targets)))
        late = going & (progress.iterations >= most)
        several = f"{shifts} shifts" if shifts > 1 else "a shift"
        progress.fail(
            late,
            f"The solutions for {several} were not found within {most} iterations: allow more "
            "iterations, a larger tolerance, or choose a smaller kappa.",
        )
        return going & ~late


def on_replicas(field: SpinorField, mask: Mask) -> Mask:
    """Return the replicas on which something holds for a vector of a field."""
    return np.asarray(mask.reshape(field.replicas, -1).any(axis=1))


class ShiftedSearch(_Iteration):
    """Conjugate gradients that find the solutions for all shifts.

    Parameters
    ----------
    operator, like
        See `_Iteration`.
    number : int
        Largest number of shifts.

    Attributes
    ----------
    y : SpinorField
        The solutions for all shifts, number i n + j for shift i and the j-th of the n vectors of r.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField, number: int) -> None:
        super().__init__(operator, like)
        self.y, self._directions = (_repeated(like, number) for _ in range(2))
        self._clear = algebra.Combine(self.y, self.y)
        self._next = algebra.AdvanceShifts(self.y, self._directions, self.r)

    def _begin(self, shifts: int, count: int) -> None:
        self._clear(0, 0)
        unit, zero = np.ones((shifts, count)), np.zeros((shifts, count))
        self._next(zero, zero, unit)

    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        self._next(a, b, c)

    @property
    def _number(self) -> int:
        return self.y.count // self.r.count

    def _found(self, scalars: Sequence[algebra.OnDevice]) -> Launch:
        return algebra.AdvanceShifts(self.y, self._directions, self.r, scalars).launch


class TwoPassSum(_Iteration):
    """The sum over shifts of c_i (A + sigma_i)^-1 b, in memory that they do not enlarge.

    A first pass finds the coefficients of conjugate gradients; a second one repeats its residuals
    r_j, without scalar products, and adds them up. The solution for a shift is the sum over j of
    zeta_j s_j r_j with s_j = alpha_j + beta_j s_{j+1}, in the coefficients of this shift.

    Parameters
    ----------
    operator : LinearOperator
        The positive operator A.
    target : SpinorField
        The sum is added to these vectors.
    b : SpinorField
        The right-hand sides, which may change between calls.
    most : int
        Largest number of iterations of the first pass.
    """

    def __init__(
        self, operator: LinearOperator, target: SpinorField, b: SpinorField, most: int
    ) -> None:
        super().__init__(operator, b)
        self._most = most
        self._taken: list[tuple[Norms, Norms, Norms]] = []
        self._copy = algebra.Combine(self.r, b)
        self._add = algebra.Combine(target, self.r)

    def _begin(self, shifts: int, count: int) -> None:
        self._taken = []

    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        self._taken.append((a, b, c))

    def _on_devices(self, coefficients: ShiftCoefficients) -> ShiftCoefficients:
        return ShiftCoefficients((coefficients.lowest,), self.r.count)

    def _repeat(self, coefficients: ShiftCoefficients, past: PastSteps, targets: Norms) -> None:
        for norm2, alpha, beta in zip(past.norm2, past.alpha, past.beta, strict=True):
            coefficients.unfinished(np.sqrt(norm2), targets)
            self._advance(*coefficients.advance(alpha, beta))

    def __call__(self, shifts: Sequence[float], factors: Sequence[float], tolerance: float) -> None:
        """Add the sum to the target."""
        self._copy(0, 1)
        norms = norms_of(self.r)
        if not np.isfinite(norms).all():
            raise ConvergenceError("The right-hand side contains a value that is not a number.")
        self.run(shifts, tolerance * norms, self._most, relaxed=0)
        weights = self._weights(np.array(factors))
        self._copy(0, 1)
        self._first(0, 1)
        for weight, (a, b, _) in zip(weights, self._taken, strict=True):
            alpha, beta = a[0], b[0]  # of the lowest shift, which ends last
            self._add(1, weight)
            self._apply_shifted(float(shifts[0]))
            self._step(-alpha)
            self._first(beta, 1)

    def _weights(self, factors: Norms) -> list[Norms]:
        """Return the factors of the residuals in the sum, for every step."""
        first = np.ones((len(factors), self.r.count))
        sums, weights = np.zeros_like(first), []
        for n in reversed(range(len(self._taken))):
            a, b, _ = self._taken[n]
            zeta = self._taken[n - 1][2] if n else first
            live = len(a)
            sums[:live] = a + b * sums[:live]
            sums[live:] = 0
            weights.append((factors[: len(zeta), None] * zeta * sums[: len(zeta)]).sum(axis=0))
        return weights[::-1]


def _shifted(operator: LinearOperator, q: SpinorField, p: SpinorField) -> Callable[[float], None]:
    """Return a call that sets q to (A + shift) p, given the shift."""
    step = operator.recurrence(q, p, p, p)
    if step:
        return lambda shift: step(0, 1, 0, shift)
    apply, add = operator.apply(q, p), algebra.Combine(q, p)

    def call(shift: float) -> None:
        apply()
        add(1, shift)

    return call


class ShiftedSystem:
    """(A + sigma) y = b for any shifts, which is solved again and again in the same memory.

    Parameters
    ----------
    operator : callable
        Returns the positive operator A in a precision.
    b : SpinorField
        The right-hand sides in double precision, which may change between solves.
    number : int
        Largest number of shifts.
    request : SolverParameters
        The precision, and the largest number of iterations of all steps of a solve together.

    Attributes
    ----------
    progress : ReplicaProgress
        Iterations of the last solve, for all shifts together and for the corrections of single
        ones, and errors.
    residuals : list of ndarray of float64
        For every shift of the last solve, the true residuals in double precision: norms divided by
        those of b.
    lanczos : list of Lanczos
        The coefficients of the last search for all shifts, on every replica.
    """

    def __init__(
        self,
        operator: Callable[[str], LinearOperator],
        b: SpinorField,
        number: int,
        request: SolverParameters,
    ) -> None:
        self.b, self.request = b, request
        self.progress = ReplicaProgress.begin(b.replicas)
        self.residuals: list[Norms] = []
        self.lanczos = [Lanczos()]
        self._operator, self._number = operator, number
        self._searches: dict[tuple[str, int], ShiftedSearch] = {}
        self._y, self._rest, self._product = b.like(), b.like(), b.like()
        self._apply = operator(EXACT).apply(self._product, self._y)
        self._copy_b = algebra.Combine(self._rest, b)
        self._subtract = algebra.Advance(self._rest, self._product)
        self._add_shift = algebra.Combine(self._product, self._y)
        self._add_product = algebra.Combine(self._y, self._product)

    def solutions(self, shifts: Sequence[float], tolerance: float) -> Iterator[SpinorField]:
        """Yield the solutions for all shifts, one after the other in the same field."""
        for y in self.solutions_on(np.ones(self.b.replicas, np.bool_), shifts, tolerance):
            self.progress.check()
            yield y

    def solutions_on(
        self, active: Mask, shifts: Sequence[float], tolerance: float
    ) -> Iterator[SpinorField]:
        """Yield the solutions on the replicas that are wanted, and take note of those that fail."""
        progress = self.progress = ReplicaProgress.begin(self.b.replicas)
        self.residuals = []
        norms = norms_of(self.b)
        text = "The right-hand side contains a value that is not a number."
        progress.fail(active & on_replicas(self.b, ~np.isfinite(norms)), text)
        inner = EXACT if tolerance < LEAST_LOWER else self._inner
        search = self._search(inner, self._number)
        search.r.copy(self.b)
        reduction = tolerance if inner == EXACT else TIGHTER * tolerance
        targets = self._targets(progress.left(active), reduction * norms)
        search.search(shifts, targets, self.request.iterations, progress)
        self.lanczos = search.lanczos
        for i, shift in enumerate(shifts):
            self._y.copy(search.y, first=i * self._each)
            self.residuals.append(self._refine(active, shift, norms, tolerance))
            yield self._y

    @property
    def iterations(self) -> int:
        """Largest number of iterations of a replica in the last solve."""
        return int(self.progress.iterations.max())

    @property
    def _inner(self) -> str:
        return EXACT if self.request.inner == EXACT else LOWER

    @property
    def _each(self) -> int:
        """Number of vectors on every replica."""
        return self.b.count // self.b.replicas

    def _targets(self, some: Mask, norms: Norms) -> Norms:
        """Return targets for the vectors of some replicas; those of others are left out."""
        return np.where(some.repeat(self._each), norms, np.inf)

    def _refine(self, active: Mask, shift: float, norms: Norms, tolerance: float) -> Norms:
        """Add corrections to a solution until its true residual is small enough, and return it."""
        progress, bounds = self.progress, tolerance * norms
        exact, residual_norms = (
            np.full(self.b.replicas, self._inner == EXACT),
            self._residual_norms(shift),
        )
        for _ in range(2 * ATTEMPTS):
            due = progress.left(active & on_replicas(self.b, ~(residual_norms <= bounds)))
            if not due.any():
                return np.asarray(residual_norms / _positive(norms))
            for inner, some, reach in ((LOWER, due & ~exact, REDUCTION), (EXACT, due & exact, 0.0)):
                if some.any():
                    targets = np.maximum(TIGHTER * bounds, reach * residual_norms)
                    self._correct(some, inner, shift, targets)
            before, residual_norms = residual_norms, self._residual_norms(shift)
            slow = (before > bounds) & ~(residual_norms < SMALLER * before)
            exact |= due & on_replicas(self.b, slow)
        smallest = (residual_norms / _positive(norms)).reshape(self.b.replicas, -1).max(axis=1)
        for n in np.flatnonzero(progress.left(due)).tolist():
            progress.errors[n] = ConvergenceError(
                f"The residual for the shift {shift:.3g} does not become smaller than "
                f"{smallest[n]:.2g} of the source, and the tolerance is {tolerance:g}: choose a "
                "larger tolerance."
            )
        return np.asarray(residual_norms / _positive(norms))

    def _correct(self, some: Mask, inner: str, shift: float, targets: Norms) -> None:
        """Add corrections on some replicas to the solution for a shift."""
        search = self._search(inner, 1)
        search.r.copy(self._rest)
        most, bounds = self.request.iterations, self._targets(some, targets)
        search.search((shift,), bounds, most, self.progress)
        self._product.copy(search.y)
        # Corrections of others are 0, but to add them would change the sign of zeros.
        self._add_product(1, some.repeat(self._each).astype(float))

    def _residual_norms(self, shift: float) -> Norms:
        """Compute the true residuals, and return their norms."""
        self._apply()
        self._add_shift(1, shift)
        self._copy_b(0, 1)
        self._subtract(-1)
        return np.asarray(np.sqrt(self._subtract.products().norm2))

    def _search(self, inner: str, number: int) -> ShiftedSearch:
        """Return a search in a precision for so many shifts, with its memory."""
        if (inner, number) not in self._searches:
            like = self.b if inner == EXACT else self.b.like(inner)
            self._searches[inner, number] = ShiftedSearch(self._operator(inner), like, number)
        return self._searches[inner, number]


def _repeated(like: SpinorField, number: int) -> SpinorField:
    """Return a field with the vectors of another one for each of several shifts."""
    return like.like(count=like.count // like.replicas * number)


def _positive(numbers: Any) -> NDArray[np.float64]:
    """Return numbers, and 1 instead of those that are not positive."""
    return np.where(numbers > 0, numbers, 1.0)
