"""Lattice artefacts of the flowed energy density at tree level.

In perturbation theory t^2 <E> = 3 (N^2 - 1) g^2 / (128 pi^2) C(a^2/t) + O(g^4). C is 1 in the
continuum and depends on the discretisations of the action, the flow and E (Z. Fodor et al.,
arXiv:1406.0827). With the four-by-four kernels of the quadratic parts of action, flow and
observable, S_g, S_f and S_e, in momentum space,

    C = 64 pi^2 t^2 / 3 * integral over the Brillouin zone, d^4p / (2 pi)^4, of
        Tr [ exp(-t S_f) (S_g + G)^{-1} exp(-t S_f^T) S_e ],

where G = p̂ p̂^T / alpha fixes the gauge. C does not depend on alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.registry import in_words

NODES = 32
"""Points of the Gauss quadrature in each direction. C is exact to 1e-9 at t/a^2 = 10 and to 1e-7 at
t/a^2 = 30."""


def tree_level(
    t: Array, rectangle: float, flow: str, weights: tuple[float, float], alpha: float = 1.0
) -> Array:
    """Return C(a^2/t) in infinite volume.

    Parameters
    ----------
    t : ndarray of float64, shape (times,)
        Flow times t/a^2.
    rectangle : float
        Coefficient c1 of rectangles in the action of the ensemble, with c0 + 8 c1 = 1.
    flow : str
        Name of the flow, from `FLOWS`.
    weights : (float, float)
        Weights of the plaquette and the clover energy in E.
    alpha : float
        Gauge parameter of the propagator.

    Returns
    -------
    ndarray of float64, shape (times,)
        C(a^2/t), which tends to 1 for large t.

    Raises
    ------
    GaugeError
        If the flow is not known.
    """
    kind = FLOWS.get(flow)
    if kind is None or kind.rectangle is None:
        known = [name for name, one in FLOWS.items() if one.rectangle is not None]
        raise GaugeError(
            f"The tree-level correction of the flow '{flow}' is not known, only those of "
            f"{in_words(known)}; leave --tree-level out."
        )
    p, measure = momenta(4)
    cosine = np.cos(p / 2) ** 2
    clover = cosine[:, :, None] * cosine[:, None, :]
    gluons = FlowedGluons.of(p, rectangle, kind, alpha)
    energies = gluons.averages(weights[0] + weights[1] * clover, t)
    return np.asarray(64 * np.pi**2 / 3 * t**2 * (energies @ measure))


@dataclass(frozen=True)
class FlowedGluons:
    """Free gluons of given momenta along the gradient flow, by the modes of its kernel."""

    hat: Array
    """2 sin(p/2), of shape (momenta, 4)."""
    rates: Array
    """Eigenvalues of the kernel of the flow, of shape (momenta, 4)."""
    propagator: Array
    """Propagator between the modes, of shape (momenta, 4, 4)."""
    modes: Array
    """Right eigenvectors of the transposed kernel, of shape (momenta, 4, 4)."""

    @classmethod
    def of(cls, p: Array, rectangle: float, kind: Flow, alpha: float = 1.0) -> FlowedGluons:
        """Return the gluons of an action with rectangles, along a flow whose kernel is known.

        Parameters
        ----------
        p : ndarray, shape (momenta, 4)
            The momenta.
        rectangle, alpha : float
            See `tree_level`.
        kind : Flow
            The flow.
        """
        assert kind.rectangle is not None
        hat = 2 * np.sin(p / 2)
        action = _kernel(hat, _with_rectangles(hat, rectangle))
        propagator = np.linalg.inv(action + hat[:, :, None] * hat[:, None, :] / alpha)
        # The kernel of the Zeuthen flow is D S with the diagonal D = 1 - p̂^2/12, which is similar
        # to the symmetric matrix sqrt(D) S sqrt(D).
        root = np.sqrt(1 - hat**2 / 12) if kind.corrected else np.ones_like(hat)
        symmetric = root[:, :, None] * _kernel(hat, _with_rectangles(hat, kind.rectangle))
        rates, modes = np.linalg.eigh(symmetric * root[:, None, :])
        left, right = modes / root[:, :, None], modes * root[:, :, None]
        return cls(hat, rates, left.mT @ propagator @ left, right)

    def averages(self, planes: Array, t: Array) -> Array:
        """Return averages of the sum of |p̂_mu A_nu - p̂_nu A_mu|^2 over planes with factors.

        Parameters
        ----------
        planes : ndarray, shape (momenta, 4, 4)
            Factors of the planes.
        t : ndarray, shape (times,)
            Flow times.

        Returns
        -------
        ndarray, shape (times, momenta)
            The averages, for g = 1 and one component of the algebra.
        """
        observable = _kernel(self.hat, planes)
        product = self.propagator * (self.modes.mT @ observable @ self.modes)
        found = []
        for one in t:
            decay = np.exp(-one * self.rates)
            found.append(np.sum((product @ decay[:, :, None])[:, :, 0] * decay, axis=1))
        return np.array(found)


def momenta(dimensions: int) -> tuple[Array, Array]:
    """Return momenta in the Brillouin zone, shape (points, dimensions), with their weights.

    They are for integrands that are even in every component and the same for all orders of the
    components, so that ordered positive ones are enough. The points are denser near 0, as p = pi
    u^2 with a Gauss quadrature in u. The weights add up to 1.
    """
    u, gauss = np.polynomial.legendre.leggauss(NODES)
    u, gauss = (u + 1) / 2, gauss / 2
    index = np.array(list(combinations_with_replacement(range(NODES), dimensions)))
    orders = np.full(len(index), float(factorial(dimensions)))
    run = np.ones(len(index))
    for same in (index[:, 1:] == index[:, :-1]).T:  # divide by the orders of equal components
        run = np.where(same, run + 1, 1)
        orders /= run
    weight = (2 * u * gauss)[index].prod(axis=1)
    return np.pi * u[index] ** 2, orders * weight


def _with_rectangles(hat: Array, rectangle: float) -> Array:
    """Return the factor 1 - c1 (p̂_mu^2 + p̂_nu^2) of the plane mu, nu in an action."""
    return 1 - rectangle * (hat[:, :, None] ** 2 + hat[:, None, :] ** 2)


def _kernel(hat: Array, planes: Array) -> Array:
    """Return the kernel K of sum over mu < nu of planes_mu,nu |p̂_mu A_nu - p̂_nu A_mu|^2.

    Parameters
    ----------
    hat : ndarray, shape (points, 4)
        p̂ = 2 sin(p/2).
    planes : ndarray, shape (points, 4, 4)
        Factors of the planes.
    """
    kernel = -planes * hat[:, :, None] * hat[:, None, :]
    directions = np.arange(4)
    other = planes * (1 - np.eye(4)) * hat[:, None, :] ** 2
    kernel[:, directions, directions] = other.sum(axis=2)
    return np.asarray(kernel)
