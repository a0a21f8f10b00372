"""A check of actions: the force is the derivative of the value, and reads no more than the halos.

A chain of hybrid Monte Carlo accepts trajectories by the value that the loops of an action declare,
and moves links by the staples in its C++ header. If they contradict each other, or read links that
the halos do not have, trajectories are rejected or, on several devices, wrong. So before the first
trajectory with an action its kernels are tried on a small lattice. A result is remembered as that
of `gauge_mc.updates.independence`.

The force of a monomial without solvers is compared with its value as well, at the beginning of
every run, since nothing tells all sources on which it depends, and both on two slabs of a device
with those on one, bit by bit, since a monomial may exchange as many halos as it needs. Monomials of
quarks have solvers, and are not checked.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Coupling
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice, Loops
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import AlgebraField, Field, is_local
from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.independence import (
    check_once,
    described,
    links_shape,
    small_lattice,
    source_of,
    stored_reals,
    write_links,
)
from gauge_mc.updates.momenta import Energy, exact_sum
from gauge_mc.updates.monomials import Failures
from gauge_mc.updates.monomials.gauge import KICK, KICK_AND_DRIFT, check_action, gauge_actions
from gauge_mc.updates.sweep import couplings_in_memory, in_memory
from gauge_mc.updates.terms import RunMonomial, TermLinks

ROUGHNESS = 0.6
"""Typical size of the elements of the algebra whose exponentials are the links of the check."""

STEP = 0.04
"""Typical size of those by which links are moved. Differences of fourth order in it have errors of
about 1e-5, and those of rounding are of the same size in single precision."""

TOLERANCE = 1e-3
"""Largest deviation of derivatives, in units of their standard deviation for random directions."""


def check_force(field: Field, coupling: Coupling, replicas: Choice) -> None:
    """Check that the force of an action fits its value and its halos.

    Parameters
    ----------
    field : Field
        A field that is going to be updated. It is not changed.
    coupling : Coupling
        Its action, with its couplings.
    replicas : Choice
        How the kernels of trajectories treat replicas, so that they are those of the run.

    Raises
    ------
    UsageError
        See `check_action`.
    GaugeError
        If the staples of the action contradict its loops, or read too many links.
    """
    slab, action = field.slabs[0], coupling.action
    check_action(action, field)
    layout = slab.layout
    lattice = small_lattice(layout.lattice, action.halo_depth, slab.device.lanes(layout.precision))
    unit = replace(coupling, beta=1.0)
    choices = action.choice, replicas
    check_once(
        slab,
        [(one, choices) for one in (KICK, KICK_AND_DRIFT, *(one.kernel for one in action.loops))],
        (lattice, action.halo_depth, *described(unit, field.group)),
        lambda: _ForceCheck(slab, lattice, unit, choices).check(),
    )


def check_term(
    field: Field, term: RunMonomial, coupling: Coupling, replicas: Choice, random: Random
) -> None:
    """Check that the force of a monomial is the derivative of its value, if it has no solvers.

    Parameters
    ----------
    field : Field
        A field that is going to be updated. It is not changed.
    term : RunMonomial
        The monomial.
    coupling : Coupling
        A gauge action of the run, with whose kernels links are moved.
    replicas : Choice
        See `check_force`.
    random : Random
        Random numbers of the run, of whose kind are those that the monomial draws.

    Raises
    ------
    GaugeError
        If the force contradicts the value.
    """
    if term.kind.solves:
        return
    slab = field.slabs[0]
    layout = slab.layout
    lattice = small_lattice(layout.lattice, 0, slab.device.lanes(layout.precision))
    _TermCheck(slab, lattice, coupling, (coupling.action.choice, replicas), term, random).check()


class _ForceCheck:
    """Kicks and drifts of a small lattice.

    Parameters
    ----------
    slab : Slab
        A slab on the device, of a field with the group and the precision.
    lattice : Lattice
        Extents of the small lattice.
    coupling : Coupling
        The gauge action.
    choices : tuple of Choice
        The compile-time choices of the kernels other than the group.
    """

    def __init__(
        self, slab: Slab, lattice: Lattice, coupling: Coupling, choices: tuple[Choice, ...]
    ) -> None:
        kind = lattice, slab.group.name, slab.layout.precision, slab.device
        self._links, self._moved = Field.empty(*kind), Field.empty(*kind)
        self._momenta = AlgebraField.like(self._links)
        self._coupling, self._choices = coupling, choices
        self._largest = LargestValues(self._links)
        self._actions = couplings_in_memory(self._links, KICK, choices, [coupling])
        self._coefficients = coupling.coefficients(slab.group)
        self._random = np.random.default_rng(1)
        self._unit = 1 / math.sqrt(slab.group.algebra_components)

    def check(self) -> None:
        """Try the kernels.

        Raises
        ------
        GaugeError
            If they read too many links, or contradict each other.
        """
        action = self._coupling.action
        depth, colouring = action.halo_depth, action.colouring.cpp
        near = partial(is_local, self._slab, depth)
        fault = (
            f"that extend over more time slices than halos for its colouring {colouring} have "
            f"({depth}); choose another colouring."
        )
        for loops in action.loops:
            if not near(partial(self._first_traces, loops)):
                raise self._error(f"has loops ({loops.kernel.name}) {fault}")
        if not near(self._first_forces):
            raise self._error(f"has staples {fault}")
        self._set_to_one()
        if not abs(float(self._value(self._links))) < TOLERANCE:
            raise self._error(
                "has a value that is not 0 if all links are 1; correct the numbers of its loops."
            )
        self._roughen()
        self._compare("its loops", f"the staples in {action.choice.header}")

    def _roughen(self) -> None:
        """Replace links of 1 by random ones."""
        self._set_to_one()
        self._set_momenta(self._draw())
        self._links, self._moved = self._move(ROUGHNESS), self._links

    def _compare(self, value: str, force: str) -> None:
        """Compare the change of the value in a random direction with the force.

        Parameters
        ----------
        value, force : str
            Name of the source of the value and of the force of the action, for the message.
        """
        direction = self._draw()
        self._set_momenta(direction)
        changes = []
        for size in (STEP, 2 * STEP):
            ahead, back = (self._value(self._move(sign * size)) for sign in (1, -1))
            changes.append(ahead.minus(back) / (2 * size * self._unit))
        of_value = (4 * changes[0] - changes[1]) / 3
        reals = self._links.lattice.links * self._slab.group.dimension
        _, squares = self._kick(direction, 1.0)
        # Forces of any size are added to momenta with kicks as large as these.
        size = math.sqrt(reals / squares) if 0 < squares < math.inf else 1.0
        (ahead, _), (back, _) = (self._kick(direction, sign * size) for sign in (1, -1))
        of_force = -ahead.minus(back) / (2 * size)
        momenta = (float(ahead) + float(back)) / 2 - size**2 * squares / 2
        usual = math.sqrt(2 * momenta * squares / reals)
        if not abs(of_value - of_force) <= TOLERANCE * usual:
            raise self._error(
                f"contradicts itself: in one direction its value changes by {of_value:.6g} "
                f"according to {value}, and by {of_force:.6g} according to {force}; correct one "
                "of them."
            )

    def _error(self, fault: str) -> GaugeError:
        return GaugeError(f"The {self._checked()} {fault}")

    def _checked(self) -> str:
        """Return what is checked, for messages."""
        return f"action {source_of(self._coupling.action)}"

    @property
    def _slab(self) -> Slab:
        return self._links.slabs[0]

    def _draw(self) -> NDArray[Any]:
        """Return elements of the algebra whose components have a variance of 1."""
        slab = self._momenta.slabs[0]
        count = slab.layout.slices * slab.slice_bytes // slab.layout.real.itemsize
        return self._random.normal(size=count).astype(slab.layout.real)

    def _set_momenta(self, values: NDArray[Any]) -> None:
        slab = self._momenta.slabs[0]
        slab.device.write(slab.buffer, 0, values.view(np.uint8))

    def _set_to_one(self) -> None:
        """Set all links to 1."""
        one = stored_reals(self._slab, np.eye(self._slab.group.colours, dtype=complex)[None])
        write_links(self._slab, np.broadcast_to(one[0], links_shape(self._slab)))

    def _given(self, kick: float, drift: float) -> dict[str, Any]:
        """Return arguments of the kernels of trajectories, for any choice of replicas."""
        variant = self._slab.variant(*self._choices)
        step = KICK.part("ReplicaMove", variant)(kick=kick, drift=drift, replica=0, unused=0)
        self._steps = in_memory(self._links, np.frombuffer(bytes(step), np.uint8))
        return {
            "momenta": self._momenta.slabs[0].buffer.address,
            "kick": kick,
            "action": KICK.part("ACTION::Coefficients", variant)(**self._coefficients),
            "moves": self._steps.address,
            "actions": self._actions.address,
        }

    def _kick(self, momenta: NDArray[Any], size: float) -> tuple[Energy, float]:
        """Return the kinetic energy after a kick, and the sum of |F|^2."""
        self._set_momenta(momenta)
        slab = self._slab
        sums = SlabSums(slab, 2, 1, choices=self._choices, scratch=KICK.name, wide=True)
        largest = self._largest.address(0)
        links = {"links": slab.buffer.address, "largest": largest}
        sums.launch(KICK, {**links, **self._given(size, 0.0)})
        found = sums.by_block()
        return Energy.of(found[..., 0]), exact_sum(found[..., 1])

    def _move(self, size: float) -> Field:
        """Return the links after a drift."""
        drift = size * self._unit
        slab, target, given = self._slab, self._moved.slabs[0], self._given(0.0, drift)
        given |= {"source": slab.buffer.address, "target": target.buffer.address, "drift": drift}
        slab.launch(KICK_AND_DRIFT, slab.whole(), *self._choices, **given)
        return self._moved

    def _value(self, links: Field) -> Energy:
        (found,) = gauge_actions(links, [self._coupling])
        return found

    def _first_forces(self) -> bytes:
        """Return the forces in the first time slice."""
        self._kick(np.zeros_like(self._draw()), 1.0)
        slab = self._momenta.slabs[0]
        return slab.device.read(slab.buffer, 0, slab.slice_bytes).tobytes()

    def _first_traces(self, loops: Loops) -> bytes:
        """Return the sums of the traces in the first time slice."""
        sums = SlabSums(self._slab, len(loops.kinds), 1)
        sums.launch(loops.kernel, {"links": self._slab.buffer.address})
        return bytes(sums.by_slice()[0, 0])


class _TermCheck(_ForceCheck):
    """The same for a monomial, which sees a copy of the links.

    Parameters
    ----------
    slab, lattice, coupling, choices
        See `_ForceCheck`; the gauge action does not matter.
    term : RunMonomial
        The monomial.
    random : Random
        See `check_term`.
    """

    def __init__(
        self,
        slab: Slab,
        lattice: Lattice,
        coupling: Coupling,
        choices: tuple[Choice, ...],
        term: RunMonomial,
        random: Random,
    ) -> None:
        super().__init__(slab, lattice, coupling, choices)
        self._roughen()
        self._term, self._kind = term, (random.generator.name, 1, random.level)
        self._see(self._links)

    def _see(self, links: Field) -> None:
        """Prepare the monomial for some links."""
        self._seen, self._force = TermLinks(links), AlgebraField.like(links)
        self._monomial = self._term.make(self._seen)
        self._force.clear()
        self._monomial.draw([Random.for_field(self._seen.field, *self._kind)], Failures())

    def check(self) -> None:
        """Compare value and force with each other, and with those on two slabs of the device."""
        self._compare("its method actions", "its method add_force")
        if self._on_slabs(1) != self._on_slabs(2):
            raise self._error(
                "has another value or force on two slabs than on one; exchange the halos of its "
                "own fields before kernels read them at neighbours."
            )

    def _on_slabs(self, count: int) -> bytes:
        """Return the bytes of value and force of the same links on some slabs."""
        slab, devices = self._slab, DeviceGroup((self._slab.device,) * count)
        links = Field.empty(self._links.lattice, slab.group.name, slab.layout.precision, devices)
        memory = _own_slices(slab)
        for part in links.slabs:
            first, last = part.layout.first, part.layout.first + part.layout.slices
            part.device.write(part.buffer, 0, memory[first:last].reshape(-1))
        self._see(links)
        value = self._value(links)
        self._monomial.add_force(self._force, np.ones(1, np.bool_), Failures())
        forces = [_own_slices(part) for part in self._force.slabs]
        return value.parts.tobytes() + np.concatenate(forces).tobytes()

    def _checked(self) -> str:
        return f"monomial {source_of(self._monomial)}"

    def _value(self, links: Field) -> Energy:
        self._seen.take(links)
        (found,) = self._monomial.actions(Failures())
        return found

    def _kick(self, momenta: NDArray[Any], size: float) -> tuple[Energy, float]:
        self._seen.take(self._links)
        self._set_momenta(momenta)
        found = self._monomial.kick(self._force, self._momenta, {0: size}, Failures())[0]
        return found.kinetic, found.mean**2 * self._links.lattice.links


def _own_slices(slab: Slab) -> NDArray[np.uint8]:
    """Return the bytes of the time slices of a slab, without those of its halos."""
    nbytes = slab.layout.slices * slab.slice_bytes
    return slab.device.read(slab.buffer, 0, nbytes).reshape(slab.layout.slices, -1)
