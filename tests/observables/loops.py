"""Lattices and links of tests of loops, and the links that multilevel and multihit average over."""

from functools import cache
from itertools import count

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.updates.multilevel import STEP_BITS, SubLatticeUpdates
from tests.reference.fields import dagger, random_field
from tests.reference.mean_links import mean_links
from tests.reference.observables import staple

UNEQUAL = Lattice(4, 6, 8, 10)
MANY_LANES = Lattice(8, 8, 8, 4)
"""A lattice on which a line of four steps crosses up to two edges of sub-lattices."""

TOLERANCE = {"single": 1e-7, "double": 1e-14}
"""Largest differences from averages that NumPy computes."""


@cache
def random_links(lattice, group):
    """Return the links of a random field."""
    return random_field(lattice.extents, group, np.random.default_rng(11))


def with_mean_links(links, weight):
    """Return links with those along t replaced by their averages, with `weight` = beta / N."""
    replaced = links.copy()
    replaced[..., 3, :, :] = mean_links(dagger(staple(links, 3)), weight)
    return replaced


def multilevel_links(field, levels, coupling, seed, overrelax, number):
    """Return the links of which multilevel averages are made.

    Parameters
    ----------
    field : Field
    levels : sequence of Level
        One or two levels.
    coupling : Coupling
    seed, overrelax : int
        Seed of the updates, and overrelaxation sweeps in each.
    number : int
        Number of the configuration, from which those of the updates follow.

    Returns
    -------
    list of list of ndarray
        For every value of the outer level, the links with every value of the inner one; the only
        level is an inner one.
    """
    copy = field.repeated(1)
    copy.copy(field)
    updates = [SubLatticeUpdates(copy, one.thickness, coupling, seed, overrelax) for one in levels]
    step = count((number << STEP_BITS) + 1)

    def configurations(level):
        for n in range(levels[level].values):
            if n:
                updates[level](next(step))
            yield

    def inner():
        return [copy.to_numpy() for _ in configurations(len(levels) - 1)]

    return [inner()] if len(levels) == 1 else [inner() for _ in configurations(0)]
