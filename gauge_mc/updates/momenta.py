"""Momenta of hybrid Monte Carlo: one element of the Lie algebra for every link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.energy import Energy, replica_sums
from gauge_mc.updates.replicas import MANY_REPLICAS, ONE_REPLICA

MOMENTA = Kernel("momenta")


class Draw(NamedTuple):
    """Numbers that are drawn for a trajectory besides the momenta."""

    kinetic: Energy
    """The kinetic energy, -Tr P^2 summed over all links."""
    uniform: float
    """A random number between 0 and 1, with which the trajectory is accepted."""


def draw_momenta(momenta: AlgebraField, random: Random) -> Draw:
    """Draw momenta P = i p_a T_a with normal p_a of unit variance, Tr T_a T_b = delta_ab / 2.

    The numbers of a link depend only on the seed, the site, the direction and `random.step`.

    Parameters
    ----------
    momenta : AlgebraField
        One replica, which is overwritten.
    random : Random
        Its random numbers.

    Raises
    ------
    UsageError
        If the group is not SU(N).
    """
    return begin_momenta(momenta, [random], None)()[0]


def begin_momenta(
    momenta: AlgebraField, randoms: Sequence[Random], keys: Buffer | None
) -> Callable[[], list[Draw]]:
    """Begin to draw the momenta of several replicas, each as `draw_momenta` does.

    Parameters
    ----------
    momenta : AlgebraField
        The momenta of all replicas, which are overwritten.
    randoms : sequence of Random
        The random numbers of every replica, all with the same `step`. Their states are adjacent;
        see `Random.moved`.
    keys : Buffer or None
        The keys of the generators; see `gauge_mc.updates.replicas.keys_in_memory`. None if there is
        one replica.

    Returns
    -------
    callable
        Waits for the momenta, and returns what else was drawn. It must be called before momenta are
        drawn again on the device.

    Raises
    ------
    UsageError
        See `draw_momenta`.
    """
    group, first = momenta.group, randoms[0]
    if group.dimension != group.colours**2 - 1:
        raise UsageError(f"Momenta are those of SU(N), but {group.label} is another group.")
    choices = (first.choice, MANY_REPLICAS if keys else ONE_REPLICA)
    sums = [SlabSums(slab, 2, 1, choices=choices, scratch=MOMENTA.name) for slab in momenta.slabs]
    for n, one in enumerate(sums):
        values = {"momenta": one.slab.buffer.address, "stream": first.stream(n)}
        one.launch(MOMENTA, values | {"keys": keys.address if keys else None})

    def drawn() -> list[Draw]:
        found = replica_sums(momenta.devices, sums, len(randoms))
        return [Draw(Energy.of(one[..., 0]), float(one[..., 1].sum())) for one in found]

    return drawn
