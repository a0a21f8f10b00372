"""Solutions of (A + sigma) y = b for several shifts sigma at once, with a positive operator A.

The Krylov space of A + sigma does not depend on sigma, and the residuals of all shifts are
parallel. So conjugate gradients for the smallest shift give the solutions for all others with no
further applications of A (B. Jegerlehner, hep-lat/9612014; A. Frommer et al., Int. J. Mod. Phys. C6
(1995) 627). Every shift stops when its own residual is small enough. On several replicas, each with
links of its own, the vectors of each have the bits that they have alone, and end or fail alone.

The coefficients of the iteration are those of the Lanczos algorithm, so that the ends of the
spectrum of A are found on the way (`gauge_mc.extensions.quarks.rational_functions`).

A sum of the solutions needs no memory for each of them if the iteration is carried out twice: the
solutions are combinations of the residuals, whose factors are known after the first time (H.
Neuberger, Int. J. Mod. Phys. C10 (1999) 1051, hep-lat/9811019). That is faster for many shifts, too
(T.-W. Chiu and T.-H. Hsieh, Phys. Rev. E68 (2003) 066704, hep-lat/0306025).

Products with an operator may have errors while conjugate gradients converge. The larger the
residuals that have been passed, the less a product matters: in step j an error of
the size epsilon sqrt(sum over i <= j of |r_i|^-2), divided by the norm of the direction, lets the
true residual differ from the iterated one by about epsilon (J. van den Eshof and G. Sleijpen, SIAM
J. Matrix Anal. Appl. 26 (2004) 125; for overlap quarks N. Cundy et al., Comput. Phys. Commun. 165
(2005) 221, hep-lat/0405003). It is a rule, not a bound: the caller computes the true residual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.devices.base import Buffer, Launch, repeated
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import work
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.hopping import InexactOperator, LinearOperator, norms_of
from gauge_mc.extensions.quarks.rational_functions import Lanczos
from gauge_mc.extensions.quarks.solvers import ATTEMPTS, TIGHTER, SolverParameters
from gauge_mc.extensions.quarks.solvers import iterations as on_devices
from gauge_mc.extensions.quarks.solvers.iterations import (
    SMALLER,
    DeviceIterations,
    Norms,
    in_groups,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors import SpinorField, algebra, in_turn
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


class PastSteps(NamedTuple):
    """Coefficients of steps for the lowest shift, of shape (steps, count)."""

    norm2: Norms
    """Squared norms of the residuals before the steps."""
    alpha: Norms
    beta: Norms


class _SlabShifts:
    """Coefficients of all shifts on the device of a slab, the same as on all others."""

    def __init__(self, slab: on_devices.SlabState, shifts: int, vectors: int, fifth: int) -> None:
        self._slab, self._fifth = slab, fifth
        self._state = (ROWS, shifts, vectors)
        self._past = (MOST_STEPS, PAST_NUMBERS, vectors)
        numbers = sum(int(np.prod(shape)) for shape in (self._state, self._past))
        self._memory: Buffer = slab.device.allocate(SUM_BYTES * numbers)

    @property
    def factors(self) -> algebra.OnDevice:
        """The factors of `AdvanceShifts`."""
        _, shifts, vectors = self._state
        address = self._memory.address + FACTORS_OF_SHIFTS * shifts * vectors * SUM_BYTES
        return replace(self._slab.factors(on_devices.END), factors={"factors": address})

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
        scalars = self._slab.factors(on_devices.END, alpha="ALPHA", beta="BETA")
        arguments = SHIFT_COEFFICIENTS.arguments(
            on_devices.EXACTLY,
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
            shares=geometry_structure("Shares")(min(shifts * vectors, on_devices.MOST_SHARES), 1),
        )
        kernel = self._slab.device.kernel(SHIFT_COEFFICIENTS, on_devices.EXACTLY)
        return kernel.prepared(repeated([arguments], 1))


def _nonzero(numbers: Norms) -> Norms:
    return np.where(numbers == 0, 1.0, numbers)


SAFETY = 0.003
"""Difference of the residuals that is aimed at, as a part of the target.

