"""Actions of pseudofermions for fixed fields of them, in the precision of the links."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.dirac import Phases, dense, hopping, twisted
from tests.reference.fields import Complex, extents_of, parity

REFINEMENTS = 4
"""Number of residuals in extended precision; each one gains as many digits as double has."""


class Quark(NamedTuple):
    """The parameters of an operator without clover term."""

    kappa: float
    phases: Phases
    mu: float = 0.0

    def apply(self, links: Complex, psi: Complex) -> Complex:
        """M psi."""
        hopped = hopping(links, psi, self.phases)
        product: Complex = twisted(psi, self.kappa, self.mu) - self.kappa * hopped
        return product

    def reduced(self, links: Complex, psi: Complex) -> Complex:
        """(A_ee - kappa^2 D_eo A_oo^-1 D_oe) psi for psi on the even sites."""
        mass = 2 * self.kappa * self.mu
        odd = hopping(links, psi, self.phases)
        odd = twisted(odd, self.kappa, -self.mu) / (1 + mass**2)
        again = hopping(links, odd, self.phases)
        product: Complex = twisted(psi, self.kappa, self.mu) - self.kappa**2 * again
        return product

    def inverse(self, links: Complex) -> Complex:
        """M^-1 as a matrix in double precision."""
        inverse: Complex = np.linalg.inv(
            dense(links.astype(complex), self.kappa, self.phases, self.mu)
        )
        return inverse

    def solve(self, links: Complex, b: Complex, inverse: Complex | None = None) -> Complex:
        """M^-1 b, by iterative refinement with the inverse in double precision."""
        inverse = self.inverse(links) if inverse is None else inverse
        x = np.zeros_like(b)
        for _ in range(REFINEMENTS):
            r = (b - self.apply(links, x)).astype(complex)
            x = x + (inverse @ r.ravel()).reshape(b.shape)
        return x


def even(psi: Complex) -> Complex:
    """The part on the even sites."""
    part: Complex = psi * (parity(psi.shape[3::-1]) == 0)[..., None, None]
    return part


def two_flavours(links: Complex, phi: Complex, quark: Quark) -> float:
    """phi^dagger (Mh Mh^dagger)^-1 phi: Mh^-1 phi is the even part of M^-1 phi."""
    y = even(quark.solve(links, even(phi)))
    action: float = (np.abs(y) ** 2).sum()
    return action


def ratio(links: Complex, phi: Complex, light: Quark, heavy: Quark) -> float:
    """|Mh1^-1 Mh2 phi|^2."""
    return two_flavours(links, heavy.reduced(links, even(phi)), light)


def reduced_matrix(links: Complex, quark: Quark) -> Complex:
    """Mh on the even sites as a matrix: the inverse of the even part of M^-1."""
    is_even = np.repeat(parity(extents_of(links)).ravel() == 0, 4 * links.shape[-1])
    part: Complex = np.linalg.inv(quark.inverse(links)[np.ix_(is_even, is_even)])
    return part


def determinants(links: Complex, quarks: Sequence[Quark]) -> list[float]:
    """ln det(Mh Mh^dagger) of operators."""
    matrices = (reduced_matrix(links, one) for one in quarks)
    return [2 * float(np.linalg.slogdet(one)[1]) for one in matrices]
