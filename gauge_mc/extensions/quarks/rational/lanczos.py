"""The ends of the spectrum of a positive operator, from coefficients of the Lanczos algorithm.

Conjugate gradients for A x = b find the tridiagonal matrix T that the Lanczos algorithm finds when
it begins with b: with their coefficients alpha_k and beta_k, T = L D L^T with D_k = 1 / alpha_k and
-sqrt(beta_k) below the diagonal of L (G. H. Golub and C. F. Van Loan, Matrix Computations, section
10.2 of the third edition). The factors give the smallest eigenvalue of T with its full relative
accuracy, however small it is (I. S. Dhillon and B. N. Parlett, Linear Algebra Appl. 387 (2004) 1).

The eigenvalues of T at both ends approach those of A from inside, with A's eigenvalue nearest to
theta no farther away than the last component of T's eigenvector times the next entry of T.
Rounding errors repeat eigenvalues that have converged, but do not change these statements much
(C. C. Paige, Linear Algebra Appl. 34 (1980) 235).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

BISECTION = 1e-13
"""Relative accuracy of eigenvalues of T."""

LEAST_STEPS = 10
"""Number of steps before which bounds are not looked for."""

GROWTH = 1.3
"""Ratio of the numbers of steps after which bounds are looked for."""

LARGEST = 1e150
"""Numbers whose squares do not overflow."""


@dataclass(frozen=True)
class SpectrumEnds:
    """The smallest and the largest eigenvalue of a positive operator."""

    smallest: float
    """Approximation of the smallest eigenvalue; there is one that is no larger."""
    largest: float
    """Approximation of the largest eigenvalue; there is one that is no smaller."""
    smallest_error: float
    """Bound of the distance of `smallest` from the nearest eigenvalue."""
    largest_error: float
    """Bound of the distance of `largest` from the nearest eigenvalue."""

    def is_accurate(self, accuracy: float) -> bool:
        """Return whether both errors are at most the accuracy times the eigenvalues."""
        least, most = accuracy * self.smallest, accuracy * self.largest
        return self.smallest_error <= least and self.largest_error <= most


@dataclass
class Lanczos:
    """The coefficients of conjugate gradients for A + shift, for one vector."""

    shift: float = 0.0
    """The number that is added to A."""
    alphas: list[float] = field(default_factory=list)
    """The coefficients alpha of all steps."""
    betas: list[float] = field(default_factory=list)
    """The coefficients beta of all steps."""

    def add(self, alpha: float, beta: float) -> None:
        """Keep the coefficients of a step."""
        if alpha > 0:  # or else the residual was 0 already
            self.alphas.append(alpha)
            self.betas.append(beta)

    def ends(self) -> SpectrumEnds:
        """Return the ends of the spectrum of A as far as they are known.

        Raises
        ------
        ValueError
            If there were no steps.
        """
        if not self.alphas:
            raise ValueError("The spectrum is not known without a step.")
        # Eigenvalues are repeated after they have converged, so that their bounds grow again. An
        # earlier bound holds for later values as well, which are farther outside.
        sizes = [len(self.alphas)]
        while sizes[-1] > LEAST_STEPS:
            sizes.append(int(sizes[-1] / GROWTH))
        ends = [self._after(size) for size in sizes]
        smallest = min(bound.smallest_error for bound in ends)
        largest = min(bound.largest_error for bound in ends)
        return replace(ends[0], smallest_error=smallest, largest_error=largest)

    def _after(self, steps: int) -> SpectrumEnds:
        """Return the ends as they are known after some steps, with their own bounds."""
        d = [1 / one for one in self.alphas[:steps]]
        squares = self.betas[: steps - 1]  # of L below its diagonal
        beyond = math.sqrt(self.betas[steps - 1]) * d[-1]
        diagonal = [d[0], *(a + b * c for a, b, c in zip(d[1:], squares, d, strict=False))]
        bound = 2 * max(diagonal) * (1 + BISECTION)  # 2 max - T is positive as well
        smallest = _eigenvalue(d, squares, 1, min(diagonal) * (1 + BISECTION))
        largest = _eigenvalue(d, squares, steps, bound)
        return SpectrumEnds(
            smallest - self.shift,
            largest - self.shift,
            beyond * _last_component(d, squares, smallest) + BISECTION * smallest,
            beyond * _last_component(d, squares, largest) + BISECTION * largest,
        )


def _pivots(d: Sequence[float], squares: Sequence[float], x: float) -> list[float]:
    """Return the pivots of T - x, from the factors of T (the stationary quotient differences).

    As many of them are negative as there are eigenvalues below x.
    """
    pivots, s = [], -x
    for one, square in zip(d, squares, strict=False):
        pivot = one + s or math.ulp(x)
        pivots.append(pivot)
        s = one / pivot * square * s - x
    pivots.append(d[-1] + s or math.ulp(x))
    return pivots


def _eigenvalue(d: Sequence[float], squares: Sequence[float], number: int, above: float) -> float:
    """Return an eigenvalue of T below a bound, the smallest one for the number 1, by bisection."""
    low, high = 0.0, above
    while high - low > BISECTION * high:
        middle = (low + high) / 2
        if sum(one < 0 for one in _pivots(d, squares, middle)) >= number:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _last_component(d: Sequence[float], squares: Sequence[float], value: float) -> float:
    """Return the size of the last component of the normalised eigenvector of an eigenvalue."""
    pivots = _pivots(d, squares, value)
    component, norm2 = 1.0, 1.0
    for n in reversed(range(len(squares))):
        component *= d[n] * math.sqrt(squares[n]) / pivots[n]
        if abs(component) > LARGEST:
            return 1 / LARGEST
        norm2 += component * component
    return 1 / math.sqrt(norm2)
