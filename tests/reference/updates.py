"""Heatbath and overrelaxation of all links of one direction and parity.

The weight of one link is exp((beta / N) Re Tr(U A)), A the sum of staples. SU(2) quaternions are
``q[..., 0:4]`` with the matrix [[q0 + i q3, q2 + i q1], [-q2 + i q1, q0 - i q3]].
"""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from .fields import Complex, Real, extents_of, parity
from .observables import Loop, loop_staple, staple

SUBGROUPS = {n: tuple(combinations(range(n), 2)) for n in range(2, 9)}
"""The SU(2) subgroups of SU(N), rows and columns (i, j), in the order of their updates."""

Draw = Callable[[int, Real], Real]
"""draw(subgroup, alpha): unit quaternions ``[..., 4]`` for ``alpha[...]``."""

Rotation = Callable[[int, Real, Real], Real]
"""rotation(subgroup, k, w): g as quaternions, from the norm k and the unit quaternion w of the
subgroup's part of W = U A."""


def quaternion(w: Complex, i: int = 0, j: int = 1) -> Real:
    """Quaternion part ``[..., 4]`` of the (i, j) block of W, not normalised.

    It is the only part that Re Tr(g W) depends on, for g in that SU(2) subgroup:
    Re Tr(g W) = 2 (g q)_0 + terms without g.
    """
    wii, wij, wji, wjj = w[..., i, i], w[..., i, j], w[..., j, i], w[..., j, j]
    return (
        np.stack([(wii + wjj).real, (wij + wji).imag, (wij - wji).real, (wii - wjj).imag], axis=-1)
        / 2
    )


def embed(q: Real, i: int = 0, j: int = 1, n: int = 2) -> Complex:
    """N x N unit matrix with the quaternion's matrix in rows and columns i, j."""
    matrix = np.zeros((*q.shape[:-1], n, n), dtype=complex)
    matrix[...] = np.eye(n)
    q0, q1, q2, q3 = np.moveaxis(q, -1, 0)
    matrix[..., i, i] = q0 + 1j * q3
    matrix[..., i, j] = q2 + 1j * q1
    matrix[..., j, i] = -q2 + 1j * q1
    matrix[..., j, j] = q0 - 1j * q3
    return matrix


def norm_and_direction(a: Complex) -> tuple[Real, Complex]:
    """k and V of an SU(2) staple sum A = k V, with k = sqrt(det A) and V in SU(2)."""
    k = np.sqrt(np.linalg.det(a).real)
    return k, a / k[..., None, None]


def colour_mask(links: Complex, mu: int, colour: int) -> Real:
    """Boolean ``[t, z, y, x, mu, 1, 1]``: the links of direction mu on sites of a colour.

    The colour is 2 x_mu plus the other coordinates, modulo 4, if all extents are multiples of 4.
    Otherwise it is 3 x_mu + sum of x_nu + min(x_nu, -L_nu mod 6), modulo 6.
    """
    extents = extents_of(links)
    four = all(n % 4 == 0 for n in extents)
    x = np.meshgrid(*map(np.arange, links.shape[:4]), indexing="ij")[::-1]
    sums = (2 if four else 3) * x[mu]
    for nu in {0, 1, 2, 3} - {mu}:
        sums = sums + x[nu] + (0 if four else np.minimum(x[nu], -extents[nu] % 6))
    mask = np.zeros(links.shape[:5], dtype=bool)
    mask[..., mu] = sums % (4 if four else 6) == colour
    return mask[..., None, None]


def half_mask(links: Complex, mu: int, odd: int) -> Real:
    """Boolean ``[t, z, y, x, mu, 1, 1]``: the links of direction mu on sites of parity `odd`."""
    mask = np.zeros(links.shape[:5], dtype=bool)
    mask[..., mu] = parity(extents_of(links)) == odd
    return mask[..., None, None]


def update_half(links: Complex, mu: int, odd: int, rotation: Rotation) -> Complex:
    """`update_where` on the links of one direction and parity, with the staples of plaquettes."""
    return update_where(links, staple(links, mu), mu, half_mask(links, mu, odd), rotation)


