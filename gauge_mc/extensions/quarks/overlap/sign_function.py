"""The sign of Q = gamma_5 M, by a polynomial or a rational function beside exact low modes.

sgn Q = sum over modes of sign v v^dagger + Q f(Q^2) (1 - sum of v v^dagger) with an approximation
f(x) of x^(-1/2) between the squares of the edge and of the norm of the other eigenvalues, where
|1 - sqrt(x) f(x)| is at most delta. With projectors whose errors are at most kappa_+ and kappa_-,
the norm of the error is at most (2 + delta) (kappa_+ + kappa_-) + delta, because |x f(x^2)| is at
most 1 + delta also for smaller x. Rounding errors of the arithmetic are not included.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks.hopping import Apply, InexactOperator, LinearOperator, norms_of
from gauge_mc.extensions.quarks.modes import (
    LowModeRequest,
    joined,
    low_modes,
    random_vector,
    rayleigh_ritz,
    ritz_minimum,
)
from gauge_mc.extensions.quarks.modes.chirality import (
    HermitianOperator,
    SquaredOperator,
    norm_bound,
)
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.rational_functions import LEAST_MINMAX_ERROR as LEAST_ERROR
from gauge_mc.extensions.quarks.rational_functions import (
    MOST_DEGREE,
    ChebyshevSum,
    MinmaxPolynomial,
    PartialFractions,
    approximate,
    degree_for,
    minmax_polynomial,
)
from gauge_mc.extensions.quarks.solvers import ITERATIONS, SolverParameters
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSystem, TwoPassSum
from gauge_mc.extensions.quarks.vectors import SpinorField, in_turn
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts, CombineBasis, Projection
from gauge_mc.registry import nearest

MODES = 20
"""Default of the largest number of low modes."""

MOST_MODES = 500
"""Largest number of low modes, to catch typing errors."""

LEAST_GAP = 1.001
"""Ratio of neighbouring eigenvalues below which no modes are projected, since the border would
divide modes that are equal."""

EDGE_MARGIN = 1e-3
"""Part by which the interval of the sign function begins below the first mode that is left."""

CHECK_ACCURACY = 0.1
"""Accuracy of the minimum of the Ritz functional that is compared with the first mode left. It is a
residual, whose square bounds the relative error of the minimum where other modes are far."""

EDGE_ACCURACY = 0.01
"""Accuracy of the minimum without low modes, which is the edge of the spectrum then."""

SEARCHES = 6
"""Largest number of searches, each outside of the modes that are known, if modes were missed."""

LACKING = 1e-6
"""Relative residual with Q above which an eigenvector of Q^2 is not one of Q."""


@dataclass(frozen=True)
class KernelModes:
    """The eigenvectors of Q with the smallest eigenvalues, and bounds of all others."""

    values: Array
    """Eigenvalues of Q, with their signs, of shape (number,)."""
    residuals: Array
    """The norms of Q v - value v, of shape (number,)."""
    vectors: SpinorField | None
    """The orthonormal vectors v; None if there are none."""
    edge: float
    """A number below the sizes of all other eigenvalues."""
    norm: float
    """A number above the sizes of all eigenvalues."""
    found: Array
    """Sizes of all eigenvalues that were found, ascending."""
    gap: float
    """Size of the first eigenvalue that is left, divided by that of the last one that is used; 1 if
    none is used."""
    ritz: float
    """Root of the minimum of the Ritz functional of Q^2 outside of the modes, which is independent
    of their search."""
    applications: int
    """Number of applications of Q in the search for modes."""

    @property
    def number(self) -> int:
        """Number of modes."""
        return len(self.values)

    @cached_property
    def distances(self) -> Array:
        """The distance d of each eigenvalue from those of other modes.

        These are the modes that are not projected, and the projected ones of the other sign.
        """
        sizes, positive = np.abs(self.values), self.values > 0
        nearest = [min([self.edge, *sizes[positive == sign].tolist()]) for sign in (True, False)]
        opposite = np.where(positive, nearest[1], nearest[0])
        return np.asarray(np.minimum(self.edge - sizes, sizes + opposite))

    @property
    def projector_errors(self) -> tuple[float, float]:
        """kappa_+ and kappa_-: bounds of the errors of the projectors to modes of both signs.

        kappa^2 is the sum of (residual / distance)^2 over the modes of a sign, which bounds the
        part of the vectors outside of the exact subspace (C. Davis and W. Kahan, SIAM J. Numer.
        Anal. 7 (1970) 1).
        """
        ratios = self.residuals / self.distances
        signs = self.values > 0, self.values <= 0
        plus, minus = (math.sqrt(float(np.sum(ratios[sign] ** 2))) for sign in signs)
        return plus, minus


def kernel_modes(operator: HermitianOperator, number: int = MODES, seed: int = 1) -> KernelModes:
    """Return low modes of Q; how many of them, follows from the spectrum.

    The modes below the largest gap in the upper half of those found are used, so that the
    next eigenvalue is not near by accident. The search is repeated for more modes if the Ritz
    functional shows that one was missed, outside of those that are known.
    """
    if not 0 <= number <= MOST_MODES:
        raise UsageError(f"The number of low modes is {number}; give one from 0 to {MOST_MODES}.")
    square = SquaredOperator(operator)
    start = random_vector(SpinorField.empty(operator.prepared.operator.field), seed)
    probe = random_vector(start, seed + 1)
    norm2 = norm_bound(square, start)
    if number == 0:
        return _without_modes(square, probe, norm2, np.zeros(0))
    applications, vectors = 0, None
    count = number + 1
    for search in range(SEARCHES):
        request = LowModeRequest(count, norm2, seed=seed)
        start = random_vector(probe, seed + 2 * search)
        low = low_modes(square, start, request, vectors)
        applications += 2 * low.applications
        vectors = _closed(operator, joined(vectors, low.vectors), math.sqrt(norm2))
        modes = _used(operator, square, vectors, probe, norm2, number)
        first = modes.found[modes.number] if modes.number else modes.edge
        if modes.ritz >= first * (1 - EDGE_MARGIN):
            return replace(modes, applications=applications)
        count = max(2, count // 2)
    raise ConvergenceError(
        f"The search for low modes missed some: of the eigenvalues that are left the smallest one "
        f"is {first:.6g}, but there is one of at most {modes.ritz:.6g}. Look for another number."
    )


def _closed(operator: HermitianOperator, vectors: SpinorField, norm: float) -> SpinorField:
    """Return eigenvectors of Q, given those of Q^2.

    If Q has the eigenvalues x and -x, a vector of Q^2 may be a sum of those of both; then the space
    lacks its image under Q.
    """
    _, residuals = rayleigh_ritz(operator, vectors)
    lacking = np.flatnonzero(residuals > LACKING * norm).tolist()
    if not lacking:
        return vectors
    both = vectors.like(count=vectors.count + len(lacking))
    both.copy(vectors)
    count, image, vector = vectors.count, vectors.like(count=1), vectors.like(count=1)
    apply, combine = operator.apply(image, vector), CombineBasis(image, 0, both)
    for n in lacking:
        vector.copy(vectors, n)
        apply()
        for _ in range(2):
            combine(-BasisProducts(both, image, 0, count)())
        size = float(norms_of(image)[0])
        if size > LACKING * norm:
            Combine(image, image)(1 / size, 0)
            both.copy(image, 0, count)
            count += 1
    modes = vectors.like(count=count)
    modes.copy(both)
    rayleigh_ritz(operator, modes)
    return modes


def _used(
    operator: HermitianOperator,
    square: LinearOperator,
    vectors: SpinorField,
    probe: SpinorField,
    norm2: float,
    most: int,
) -> KernelModes:
    """Return the modes of some vectors that are used, `most` at most."""
    values, residuals = rayleigh_ritz(operator, vectors)
    order = np.argsort(np.abs(values), kind="stable")
    sizes = np.abs(values)[order]
    count = chosen_number(sizes[: most + 1])
    if count == 0:
        return _without_modes(square, probe, norm2, sizes)
    projected, vector = vectors.like(count=count), vectors.like(count=1)
    for n, old in enumerate(order[:count].tolist()):
        vector.copy(vectors, old)
        projected.copy(vector, 0, n)
    minimum, _ = ritz_minimum(square, probe, projected, CHECK_ACCURACY)
    edge = (1 - EDGE_MARGIN) * min(float(sizes[count]), math.sqrt(minimum))
    return KernelModes(
        values[order[:count]],
        residuals[order[:count]],
        projected,
        edge,
        math.sqrt(norm2),
        sizes,
        float(sizes[count] / sizes[count - 1]),
        math.sqrt(minimum),
        0,
    )


def chosen_number(sizes: Array) -> int:
    """Return how many modes are used, given the sizes of the eigenvalues of all that were found.

    At least half of them, up to the largest ratio of neighbours, and at least one less than all; 0
    if there is no gap.
    """
    ratios = sizes[1:] / np.maximum(sizes[:-1], np.finfo(float).tiny)
    half = len(ratios) // 2
    best = half + int(np.argmax(ratios[half:]))
    if ratios[best] < LEAST_GAP:
        best = int(np.argmax(ratios))
    return best + 1 if ratios[best] >= LEAST_GAP else 0


def _without_modes(
    square: LinearOperator, probe: SpinorField, norm2: float, sizes: Array
) -> KernelModes:
    """Return bounds of the spectrum alone."""
    minimum, residual = ritz_minimum(square, probe, None, EDGE_ACCURACY)
    lowest = math.sqrt(max(minimum - residual, 0.5 * minimum))
    edge = (1 - EDGE_MARGIN) * min([lowest, *sizes.tolist()])
    empty, norm = np.zeros(0), math.sqrt(norm2)
    return KernelModes(empty, empty, None, edge, norm, sizes, 1.0, math.sqrt(minimum), 0)


ACCURACY = 1e-8
"""Default of the largest error of the sign function."""

APPLICATION = 14.0
"""Vectors that two applications of M read or write per site: sources, results and links."""

RECURRENCE = 2.0
"""Vectors that a step of Clenshaw's recurrence reads besides: b_{k+2} and the source."""

