"""Trajectories of links and momenta in the forces of an action."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.monomials import Force, Monomial
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from gauge_mc.updates.quark_links import QuarkLinks

DRIFT = Kernel("drift")

MOST_PREPARED = 1024
"""Number of moves whose launches are kept; trajectories repeat few of them."""

Term = TypeVar("Term")

Levels = Sequence[Sequence[Monomial]]
"""The terms of the action on every level, the outermost first."""


class Forces(NamedTuple):
    """The forces of a trajectory, and the kinetic energy after its last kick."""

    kinetic: Energy
    """-Tr P^2 summed over all links."""
    of: Mapping[str, list[Force]]
    """Forces of the kicks by the name of the term. The gauge action has only the last one, because
    the size of the others is not computed.
    """

    def mean(self, name: str) -> float:
        """Return the root mean square of a force, over links and kicks."""
        return math.sqrt(
            math.fsum(one.mean * one.mean for one in self.of[name]) / len(self.of[name])
        )

    def largest(self, name: str) -> float:
        """Return the largest force on a link."""
        return max(one.largest for one in self.of[name])


class ShiftedKick(NamedTuple, Generic[Term]):
    """A kick with the force of shifted links; see `Kick.shift`."""

    terms: Sequence[Term]
    """The terms of the action whose force it is, and which shift the links."""
    size: float
    shift: float


class KicksAndDrift(NamedTuple, Generic[Term]):
    """Kicks at one time, and the drift after them."""

    shifted: list[ShiftedKick[Term]]
    """Kicks with the force of shifted links, which are done first."""
    kicks: list[tuple[Term, float]]
    """Terms of the action other than the gauge action, with the sizes of their kicks."""
    gauge: float | None
    """The kick of the gauge action, if there is one."""
    drift: Drift | None
    """The drift; None at the end of a trajectory that ends with kicks."""


class MolecularDynamics:
    """Molecular dynamics of links and momenta, with the memory that they need.

    This is two fields of links and one of algebra elements, which several fields of a kind share
    one after the other, and another one of algebra elements for kicks with a shift.

    Parameters
    ----------
    like : Field
        A field of one replica and of the kind of those that will move. It is not changed.
    quark_links : QuarkLinks, optional
        The links of quarks, which are updated when forces or actions of quarks need them.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """

    def __init__(self, like: Field, quark_links: QuarkLinks | None = None) -> None:
        layout = like.layouts[0]
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        make = partial(Field.empty, *kind, above=layout.above, below=layout.below)
        self._fields = [make(), make()]
        self.momenta = AlgebraField.like(like)
        self._shift: AlgebraField | None = None
        self._now = 0
        self._begin: Field | None = None
        self._quark_links, self._taken = quark_links, False
        self._prepared: dict[tuple[object, ...], list[Launch]] = {}

    @property
    def links(self) -> Field:
        """The links now; at the beginning those of the field with which a trajectory starts."""
        return self._begin or self._fields[self._now]

    def start(self, field: Field, depth: int) -> None:
        """Begin with the links of a field, and update its halos to a depth in time slices.

        The field must not change before the first drift, and trajectories do not change it.
        """
        field.exchange_halo(depth)
        self._begin, self._now, self._taken = field, 0, False

    def update_quark_links(self) -> None:
        """Let quarks see the links now, unless they do."""
        if self._quark_links and not self._taken:
            self._quark_links.take(self.links)
        self._taken = True

    def begin(self, levels: Levels, moves: Iterable[Move]) -> Callable[[], Forces]:
        """Begin a trajectory, which changes `links` and `momenta`.

        Parameters
        ----------
        levels : sequence of sequence of Monomial
            The terms of the action on every level. The last one that is a gauge action moves
            the links.
        moves : iterable of Kick or Drift
            Kicks of levels that have terms, and drifts, among them a kick of the level of the gauge
            action; see `gauge_mc.updates.levels.trajectory`.

        Returns
        -------
        callable
            Waits for the last kick, and returns the forces and the kinetic energy after it. It must
            be called before the next trajectory.
        """
        gauge = [one for level in levels for one in level if isinstance(one, GaugeMonomial)][-1]
        done = list(stages(levels, gauge, moves))
        last = max(n for n, one in enumerate(done) if one.gauge is not None)
        ends = not any(one.kicks or one.shifted for one in done[last + 1 :])
        found: dict[str, list[Force]] = {}
        begun: Callable[[], Force] | None = None
        for n, stage in enumerate(done):
            kicks, fused = list(stage.kicks), stage.gauge
            if stage.gauge is not None and (n == last or not stage.drift):
                kicks, fused = [*kicks, (gauge, stage.gauge)], None
            for one in stage.shifted:
                force = self._shifted_kick(gauge, one, found)
            if stage.kicks:
                self.update_quark_links()
            for term, size in kicks:
                if term is gauge and n == last and ends:
                    begun = gauge.begin_kick(self.links, self.momenta, size)
                    continue
                force = term.kick(self.links, self.momenta, size)
                found.setdefault(term.name, []).append(force)
            if stage.drift:
                self._drift(gauge, fused, stage.drift)

        def forces() -> Forces:
            if begun is None:
                return Forces(force.kinetic, found)
            latest = begun()
            found.setdefault(gauge.name, []).append(latest)
            return Forces(latest.kinetic, found)

        return forces

    def _shifted_kick(
        self, gauge: GaugeMonomial, kick: ShiftedKick[Monomial], found: dict[str, list[Force]]
    ) -> Force:
        """Do a kick with the force of shifted links, and return the last force.

        The shift is a drift with momenta that are the force. It goes to the field to which the
        next drift would go. Forces of quarks are added to those that were found.
        """
        others = [one for one in kick.terms if one is not gauge]
        if self._shift is None:
            self._shift = AlgebraField.like(self.links)
        self._shift.clear()
        if others:
            self.update_quark_links()
        for term in others:
            found.setdefault(term.name, []).append(term.kick(self.links, self._shift, kick.shift))
        begin = self._begin, self._now
        self._move_links(gauge, kick)
        if others:
            self._taken = False
            self.update_quark_links()
        for term in kick.terms:
            force = term.kick(self.links, self.momenta, kick.size)
            if term is not gauge:
                found[term.name].append(force)
        self._begin, self._now = begin
        self._taken = False
        return force

    def _move_links(self, gauge: GaugeMonomial, kick: ShiftedKick[Monomial]) -> None:
        """Let `links` be those that a kick shifts, with the forces of quarks in `_shift`."""
        source, target = self.links, self._fields[1 - self._now]
        assert self._shift is not None
        if gauge in kick.terms:
            launches = gauge.kick_and_drift(source, target, self._shift, kick.shift, 1.0)
        else:
            target.copy(source)
            launches = self._launches(Drift(1.0), target, self._shift)
        for launch in launches:
            launch()
        self._begin, self._now = None, 1 - self._now
        self.links.exchange_halo(gauge.halo_depth)

    def _drift(self, gauge: GaugeMonomial, kick: float | None, drift: Drift) -> None:
        """Do a drift, after a kick of the gauge action if there is one, and update the halos."""
        if kick is None and self._begin:  # such a drift changes the links where they are
            self._fields[self._now].copy(self._begin)
            self._begin = None
        source, target = self.links, self._fields[1 - self._now]
        key = (gauge, source, kick, drift)
        if key not in self._prepared:
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = list(
                self._launches(drift, source, self.momenta)
                if kick is None
                else gauge.kick_and_drift(source, target, self.momenta, kick, drift.size)
            )
        for launch in self._prepared[key]:
            launch()
        if kick is not None:
            self._begin, self._now = None, 1 - self._now
        self.links.exchange_halo(gauge.halo_depth)
        self._taken = False

    def _launches(self, drift: Drift, links: Field, algebra: AlgebraField) -> Iterator[Launch]:
        for slab, momenta in zip(links.slabs, algebra.slabs, strict=True):
            arguments = slab.arguments(
                DRIFT,
                slab.whole(),
                links=slab.buffer.address,
                momenta=momenta.buffer.address,
                drift=drift.size,
            )
            yield from slab.kernel(DRIFT).launches(repeated([arguments], 1), [1])


def stages(
    levels: Sequence[Sequence[Term]], gauge: Term, moves: Iterable[Move]
) -> Iterator[KicksAndDrift[Term]]:
    """Yield the kicks of a trajectory with the drifts that follow them.

    Kicks at one time commute. That of the gauge action is the last of them, because it and a drift
    are one kernel.

    Parameters
    ----------
    levels : sequence of sequence of object
        The terms of the action on every level, the outermost first, or what stands for them.
    gauge : object
        The gauge action among them.
    moves : iterable of Kick or Drift
        The trajectory.
    """
    kicks: list[Kick] = []

    def stage(drift: Drift | None) -> KicksAndDrift[Term]:
        plain = [one for one in kicks if not one.shift]
        acting = [(term, one.size) for one in plain for term in levels[one.level]]
        own = [size for term, size in acting if term == gauge]
        others = [one for one in acting if one[0] != gauge]
        shifted = [
            ShiftedKick(levels[one.level], one.size, one.shift) for one in kicks if one.shift
        ]
        return KicksAndDrift(shifted, others, own[0] if own else None, drift)

    for one in moves:
        if isinstance(one, Kick):
            kicks.append(one)
        else:
            yield stage(one)
            kicks = []
    if kicks:
        yield stage(None)
