"""Momenta of hybrid Monte Carlo: one element of the Lie algebra for every link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.energy import Energy, block_sums

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
    group = momenta.group
    if group.dimension != group.colours**2 - 1:
        raise UsageError(f"Momenta are those of SU(N), but {group.label} is another group.")
    sums = [SlabSums(slab, 2, 1, choices=(random.choice,)) for slab in momenta.slabs]
    for n, one in enumerate(sums):
        stream = random.stream(n)
        one.launch(MOMENTA, {"momenta": one.slab.buffer.address, "stream": stream})
    kinetic, uniform = np.moveaxis(block_sums(momenta.devices, sums), -1, 0)
    return Draw(Energy.of(kinetic), float(uniform.sum()))
