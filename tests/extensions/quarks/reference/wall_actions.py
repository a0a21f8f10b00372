"""Actions of pseudofermions on domain walls: vectors are ``phi[s, t, z, y, x, spin, colour]``.

C = 1 - kappa^2 A^-1 D A^-1 D on the even sites, where D is the hopping term and A the rest of
2 kappa w^-1/2 D5 K^-1 w^1/2, is a dense matrix in double precision. Solutions are refined in the
precision of the links.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.extensions.quarks.reference import dirac, walls
from tests.extensions.quarks.reference.pseudofermions import REFINEMENTS
from tests.reference.fields import Complex, extents_of, parity


class WallQuark(NamedTuple):
    """The parameters of an operator; ``others`` are b, c and the weights."""

    mass: float
    extent: int
    height: float
    phases: dirac.Phases
    others: dict[str, Any]

    @property
    def kappa(self) -> float:
        """The hopping parameter."""
        return 1 / (8 - 2 * self.height)

    def inverses(self) -> list[NDArray[np.float64]]:
        """A^-1 for both chiralities."""
        a = walls.diagonal(self.extent, self.mass, self.height, **self.others)
        return [np.linalg.inv(one) for one in a]

    def reduced(self, links: Complex, phi: Complex) -> Complex:
        """C phi, for phi on the even sites."""
        hopped = phi
        for _ in range(2):
            d = np.stack([dirac.hopping(links, one, self.phases) for one in hopped])
            hopped = walls.along(self.inverses(), d)
        return phi - self.kappa**2 * hopped

    def matrix(self, links: Complex) -> Complex:
        """C as a matrix, whose rows and columns are those of all s with the even sites."""
        d = dirac.dense(links.astype(complex), self.kappa, self.phases)
        d = (np.eye(len(d)) - d) / self.kappa
        colours = links.shape[-1]
        is_even = np.repeat(parity(extents_of(links)).ravel() == 0, 4 * colours)
        up = np.tile(np.repeat(walls.UP.diagonal().real, colours), is_even.sum() // (4 * colours))
        one = np.eye(len(up))
        along = sum(np.kron(a, one * p) for a, p in zip(self.inverses(), (up, 1 - up), strict=True))
        slices = np.eye(self.extent)
        eo, oe = (np.kron(slices, d[np.ix_(a, ~a)]) for a in (is_even, ~is_even))
        return np.eye(len(along)) - self.kappa**2 * along @ eo @ along @ oe

    def solve(self, links: Complex, b: Complex) -> Complex:
        """C^-1 b, by iterative refinement with the inverse in double precision."""
        inverse, where = np.linalg.inv(self.matrix(links)), even_numbers(b)
        x = np.zeros_like(b)
        for _ in range(REFINEMENTS):
            r = (b - self.reduced(links, x)).astype(complex)
            correction = np.zeros(b.size, complex)
            correction[where] = inverse @ r.reshape(-1)[where]
            x = x + correction.reshape(b.shape)
        return x

    def log_determinant(self, links: Complex) -> tuple[complex, float]:
        """The phase of det D5 and the logarithm of its modulus, from the dense matrix of D5."""
        numbers = self.extent, self.mass, self.height, self.phases
        return np.linalg.slogdet(walls.dense(links, *numbers, **self.others))


def even_numbers(phi: Complex) -> NDArray[np.int64]:
    """The numbers of the components of phi on the even sites."""
    is_even = np.broadcast_to((parity(phi.shape[4:0:-1]) == 0)[..., None, None], phi.shape)
    return np.flatnonzero(is_even)


def ratio(links: Complex, phi: Complex, light: WallQuark, heavy: WallQuark) -> float:
    """|C1^-1 C2 phi|^2."""
    y = light.solve(links, heavy.reduced(links, phi))
    return (np.abs(y) ** 2).sum()


def root_ratio(links: Complex, phi: Complex, light: WallQuark, heavy: WallQuark) -> float:
    """|(C1 C1^dagger)^(-1/4) (C2 C2^dagger)^(1/4) phi|^2, from eigenvectors."""
    vector = phi.reshape(-1)[even_numbers(phi)]
    for quark, power in ((heavy, 1 / 4), (light, -1 / 4)):
        c = quark.matrix(links)
        values, vectors = np.linalg.eigh(c @ c.conj().T)
        vector = vectors @ (values**power * (vectors.conj().T @ vector))
    return (np.abs(vector) ** 2).sum()
