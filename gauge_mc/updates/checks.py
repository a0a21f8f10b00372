"""A check of actions: the force is the derivative of the value, and reads no more than the halos.

A chain of hybrid Monte Carlo accepts trajectories by the value that the loops of an action declare,
and moves links by the staples in its C++ header. If they contradict each other, or read links that
the halos do not have, trajectories are rejected or, on several devices, wrong. So before the first
trajectory with an action its kernels are tried on a small lattice. A result is remembered as that
of `gauge_mc.updates.checks`.

The force of a monomial without solvers is compared with its value as well, at the beginning of
every run, since nothing tells all sources on which it depends, and both on two slabs of a device
with those on one, bit by bit, since a monomial may exchange as many halos as it needs. Monomials of
quarks have solvers, and are not checked.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Action, Coupling, UpdateSet
from gauge_mc.devices.cache import cache_folder, keep, kept
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import zero
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice, Loops
from gauge_mc.domain.slab import Slab, split_lanes
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import AlgebraField, Field, is_local
from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.groups import Group
from gauge_mc.updates.momenta import Energy, exact_sum
from gauge_mc.updates.monomials import Failures, Monomial
from gauge_mc.updates.monomials.gauge import KICK, KICK_AND_DRIFT, check_action, gauge_actions
from gauge_mc.updates.schedule import whole
from gauge_mc.updates.sweep import couplings_in_memory, in_memory
from gauge_mc.updates.terms import RunMonomial, TermLinks

PERIODS = 4, 12
"""Colourings depend on the extents modulo the first number if all are multiples of it, else modulo
the second."""

MATRICES = 256
"""Number of matrices from which links are drawn."""

CONSERVED = 1e-3
"""Largest change of the value of an action in an update, divided by the root of the number of links
that are updated. Rounding errors in single precision are below 1e-5, and loops that the staples do
not have change it by about their coefficient."""

LONGER = np.float32(1.5)
"""Factor of links by which all that are updated are noticed."""

TOGETHER = "has loops with several links that are updated together"
BEYOND = "has loops that extend over more time slices than the halos have"
NOT_ONCE = "does not update every link once"
"""Text of an error about the action."""

_passed: set[str] = set()
"""Keys of what has passed in this process."""


def check_independence(field: Field, action: Action, kernel: Kernel, norms: Choice) -> None:
    """Check that links of an update set do not depend on each other, nor beyond the halo depth."""
    slab, layout = field.slabs[0], field.slabs[0].layout
    most = slab.device.lanes(layout.precision)
    lattice = small_lattice(layout.lattice, action.halo_depth, most)
    unit, choices = Coupling(1.0, action), (*action.choices, norms)
    check_once(
        slab,
        [(kernel, choices), *((loops.kernel, ()) for loops in action.loops)],
        (action.update_sets(lattice), *described(unit, field.group)),
        lambda: _UpdateCheck(slab, lattice, unit, kernel, choices).check(),
    )


def described(coupling: Coupling, group: Group) -> tuple[object, ...]:
    """Return what staples and value of an action depend on, besides its kernels."""
    weights = coupling.action.weights.items()
    return sorted(coupling.coefficients(group).items()), [(x.kinds, y) for x, y in weights]


def check_once(
    slab: Slab,
    kernels: Sequence[tuple[Kernel, tuple[Choice, ...]]],
    details: tuple[object, ...],
    check: Callable[[], None],
) -> None:
    """Do a check of kernels unless it has been passed before, on this machine."""
    variants = [(x, x.narrowed(slab.variant(*choices))) for x, choices in kernels]
    key = repr(([variant for _, variant in variants], details, type(slab.device).__name__))
    if key in _passed:
        return
    digests = b"".join(kernel.digest(variant) for kernel, variant in variants)
    digest = hashlib.sha256(key.encode() + digests).hexdigest()
    path = cache_folder() / f"action-{digest[:24]}.txt"
    if kept(path) != digest.encode():
        check()
        with suppress(GaugeError, OSError):  # else it is checked again by the next process
            keep(path, digest.encode())
    _passed.add(key)


def source_of(term: Action | Monomial) -> str:
    """Return the name of an action or a monomial and the file that declares it, for messages."""
    module = sys.modules[type(term).__module__]
    return f"{term.name} ({getattr(module, '__file__', None) or module.__name__})"


def small_lattice(lattice: Lattice, depth: int, most: int) -> Lattice:
    """Return a small lattice with the lanes of another one and, modulo `PERIODS`, its extents."""
    x, y, z, t = lattice.extents
    period = PERIODS[any(n % PERIODS[0] for n in (x, y, z, t))]
    least, lanes = max(4, 2 * depth), math.prod(split_lanes(lattice, most))
    smaller = [[m for m in range(n % period, n, period) if m >= least] + [n] for n in (x, y, z)]
    long = next(m for m in range(t % period, t + 4 * period, period) if m >= 2 * depth + 2)
    candidates = (Lattice(a, b, c, long) for a, b, c in sorted(product(*smaller), key=math.prod))
    return next(c for c in candidates if math.prod(split_lanes(c, most)) == lanes)


class _UpdateCheck:
    """Updates of random links on a small lattice.

    Parameters
    ----------
    slab : Slab
        A slab on the device, of a field with the group and the precision.
    lattice : Lattice
        Extents of the small lattice.
    coupling : Coupling
        The gauge action.
    kernel : Kernel
        The kernel of the updates.
    choices : tuple of Choice
        The compile-time choices of the kernel other than the group.
    """

    def __init__(
        self,
        slab: Slab,
        lattice: Lattice,
        coupling: Coupling,
        kernel: Kernel,
        choices: tuple[Choice, ...],
    ) -> None:
        precision = slab.layout.precision
        self._field = Field.empty(lattice, slab.group.name, precision, slab.device)
        self._coupling, self._kernel, self._choices = coupling, kernel, choices
        self._action = coupling.action
        coefficients = coupling.coefficients(slab.group)
        variant = self._slab.variant(*choices)
        self._values = {
            "links": self._slab.buffer.address,
            "action": kernel.part("ACTION::Coefficients", variant)(**coefficients),
            "actions": None,
            "halo": zero(kernel.part("HaloTargets", variant)),
        }
        random = np.random.default_rng(1)
        self._links, self._others = (self._drawn(random) for _ in range(2))
        self._moved = random.random(self._shape[:-1]) < 0.5

    def check(self) -> None:
        """Try all update sets."""
        t = np.indices(self._shape[:-1], sparse=True)[0]
        distance = np.minimum(t, len(t) - t)  # from the first slice, around the lattice
        times = np.zeros(self._shape[:-1], int)
        for update_set in self._action.update_sets(self._slab.layout.lattice):
            after = self._updated(self._links, update_set)
            members = _differ(after, self._links)
            # Staples may leave links where they are, but all that are updated are normalised.
            times += _differ(self._updated(LONGER * self._links, update_set), LONGER * self._links)
            near, far = members & (distance == 0), distance > self._action.halo_depth
            for moved, compared, fault in (
                (members & self._moved, members & ~self._moved, TOGETHER),
                (far, near, BEYOND),
            ):
                links = np.where(moved[..., None], self._others, self._links)
                if (_differ(self._updated(links, update_set), after) & compared).any():
                    raise self._error(fault)
            self._compare_values(after)
        if (times != 1).any():
            raise self._error(NOT_ONCE)

    def _compare_values(self, after: NDArray[Any]) -> None:
        """Compare the value of the action with that after an update."""
        if not self._action.loops:
            return
        values = []
        for links in (self._links, after):
            write_links(self._slab, links)
            values += gauge_actions(self._field, [self._coupling])
        change = values[1].minus(values[0])
        usual = math.sqrt(np.count_nonzero(_differ(after, self._links)))
        if not abs(change) <= CONSERVED * usual:
            raise GaugeError(
                f"The action {source_of(self._action)} contradicts itself: overrelaxation with "
                f"the staples in {self._action.choice.header} changes the value of its loops, by "
                f"{change:.3g}, which must be 0; correct one of them."
            )

    def _error(self, fault: str) -> GaugeError:
        action = self._action
        return GaugeError(
            f"The action {source_of(action)} {fault}: its colouring {action.colouring.cpp} is for "
            f"loops whose links are at most {action.halo_depth} apart; choose another colouring."
        )

    @property
    def _slab(self) -> Slab:
        return self._field.slabs[0]

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """The shape of arrays of links; see `write_links`."""
        return links_shape(self._slab)

    def _drawn(self, random: np.random.Generator) -> NDArray[Any]:
        """Return links that are drawn from some random matrices of SU(N)."""
        colours = self._slab.group.colours
        shape = (MATRICES, colours, colours)
        gaussian = random.normal(size=shape) + 1j * random.normal(size=shape)
        unitary = np.stack([np.linalg.qr(x)[0] for x in gaussian])
        unitary[:, -1] /= np.linalg.det(unitary)[:, np.newaxis]
        rows = stored_reals(self._slab, unitary)
        return rows[random.integers(MATRICES, size=self._shape[:-1])]

    def _updated(self, links: NDArray[Any], update_set: UpdateSet) -> NDArray[Any]:
        """Return links after the update of a set."""
        slab = self._slab
        write_links(slab, links)
        slab.launch(self._kernel, whole(slab, update_set), *self._choices, **self._values)
        layout, nbytes = slab.layout, links.nbytes
        shape = _in_memory(slab, links).shape
        reals = slab.device.read(slab.buffer, 0, nbytes).view(layout.real).reshape(shape)
        together = layout.packet_bytes
        return (reals.swapaxes(3, 4) if together else reals.swapaxes(4, 5)).reshape(self._shape)


def links_shape(slab: Slab) -> tuple[int, ...]:
    """Return the shape of links: slice, parity, direction, slot, lane and component."""
    layout = slab.layout
    return (layout.slices, 2, 4, layout.slots, layout.lanes, slab.group.components)


def stored_reals(slab: Slab, matrices: NDArray[Any]) -> NDArray[Any]:
    """Return the reals that a slab stores for unitary matrices, which are not converted by kernels.

    They are the first ones of a matrix, row by row, for the groups that there are. Those of SU(2)
    are a unit quaternion, and so are the reals of a row.
    """
    flat, reals = matrices.reshape(len(matrices), -1), slab.group.components
    rows = np.zeros((len(flat), max(reals, 2 * flat.shape[1])), slab.layout.real)
    rows[:, : 2 * flat.shape[1]] = flat.view(float)
    return rows[:, :reals]


def write_links(slab: Slab, links: NDArray[Any]) -> None:
    """Write links of the shape `links_shape` to a slab without halos."""
    plain = np.ascontiguousarray(_in_memory(slab, links)).reshape(-1)
    slab.device.write(slab.buffer, 0, plain.view(np.uint8))


def _in_memory(slab: Slab, links: NDArray[Any]) -> NDArray[Any]:
    """Return links in the order of the memory."""
    *outer, _, reals = links.shape
    together = slab.layout.packet_bytes // slab.layout.real.itemsize
    if together:  # [packet][slot][component] instead of [slot][component][lane]
        return links.reshape(*outer, reals // together, together).swapaxes(3, 4)
    return links.swapaxes(4, 5)


def _differ(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which links of two arrays differ in any bit."""
    first, second = (np.ascontiguousarray(links).view(np.uint32) for links in (one, other))
    different: NDArray[np.bool_] = (first != second).any(axis=-1)
    return different


