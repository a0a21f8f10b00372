"""Measurements of the spectrum of a positive operator."""

from __future__ import annotations

import math

from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.rational.lanczos import SpectrumEnds
from gauge_mc.quarks.rational.multishift import ShiftedSearch
from gauge_mc.quarks.solvers import ITERATIONS
from gauge_mc.quarks.vectors.spinors import SpinorField

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
    operator: LinearOperator,
    start: SpinorField,
    accuracy: float = ACCURACY,
    iterations: int = ITERATIONS,
) -> SpectrumEnds:
    """Return the ends of the spectrum of a positive operator, to a given accuracy.

    Parameters
    ----------
    operator : LinearOperator
        The operator, such as Mh Mh^dagger (`gauge_mc.quarks.forces.normal.NormalOperator`), in the
        precision of the vector.
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


def norm_bound(square: LinearOperator, start: SpinorField) -> float:
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
