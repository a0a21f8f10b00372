"""Solutions that quark forces need, of Mh Mh^dagger X = phi on the even sites, again and again.

Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe is what is left of an operator M = A - kappa D when the odd
sites are eliminated (`PreconditionedOperator`). For domain walls it is divided by A_ee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.quarks.matrices.hopping import DIVIDED, WHOLE, HoppingOperator
from gauge_mc.quarks.matrices.linear import EVEN, ODD, Apply, LinearOperator
from gauge_mc.quarks.solvers import ITERATIONS, SOLVERS, SolverParameters
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.storage import STORAGES

FORCE_TOLERANCE = 1e-8
"""Default of the largest residual for forces, with which trajectories of conjugate gradients in
single precision are reversible to 1e-12."""

ACTION_TOLERANCE = 1e-11
"""Default of the largest residual for actions and for pseudofermions."""

MOST_HISTORY = 12
"""Largest number of earlier solutions for a start."""


@dataclass(frozen=True)
class QuarkSolver:
    """How the solutions for quark forces and actions are computed.

    Attributes
    ----------
    solver : str
        Name of a registered solver. One that uses the adjoint, such as conjugate gradients, stands
        for conjugate gradients for Mh Mh^dagger X = phi. Another one solves Mh Y = phi and then
        Mh^dagger X = Y.
    inner : str
        Precision of the iterations; residuals are those of double precision.
    force_tolerance, action_tolerance : float
        Largest norm of a residual, divided by that of the right-hand side, for forces, and for
        actions and pseudofermions. BiCGstab amplifies rounding errors of iterations in single
        precision, so that trajectories are reversible only to about the tolerance for forces, as
        with a `history`.
    iterations : int
        Largest number of iterations of a solve.
    history : int
        Number of earlier solutions of a trajectory from which the start for a force is
        extrapolated; with 0 it is zero. Otherwise forces depend on how the links have been reached,
        so that trajectories are reversible only to about the `force_tolerance`, instead of 1e-5 of
        it: choose 1e-11 for it.
    reduction : float, optional
        See `SolverParameters`.
    """

    solver: str = defaults.QUARK_SOLVER
    inner: str = defaults.INNER
    force_tolerance: float = FORCE_TOLERANCE
    action_tolerance: float = ACTION_TOLERANCE
    iterations: int = ITERATIONS
    history: int = 0
    reduction: float | None = None

    def __post_init__(self) -> None:
        SOLVERS.check(self.solver, "solver")
        if not 0 <= self.history <= MOST_HISTORY:
            raise UsageError(
                f"The history is {self.history}; give the number of earlier solutions from which "
                f"a start is extrapolated, from 0 to {MOST_HISTORY}."
            )
        for tolerance in (self.force_tolerance, self.action_tolerance):
            self.parameters(tolerance)

    def parameters(self, tolerance: float) -> SolverParameters:
        """Return the parameters of a solve.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        limits = tolerance, self.iterations
        return SolverParameters(*limits, inner=self.inner, reduction=self.reduction)


class NormalOperator(LinearOperator):
    """The product B B^dagger of an operator B.

    Parameters
    ----------
    one : LinearOperator
        The operator B.
    between : SpinorField, optional
        Memory for vectors between the factors; by default it is new.
    """

    def __init__(self, one: LinearOperator, between: SpinorField | None = None) -> None:
        self.one, self.parities = one, one.parities
        self._spare = {between.count: between} if between else {}

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        if source.count not in self._spare:
            self._spare[source.count] = source.like()
        between = self._spare[source.count]
        first = self.one.apply(between, source, dagger=True)
        second = self.one.apply(target, between)

        def call() -> None:
            first()
            second()

        return call


class AdjointOperator(LinearOperator):
    """The adjoint of an operator on the even sites.

    Parameters
    ----------
    one : LinearOperator
        The operator.
    """

    parities = (EVEN,)

    def __init__(self, one: LinearOperator) -> None:
        self.one = one

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        return self.one.apply(target, source, not dagger)


EXACT = "double"


def precisions(inner: str) -> Sequence[str]:
    """Return the precisions that are tried one after the other, from `inner` to double."""
    return list(STORAGES)[list(STORAGES).index(inner) :: -1]


class OddSites:
    """Set a vector on the odd sites to kappa A_oo^-1 D_oe times its part on the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator A - kappa D.
    vector : SpinorField
        The vector on all sites, in double precision.
    dagger : bool
        Whether to use the adjoints of A and D.
    """

    def __init__(
        self, operator: HoppingOperator, vector: SpinorField, dagger: bool = False
    ) -> None:
        self._kappa = operator.kappa
        prepared = operator.prepared(vector.storage.name)
        self._hop = prepared.prepare(vector, vector, ODD, DIVIDED, dagger=dagger)
        self._scale = Combine(vector, vector, parity=ODD)

    def __call__(self) -> None:
        """Set the vector on the odd sites."""
        self._hop()
        self._scale(self._kappa, 0)


class NormalPairs:
    """Pairs of vectors X' and Y on all sites, which follow from X and Y on the even ones.

    They have X^dagger (dMh) Y = X'^dagger (dM) Y; see `ReducedOperator.left_part`.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    even : SpinorField
        The vectors X on the even sites, in double precision.
    x, y : SpinorField
        The vectors X' and Y on all sites, in double precision, as many of each.
    """

    def __init__(
        self, operator: HoppingOperator, even: SpinorField, x: SpinorField, y: SpinorField
    ) -> None:
        self._kappa = operator.kappa
        self._take_x = operator.reduced(True).left_part(x, even)
        self._lift_x, self._lift_y = OddSites(operator, x, dagger=True), OddSites(operator, y)
        self._adjoint = operator.prepared(EXACT).prepare(y, x, EVEN, WHOLE, x, dagger=True)

    def lift(self) -> None:
        """Set both on all sites, given X and Y on the even ones; see `OddSites`."""
        self._take_x()
        self._lift_x()
        self._lift_y()

    def complete(self) -> None:
        """Set X' and Y = Mh^dagger X on all sites, given X on the even ones."""
        self._take_x()
        self._lift_x()
        # M^dagger X' on the even sites, A^dagger X'_e - kappa D^dagger X'_o, is Mh^dagger X.
        self._adjoint(-self._kappa)
        self._lift_y()
