"""Linear operators on vectors, as solvers see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from gauge_mc.quarks.vectors.spinors import SpinorField

Apply = Callable[[], None]
"""A prepared application of an operator to a field."""

Recur = Callable[[float, float, float, float], None]
"""A prepared step of a recurrence, called with a, scale, shift and c; see
`LinearOperator.recurrence`."""

EVEN, ODD = 0, 1


class LinearOperator(ABC):
    """A linear operator on vectors on the sites of one or both parities."""

    parities: tuple[int, ...]
    """The parities of the sites on which it acts."""

    @abstractmethod
    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product with the operator, or with its adjoint.

        Parameters
        ----------
        target, source : SpinorField
            Different fields on the sites on which the operator acts.
        dagger : bool
            Whether to apply the adjoint.
        """

    def recurrence(
        self, target: SpinorField, b: SpinorField, older: SpinorField, constant: SpinorField
    ) -> Recur | None:
        """Return a call that computes a step of a recurrence, or None.

        The call sets the target to a older + scale (A + shift) b + c constant, given a, scale,
        shift and c, in fewer passes over memory than one after the other. It is None if the
        operator has no such call.

        Parameters
        ----------
        target, b, older, constant : SpinorField
            Fields on the sites on which the operator acts; the target may be `older`, but not `b`.
        """
        return None


class InexactOperator(LinearOperator):
    """A linear operator whose products are cheaper if they may have larger errors."""

    @abstractmethod
    def allow(self, error: float) -> None:
        """Allow errors of all further products, which have been prepared or not.

        Parameters
        ----------
        error : float
            Largest norm of an error, divided by that of the vector; 0 for the smallest ones.
        """


class ReducedOperator(LinearOperator):
    """The rest of M = A - kappa D on the even sites when the odd sites are eliminated."""

    divided: bool
    """Whether it is 1 - kappa^2 A_ee^-1 D_eo A_oo^-1 D_oe, rather than this times A_ee."""
    vectors_moved: int
    """Number of vectors on one parity that the kernels of a product read or write."""

    @abstractmethod
    def on(self, some: range) -> LinearOperator:
        """Return the operator for vectors on some replicas alone."""

    @abstractmethod
    def left_part(self, target: SpinorField, source: SpinorField) -> Apply:
        """Return a call that computes the even part of a vector of which forces follow.

        It is a vector X' on all sites with X^dagger (dMh) Y = X'^dagger (dM) Y for vectors X and Y
        on the even sites, whose odd parts follow from the even ones
        (`gauge_mc.quarks.forces.normal.OddSites`): X itself, or A^-dagger X if Mh is divided by A.

        Parameters
        ----------
        target : SpinorField
            X' on all sites, of which the even ones are set.
        source : SpinorField
            X on the even sites.
        """
