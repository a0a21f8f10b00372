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
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.matrices.hopping import Apply, InexactOperator, LinearOperator
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator, SquaredOperator
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.overlap.kernel_modes import KernelModes
from gauge_mc.extensions.quarks.rational.multishift import ShiftedSystem, TwoPassSum
from gauge_mc.extensions.quarks.rational.rational_functions import LEAST_MINMAX_ERROR as LEAST_ERROR
from gauge_mc.extensions.quarks.rational.rational_functions import (
    MOST_DEGREE,
    ChebyshevSum,
    MinmaxPolynomial,
    PartialFractions,
    approximate,
    degree_for,
    minmax_polynomial,
)
from gauge_mc.extensions.quarks.solvers import ITERATIONS, SolverParameters
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.basis import Projection
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, in_turn
from gauge_mc.registry import nearest

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
    """The minmax polynomial; see `gauge_mc.extensions.quarks.rational.rational_functions`.

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
        own = HermitianOperator(_whole(operator).prepared("single"))
        start, found = source.like("single"), source.like("single")
        self._begin, self._end = start.copying(source), target.copying(found)
        self._sum = ChebyshevSum(SquaredOperator(own), found, start, (), lower, upper)

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
    whole = operator.prepared.operator
    assert isinstance(whole, DiracOperator)
    return whole


def _sensitivity(fractions: PartialFractions, edge: float) -> float:
    """Return by how much residuals of the solutions change x f(x^2) at most."""
    x = np.maximum(np.sqrt(fractions.shifts), edge)
    return float(np.sum(np.abs(fractions.residues) * x / (x**2 + fractions.shifts)))


APPROXIMATIONS: dict[str, type[Approximation[Any]]] = {
    one.name: one for one in (Polynomial, Zolotarev, DoublePass)
}
"""All approximations, by name."""


def check_approximation(name: str) -> None:
    """Refuse a name that no approximation has.

    Raises
    ------
    UsageError
        If there is none of this name.
    """
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
        left = accuracy - 2.5 * kappas
        if left < max(LEAST_ERROR, accuracy / 10):
            raise UsageError(
                f"The low modes are known with residuals of up to {modes.residuals.max():.1e}, "
                f"which leave an error of {2 * kappas:.1e}, and the accuracy is {accuracy:g}; "
                "choose a larger one, or another number of modes."
            )
        if kind is None:
            kind = min(APPROXIMATIONS, key=lambda name: APPROXIMATIONS[name].cost(modes, left))
        check_approximation(kind)
        self.approximation = APPROXIMATIONS[kind](modes, left)
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
