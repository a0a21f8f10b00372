"""Parts of solutions along low modes of the even-odd preconditioned operator.

Along an eigenvector v of Mh^dagger Mh with the eigenvalue a, the solution of Mh x = b has the part
v <v, Mh^dagger b> / a, which needs no iteration. With these parts taken from the residual,
conjugate gradients converge as if the smallest eigenvalues were not there, as long as rounding
errors do not bring them back (A. Stathopoulos and K. Orginos, SIAM J. Sci. Comput. 32 (2010) 439,
arXiv:0707.0131). So they are taken away again whenever the true residual is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.options import Option
from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.matrices.preconditioned import norms_of
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.basis import BasisProducts, CombineBasis
from gauge_mc.quarks.vectors.spinors import SpinorField

MOST_DEFLATED = 500
"""Largest number of modes, to catch typing errors."""

DEFLATE = Option(
    "deflate",
    int,
    "Number of low modes of the preconditioned operator along which solutions need no iteration, "
    "for each kappa; they are looked for first.",
    "none",
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


class DeflatedCorrection:
    """Add the parts along low modes that solutions lack.

    Parameters
    ----------
    deflation : Deflation
        The modes.
    operator : LinearOperator
        Mh in double precision, with its adjoint.
    y, r : SpinorField
        The solutions so far, and their residuals.
    """

    def __init__(
        self, deflation: Deflation, operator: LinearOperator, y: SpinorField, r: SpinorField
    ) -> None:
        modes, image = deflation.vectors, r.like()
        self._values = deflation.values
        self._apply = operator.apply(image, r, dagger=True)
        vectors = range(y.count)
        self._products = [BasisProducts(modes, image, n, modes.count) for n in vectors]
        self._combine = [CombineBasis(y, n, modes) for n in vectors]

    def __call__(self, done: NDArray[np.bool_]) -> None:
        """Add the parts, except to vectors that are done."""
        self._apply()
        for n in np.flatnonzero(~done).tolist():
            self._combine[n](self._products[n]() / self._values)
