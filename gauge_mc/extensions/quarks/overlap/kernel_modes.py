"""The spectrum of Q = gamma_5 M near 0 and its norm, as the sign function of Q needs them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks.matrices.hopping import LinearOperator
from gauge_mc.extensions.quarks.matrices.preconditioned import norms_of
from gauge_mc.extensions.quarks.modes.chirality import (
    HermitianOperator,
    SquaredOperator,
    norm_bound,
)
from gauge_mc.extensions.quarks.modes.low_modes import (
    LowModeRequest,
    joined,
    low_modes,
    random_vector,
    rayleigh_ritz,
    ritz_minimum,
)
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts, CombineBasis
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField

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
"""Residual of an eigenvector of Q^2 with Q, as a part of the norm, with which it is none of Q."""


@dataclass(frozen=True)
class KernelModes:
    """The eigenvectors of Q with the smallest eigenvalues, and bounds of all others."""

    values: NDArray[np.float64]
    """Eigenvalues of Q, with their signs, of shape (number,)."""
    residuals: NDArray[np.float64]
    """The norms of Q v - value v, of shape (number,)."""
    vectors: SpinorField | None
    """The orthonormal vectors v; None if there are none."""
    edge: float
    """A number below the sizes of all other eigenvalues."""
    norm: float
    """A number above the sizes of all eigenvalues."""
    found: NDArray[np.float64]
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
    def distances(self) -> NDArray[np.float64]:
        """The distance d of each eigenvalue from those of other modes.

        These are the modes that are not projected, and the projected ones of the other sign.
        """
        sizes, positive = np.abs(self.values), self.values > 0
        nearest = [min([self.edge, *sizes[positive == sign].tolist()]) for sign in (True, False)]
        other = np.where(positive, nearest[1], nearest[0])
        return np.asarray(np.minimum(self.edge - sizes, sizes + other))

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

    Parameters
    ----------
    operator : HermitianOperator
        Q in double precision.
    number : int
        Largest number of modes; 0 if none are to be projected.
    seed : int
        Seed of the vectors with which searches begin.

    Raises
    ------
    UsageError
        If the number is invalid.
    ConvergenceError
        If a search fails.
    """
    if not 0 <= number <= MOST_MODES:
        raise UsageError(f"The number of low modes is {number}; give one from 0 to {MOST_MODES}.")
    square = SquaredOperator(operator)
    start = random_vector(SpinorField.empty(operator.prepared.operator.field), seed)
    other = random_vector(start, seed + 1)
    norm2 = norm_bound(square, start)
    if number == 0:
        return _without_modes(square, other, norm2, np.zeros(0))
    applications, known = 0, None
    wanted = number + 1
    for search in range(SEARCHES):
        request = LowModeRequest(wanted, norm2, seed=seed)
        start = random_vector(other, seed + 2 * search)
        low = low_modes(square, start, request, known)
        applications += 2 * low.applications
        known = _closed(operator, joined(known, low.vectors), math.sqrt(norm2))
        modes = _used(operator, square, known, other, norm2, number)
        first = modes.found[modes.number] if modes.number else modes.edge
        if modes.ritz >= first * (1 - EDGE_MARGIN):
            return replace(modes, applications=applications)
        wanted = max(2, wanted // 2)
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
    count, image, one = vectors.count, vectors.like(count=1), vectors.like(count=1)
    apply, combine = operator.apply(image, one), CombineBasis(image, 0, both)
    for n in lacking:
        one.copy(vectors, n)
        apply()
        for _ in range(2):
            combine(-BasisProducts(both, image, 0, count)())
        size = float(norms_of(image)[0])
        if size > LACKING * norm:
            Combine(image, image)(1 / size, 0)
            both.copy(image, 0, count)
            count += 1
    found = vectors.like(count=count)
    found.copy(both)
    rayleigh_ritz(operator, found)
    return found


def _used(
    operator: HermitianOperator,
    square: LinearOperator,
    vectors: SpinorField,
    other: SpinorField,
    norm2: float,
    most: int,
) -> KernelModes:
    """Return the modes of some vectors that are used, `most` at most."""
    values, residuals = rayleigh_ritz(operator, vectors)
    order = np.argsort(np.abs(values), kind="stable")
    sizes = np.abs(values)[order]
    count = chosen_number(sizes[: most + 1])
    if count == 0:
        return _without_modes(square, other, norm2, sizes)
    own, vector = vectors.like(count=count), vectors.like(count=1)
    for n, old in enumerate(order[:count].tolist()):
        vector.copy(vectors, old)
        own.copy(vector, 0, n)
    minimum, _ = ritz_minimum(square, other, own, CHECK_ACCURACY)
    edge = (1 - EDGE_MARGIN) * min(float(sizes[count]), math.sqrt(minimum))
    return KernelModes(
        values[order[:count]],
        residuals[order[:count]],
        own,
        edge,
        math.sqrt(norm2),
        sizes,
        float(sizes[count] / sizes[count - 1]),
        math.sqrt(minimum),
        0,
    )


def chosen_number(sizes: NDArray[np.float64]) -> int:
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
    square: LinearOperator, other: SpinorField, norm2: float, sizes: NDArray[np.float64]
) -> KernelModes:
    """Return bounds of the spectrum alone."""
    minimum, residual = ritz_minimum(square, other, None, EDGE_ACCURACY)
    lowest = math.sqrt(max(minimum - residual, 0.5 * minimum))
    edge = (1 - EDGE_MARGIN) * min([lowest, *sizes.tolist()])
    nothing, norm = np.zeros(0), math.sqrt(norm2)
    return KernelModes(nothing, nothing, None, edge, norm, sizes, 1.0, math.sqrt(minimum), 0)
