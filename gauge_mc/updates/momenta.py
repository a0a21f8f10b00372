"""Momenta of hybrid Monte Carlo: one element of the Lie algebra for every link."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.quoting import exponential
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA

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
    """
    return begin_momenta(momenta, [random], None)()[0]


def begin_momenta(
    momenta: AlgebraField, randoms: Sequence[Random], keys: Buffer | None
) -> Callable[[], list[Draw]]:
    """Begin to draw the momenta of several replicas, each as `draw_momenta` does."""
    group, first = momenta.group, randoms[0]
    if group.dimension != group.colours**2 - 1:
        raise UsageError(f"Momenta are those of SU(N), but {group.label} is another group.")
    choices = (first.choice, MANY_REPLICAS if keys else ONE_REPLICA)
    sums = [SlabSums(slab, 2, 1, choices=choices, scratch=MOMENTA.name) for slab in momenta.slabs]
    for n, slab_sums in enumerate(sums):
        values = {"momenta": slab_sums.slab.buffer.address, "stream": first.stream(n)}
        slab_sums.launch(MOMENTA, values | {"keys": keys.address if keys else None})

    def drawn() -> list[Draw]:
        totals = replica_sums(momenta.devices, sums, len(randoms))
        return [Draw(Energy.of(x[..., 0]), float(x[..., 1].sum())) for x in totals]

    return drawn


LEAST_SPLIT, LARGEST_SPLIT = 1e-250, 1e250
"""Sizes between which the digits of numbers are split; energies never come near them."""


@dataclass(frozen=True, eq=False)
class Energy:
    """The value of an action or of the kinetic energy, as the contributions of blocks of sites.

    The change of an energy in a trajectory is of the order of 1, but an energy grows with the
    volume, and so does its rounding error. Differences are therefore taken block by block, and
    added up without rounding. Blocks depend only on the lattice and on the kind of device, not on
    the division into slabs, threads and processes.
    """

    parts: NDArray[np.float64]
    """Contributions, which add up to the energy, of shape (blocks,)."""

    @classmethod
    def of(cls, values: object) -> Energy:
        """Return an energy of contributions in an array of any shape, or of one number."""
        return cls(np.array(values, np.float64).reshape(-1))

    def __add__(self, other: Energy) -> Energy:
        """Return the sum of two energies, whose contributions stay apart."""
        return Energy(np.concatenate([self.parts, other.parts]))

    def __float__(self) -> float:
        """Return the total."""
        return exact_sum(self.parts)

    def minus(self, before: Energy) -> float:
        """Return the change from an earlier energy with the same contributions."""
        if self.parts.shape != before.parts.shape:
            raise ValueError("energies with different contributions have no local difference")
        with np.errstate(invalid="ignore", over="ignore"):
            return exact_sum(self.parts - before.parts)


def acceptance(change: float) -> float:
    """Return the probability min(1, exp(-change)) with which a change of the energy is accepted.

    It is 0 if the change is not finite.
    """
    return exponential(-max(change, 0.0)) if math.isfinite(change) else 0.0


def total(energies: Sequence[Energy]) -> Energy:
    """Return the sum of energies, whose contributions stay apart."""
    return Energy(np.concatenate([energy.parts for energy in energies]))


def exact_sum(values: NDArray[np.float64]) -> float:
    """Return a sum that is rounded once, so that it does not depend on the order.

    The leading digits of all values are cut off at multiples of one number, so that their sum is
    exact, and then those of the rest, until nothing is left (S. M. Rump, T. Ogita and S. Oishi,
    SIAM J. Sci. Comput. 31 (2008) 189, section 3). The sum is not finite if a value is not.
    """
    rest = np.array(values, np.float64).reshape(-1)
    leading = np.empty_like(rest)
    exact: list[float] = []
    with np.errstate(invalid="ignore", over="ignore"):
        while largest := max(float(rest.max(initial=0.0)), -float(rest.min(initial=0.0))):
            if not LEAST_SPLIT < largest < LARGEST_SPLIT:
                rough = float(rest.sum())
                return math.fsum([*exact, *rest.tolist()]) if math.isfinite(rough) else rough
            # Leading digits are multiples of unit / 2^53, and the sum of all of them is below unit.
            unit = math.ldexp(1.0, math.frexp(largest)[1] + len(rest).bit_length() + 1)
            np.add(rest, unit, out=leading)
            np.subtract(leading, unit, out=leading)
            np.subtract(rest, leading, out=rest)
            exact.append(float(leading.sum()))
    return math.fsum(exact)


def replica_sums(
    devices: DeviceGroup, sums: Sequence[SlabSums], replicas: int
) -> NDArray[np.float64]:
    """Return what a kernel has summed over every block of sites of each replica."""
    blocks = np.asarray(slices_of_all_slabs(devices, [s.by_block() for s in sums])[0])
    return blocks.reshape(replicas, -1, *blocks.shape[1:])
