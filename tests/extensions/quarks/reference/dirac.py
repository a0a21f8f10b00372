"""Dirac operators with NumPy: spinors are ``psi[t, z, y, x, spin, colour]``."""

from collections.abc import Sequence

import numpy as np

from tests.reference.fields import Complex, dagger, extents_of, shift

GAMMA = np.zeros((4, 4, 4), complex)
"""gamma_mu in the DeGrand-Rossi basis, ``[mu][row][column]``."""
GAMMA[0] = [[0, 0, 0, 1j], [0, 0, 1j, 0], [0, -1j, 0, 0], [-1j, 0, 0, 0]]
GAMMA[1] = [[0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]]
GAMMA[2] = [[0, 0, 1j, 0], [0, 0, 0, -1j], [-1j, 0, 0, 0], [0, 1j, 0, 0]]
GAMMA[3] = [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]

GAMMA5 = GAMMA[0] @ GAMMA[1] @ GAMMA[2] @ GAMMA[3]

PLANES = [(mu, nu) for mu in range(4) for nu in range(mu + 1, 4)]

Phases = Sequence[complex]
"""exp(i theta) for the directions x, y, z and t, in psi(x + L_mu) = exp(i theta_mu) psi(x)."""


def spin(matrix: Complex, psi: Complex) -> Complex:
    """A spin matrix times a spinor."""
    return np.einsum("ij,...jc->...ic", matrix, psi)


def random_spinor(extents: tuple[int, ...], colours: int, rng: np.random.Generator) -> Complex:
    """Gaussian random numbers."""
    numbers = rng.normal(size=(2, *extents[::-1], 4, colours))
    return numbers[0] + 1j * numbers[1]


def with_phases(links: Complex, phases: Phases) -> Complex:
    """Links with the boundary phases: psi is then periodic."""
    changed = links.copy()
    for mu, phase in enumerate(phases):
        last: list[slice | int] = [slice(None)] * 4
        last[3 - mu] = extents_of(links)[mu] - 1
        changed[(*last, mu)] *= phase
    return changed


def hopping(links: Complex, psi: Complex, phases: Phases) -> Complex:
    """D psi: (1 - gamma_mu) U_mu(x) psi(x + mu) + (1 + gamma_mu) U_mu(x - mu)^+ psi(x - mu)."""
    u = with_phases(links, phases)
    one, total = np.eye(4), np.zeros_like(psi)
    for mu in range(4):
        ahead = np.einsum("...ab,...sb->...sa", u[..., mu, :, :], shift(psi, mu))
        total += spin(one - GAMMA[mu], ahead)
        behind = np.einsum("...ab,...sb->...sa", dagger(u[..., mu, :, :]), psi)
        total += spin(one + GAMMA[mu], shift(behind, mu, -1))
    return total


def field_strength(links: Complex, mu: int, nu: int) -> Complex:
    """F_mu_nu = (Q - Q^dagger) / 8 with the four plaquettes Q around every site."""

    def transported(x: Complex, path: Sequence[int]) -> Complex:
        """The product of links along a path of directions d + 1, or -(d + 1) for steps back."""
        product = np.broadcast_to(np.eye(links.shape[-1]), x.shape).astype(complex)
        at = [0, 0, 0, 0]
        for step in path:
            d = abs(step) - 1
            at[d] -= step < 0
            u = links[..., d, :, :]
            for direction in range(4):
                u = shift(u, direction, at[direction])
            product = product @ (u if step > 0 else dagger(u))
            at[d] += step > 0
        return product

    m, n = mu + 1, nu + 1
    leaves = [(m, n, -m, -n), (n, -m, -n, m), (-m, -n, m, n), (-n, m, n, -m)]
    q = sum(transported(links[..., mu, :, :], leaf) for leaf in leaves)
    return (q - dagger(q)) / 8


def diagonal_part(links: Complex, kappa: float, mu: float, csw: float) -> Complex:
    """The part of M that is diagonal in the sites, as matrices [t, z, y, x, row, column].

    Rows and columns are (spin, colour); the precision is that of the links.
    """
    n = links.shape[-1]
    total = np.zeros((*links.shape[:4], 4, n, 4, n), links.dtype)
    total += np.einsum("ij,ab->iajb", np.eye(4) + 2j * kappa * mu * GAMMA5, np.eye(n))
    for d, e in PLANES if csw else ():  # sigma_de = i gamma_d gamma_e
        term = np.einsum("ij,...ab->...iajb", 1j * GAMMA[d] @ GAMMA[e], field_strength(links, d, e))
        total += 1j * kappa * csw * term
    return total.reshape(*links.shape[:4], 4 * n, 4 * n)


def at_every_site(matrices: Complex, psi: Complex) -> Complex:
    """Matrices of spin and colour at all sites times a spinor."""
    return (matrices @ psi.reshape(*psi.shape[:4], -1, 1)).reshape(psi.shape)


def wilson(
    links: Complex, psi: Complex, kappa: float, phases: Phases, mu: float = 0.0, csw: float = 0.0
) -> Complex:
    """M psi of the Wilson operator with a twisted mass and the clover term."""
    local = at_every_site(diagonal_part(links, kappa, mu, csw), psi)
    return local - kappa * hopping(links, psi, phases)


def dense(
    links: Complex, kappa: float, phases: Phases, mu: float = 0.0, csw: float = 0.0
) -> Complex:
    """M as a matrix, element by element: rows and columns are (t, z, y, x, spin, colour)."""
    one = np.eye(4)
    strength = {plane: field_strength(links, *plane) for plane in PLANES}
    extents, colours = extents_of(links), links.shape[-1]
    sites = [*np.ndindex(*extents[::-1])]
    number = {site: n for n, site in enumerate(sites)}
    m = np.zeros((len(sites), 4, colours, len(sites), 4, colours), complex)
    for site, n in number.items():
        for a in range(colours):
            m[n, :, a, n, :, a] = one + 2j * kappa * mu * GAMMA5
        for d, e in PLANES:
            sigma = 1j * GAMMA[d] @ GAMMA[e]
            term = 1j * kappa * csw * np.einsum("ij,ab->iajb", sigma, strength[d, e][site])
            m[n, :, :, n, :, :] += term
        for d in range(4):
            there = list(site)
            there[3 - d] = (site[3 - d] + 1) % extents[d]
            k = number[tuple(there)]
            u = links[site][d] * (phases[d] if there[3 - d] == 0 else 1)
            for i, j in np.ndindex(4, 4):
                m[n, i, :, k, j, :] -= kappa * (one - GAMMA[d])[i, j] * u
                m[k, i, :, n, j, :] -= kappa * (one + GAMMA[d])[i, j] * dagger(u)
    size = len(sites) * 4 * colours
    return m.reshape(size, size)
