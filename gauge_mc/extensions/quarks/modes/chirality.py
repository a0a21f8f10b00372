"""The hermitian Wilson operator gamma_5 M, and combinations of vectors with gamma_5."""

from __future__ import annotations

import math
from functools import partial

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.hopping import NormalOperator
from gauge_mc.extensions.quarks.operators import HOPPING_PARAMETER, DiracOperator
from gauge_mc.extensions.quarks.rational_functions import SpectrumEnds
from gauge_mc.extensions.quarks.solvers import ITERATIONS
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSearch
from gauge_mc.extensions.quarks.vectors import SpinorField, in_turn

COMBINE_CHIRALITIES = Kernel("combine_chiralities")

BOTH = (hopping.EVEN, hopping.ODD)


class HermitianOperator(hopping.LinearOperator):
    """Q = gamma_5 M on all sites, with the Wilson operator M = A - kappa D.

    It is hermitian, and costs as much as M: the last step of a hop multiplies by gamma_5. Since
    M / (2 kappa) is the Wilson operator with the bare mass m0 = 1 / (2 kappa) - 4, Q / (2 kappa) is
    H = gamma_5 (D_w - rho) with rho = -m0.

    Parameters
    ----------
    prepared : PreparedOperator
        M, for spinors in one type of storage.

    Raises
    ------
    UsageError
        If gamma_5 M is not hermitian, as with a twisted mass or a fifth direction.
    """

    parities = BOTH

    def __init__(self, prepared: hopping.PreparedOperator) -> None:
        operator = prepared.operator
        if (
            not isinstance(operator, DiracOperator)
            or operator.quark != HOPPING_PARAMETER
            or operator.prepared_kind is not hopping.PreparedOperator
            or operator.diagonal not in (hopping.UNIT, hopping.HERMITIAN)
            or operator.hermitian.mass != 0
        ):
            raise UsageError(
                "gamma_5 times the operator is not hermitian; choose a Wilson operator without a "
                "twisted mass."
            )
        self.prepared = prepared

    def apply(
        self, target: SpinorField, source: SpinorField, dagger: bool = False
    ) -> hopping.Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        kappa, parities = self.prepared.operator.kappa, hopping.parities_at_once(source)
        hops = [
            self.prepared.prepare(target, source, p, hopping.REFLECTED, source) for p in parities
        ]
        return in_turn(*(partial(hop, -kappa) for hop in hops))

    def shifted(
        self, target: SpinorField, source: SpinorField, older: SpinorField, constant: SpinorField
    ) -> hopping.Recur:
        """Return a call that computes a older + scale (Q + shift) source + c constant."""
        kappa, more = self.prepared.operator.kappa, hopping.Recurrence(older, constant)
        last = hopping.RECURRING, source, False, more
        hops = [
            hopping.Hop(self.prepared, target, source, p, *last)
            for p in hopping.parities_at_once(source)
        ]

        def call(a: float, scale: float, shift: float, c: float) -> None:
            for hop in hops:
                hop.set_factors(a, scale, shift, c)
                hop(-kappa)

        return call


class SquaredOperator(NormalOperator):
    """The square of a hermitian operator on all sites, with memory that applications share.

    Parameters
    ----------
    operator : LinearOperator
        The hermitian operator.
    """

    def recurrence(
        self, target: SpinorField, b: SpinorField, older: SpinorField, constant: SpinorField
    ) -> hopping.Recur | None:
        """Return a call that computes a step; see `LinearOperator.recurrence`.

        Q^2 + shift is (Q - tau) (Q + tau) with tau^2 = -shift, where both factors need no more
        vectors than Q. So the shift must not be above 0.
        """
        if not isinstance(self.operator, HermitianOperator):
            return None
        between = self.between(b)
        first = self.operator.shifted(between, b, between, between)
        second = self.operator.shifted(target, between, older, constant)

        def call(a: float, scale: float, shift: float, c: float) -> None:
            tau = math.sqrt(-shift)
            first(0, 1, tau, 0)
            second(a, scale, -tau, c)

        return call


