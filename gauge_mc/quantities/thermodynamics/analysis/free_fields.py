"""Correlators of electric and magnetic fields on the Polyakov loop in leading order.

With the correlators G_E and G_B of fields that include the coupling, G = g^2 C_F G_norm + O(g^4),
C_F = (N^2 - 1) / (2 N). In the continuum both have (S. Caron-Huot, M. Laine and G. D. Moore,
arXiv:0901.1195)

    G_norm = pi^2 T^4 [cos^2(pi tau T) / sin^4(pi tau T) + 1 / (3 sin^2(pi tau T))],

and on a lattice with fields from the clover they are sums over momenta of the average of |p̂_mu
A_nu - p̂_nu A_mu|^2 cos^2(p_mu / 2) cos^2(p_nu / 2), with free gluons of the action along the flow.
"""

from __future__ import annotations

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.flows import Flow
from gauge_mc.quantities.flow.analysis.tree_level import FlowedGluons, momenta


def continuum(extent: int) -> Array:
    """Return a^4 G_norm of the continuum at tau = 1, ..., N_t / 2, without flow."""
    x = np.pi * np.arange(1, extent // 2 + 1) / extent
    shape = (np.cos(x) / np.sin(x) ** 2) ** 2 + 1 / (3 * np.sin(x) ** 2)
    return np.asarray(np.pi**2 / extent**4 * shape)


def on_lattice(extent: int, t: Array, rectangle: float, kind: Flow) -> tuple[Array, Array]:
    """Return a^4 G_norm of electric and of magnetic fields on a lattice of infinite space.

    Parameters
    ----------
    extent : int
        Number N_t of links along t.
    t : ndarray, shape (times,)
        Flow times t/a^2.
    rectangle : float
        Coefficient of the rectangles of the action; see `tree_level`.
    kind : Flow
        The flow, whose kernel must be known.

    Returns
    -------
    electric, magnetic : ndarray, shape (times, N_t / 2)
        G_norm at tau = 1, ..., N_t / 2.
    """
    space, measure = momenta(3)
    tau = np.arange(1, extent // 2 + 1)
    found = np.zeros((2, t.size, tau.size))
    for number in range(extent // 2 + 1):
        energy = 2 * np.pi * number / extent
        states = 1 if 2 * number in (0, extent) else 2  # the average is even in the energy
        p = np.column_stack([space, np.full(len(space), energy)])
        cosine = np.cos(p / 2) ** 2
        clover = cosine[:, :, None] * cosine[:, None, :]
        gluons = FlowedGluons.of(p, rectangle, kind)
        wave = states * np.cos(energy * tau) / extent
        for n, planes in enumerate(_planes()):
            found[n] += np.outer(gluons.averages(clover * planes, t) @ measure, wave)
    return -found[0] / 3, found[1] / 3


def _planes() -> tuple[Array, Array]:
    """Return 1 for the planes with and without direction t, of shape (4, 4), and else 0."""
    electric = np.zeros((4, 4))
    electric[3, :3] = electric[:3, 3] = 1
    magnetic = np.zeros((4, 4))
    magnetic[:3, :3] = 1
    return electric, magnetic
