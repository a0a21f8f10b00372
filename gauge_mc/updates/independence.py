"""A check of actions: links that are updated simultaneously must not depend on each other.

If a colouring does not fit the loops of an action, threads read links while others change them, and
the chain has a wrong distribution. So before the first update with an action, the kernel of
overrelaxation, which reads nothing but links, updates a small lattice. Then some links of every
update set are replaced; all others of the set must be updated to the same bits. The same holds for
the links of a time slice when all links beyond the halo depth are replaced. Overrelaxation keeps
the action whose staples the header has, so that the value of the loops that the action declares
must not change either. A result is remembered next to the compiled kernels, so that each kernel is
checked once.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Action, Coupling, UpdateSet
from gauge_mc.devices.cache import cache_folder, keep, kept
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import zero
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab, split_lanes
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.groups import Group
from gauge_mc.updates.monomials import Monomial
from gauge_mc.updates.monomials.gauge import gauge_actions
from gauge_mc.updates.schedule import whole

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


def check_independence(field: Field, coupling: Coupling, kernel: Kernel, norms: Choice) -> None:
    """Check that links of an update set do not depend on each other, nor beyond the halo depth.

    Parameters
    ----------
    field : Field
        A field that is going to be updated. It is not changed.
    coupling : Coupling
        Its action.
    kernel : Kernel
        The kernel of overrelaxation.
    norms : Choice
        How it reunitarises links; see `chain_versions`.

    Raises
    ------
    GaugeError
        If the colouring of the action does not fit its loops.
    """
    slab, action = field.slabs[0], coupling.action
    layout = slab.layout
    most = slab.device.lanes(layout.precision)
    lattice = small_lattice(layout.lattice, action.halo_depth, most)
    unit, choices = replace(coupling, beta=1.0), (*action.choices, norms)
    check_once(
        slab,
        [(kernel, choices), *((loops.kernel, ()) for loops in action.loops)],
        (action.update_sets(lattice), *described(unit, field.group)),
        lambda: _UpdateCheck(slab, lattice, unit, kernel, choices).check(),
    )


def described(coupling: Coupling, group: Group) -> tuple[object, ...]:
    """Return what staples and value of an action depend on, besides its kernels."""
    weights = coupling.action.weights.items()
    return sorted(coupling.coefficients(group).items()), [(one.kinds, own) for one, own in weights]


def check_once(
    slab: Slab,
    kernels: Sequence[tuple[Kernel, tuple[Choice, ...]]],
    details: tuple[object, ...],
    check: Callable[[], None],
) -> None:
    """Do a check of kernels unless it has been passed before, on this machine.

    Parameters
    ----------
    slab : Slab
        A slab on the device.
    kernels : sequence of tuple
        The kernels, and their compile-time choices other than the group.
    details : tuple
        What else the result depends on.
    check : callable
        Raises `GaugeError` if the check is not passed.
    """
    variants = [(one, one.narrowed(slab.variant(*choices))) for one, choices in kernels]
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
    """Return a small lattice with the lanes of another one and, modulo `PERIODS`, its extents.

    Parameters
    ----------
    lattice : Lattice
        The lattice whose lanes the small one has.
    depth : int
        Halo depth; some time slices are further away from the first one.
    most : int
        Maximum number of lanes; see `split_lanes`.
    """
    x, y, z, t = lattice.extents
    period = PERIODS[any(n % PERIODS[0] for n in (x, y, z, t))]
    least, lanes = max(4, 2 * depth), math.prod(split_lanes(lattice, most))
    smaller = [[m for m in range(n % period, n, period) if m >= least] + [n] for n in (x, y, z)]
    long = next(m for m in range(t % period, t + 4 * period, period) if m >= 2 * depth + 2)
    candidates = (Lattice(a, b, c, long) for a, b, c in sorted(product(*smaller), key=math.prod))
    return next(one for one in candidates if math.prod(split_lanes(one, most)) == lanes)


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
        """Try all update sets.

        Raises
        ------
        GaugeError
            If one of them depends on other links than it may.
        """
        t = np.indices(self._shape[:-1], sparse=True)[0]
        distance = np.minimum(t, len(t) - t)  # from the first slice, around the lattice
        times = np.zeros(self._shape[:-1], int)
        for one in self._action.update_sets(self._slab.layout.lattice):
            after = self._updated(self._links, one)
            members = _differ(after, self._links)
            # Staples may leave links where they are, but all that are updated are normalised.
            times += _differ(self._updated(LONGER * self._links, one), LONGER * self._links)
            self._compare(after, one, members & self._moved, members & ~self._moved, TOGETHER)
            near, far = members & (distance == 0), distance > self._action.halo_depth
            self._compare(after, one, far, near, BEYOND)
            self._compare_values(after)
        if (times != 1).any():
            raise self._error(NOT_ONCE)

    def _compare(
        self,
        after: NDArray[Any],
        one: UpdateSet,
        moved: NDArray[np.bool_],
        compared: NDArray[np.bool_],
        fault: str,
    ) -> None:
        """Replace some links, and compare others after the update with what they were before."""
        links = np.where(moved[..., None], self._others, self._links)
        if (_differ(self._updated(links, one), after) & compared).any():
            raise self._error(fault)

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
        unitary = np.stack([np.linalg.qr(one)[0] for one in gaussian])
        unitary[:, -1] /= np.linalg.det(unitary)[:, np.newaxis]
        rows = stored_reals(self._slab, unitary)
        return rows[random.integers(MATRICES, size=self._shape[:-1])]

    def _updated(self, links: NDArray[Any], one: UpdateSet) -> NDArray[Any]:
        """Return links after the update of a set."""
        slab = self._slab
        write_links(slab, links)
        slab.launch(self._kernel, whole(slab, one), *self._choices, **self._values)
        layout, nbytes = slab.layout, links.nbytes
        shape = _in_memory(slab, links).shape
        found = slab.device.read(slab.buffer, 0, nbytes).view(layout.real).reshape(shape)
        together = layout.packet_bytes
        return (found.swapaxes(3, 4) if together else found.swapaxes(4, 5)).reshape(self._shape)


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
