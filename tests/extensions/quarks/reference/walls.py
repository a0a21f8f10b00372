"""Domain-wall operators with NumPy: spinors are ``psi[s, t, z, y, x, spin, colour]``.

The formula is that with one matrix per element of the fifth direction, not one of the ratios that
the program uses.
"""

import numpy as np

from tests.extensions.quarks.reference import dirac
from tests.reference.fields import Complex

UP = (np.eye(4) + dirac.GAMMA5) / 2
DOWN = (np.eye(4) - dirac.GAMMA5) / 2


def coefficients(extent, b=1.0, c=0.0, weights=None):
    """b_s and c_s, given (b + c) / 2 and (b - c) / 2 as in Chiu's notation, rho_s and sigma_s."""
    w = np.ones(extent) if weights is None else np.array(weights)
    return (b + c) / 2 * w + (b - c) / 2, (b + c) / 2 * w - (b - c) / 2


def shifted(psi: Complex, mass: float) -> Complex:
    """L psi: P_- psi_{s+1} + P_+ psi_{s-1}, with -m at the ends."""
    ahead, behind = np.roll(psi, -1, 0), np.roll(psi, 1, 0)
    ahead[-1] *= -mass
    behind[0] *= -mass
    return dirac.spin(DOWN, ahead) + dirac.spin(UP, behind)


def wilson(links: Complex, psi: Complex, height: float, phases) -> Complex:
    """D_w psi_s with the mass -M5, for all s."""
    return np.stack([(4 - height) * one - dirac.hopping(links, one, phases) / 2 for one in psi])


def domain_wall(links, psi, mass, height, phases, b=1.0, c=0.0, weights=None):
    """(1 + b_s D_w) psi_s - (1 - c_s D_w) (P_- psi_{s+1} + P_+ psi_{s-1})."""
    shape = (-1, *(1,) * (psi.ndim - 1))
    rho, sigma = (one.reshape(shape) for one in coefficients(len(psi), b, c, weights))
    there = shifted(psi, mass)
    return (
        psi
        + wilson(links, rho * psi, height, phases)
        - there
        + wilson(links, sigma * there, height, phases)
    )


def random_spinor(extents, extent, colours, rng):
    """Gaussian random numbers."""
    return np.stack([dirac.random_spinor(extents, colours, rng) for _ in range(extent)])


def dense(links, extent, mass, height, phases, b=1.0, c=0.0, weights=None):
    """D5 as a matrix: rows and columns are (s, t, z, y, x, spin, colour)."""
    kappa = 1 / (8 - 2 * height)
    d = dirac.dense(links, kappa, phases) / (2 * kappa)
    size = len(d)
    colours = links.shape[-1]
    one, sites = np.eye(size), size // (4 * colours)
    # Both projectors are diagonal.
    up, down = (np.tile(np.repeat(each.diagonal(), colours), sites) for each in (UP, DOWN))
    rho, sigma = coefficients(extent, b, c, weights)
    m = np.zeros((extent, size, extent, size), complex)
    for s in range(extent):
        m[s, :, s, :] += one + rho[s] * d
        for there, projector, ends in (
            ((s + 1) % extent, down, s + 1 == extent),
            ((s - 1) % extent, up, s == 0),
        ):
            m[s, :, there, :] += (-mass if ends else 1) * (sigma[s] * d - one) * projector
    return m.reshape(extent * size, extent * size)


def effective(links, extent, mass, height, phases, b=1.0, c=0.0, weights=None):
    """The effective operator in four dimensions, (1 + m) / 2 + (1 - m) / 2 gamma_5 S(H).

    S = (1 - T) / (1 + T) with T the product of (1 - w_s H) / (1 + w_s H), and H = (b + c)
    H_w (2 + (b - c) gamma_5 H_w)^-1.
    """
    kappa = 1 / (8 - 2 * height)
    d = dirac.dense(links, kappa, phases) / (2 * kappa)
    colours = links.shape[-1]
    five = np.kron(np.eye(len(d) // (4 * colours)), np.kron(dirac.GAMMA5, np.eye(colours)))
    one = np.eye(len(d))
    h = (b + c) * five @ d @ np.linalg.inv(2 * one + (b - c) * d)
    values, vectors = np.linalg.eigh((h + h.conj().T) / 2)
    w = np.ones(extent) if weights is None else np.array(weights)
    t = np.prod([(1 - x * values) / (1 + x * values) for x in w], axis=0)
    sign = (vectors * ((1 - t) / (1 + t))) @ vectors.conj().T
    return (1 + mass) / 2 * one + (1 - mass) / 2 * five @ sign, values, five


def diagonal(extent, mass, height, b=1.0, c=0.0, weights=None):
    """A for the upper and the lower components: 1 + 2 kappa w^-1/2 (1 - L) (b + c L)^-1 w^1/2."""
    rho, sigma = coefficients(extent, b, c, weights)
    root = np.ones(extent) if weights is None else np.sqrt(weights)
    one, found = np.eye(extent), []
    shift = np.roll(one, 1, 0)
    shift[0] *= -mass
    for step in (shift, shift.T):
        k = np.diag(rho) + sigma[:, None] * step
        ratio = (one - step) @ np.linalg.inv(k)
        found.append(one + ratio * root / root[:, None] / (4 - height))
    return found


def along(matrices, psi):
    """Matrices on the upper and the lower components of psi_s."""
    projected = (dirac.spin(projector, psi) for projector in (UP, DOWN))
    return sum(np.einsum("st,t...->s...", a, x) for a, x in zip(matrices, projected, strict=True))


def gamma5(psi):
    """gamma_5 R psi, with the reflection R of the fifth direction."""
    return dirac.spin(dirac.GAMMA5, psi[::-1])