For light quarks on larger lattices the difference was found to be up to 20 times what is aimed at.
Corrections, for every mass and with the smallest errors, would cost far more than these: with 0.1
polynomials took 6 % fewer steps on 6^3 x 12, where no correction was needed.
"""


MOST_PREPARED = 32
"""Number of lowest shifts whose steps are kept."""


class StepsAhead:
    """Steps of conjugate gradients for (A + sigma) y = r and several shifts sigma.

    They do not wait for the host: `ShiftCoefficients` are in the memory of the devices.

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
        self.gradient = gradient = DeviceIterations(r, (on_devices.CURVATURE, on_devices.END))
        self._slabs = [_SlabShifts(x, number, r.count, r.fifth or 1) for x in gradient.slabs]
        self._shape = ROWS, number, r.count
        self._apply_shifted, multiply = apply_shifted, algebra.Multiply(q, p)
        step = algebra.Advance(r, q, scalars=gradient.factors(on_devices.CURVATURE, c="STEP"))
        turn = algebra.Combine(p, r, scalars=gradient.factors(on_devices.END, a="BETA"))
        self._step: tuple[Callable[[], object], ...] = (
            multiply.launch,
            gradient.take(on_devices.CURVATURE, multiply.sums, on_devices.REAL),
            partial(step, 0),
            gradient.take(on_devices.END, step.sums),
            *(slab.launch() for slab in self._slabs),
            advancing([slab.factors for slab in self._slabs]),
            partial(turn, 0, 1),
        )
        self._recorded: dict[float, Launch] = {}

    def run(
        self, coefficients: ShiftCoefficients, targets: Norms, most: float, **rows: Any
    ) -> PastSteps:
        """Carry out steps until a vector has reached its target for the lowest shift."""
        lowest = coefficients.lowest
        if lowest not in self._recorded:
            if len(self._recorded) >= MOST_PREPARED:
                self._recorded.clear()
            iterate = in_turn(partial(self._apply_shifted, lowest), *self._step)
            self._recorded[lowest] = self.gradient.record(iterate)
        self.gradient.iterate = self._recorded[lowest]
        shifts, row = slice(len(coefficients.shifts)), SHIFT_COEFFICIENTS.constant
        numbers = {
            "ZETA": coefficients.zeta,
            "OLDER": coefficients.older,
            "ACTIVE": coefficients.active,
            "ABOVE": coefficients.above,
            "LAST_ALPHA": coefficients.alpha,
            "LAST_BETA": coefficients.beta,
            "TARGET": targets,
        }
        state = np.zeros(self._shape)  # further shifts do not go on
        for name, values in numbers.items():
            state[row(name), shifts] = values
        for slab in self._slabs:
            slab.write(state)
        self.gradient.run(**on_devices.UNWATCHED | rows | {"MOST": min(most, MOST_STEPS)})
        state, past = self._slabs[0].read()
        names = ("ZETA", "OLDER", "ACTIVE", "LAST_ALPHA", "LAST_BETA", "STEPS")
        zeta, older, active, alpha, beta, steps = (state[row(name)] for name in names)
        coefficients.zeta, coefficients.older = zeta[shifts], older[shifts]
        coefficients.active = active[shifts] != 0
        coefficients.alpha, coefficients.beta = alpha[0], beta[0]
        return PastSteps(*past[: int(steps[0, 0])].swapaxes(0, 1))


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