def update_where(links: Complex, a: Complex, mu: int, mask: Real, rotation: Rotation) -> Complex:
    """U -> g U in one subgroup after the other, on the links of direction mu in the mask."""
    n = links.shape[-1]
    u = links[..., mu, :, :]
    for number, (i, j) in enumerate(SUBGROUPS[n]):
        q = quaternion(u @ a, i, j)
        k = np.linalg.norm(q, axis=-1)
        g = rotation(number, k, q / k[..., None])
        u = embed(g, i, j, n) @ u
    return np.where(mask, u[..., None, :, :], links)


def conjugate(q: Real) -> Real:
    """The inverse of a unit quaternion."""
    return np.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def multiply(p: Real, q: Real) -> Real:
    """Product of quaternions, in the order of their matrices."""
    return quaternion(embed(p) @ embed(q))


def reflect(subgroup: int, k: Real, w: Real) -> Real:
    """Overrelaxation: g = (w^dagger)^2 leaves Re Tr(g W) = Re Tr(W) (Creutz, Phys. Rev. D36, 515).

    For SU(2) this is U -> V^dagger U^dagger V^dagger with V = A / |A|.
    """
    return multiply(conjugate(w), conjugate(w))


def heat(draw: Draw, beta_over_n: float) -> Rotation:
    """Heatbath: g = a w^dagger, a0 ~ sqrt(1 - a0^2) exp(alpha a0) (Cabibbo, Marinari, 1982).

    With g U the subgroup's part of W becomes k a, and (beta / N) Re Tr(k a) = alpha a0 with
    alpha = 2 beta k / N. `draw` supplies the quaternions a.
    """
    return lambda subgroup, k, w: multiply(draw(subgroup, 2 * beta_over_n * k), conjugate(w))


def overrelax_half(links: Complex, mu: int, odd: int) -> Complex:
    """Overrelaxation of the links of one direction and parity."""
    return update_half(links, mu, odd, reflect)


def sweep(
    links: Complex,
    loops: Sequence[Loop],
    mask: Callable[[Complex, int, int], Real],
    parts: int,
    rotation: Callable[[int], Rotation],
) -> Complex:
    """Update all links, by direction mu and the parts of ``mask(links, mu, part)``.

    ``rotation(mu)`` is that of links of direction mu.
    """
    for mu in range(4):
        for part in range(parts):
            a = loop_staple(links, mu, loops)
            links = update_where(links, a, mu, mask(links, mu, part), rotation(mu))
    return links


def colours_of(links: Complex) -> int:
    """Number of colours for rectangles."""
    return 4 if all(n % 4 == 0 for n in extents_of(links)) else 6


def coloured_sweep(
    links: Complex, loops: Sequence[Loop], rotation: Callable[[int], Rotation]
) -> Complex:
    """Update all links by colours, or by parities if all loops are plaquettes; see `sweep`."""
    plaquettes = all(len(path) == 4 for path, _ in loops)
    mask, parts = (half_mask, 2) if plaquettes else (colour_mask, colours_of(links))
    return sweep(links, loops, mask, parts, rotation)


def heatbath_half(links: Complex, beta: float, mu: int, odd: int, draw: Draw) -> Complex:
    """Heatbath of the links of one direction and parity."""
    return update_half(links, mu, odd, heat(draw, beta / links.shape[-1]))


def given(a0: Real, unit: Real) -> Draw:
    """Fixed draws, whatever alpha: ``a0[subgroup, t, z, y, x]``, ``unit[subgroup, ..., 3]``."""
    a = np.concatenate([a0[..., None], np.sqrt(1 - a0**2)[..., None] * unit], axis=-1)
    return lambda number, alpha: a[number]


def overrelax(links: Complex) -> Complex:
    """One sweep: direction after direction, even sites first."""
    for mu in range(4):
        for odd in range(2):
            links = overrelax_half(links, mu, odd)
    return links
