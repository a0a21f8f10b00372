"""Updates of the action with parallelograms: the colours of links."""

from collections.abc import Callable, Sequence

import numpy as np

from .fields import Complex, Real, extents_of
from .observables import Loop
from .updates import Rotation, sweep


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
    links: Complex, loops: Sequence[Loop], rotation: Callable[[int], Rotation]
) -> Complex:
    """Update all links by direction and colour; see `updates.sweep`."""
    colours = 8 if all(n % 4 == 0 for n in extents_of(links)) else 12
    return sweep(links, loops, colour_mask, colours, rotation)
