"""The even-odd preconditioned system of a Dirac operator.

Parts of solutions along low modes of the even-odd preconditioned operator.

Along an eigenvector v of Mh^dagger Mh with the eigenvalue a, the solution of Mh x = b has the part
v <v, Mh^dagger b> / a, which needs no iteration. With these parts taken from the residual,
conjugate gradients converge as if the smallest eigenvalues were not there, as long as rounding
errors do not bring them back (A. Stathopoulos and K. Orginos, SIAM J. Sci. Comput. 32 (2010) 439,
arXiv:0707.0131). So they are taken away again whenever the true residual is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.hopping import (
    ADDED,
    DIVIDED,
    EVEN,
    ODD,
    SOLVED,
    WHOLE,
    Apply,
    HoppingOperator,
    LinearOperator,
    PreparedOperator,
    ReducedOperator,
)
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts, CombineBasis
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, in_turn
from gauge_mc.options import Option
from gauge_mc.quoting import square
from gauge_mc.updates.monomials import Mask


class PreconditionedOperator(ReducedOperator):
    """The operator on the even sites that is left when the odd sites are eliminated.

    It is divided by A_ee, or not; then it has an adjoint of the same form. See `ReducedOperator`.

    Parameters
    ----------
    prepared : PreparedOperator
        The operator on all sites.
    with_adjoint : bool
        Whether it is the second, whose adjoint can be applied.

    Attributes
    ----------
    some : range or None
        The replicas on which it acts; None stands for all.
    """

    parities = (EVEN,)
    vectors_moved = 5  # two hops, the second one with the source

    def __init__(self, prepared: PreparedOperator, with_adjoint: bool) -> None:
        self._prepared, self.divided = prepared, not with_adjoint
        self.some: range | None = None
        self._spare: dict[int, SpinorField] = {}

    def _odd(self, source: SpinorField) -> SpinorField:
        """Return memory for vectors on the odd sites, which all products share."""
        each = source.count // source.replicas
        if each not in self._spare:
            kind = self._prepared.operator.field, source.storage.name, each, ODD, source.fifth
            self._spare[each] = SpinorField.empty(*kind)
        return self._spare[each].part(self.some) if self.some else self._spare[each]

    def left_part(self, target: SpinorField, source: SpinorField) -> Apply:
        """Return a call that copies X, if this is not divided; see `ReducedOperator.left_part`."""
        return partial(Combine(target, source, parity=EVEN), 0, 1)

    def on(self, some: range) -> LinearOperator:
        """Return the operator for vectors on some replicas alone, in the same memory."""
        operator = copy(self)
        operator.some = some
        return operator

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        if dagger and self.divided:
            raise ValueError("The form of this operator has no adjoint; declare that it is used.")
        odd, prepare, some = self._odd(source), self._prepared.prepare, self.some
        first = prepare(odd, source, ODD, DIVIDED, dagger=dagger, some=some)
        form = ADDED if self.divided else WHOLE
        second = prepare(target, odd, EVEN, form, source, dagger, some)
        kappa2 = square(self._prepared.operator.kappa, source.field.devices.strict)
        return in_turn(first, partial(second, -kappa2))


class NormalOperator(LinearOperator):
    """The product B B^dagger of an operator B.

    Parameters
    ----------
    operator : LinearOperator
        The operator B.
    between : SpinorField, optional
        Memory for vectors between the factors; by default it is new.
    """

    def __init__(self, operator: LinearOperator, between: SpinorField | None = None) -> None:
        self.one, self.parities = operator, operator.parities
        self._spare = {(between.storage, between.count): between} if between else {}

    def between(self, like: SpinorField) -> SpinorField:
        """Return the vectors that are computed between both applications."""
        key = like.storage, like.count
        if key not in self._spare:
            self._spare[key] = like.like()
        return self._spare[key]

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        between = self.between(source)
        first = self.one.apply(between, source, dagger=True)
        return in_turn(first, self.one.apply(target, between))


class AdjointOperator(LinearOperator):
    """The adjoint of an operator on the even sites.

    Parameters
    ----------
    operator : LinearOperator
        The operator.
    """

    parities = (EVEN,)

    def __init__(self, operator: LinearOperator) -> None:
        self.one = operator

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        return self.one.apply(target, source, not dagger)


class System:
    """M x = b in double precision, and its reduction to the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    source : SpinorField
        The right-hand sides b on all sites, in double precision.
    with_adjoint : bool
        See `PreconditionedOperator`.
    """

    def __init__(self, operator: HoppingOperator, source: SpinorField, with_adjoint: bool) -> None:
        self.operator, self.with_adjoint = operator, with_adjoint
        self.exact = operator.prepared(source.storage.name)
        self.preconditioned = self.reduced_operator(source.storage.name)
        self.norms = norms_of(source)
        self.b, self.x, self._product = (source.like() for _ in range(3))
        self._apply = self.exact.apply(self._product, self.x)
        self._scale(self.b, source, 1 / self.units)
        self.reduced = source.like(parity=EVEN)
        self._reduce()

    def reduced_operator(self, precision: str, reals: int | None = None) -> ReducedOperator:
        """Return the operator on the even sites; see `HoppingOperator.prepared`."""
        return self.operator.reduced(self.with_adjoint, precision, reals)

    @property
    def units(self) -> NDArray[np.float64]:
        """The norms of the sources, or 1 for those that are 0. `b` is the source divided by it."""
        return np.where(self.norms > 0, self.norms, 1.0)

    def _scale(self, to: SpinorField, origin: SpinorField, factor: NDArray[np.float64]) -> None:
        for parity in (EVEN, ODD):
            Combine(to, origin, parity=parity)(0, factor)

    def _reduce(self) -> None:
        """Compute the right-hand sides of the preconditioned system."""
        hop, kappa, odd = self.exact.hop, self.operator.kappa, self.b.like(parity=ODD)
        hop(odd, self.x, ODD, SOLVED, self.b, 0.0)
        hop(self.reduced, odd, EVEN, SOLVED, self.b, kappa)
        if not self.preconditioned.divided:
            hop(self.reduced, odd, EVEN, WHOLE, self.reduced, 0.0)

    def complete(self, even: SpinorField) -> None:
        """Set `x` to the solution for `b`, given the solution on the even sites."""
        Combine(self.x, even, parity=EVEN)(0, 1)
        self.exact.hop(self.x, even, ODD, SOLVED, self.b, self.operator.kappa)

    def take(self, solution: SpinorField) -> None:
        """Set `x` to a solution for the sources that is known already."""
        self._scale(self.x, solution, 1 / self.units)

    def residual_norms(self) -> NDArray[np.float64]:
        """Return the norms of b - M x on all sites."""
        self._apply()
        norms2 = np.zeros(self.x.count)
        for parity in (EVEN, ODD):
            step = Advance(self._product, self.b, parity=parity)
            step(-1)
            norms2 += step.products().norm2
        return np.asarray(np.sqrt(norms2))

    def scaled_solution(self) -> SpinorField:
        """Return the solution for the sources."""
        solution = self.x.like()
        self._scale(solution, self.x, self.units)
        return solution


def norms_of(field: SpinorField) -> NDArray[np.float64]:
    """Return the norms of the vectors of a field."""
    return np.asarray(np.sqrt(Multiply(field)().norm2))


MOST_DEFLATED = 500
"""Largest number of modes, to catch typing errors."""

DEFLATE = Option(
    "deflate",
    int,
    "Number of low modes of the preconditioned operator along which solutions need no iteration, "
    "for each kappa; they are looked for first.",
    default="none",
    least=1,
    most=MOST_DEFLATED,
)

DEVIATION = 0.01
"""Largest deviation of Mh^dagger Mh times the sum of all modes from what the eigenvalues say, as a
part of it. Its usual size is the residual of the modes divided by their eigenvalues."""


@dataclass(frozen=True)
class Deflation:
    """Low modes of Mh^dagger Mh, along which solutions of Mh x = b are known.

    Raises
    ------
    UsageError
        If there are not as many eigenvalues as vectors, or one is not positive.
    """

    values: NDArray[np.float64]
    """The eigenvalues, of shape (number,)."""
    vectors: SpinorField
    """The orthonormal eigenvectors on the even sites, in double precision."""

    def __post_init__(self) -> None:
        if self.values.shape != (self.vectors.count,) or not (self.values > 0).all():
            raise UsageError(
                f"There are {self.vectors.count} modes with the eigenvalues {self.values}; give "
                "one eigenvalue above 0 for each of them."
            )

    def check(self, operator: LinearOperator) -> None:
        """Refuse modes of another operator, for which a sum of all of them is no sum of modes.

        Parameters
        ----------
        operator : LinearOperator
            Mh in double precision, with its adjoint.

        Raises
        ------
        GaugeError
            If Mh^dagger Mh multiplies the sum of the modes by anything but the eigenvalues.
        """
        total, between, image = (self.vectors.like(count=1) for _ in range(3))
        combine = CombineBasis(total, 0, self.vectors)
        combine(np.ones(self.values.size, np.complex128), 0.0)
        operator.apply(between, total)()
        operator.apply(image, between, dagger=True)()
        combine(self.values.astype(np.complex128), 0.0)
        Combine(image, total)(1, -1)
        if not norms_of(image)[0] <= DEVIATION * norms_of(total)[0]:
            raise GaugeError(
                "The low modes are not those of this operator; compute them for its links and "
                "parameters."
            )

    def correction(
        self, operator: LinearOperator, y: SpinorField, r: SpinorField
    ) -> Callable[[Mask], None]:
        """Return a call that adds what solutions lack along the modes, unless they are done.

        Parameters
        ----------
        operator : LinearOperator
            Mh in double precision, with its adjoint.
        y, r : SpinorField
            The solutions so far, and their residuals.
        """
        image, numbers = r.like(), range(y.count)
        apply = operator.apply(image, r, dagger=True)
        products = [BasisProducts(self.vectors, image, n, self.vectors.count) for n in numbers]
        combine = [CombineBasis(y, n, self.vectors) for n in numbers]

        def add(converged: Mask) -> None:
            apply()
            for n in np.flatnonzero(~converged).tolist():
                combine[n](products[n]() / self.values)

        return add
