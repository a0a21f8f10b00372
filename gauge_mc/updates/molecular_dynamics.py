"""Trajectories of links and momenta in the force of an action."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.monomials import Force
from gauge_mc.updates.monomials.gauge import GaugeMonomial

DRIFT = Kernel("drift")

MOST_PREPARED = 1024
"""Number of moves whose launches are kept; trajectories repeat few of them."""


class MolecularDynamics:
    """Molecular dynamics of links and momenta, with the memory that they need.

    This is two fields of links and one of algebra elements, which several fields of a kind share
    one after the other.

    Parameters
    ----------
    like : Field
        A field of one replica and of the kind of those that will move. It is not changed.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """

    def __init__(self, like: Field) -> None:
        layout = like.layouts[0]
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        make = partial(Field.empty, *kind, above=layout.above, below=layout.below)
        self._fields = [make(), make()]
        self.momenta = AlgebraField.like(like)
        self._now = 0
        self._prepared: dict[tuple[object, ...], list[Launch]] = {}

    @property
    def links(self) -> Field:
        """The links now; trajectories overwrite them."""
        return self._fields[self._now]

    def start(self, field: Field, depth: int) -> None:
        """Copy the links of a field, and update the halos to a depth in time slices."""
        self.links.copy(field)
        self.links.exchange_halo(depth)

    def move(self, monomial: GaugeMonomial, moves: Iterable[Move]) -> Force:
        """Carry out a trajectory, which changes `links` and `momenta`.

        Parameters
        ----------
        monomial : GaugeMonomial
            The action that exerts the force.
        moves : iterable of Kick or Drift
            At least one kick, and drifts and kicks in turn; see `Integrator.trajectory`.

        Returns
        -------
        Force
            The force of the last kick, and the kinetic energy after it.
        """
        left = list(moves)
        last = max(n for n, one in enumerate(left) if isinstance(one, Kick))
        waiting: Kick | None = None
        for n, one in enumerate(left):
            if isinstance(one, Drift):
                self._drift(monomial, waiting, one)
                waiting = None
            elif n < last:
                waiting = one
            else:
                force = monomial.kick(self.links, self.momenta, one.size)
        return force

    def _drift(self, monomial: GaugeMonomial, kick: Kick | None, drift: Drift) -> None:
        """Do a drift, after a kick if there is one, and update the halos."""
        source, target = self._fields[self._now], self._fields[1 - self._now]
        key = (monomial, self._now, kick, drift)
        if key not in self._prepared:
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = list(
                monomial.kick_and_drift(source, target, self.momenta, kick.size, drift.size)
                if kick
                else self._launches(drift)
            )
        for launch in self._prepared[key]:
            launch()
        if kick:
            self._now = 1 - self._now
        self.links.exchange_halo(monomial.halo_depth)

    def _launches(self, drift: Drift) -> Iterable[Launch]:
        for slab, momenta in zip(self.links.slabs, self.momenta.slabs, strict=True):
            arguments = slab.arguments(
                DRIFT,
                slab.whole(),
                links=slab.buffer.address,
                momenta=momenta.buffer.address,
                drift=drift.size,
            )
            yield from slab.kernel(DRIFT).launches(repeated([arguments], 1), [1])