class ShiftedSearch:
    """Conjugate gradients for (A + sigma) y = r and several shifts sigma, in one precision.

    Parameters
    ----------
    operator : LinearOperator
        The operator A, which `run` allows larger errors as residuals fall if it is inexact.
    like : SpinorField
        A field like r, in the precision of the iteration.
    number : int
        Largest number of shifts; with 0 there are no solutions, but `past` of the lowest shift.

    Attributes
    ----------
    r : SpinorField
        The right-hand sides, which the caller sets, and then the residuals for the lowest shift.
    y : SpinorField
        The solutions for all shifts, number i n + j for shift i and the j-th of the n vectors of r.
    past : list of PastSteps
        The steps of the last search without solutions.
    progress : ReplicaProgress
        Iterations and errors of the last search.
    lanczos : list of Lanczos
        The coefficients of the last search, for the first vector of every replica.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField, number: int) -> None:
        self._operator, self._number = operator, number
        self.r, self.p, self._q = like.like(), like.like(), like.like()
        self.past: list[PastSteps] = []
        self.progress, self.lanczos = ReplicaProgress.begin(like.replicas), [Lanczos()]
        self.apply_shifted = _shifted(operator, self._q, self.p)
        self.turn = algebra.Combine(self.p, self.r)
        self._p_q = algebra.Multiply(self._q, self.p)
        self.step = algebra.Advance(self.r, self._q)
        if number:
            each = like.count // like.replicas
            self.y, directions = (like.like(count=each * number) for _ in range(2))
            self._clear = algebra.Combine(self.y, self.y)
            self._fields = self.y, directions, self.r
            self._next = algebra.AdvanceShifts(*self._fields)

    @property
    def iterations(self) -> int:
        """Largest number of iterations of a replica in the last search."""
        return int(self.progress.iterations.max())

    @cached_property
    def _ahead(self) -> StepsAhead | None:
        """Steps that do not wait for the host, where there can be such."""
        if not runs_ahead(self.r):
            return None
        fields = self.r, self.p, self._q
        return StepsAhead(*fields, self.apply_shifted, max(1, self._number), self._advancing)

    def _advancing(self, scalars: Sequence[algebra.OnDevice]) -> Launch:
        """Return a call that advances all shifts, with factors on the devices."""
        if not self._number:
            return lambda: None
        return algebra.AdvanceShifts(*self._fields, scalars).launch

    def run(
        self,
        shifts: Sequence[float],
        targets: Norms,
        most: int,
        relaxed: float = 1.0,
        progress: ReplicaProgress | None = None,
    ) -> None:
        """Compute solutions whose iterated residuals are at most the targets.

        Parameters
        ----------
        shifts : sequence of float
            Shifts in ascending order.
        targets : ndarray of float64, shape (n,)
            The largest norm of the residuals of every vector, for all shifts. Infinity leaves
            a vector out, whose solution is 0.
        most : int
            Largest number of iterations.
        relaxed : float
            Largest error that an operator which allows it may have as residuals fall, which must be
            below the smallest eigenvalue: otherwise the operator with its error may not be
            positive, so that the iteration does not converge. With 0 its errors are the smallest.
        progress : ReplicaProgress, optional
            Iterations, which are counted, and errors of replicas, which are added.

        Raises
        ------
        ConvergenceError
            If there are too many iterations, or values are not numbers, and no progress is given.
        """
        self.progress, operator = progress or ReplicaProgress.begin(self.r.replicas), self._operator
        inexact, sums = isinstance(operator, InexactOperator), np.zeros_like(targets)
        try:
            for norms in self._steps(shifts, targets, most, None if inexact else self._ahead):
                if isinstance(operator, InexactOperator) and relaxed:
                    live = norms > 0
                    sums[live] += 1 / norms[live] ** 2
                    errors = SAFETY * (targets * np.sqrt(sums))[live]
                    operator.allow(float(errors.min(initial=relaxed)))
        finally:
            if isinstance(operator, InexactOperator) and relaxed:
                operator.allow(0.0)
        if not progress:
            self.progress.check()

    def steps(self, shifts: Sequence[float]) -> Iterator[Norms]:
        """Yield the norms of the residuals for the lowest shift before every iteration.

        The iteration ends when they have nearly underflown.
        """
        self.progress = ReplicaProgress.begin(self.r.replicas)
        return self._steps(shifts, LEAST * norms_of(self.r))

    def _steps(
        self,
        shifts: Sequence[float],
        targets: Norms,
        most: float = math.inf,
        ahead: StepsAhead | None = None,
    ) -> Iterator[Norms]:
        """Yield the norms for the lowest shift before an iteration, until all shifts are done.

        With steps that may run ahead, these come without norms before the iteration.
        """
        progress, replicas, count = self.progress, self.r.replicas, self.r.count
        coefficients = ShiftCoefficients(shifts if self._number else shifts[:1], count)
        lowest, each = coefficients.lowest, count // replicas
        self.past, self.lanczos = [], [Lanczos(lowest) for _ in range(replicas)]
        self.turn(0, 1)
        if self._number:
            self._clear(0, 0)
            unit = np.ones((len(shifts), count))
            self._next(0 * unit, 0 * unit, unit)
        norm2 = np.square(norms_of(self.r))
        while True:
            unfinished = in_groups(coefficients.unfinished(np.sqrt(norm2), targets), replicas)
            going = self._in_time(progress.left(unfinished), most, len(shifts))
            if not going.any():
                return
            yield np.sqrt(norm2)
            live, products, new = going.repeat(each) & (norm2 > 0), None, None
            if ahead and coefficients.ends_with_lowest(live):
                ends = np.where(coefficients.active[0], targets, -1.0)
                rows = {"LIVE": live, "NORM2": norm2, "TARGET": ends}
                remaining = most - progress.iterations[going].max()
                past, gradient = ahead.run(coefficients, targets, remaining, **rows), ahead.gradient
                progress.iterations[going] += len(past.norm2)
                self._take_steps(going, past)
                norm2, products = gradient["NORM2"], gradient["CURVATURES"]
                new = gradient["SQUARES"] if gradient.knows_residual else None
                coefficients.unfinished(np.sqrt(norm2), targets)
            progress.iterations[going] += 1
            if products is None:
                self.apply_shifted(lowest)
                products = self._p_q().mixed.real
            alpha = np.where(live, norm2 / _positive(products), 0)
            if new is None:
                self.step(-alpha)
                new = self.step.products().norm2
            if not np.isfinite(new[going.repeat(each)]).all():
                broken = going & in_groups(~np.isfinite(new), replicas)
                progress.fail(broken, "The iteration broke down; choose a smaller kappa.")
                going &= ~broken
                alpha, new = (np.where(broken.repeat(each), 0, x) for x in (alpha, new))
                if not going.any():
                    return
            beta = np.where(live, new / _positive(norm2), 0)
            if self._number:
                self._next(*coefficients.advance(alpha, beta))
            self.turn(beta, 1)
            self._take_steps(going, PastSteps(norm2[None], alpha[None], beta[None]))
            norm2 = new

    def _take_steps(self, going: Mask, past: PastSteps) -> None:
        """Take note of the coefficients of some steps."""
        if not self._number:
            self.past.append(past)
        each = self.r.count // self.r.replicas
        for n in np.flatnonzero(going).tolist():
            coefficients = past.alpha[:, n * each].tolist(), past.beta[:, n * each].tolist()
            for alpha, beta in zip(*coefficients, strict=True):
                self.lanczos[n].add(alpha, beta)

    def _in_time(self, going: Mask, most: float, shifts: int) -> Mask:
        """Return the replicas that have iterations left; the others fail."""
        late = going & (self.progress.iterations >= most)
        several = f"{shifts} shifts" if shifts > 1 else "a shift"
        self.progress.fail(
            late,
            f"The solutions for {several} were not found within {most} iterations: allow more "
            "iterations, a larger tolerance, or choose a smaller kappa.",
        )
        return going & ~late


class TwoPassSum:
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
        self._search, self._most = ShiftedSearch(operator, b, 0), most
        self._copy = algebra.Combine(self._search.r, b)
        self._add = algebra.Combine(target, self._search.r)

    @property
    def iterations(self) -> int:
        """Number of iterations of the last first pass."""
        return self._search.iterations

    def __call__(self, shifts: Sequence[float], factors: Sequence[float], tolerance: float) -> None:
        """Add the sum to the target."""
        search = self._search
        self._copy(0, 1)
        norms = norms_of(search.r)
        if not np.isfinite(norms).all():
            raise ConvergenceError("The right-hand side contains a value that is not a number.")
        search.run(shifts, tolerance * norms, self._most, relaxed=0)
        steps, coefficients = [], ShiftCoefficients(shifts, norms.size)
        for past in search.past:
            for norm2, alpha, beta in zip(*past, strict=True):
                coefficients.unfinished(np.sqrt(norm2), tolerance * norms)
                steps.append(coefficients.advance(alpha, beta))
        self._copy(0, 1)
        search.turn(0, 1)
        for weight, (a, b, _) in zip(_weights(factors, steps), steps, strict=True):
            alpha, beta = a[0], b[0]  # of the lowest shift, which ends last
            self._add(1, weight)
            search.apply_shifted(float(shifts[0]))
            search.step(-alpha)
            search.turn(beta, 1)


def _weights(factors: Sequence[float], steps: Sequence[tuple[Norms, Norms, Norms]]) -> list[Norms]:
    """Return the factors of the residuals in a sum over shifts, for every step."""
    scales, weights = np.array(factors)[:, None], []
    first = np.ones((len(factors), steps[0][0].shape[1] if steps else 0))
    sums = np.zeros_like(first)
    for n in reversed(range(len(steps))):
        a, b, _ = steps[n]
        zeta = steps[n - 1][2] if n else first
        live = len(a)
        sums[:live] = a + b * sums[:live]
        sums[live:] = 0
        weights.append((scales[: len(zeta)] * zeta * sums[: len(zeta)]).sum(axis=0))
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
        self._subtract = algebra.Advance(self._rest, self._product)
        self._combine = algebra.PairAlgebra().combine

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
        progress.fail(active & in_groups(~np.isfinite(norms), self.b.replicas), text)
        inner = EXACT if tolerance < LEAST_LOWER else self._inner
        search = self._search(inner, self._number)
        search.r.copy(self.b)
        reduction = tolerance if inner == EXACT else TIGHTER * tolerance
        targets = self._targets(progress.left(active), reduction * norms)
        search.run(shifts, targets, self.request.iterations, progress=progress)
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
        exact = np.full(self.b.replicas, self._inner == EXACT)
        residual_norms = self._residual_norms(shift)
        for _ in range(2 * ATTEMPTS):
            due = progress.left(active & in_groups(~(residual_norms <= bounds), self.b.replicas))
            if not due.any():
                return np.asarray(residual_norms / _positive(norms))
            for inner, some, reach in ((LOWER, due & ~exact, REDUCTION), (EXACT, due & exact, 0.0)):
                if some.any():
                    targets = np.maximum(TIGHTER * bounds, reach * residual_norms)
                    self._correct(some, inner, shift, targets)
            before, residual_norms = residual_norms, self._residual_norms(shift)
            slow = (before > bounds) & ~(residual_norms < SMALLER * before)
            exact |= due & in_groups(slow, self.b.replicas)
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
        search.run((shift,), bounds, most, progress=self.progress)
        self._product.copy(search.y)
        # Corrections of others are 0, but to add them would change the sign of zeros.
        self._combine(self._y, 1, self._product, some.repeat(self._each).astype(float))

    def _residual_norms(self, shift: float) -> Norms:
        """Compute the true residuals, and return their norms."""
        self._apply()
        self._combine(self._product, 1, self._y, shift)
        self._combine(self._rest, 0, self.b, 1)
        self._subtract(-1)
        return np.asarray(np.sqrt(self._subtract.products().norm2))

    def _search(self, inner: str, number: int) -> ShiftedSearch:
        """Return a search in a precision for so many shifts, with its memory."""
        if (inner, number) not in self._searches:
            like = self.b if inner == EXACT else self.b.like(inner)
            self._searches[inner, number] = ShiftedSearch(self._operator(inner), like, number)
        return self._searches[inner, number]


def _positive(numbers: Any) -> Array:
    """Return numbers, and 1 instead of those that are not positive."""
    return np.where(numbers > 0, numbers, 1.0)
