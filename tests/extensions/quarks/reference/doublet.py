"""Doublets of flavours with different masses, ``psi[flavour, t, z, y, x, spin, colour]``."""

import numpy as np

from tests.extensions.quarks.reference import dirac
from tests.reference.fields import Complex

TAU_1 = np.array([[0, 1], [1, 0]], complex)
TAU_3 = np.diag([1.0 + 0j, -1.0])

ROTATION = np.array([[1, 0], [0, 1j]])
"""A rotation V of the flavours with V tau_1 V^dagger = tau_2, which commutes with tau_3."""


def diagonal(kappa: float, mu_sigma: float, mu_delta: float) -> Complex:
    """A = 1 + 2 i kappa mu_sigma gamma_5 tau_1 + 2 kappa mu_delta tau_3, of flavour and spin."""
    return np.eye(8) + 2 * kappa * (
        1j * mu_sigma * np.kron(TAU_1, dirac.GAMMA5) + mu_delta * np.kron(TAU_3, np.eye(4))
    )


def dense(
    links: Complex, kappa: float, phases: dirac.Phases, mu_sigma: float, mu_delta: float
) -> Complex:
    """M as a matrix."""
    one = dirac.dense(links, kappa, phases)
    size = len(one)
    colours = links.shape[-1]
    own = diagonal(kappa, mu_sigma, mu_delta) - np.eye(8)
    at_sites = np.einsum(
        "fsgr,xy,ab->fxsagyrb",
        own.reshape(2, 4, 2, 4),
        np.eye(size // (4 * colours)),
        np.eye(colours),
    )
    return np.kron(np.eye(2), one) + at_sites.reshape(2 * size, 2 * size)


def doublet(
    links: Complex,
    psi: Complex,
    kappa: float,
    phases: dirac.Phases,
    mu_sigma: float,
    mu_delta: float,
    dagger: bool = False,
) -> Complex:
    """M psi, or M^dagger psi, for flavours that are rotated such that tau_1 is tau_2."""
    chi = np.einsum("gf,f...->g...", ROTATION.conj().T, psi)
    a = diagonal(kappa, mu_sigma, mu_delta).reshape(2, 4, 2, 4)
    if dagger:
        a = a.conj().transpose(2, 3, 0, 1)
    local = np.einsum("fsgr,gtzyxra->ftzyxsa", a, chi)
    hop = np.stack([hopping(links, one, phases, dagger) for one in chi])
    return np.einsum("gf,f...->g...", ROTATION, local - kappa * hop)


def hopping(links: Complex, psi: Complex, phases: dirac.Phases, dagger: bool) -> Complex:
    """D psi, or D^dagger psi = gamma_5 D gamma_5 psi."""
    if not dagger:
        return dirac.hopping(links, psi, phases)
    turned = dirac.hopping(links, dirac.spin(dirac.GAMMA5, psi), phases)
    return dirac.spin(dirac.GAMMA5, turned)
