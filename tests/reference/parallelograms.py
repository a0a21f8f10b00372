"""Parallelograms: the loops, their staples, and updates of the action that contains them."""

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product

import numpy as np

from .fields import Complex, Real, extents_of, shift, trace
from .flow import rectangle_staple
from .observables import staple, transport
from .updates import Rotation, sweep

Path = list[tuple[int, int]]


def parallelograms() -> Iterator[Path]:
    """Yield the 16 loops per site, once each."""
    for mu, nu, rho in combinations(range(4), 3):
        for a, b in product((1, -1), repeat=2):
            yield [(mu, 1), (nu, a), (rho, b), (mu, -1), (nu, -a), (rho, -b)]


def loops() -> list[list[Path]]:
    """All plaquettes, rectangles and parallelograms that begin at a site, once each."""
    planes, pairs = combinations(range(4), 2), permutations(range(4), 2)
    return [
        [[(i, 1), (j, 1), (i, -1), (j, -1)] for i, j in planes],
        [[(i, 1), (i, 1), (j, 1), (i, -1), (i, -1), (j, -1)] for i, j in pairs],
        list(parallelograms()),
    ]


def parallelogram_staple(links: Complex, mu: int) -> Complex:
    """Sum of the 24 staples, in the convention of `observables.staple`."""
    total = np.zeros_like(links[..., mu, :, :])
    for nu, rho in permutations({0, 1, 2, 3} - {mu}, 2):
        for a, b in product((1, -1), repeat=2):
            path = [(nu, a), (rho, b), (mu, -1), (nu, -a), (rho, -b)]
            total += shift(transport(links, path), mu)
    return total


def whole_staple(links: Complex, mu: int, c1: float, c2: float) -> Complex:
    """Sum of the staples of plaquettes, rectangles and parallelograms, c0 = 1."""
    rectangles, cubes = rectangle_staple(links, mu), parallelogram_staple(links, mu)
    return staple(links, mu) + c1 * rectangles + c2 * cubes


def action(links: Complex, c1: float, c2: float) -> float:
    """The action divided by beta, from its loops."""
    n = links.shape[-1]
    return sum(
        c * (1 - trace(transport(links, path)).real / n).sum()
        for c, paths in zip((1, c1, c2), loops(), strict=True)
        for path in paths
    )


def colour_mask(links: Complex, mu: int, colour: int) -> Real:
    """Boolean ``[t, z, y, x, mu, 1, 1]``: the links of direction mu on sites of a colour.

    The sites of one colour have the same numbers of odd coordinates, modulo 2, in each pair of the
    other directions, and the same sum of x_mu modulo 2 and the colours of their pairs of sites
    along the others.
    """
    extents = extents_of(links)
    layers = 2 if all(n % 4 == 0 for n in extents) else 3
    x = np.meshgrid(*map(np.arange, links.shape[:4]), indexing="ij")[::-1]
    layer, one, two, three = x[mu] % 2, *(x[(mu + k) % 4] for k in (1, 2, 3))
    for nu in {0, 1, 2, 3} - {mu}:
        pairs = [h % 2 for h in range(extents[nu] // 2)]
        if len(pairs) % 2:
            pairs[-1] = 2
        layer = layer + np.array(pairs)[x[nu] // 2]
    mask = np.zeros(links.shape[:5], dtype=bool)
    numbers = 4 * (layer % layers) + 2 * ((two + three) % 2) + (one + three) % 2
    mask[..., mu] = numbers == colour
    return mask[..., None, None]


def coloured_sweep(
    links: Complex, c1: float, c2: float, rotation: Callable[[int], Rotation]
) -> Complex:
    """Update all links by direction and colour; see `updates.sweep`."""

    def staples(links: Complex, mu: int) -> Complex:
        return whole_staple(links, mu, c1, c2)

    colours = 8 if all(n % 4 == 0 for n in extents_of(links)) else 12
    return sweep(links, staples, colour_mask, colours, rotation)