ROUGHNESS = 0.6
"""Typical size of the elements of the algebra whose exponentials are the links of the check."""

STEP = 0.04
"""Typical size of those by which links are moved. Differences of fourth order in it have errors of
about 1e-5, and those of rounding are of the same size in single precision."""

TOLERANCE = 1e-3
"""Largest deviation of derivatives, in units of their standard deviation for random directions."""


def check_force(field: Field, coupling: Coupling, replicas: Choice) -> None:
    """Check that the force of an action fits its value and its halos."""
    slab, action = field.slabs[0], coupling.action
    check_action(action, field)
    layout = slab.layout
    lattice = small_lattice(layout.lattice, action.halo_depth, slab.device.lanes(layout.precision))
    unit = replace(coupling, beta=1.0)
    choices = action.choice, replicas
    check_once(
        slab,
        [
            (kernel, choices)
            for kernel in (KICK, KICK_AND_DRIFT, *(loop.kernel for loop in action.loops))
        ],
        (lattice, action.halo_depth, *described(unit, field.group)),
        lambda: _ForceCheck(slab, lattice, unit, choices).check(),
    )


def check_term(
    field: Field, term: RunMonomial, coupling: Coupling, replicas: Choice, random: Random
) -> None:
    """Check that the force of a monomial is the derivative of its value, if it has no solvers."""
    if term.kind.solves:
        return
    slab = field.slabs[0]
    layout = slab.layout
    lattice = small_lattice(layout.lattice, 0, slab.device.lanes(layout.precision))
    where = slab, lattice, coupling, (coupling.action.choice, replicas)
    _TermCheck(*where, term=term, random=random).check()


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
        self._coefficients = coupling.coefficients(slab.group)
        self._actions = couplings_in_memory(self._links, KICK, choices, [self._coefficients])
        self._random = np.random.default_rng(1)
        self._unit = 1 / math.sqrt(slab.group.algebra_components)

    def check(self) -> None:
        """Try the kernels."""
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
        """Compare the change of the value in a random direction with the force."""
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
        identity = stored_reals(self._slab, np.eye(self._slab.group.colours, dtype=complex)[None])
        write_links(self._slab, np.broadcast_to(identity[0], links_shape(self._slab)))

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
        totals = sums.by_block()
        return Energy.of(totals[..., 0]), exact_sum(totals[..., 1])

    def _move(self, size: float) -> Field:
        """Return the links after a drift."""
        drift = size * self._unit
        slab, target, arguments = self._slab, self._moved.slabs[0], self._given(0.0, drift)
        arguments |= {
            "source": slab.buffer.address,
            "target": target.buffer.address,
            "drift": drift,
        }
        slab.launch(KICK_AND_DRIFT, slab.whole(), *self._choices, **arguments)
        return self._moved

    def _value(self, links: Field) -> Energy:
        (energy,) = gauge_actions(links, [self._coupling])
        return energy

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

    def __init__(self, *where: Any, term: RunMonomial, random: Random) -> None:
        super().__init__(*where)
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
        (energy,) = self._monomial.actions(Failures())
        return energy

    def _kick(self, momenta: NDArray[Any], size: float) -> tuple[Energy, float]:
        self._seen.take(self._links)
        self._set_momenta(momenta)
        force = self._monomial.kick(self._force, self._momenta, {0: size}, Failures())[0]
        return force.kinetic, force.mean**2 * self._links.lattice.links


def _own_slices(slab: Slab) -> NDArray[np.uint8]:
    """Return the bytes of the time slices of a slab, without those of its halos."""
    nbytes = slab.layout.slices * slab.slice_bytes
    return slab.device.read(slab.buffer, 0, nbytes).reshape(slab.layout.slices, -1)
