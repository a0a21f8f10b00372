"""The force of gauge actions on momenta, and momenta that links show."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .fields import Complex, dagger, trace

Extended = npt.NDArray[np.clongdouble]

TERMS = 30
"""Terms of the Taylor series of exp(X), for norms below 1."""

STEP = 1e-2
"""Step of differences, with errors of about (rate * STEP)^8 / 8!, where the rate is below 5 for
directions of the size 1."""

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the central differences of eighth order."""


def exponential(x: Extended) -> Extended:
    """exp(X) by its Taylor series, in the precision of X."""
    total = np.zeros_like(x) + np.eye(x.shape[-1], dtype=x.dtype)
    term = total.copy()
    for n in range(1, TERMS):
        term = term @ x / n
        total += term
    return total


def derivative(action: Callable[[Extended], float], links: Complex, towards: Complex) -> float:
    """dS/dt at t = 0 for U -> exp(t X) U, by differences in extended precision."""
    u, x = links.astype(np.clongdouble), towards.astype(np.clongdouble)

    def value(t: float) -> float:
        return action(exponential(np.longdouble(t) * x) @ u)

    pairs = enumerate(WEIGHTS, 1)
    return float(sum(w * (value(n * STEP) - value(-n * STEP)) for n, w in pairs) / STEP)


def rates(force: Complex, towards: Complex) -> npt.NDArray[np.float64]:
    """dS/dt of every link in that direction, 2 Tr(X F): dP/dt = F conserves S - sum Tr P^2."""
    return 2 * trace(towards @ force).real


def logarithm(u: Complex) -> Complex:
    """The antihermitian logarithm of unitary matrices, for eigenvalues away from -1."""
    values, vectors = np.linalg.eig(u)
    log = vectors * (1j * np.angle(values))[..., None, :] @ np.linalg.inv(vectors)
    return (log - dagger(log)) / 2
