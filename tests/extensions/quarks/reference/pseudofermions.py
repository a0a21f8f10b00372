"""Actions of pseudofermions for fixed fields of them, in the precision of the links."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.extensions.quarks.reference.dirac import (
    Phases,
    at_every_site,
    dense,
    diagonal_part,
    hopping,
)
from tests.reference.fields import Complex, extents_of, parity

REFINEMENTS = 4
"""Number of residuals in extended precision; each one gains as many digits as double has."""


class Quark(NamedTuple):
    """The parameters of an operator."""

    kappa: float
    phases: Phases
    mu: float = 0.0
    csw: float = 0.0

    def apply(self, links: Complex, psi: Complex) -> Complex:
        """M psi."""
        hopped = hopping(links, psi, self.phases)
        return at_every_site(self.diagonal(links), psi) - self.kappa * hopped

    def diagonal(self, links: Complex) -> Complex:
        """A, as matrices of all sites."""
        return diagonal_part(links, self.kappa, self.mu, self.csw)

    def reduced(self, links: Complex, psi: Complex) -> Complex:
        """(A_ee - kappa^2 D_eo A_oo^-1 D_oe) psi for psi on the even sites."""
        a = self.diagonal(links)
        odd = at_every_site(inverses(a), hopping(links, psi, self.phases))
        again = hopping(links, odd, self.phases)
        return at_every_site(a, psi) - self.kappa**2 * again

    def inverse(self, links: Complex) -> Complex:
        """M^-1 as a matrix in double precision."""
        return np.linalg.inv(
            dense(links.astype(complex), self.kappa, self.phases, self.mu, self.csw)
        )

    def solve(self, links: Complex, b: Complex, inverse: Complex | None = None) -> Complex:
        """M^-1 b, by iterative refinement with the inverse in double precision."""
        inverse = self.inverse(links) if inverse is None else inverse
        x = np.zeros_like(b)
        for _ in range(REFINEMENTS):
            r = (b - self.apply(links, x)).astype(complex)
            x = x + (inverse @ r.ravel()).reshape(b.shape)
        return x


def inverses(matrices: Complex) -> Complex:
    """Inverses, improved by Newton's iteration in the precision of the matrices."""
    x = np.linalg.inv(matrices.astype(complex)).astype(matrices.dtype)
    for _ in range(2):
        x = x @ (2 * np.eye(x.shape[-1]) - matrices @ x)
    return x


def log_determinants(matrices: Complex) -> Complex:
    """ln |det| of matrices near 1, by elimination in their precision."""
    a, total = matrices.copy(), 0
    for k in range(a.shape[-1]):
        pivot = a[..., k, k]
        total = total + np.log(np.abs(pivot))
        factors = a[..., k + 1 :, k] / pivot[..., None]
        a[..., k + 1 :, :] -= factors[..., None] * a[..., None, k, :]
    return total


def odd_determinant(links: Complex, quark: Quark, flavours: int) -> float:
    """-flavours ln |det A_oo|."""
    odd = parity(extents_of(links)) == 1
    return -flavours * log_determinants(quark.diagonal(links)[odd]).sum()


def even(psi: Complex) -> Complex:
    """The part on the even sites."""
    return psi * (parity(psi.shape[3::-1]) == 0)[..., None, None]


def two_flavours(links: Complex, phi: Complex, quark: Quark) -> float:
    """phi^dagger (Mh Mh^dagger)^-1 phi: Mh^-1 phi is the even part of M^-1 phi."""
    y = even(quark.solve(links, even(phi)))
    return (np.abs(y) ** 2).sum()


def ratio(links: Complex, phi: Complex, light: Quark, heavy: Quark) -> float:
    """|Mh1^-1 Mh2 phi|^2."""
    return two_flavours(links, heavy.reduced(links, even(phi)), light)


def even_sites(links: Complex) -> NDArray[np.bool_]:
    """Which components of a vector on all sites are those on the even sites."""
    return np.repeat(parity(extents_of(links)).ravel() == 0, 4 * links.shape[-1])


def reduced_matrix(links: Complex, quark: Quark) -> Complex:
    """Mh on the even sites as a matrix: the inverse of the even part of M^-1."""
    is_even = even_sites(links)
    return np.linalg.inv(quark.inverse(links)[np.ix_(is_even, is_even)])


def determinants(links: Complex, quarks: Sequence[Quark]) -> list[float]:
    """ln det(Mh Mh^dagger) of operators."""
    matrices = (reduced_matrix(links, one) for one in quarks)
    return [2 * float(np.linalg.slogdet(one)[1]) for one in matrices]
