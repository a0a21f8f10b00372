"""Polynomials of a linear operator, by Clenshaw's recurrence in three work fields.

With z = s A + t the sum of c_k T_k(z) v follows from b_k = c_k v + 2 z b_{k+1} - b_{k+2}, as
c_0 v + z b_1 - b_2 (C. W. Clenshaw, Math. Comp. 9 (1955) 118).
"""

from __future__ import annotations

from collections.abc import Sequence

from gauge_mc.quarks.matrices.linear import LinearOperator, Recur
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField


class ChebyshevSum:
    """The sum over k of c_k T_k(z), with z = (2 A - lower - upper) / (upper - lower), of vectors.

    Parameters
    ----------
    operator : LinearOperator
        The operator A.
    target, source : SpinorField
        The result, and the vectors v, on the sites on which A acts.
    coefficients : sequence of float
        The coefficients c_k.
    lower, upper : float
        The ends of the interval of A's eigenvalues that is mapped to [-1, 1].
    work : sequence of SpinorField, optional
        Two fields like the source, which are overwritten; by default new ones. The operator may
        have a third one.
    """

    def __init__(
        self,
        operator: LinearOperator,
        target: SpinorField,
        source: SpinorField,
        coefficients: Sequence[float],
        lower: float,
        upper: float,
        work: Sequence[SpinorField] | None = None,
    ) -> None:
        self._coefficients = [float(one) for one in coefficients]
        self._scale = 2 / (upper - lower)
        self._shift = -(upper + lower) / (upper - lower)
        self._work = tuple(work) if work else (source.like(), source.like())
        one, other = self._work
        # b_{k+2} is replaced by b_k.
        self._recur, self._last = (
            [
                operator.recurrence(new or older, b, older, source)
                or _in_passes(operator, new or older, b, older, source, target)
                for older, b in ((other, one), (one, other))
            ]
            for new in (None, target)
        )
        self._first = Combine(one, source)
        self._constant = Combine(target, source)

    def __call__(self, coefficients: Sequence[float] = ()) -> None:
        """Compute the result, with one application of the operator for each degree.

        Parameters
        ----------
        coefficients : sequence of float
            Other coefficients for this call.
        """
        *rest, highest = coefficients or self._coefficients
        if not rest:
            self._constant(0, highest)
            return
        self._first(0, highest)
        s, t, turn, older = self._scale, self._shift, 0, 0.0
        for c in reversed(rest[1:]):
            self._recur[turn](-older, 2 * s, t / s, c)
            turn, older = 1 - turn, 1.0
        self._last[turn](-older, s, t / s, rest[0])


def _in_passes(
    operator: LinearOperator,
    new: SpinorField,
    b: SpinorField,
    older: SpinorField,
    constant: SpinorField,
    spare: SpinorField,
) -> Recur:
    """Return a call as that of `LinearOperator.recurrence`, with A b in the spare vectors.

    The new vectors are the older or the spare ones.
    """
    apply = operator.apply(spare, b)
    if new is older:
        add = Combine(older, spare, b, w=constant)
    else:
        add = Combine(spare, b, older, w=constant)

    def call(a: float, scale: float, shift: float, c: float) -> None:
        apply()
        if new is older:
            add(a, scale, scale * shift, c)
        else:
            add(scale, scale * shift, a, c)

    return call
