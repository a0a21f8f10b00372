"""Overlap quarks with dense matrices."""

import numpy as np

from tests.extensions.quarks.reference import dirac
from tests.reference.fields import Complex


def gamma5(size: int, colours: int) -> Complex:
    """gamma_5 as a matrix like those of `dirac.dense`."""
    return np.kron(np.eye(size // (4 * colours)), np.kron(dirac.GAMMA5, np.eye(colours)))


def kernel(links: Complex, rho: float, phases: dirac.Phases, csw: float = 0.0) -> Complex:
    """H = gamma_5 (D_w - rho) as a matrix."""
    kappa = 1 / (8 - 2 * rho)
    m = dirac.dense(links, kappa, phases, csw=csw)
    return gamma5(len(m), links.shape[-1]) @ m / (2 * kappa)


def sign(h: Complex) -> Complex:
    """The sign of a hermitian matrix."""
    values, vectors = np.linalg.eigh(h)
    return (vectors * np.sign(values)) @ vectors.conj().T


def overlap(h: Complex, rho: float, colours: int, mass: float = 0.0) -> Complex:
    """D(m) as a matrix, given H."""
    one = np.eye(len(h))
    massless = rho * (one + gamma5(len(h), colours) @ sign(h))
    return (1 - mass / (2 * rho)) * massless + mass * one