CONJUGATE_GRADIENTS = 9.0
"""Vectors that a step of conjugate gradients reads or writes besides: one for the shift, two for a
product, three for the residual and three for the direction."""

SHIFT = 4.0
"""Vectors that a step reads or writes for every shift, of which about half are still going on."""

FINISH = 27.0
"""Vectors that are read or written for the true residual of a shift, and to add its solution."""

SECOND_PASS = 10.0
"""Vectors that a step of a second pass of conjugate gradients reads or writes besides."""

SOLUTIONS = 4.0
"""The error, divided by that of a polynomial of as many steps as conjugate gradients: on
thermalised links of SU(3) their numbers differ by at most 5 % for errors of 1e-2, 1e-6 and 1e-9."""

SINGLE_ROUNDING = 2e-7
"""Error of a polynomial in single precision by rounding, divided by the root of its degree: on
thermalised links of SU(3) it is 1.3e-7 for degrees of 82 to 127, and 1.5e-7 for 255."""

LOOSEST = 0.1
"""Largest error of an approximation that is allowed for a while."""

ApproximationData = TypeVar("ApproximationData")


class Approximation(ABC, Generic[ApproximationData]):
    """An approximation f(x) of x^(-1/2) on [edge^2, norm^2], and looser ones in steps of 10.

    Parameters
    ----------
    modes : KernelModes
        The bounds of the spectrum.
    error : float
        The largest |1 - sqrt(x) f(x)|.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    error: float
    """The error delta of the approximation, with that of its application."""

    def __init__(self, modes: KernelModes, error: float) -> None:
        self.steps = 0
        """Number of applications of Q^2 so far."""
        self._edge = modes.edge
        self._lower, self._upper = modes.edge**2, modes.norm**2
        self._wanted, self._level, self._allowed = error, 0, 0.0
        self._levels = {0: self._find(error)}

    @abstractmethod
    def _find(self, error: float) -> ApproximationData:
        """Find the approximation with an error of at most this."""

    def allow(self, error: float) -> None:
        """Use the loosest approximation with an error of at most this, or the usual one."""
        ratio = min(error, LOOSEST) / self._wanted
        self._level = math.floor(math.log10(ratio)) if ratio >= 1 else 0
        self._allowed = error if self._level else 0.0
        if self._level not in self._levels:
            self._levels[self._level] = self._find(self._wanted * 10.0**self._level)

    @property
    def _now(self) -> ApproximationData:
        return self._levels[self._level]

    @classmethod
    @abstractmethod
    def cost(cls, modes: KernelModes, error: float) -> float:
        """Return about how many vectors an application reads or writes per site.

        It is infinite if the approximation is not possible.
        """

    @property
    @abstractmethod
    def size(self) -> int:
        """The degree of a polynomial, or the number of poles."""

    @abstractmethod
    def prepare(
        self, operator: HermitianOperator, target: SpinorField, source: SpinorField
    ) -> Apply:
        """Return a call that computes f(Q^2) times the vectors."""


class Polynomial(Approximation[MinmaxPolynomial]):
    """The minmax polynomial; see `gauge_mc.extensions.quarks.rational_functions`.

    It is computed in single precision where larger errors are allowed than those of a looser
    polynomial and of the rounding together.
    """

    name = "polynomial"
    summary = "minmax polynomial, by Clenshaw's recurrence"

    def __init__(self, modes: KernelModes, error: float) -> None:
        super().__init__(modes, error)
        self.error = self._levels[0].error

    def _find(self, error: float) -> MinmaxPolynomial:
        return minmax_polynomial(self._lower / self._upper, error)

    @classmethod
    def cost(cls, modes: KernelModes, error: float) -> float:
        """Return the cost; see `Approximation.cost`."""
        degree = degree_for((modes.edge / modes.norm) ** 2, error)
        return degree * (APPLICATION + RECURRENCE) if degree <= MOST_DEGREE else np.inf

    @property
    def size(self) -> int:
        """The degree."""
        return self._levels[0].degree

    def prepare(
        self, operator: HermitianOperator, target: SpinorField, source: SpinorField
    ) -> Apply:
        """Return a call; see `Approximation.prepare`."""
        ends = self._lower, self._upper
        sum_ = ChebyshevSum(SquaredOperator(operator), target, source, (), *ends)
        rough: list[_SingleSum] = []

        def call() -> None:
            now = self._now
            self.steps += now.degree
            scaled = (np.array(now.coefficients) / np.sqrt(self._upper)).tolist()
            if now.error + SINGLE_ROUNDING * math.sqrt(now.degree) > self._allowed:
                sum_(scaled)
                return
            if not rough:
                rough.append(_SingleSum(operator, target, source, *ends))
            rough[0](scaled)

        return call


class _SingleSum:
    """A `ChebyshevSum` in single precision, of vectors in double precision."""

    def __init__(
        self,
        operator: HermitianOperator,
        target: SpinorField,
        source: SpinorField,
        lower: float,
        upper: float,
    ) -> None:
        kernel = HermitianOperator(_whole(operator).prepared("single"))
        start, image = source.like("single"), source.like("single")
        self._begin, self._end = start.copying(source), target.copying(image)
        self._sum = ChebyshevSum(SquaredOperator(kernel), image, start, (), lower, upper)

    def __call__(self, coefficients: Sequence[float]) -> None:
        """Compute the result; see `ChebyshevSum`."""
        self._begin()
        self._sum(coefficients)
        self._end()


class Zolotarev(Approximation[tuple[PartialFractions, float]]):
    """Zolotarev's rational function, by conjugate gradients for several shifts.

    Half of the error is that of the function, and the other half that of the solutions: a residual
    r of the solution for a shift s changes the result by at most r times the largest x / (x^2 + s).
    """

    name = "zolotarev"
    summary = "Zolotarev's rational function, by conjugate gradients for several shifts"

    def __init__(self, modes: KernelModes, error: float) -> None:
        super().__init__(modes, error)
        self.error = self._levels[0][0].error + error / 2

    def _find(self, error: float) -> tuple[PartialFractions, float]:
        """Return the function, and the tolerance of the solutions."""
        fractions = approximate(-0.5, self._lower, self._upper, error / 2)
        return fractions, error / 2 / _sensitivity(fractions, self._edge)

    @classmethod
    def cost(cls, modes: KernelModes, error: float) -> float:
        """Return the cost; see `Approximation.cost`."""
        iterations = degree_for((modes.edge / modes.norm) ** 2, error / SOLUTIONS)
        poles = np.log(4 / error) * np.log(4 * modes.norm / modes.edge) / np.pi**2
        step = APPLICATION + CONJUGATE_GRADIENTS + 1 + SHIFT * poles / 2
        return float(iterations * step + FINISH * poles)

    @property
    def size(self) -> int:
        """The number of poles."""
        return len(self._levels[0][0].shifts)

    def prepare(
        self, operator: HermitianOperator, target: SpinorField, source: SpinorField
    ) -> Apply:
        """Return a call; see `Approximation.prepare`."""

        def square(precision: str) -> LinearOperator:
            return SquaredOperator(HermitianOperator(_whole(operator).prepared(precision)))

        request = SolverParameters(self._levels[0][1], ITERATIONS, inner="double")
        system = ShiftedSystem(square, source, self.size, request)
        first = Combine(target, source)

        def call() -> None:
            fractions, tolerance = self._now
            first(0, fractions.constant)
            solutions = system.solutions(fractions.shifts.tolist(), tolerance)
            for residue, y in zip(fractions.residues.tolist(), solutions, strict=True):
                Combine(target, y)(1, residue)
            self.steps += system.iterations

        return call


class DoublePass(Zolotarev):
    """Zolotarev's rational function by Neuberger's double pass; see `TwoPassSum`.

    Besides the result it needs four vectors, where `Zolotarev` needs two for every pole and seven.
    The model of the cost prefers it from 12 poles on. The errors are those of `Zolotarev`, but for
    the difference of the iterated from the true residuals, which is one of rounding.
    """

    name = "double-pass"
    summary = "Zolotarev's function by two passes, which need less memory"

    @classmethod
    def cost(cls, modes: KernelModes, error: float) -> float:
        """Return the cost; see `Approximation.cost`."""
        iterations = degree_for((modes.edge / modes.norm) ** 2, error / SOLUTIONS)
        return float(iterations * (2 * APPLICATION + CONJUGATE_GRADIENTS + SECOND_PASS))

    def prepare(
        self, operator: HermitianOperator, target: SpinorField, source: SpinorField
    ) -> Apply:
        """Return a call; see `Approximation.prepare`."""
        sum_ = TwoPassSum(SquaredOperator(operator), target, source, ITERATIONS)
        first = Combine(target, source)

        def call() -> None:
            fractions, tolerance = self._now
            first(0, fractions.constant)
            sum_(fractions.shifts.tolist(), fractions.residues.tolist(), tolerance)
            self.steps += 2 * sum_.iterations

        return call


def _whole(operator: HermitianOperator) -> DiracOperator:
    """Return the Dirac operator M of gamma_5 M."""
    dirac = operator.prepared.operator
    assert isinstance(dirac, DiracOperator)
    return dirac


def _sensitivity(fractions: PartialFractions, edge: float) -> float:
    """Return by how much residuals of the solutions change x f(x^2) at most."""
    x = np.maximum(np.sqrt(fractions.shifts), edge)
    return float(np.sum(np.abs(fractions.residues) * x / (x**2 + fractions.shifts)))


APPROXIMATIONS: dict[str, type[Approximation[Any]]] = {
    x.name: x for x in (Polynomial, Zolotarev, DoublePass)
}
"""All approximations, by name."""


def check_approximation(name: str) -> None:
    """Refuse a name that no approximation has."""
    if name not in APPROXIMATIONS:
        raise UsageError(
            f"There is no approximation '{name}' of the sign{nearest(name, APPROXIMATIONS)}"
        )


class SignFunction(InexactOperator):
    """The sign of Q, within an error that is known.

    Parameters
    ----------
    operator : HermitianOperator
        Q in double precision.
    modes : KernelModes
        Its low modes, and bounds of the other eigenvalues.
    accuracy : float
        Largest bound of the error.
    kind : str, optional
        Name of one of the `APPROXIMATIONS`; by default the one of the smallest cost.

    Raises
    ------
    UsageError
        If a value is invalid, or the accuracy is out of reach.
    """

    def __init__(
        self,
        operator: HermitianOperator,
        modes: KernelModes,
        accuracy: float = ACCURACY,
        kind: str | None = None,
    ) -> None:
        self.parities = operator.parities
        self.operator, self.modes = operator, modes
        if not 2 * LEAST_ERROR <= accuracy < 1:
            raise UsageError(
                f"The accuracy is {accuracy:g}; give a number from {2 * LEAST_ERROR:g} to below 1."
            )
        kappas = sum(modes.projector_errors)
        budget = accuracy - 2.5 * kappas
        if budget < max(LEAST_ERROR, accuracy / 10):
            raise UsageError(
                f"The low modes are known with residuals of up to {modes.residuals.max():.1e}, "
                f"which leave an error of {2 * kappas:.1e}, and the accuracy is {accuracy:g}; "
                "choose a larger one, or another number of modes."
            )
        if kind is None:
            kind = min(APPROXIMATIONS, key=lambda name: APPROXIMATIONS[name].cost(modes, budget))
        check_approximation(kind)
        self.approximation = APPROXIMATIONS[kind](modes, budget)
        delta = self.approximation.error
        self.error_bound = (2 + delta) * kappas + delta
        """A bound of the norm of the error, if no larger one is allowed."""

    def allow(self, error: float) -> None:
        """Allow an error, which includes that of the projectors; see `InexactOperator.allow`."""
        self.approximation.allow(error - 2.5 * sum(self.modes.projector_errors))

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the sign of Q times vectors; see `LinearOperator.apply`."""
        rest, product = source.like(), source.like()
        function = self.approximation.prepare(self.operator, product, rest)
        times_q = self.operator.apply(target, product)
        vectors, signs = self.modes.vectors, np.sign(self.modes.values)
        if not vectors:
            return in_turn(partial(rest.copy, source), function, times_q)
        remove, add = Projection(vectors, rest), Projection(vectors, target)

        def call() -> None:
            rest.copy(source)
            inside = remove.remove()
            function()
            times_q()
            add.add(inside * signs)

        return call
