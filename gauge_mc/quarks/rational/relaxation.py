"""Errors that products with an operator may have while conjugate gradients converge.

The larger the residuals that have been passed, the less a product matters: in step j an error of
the size epsilon sqrt(sum over i <= j of |r_i|^-2), divided by the norm of the direction, lets the
true residual differ from the iterated one by about epsilon (J. van den Eshof and G. Sleijpen, SIAM
J. Matrix Anal. Appl. 26 (2004) 125; for overlap quarks N. Cundy et al., Comput. Phys. Commun. 165
(2005) 221, hep-lat/0405003). It is a rule, not a bound: the caller computes the true residual.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.quarks.matrices.linear import InexactOperator

SAFETY = 0.003
"""Difference of the residuals that is aimed at, as a part of the target.

For light quarks on larger lattices the difference was found to be up to 20 times what is aimed at.
Corrections, for every mass and with the smallest errors, would cost far more than these: with 0.1
polynomials took 6 % fewer steps on 6^3 x 12, where no correction was needed.
"""


class Relaxation:
    """Allows an operator larger errors as residuals fall.

    Parameters
    ----------
    operator : InexactOperator
        The operator.
    targets : ndarray of float64, shape (n,)
        The norms of residuals at which an iteration ends, for every vector.
    most : float
        Largest error that is allowed, which must be below the smallest eigenvalue: otherwise the
        operator with its error may not be positive, so that the iteration does not converge.
    """

    def __init__(
        self, operator: InexactOperator, targets: NDArray[np.float64], most: float = 1.0
    ) -> None:
        self._operator, self._targets, self._most = operator, targets, most
        self._sums = np.zeros_like(targets)

    def step(self, norms: NDArray[np.float64]) -> None:
        """Allow the error of the next product, given the norms of the residuals."""
        live = norms > 0
        self._sums[live] += 1 / norms[live] ** 2
        allowed = SAFETY * (self._targets * np.sqrt(self._sums))[live]
        self._operator.allow(float(allowed.min(initial=self._most)))

    def end(self) -> None:
        """Allow the smallest errors only."""
        self._operator.allow(0.0)