class CombineChiralities:
    """p = (a + b gamma_5) p + (c + d gamma_5) r; a field with the factors 0 is not read.

    Parameters
    ----------
    p, r : SpinorField
        The vectors p and r of the formula, as many of each; p changes.
    """

    def __init__(self, p: SpinorField, r: SpinorField) -> None:
        self._fields = (p, r)  # which own the memory
        self._launches = [
            slab.prepared(
                COMBINE_CHIRALITIES,
                slab.whole(p.launched),
                p.storage.choice,
                p=p.structure(slab),
                r=r.structure(s),
                **dict.fromkeys(("upper_p", "upper_r", "lower_p", "lower_r"), 0.0),
                vectors=p.vectors,
            )
            for slab, s in zip(p.slabs, r.slabs, strict=True)
        ]

    def __call__(self, a: float, b: float, c: float, d: float) -> None:
        """Carry out the combination."""
        for arguments, launch in self._launches:
            arguments.upper_p, arguments.upper_r = a + b, c + d
            arguments.lower_p, arguments.lower_r = a - b, c - d
            launch()


ACCURACY = 1e-3
"""Default of the largest relative error of the ends of a spectrum."""

FIRST_CHECK, CHECKS = 20, 10
"""Number of iterations before errors are estimated, and between estimates of the largest eigenvalue
alone."""

GROWTH = 1.2
"""Ratio of the numbers of iterations after which errors are estimated."""

NORM_ACCURACY = 0.01
"""Largest error of the estimate of the largest eigenvalue, as a part of it."""

MARGIN = 1.02
"""Factor of the largest eigenvalue and its error that makes it a bound."""


def measured_ends(
    operator: hopping.LinearOperator,
    start: SpinorField,
    accuracy: float = ACCURACY,
    iterations: int = ITERATIONS,
) -> SpectrumEnds:
    """Return the ends of the spectrum of a positive operator, to a given accuracy.

    Parameters
    ----------
    operator : LinearOperator
        The operator, such as Mh Mh^dagger
        (`gauge_mc.extensions.quarks.hopping.NormalOperator`), in the precision of the
        vector.
    start : SpinorField
        One vector that has a part along every eigenvector, such as a random one.
    accuracy : float
        Largest bound of the error of an end, divided by the end.
    iterations : int
        Largest number of iterations, each with one application of the operator.

    Raises
    ------
    UsageError
        If there is more than one vector.
    ConvergenceError
        If the errors are larger after all iterations.
    """
    if start.count != 1:
        raise UsageError(f"There are {start.count} vectors to start from; give one.")
    search = ShiftedSearch(operator, start, 1)
    search.r.copy(start)
    check = min(FIRST_CHECK, iterations)
    for _ in search.steps((0.0,)):
        if search.iterations < check:
            continue
        ends, check = search.lanczos[0].ends(), min(math.ceil(GROWTH * check), iterations)
        if ends.is_accurate(accuracy):
            return ends
        if search.iterations >= iterations:
            raise ConvergenceError(
                f"The smallest eigenvalue is {ends.smallest:.3g} with an error of up to "
                f"{ends.smallest_error:.1g}, and the largest {ends.largest:.3g} with one of "
                f"{ends.largest_error:.1g}, after {iterations} iterations: allow more."
            )
    return search.lanczos[0].ends()


def norm_bound(square: hopping.LinearOperator, start: SpinorField) -> float:
    """Return a number a little above the largest eigenvalue of a positive operator."""
    search = ShiftedSearch(square, start, 1)
    search.r.copy(start)
    for _ in search.steps((0.0,)):
        if search.iterations >= FIRST_CHECK and search.iterations % CHECKS == 0:
            ends = search.lanczos[0].ends()
            if ends.largest_error <= NORM_ACCURACY * ends.largest:
                break
    ends = search.lanczos[0].ends()
    return MARGIN * (ends.largest + min(ends.largest_error, NORM_ACCURACY * ends.largest))
