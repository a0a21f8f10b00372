"""A check of actions: links that are updated simultaneously must not depend on each other.

If a colouring does not fit the loops of an action, threads read links while others change them, and
the chain has a wrong distribution. So before the first update with an action, the kernel of
overrelaxation, which reads nothing but links, updates a small lattice. Then some links of every
update set are replaced; all others of the set must be updated to the same bits. The same holds for
the links of a time slice when all links beyond the halo depth are replaced. A result is remembered
next to the compiled kernels, so that each kernel is checked once.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping
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
from gauge_mc.domain.layout import split_lanes
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.updates.schedule import whole

PERIODS = 4, 12
"""Colourings depend on the extents modulo the first number if all are multiples of it, else modulo
the second."""

MATRICES = 256
"""Number of matrices from which links are drawn."""

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
    coefficients = replace(coupling, beta=1.0).coefficients(field.group)
    choices = (*action.choices, norms)
    variant = kernel.narrowed(slab.variant(*choices))
    machine = type(slab.device).__name__
    key = repr((variant, action.update_sets(lattice), sorted(coefficients.items()), machine))
    if key in _passed:
        return
    digest = hashlib.sha256(key.encode() + kernel.digest(variant)).hexdigest()
    path = cache_folder() / f"action-{digest[:24]}.txt"
    if kept(path) != digest.encode():
        _UpdateCheck(slab, lattice, action, coefficients, kernel, choices).check()
        with suppress(GaugeError, OSError):  # else it is checked again by the next process
            keep(path, digest.encode())
    _passed.add(key)


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
    action : Action
        The gauge action.
    coefficients : mapping of str to float
        Members of ``Coefficients`` in the header of the action.
    kernel : Kernel
        The kernel of the updates.
    choices : tuple of Choice
        The compile-time choices of the kernel other than the group.
    """

    def __init__(
        self,
        slab: Slab,
        lattice: Lattice,
        action: Action,
        coefficients: Mapping[str, float],
        kernel: Kernel,
        choices: tuple[Choice, ...],
    ) -> None:
        precision = slab.layout.precision
        self._field = Field.empty(lattice, slab.group.name, precision, slab.device)
        self._action, self._kernel, self._choices = action, kernel, choices
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
            times += members
            self._compare(after, one, members & self._moved, members & ~self._moved, TOGETHER)
            near, far = members & (distance == 0), distance > self._action.halo_depth
            self._compare(after, one, far, near, BEYOND)
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

    def _error(self, fault: str) -> GaugeError:
        action = self._action
        module = sys.modules[type(action).__module__]
        return GaugeError(
            f"The action {action.name} ({module.__file__ or module.__name__}) {fault}: its "
            f"colouring {action.colouring.cpp} is for loops whose links are at most "
            f"{action.halo_depth} apart; choose another colouring."
        )

    @property
    def _slab(self) -> Slab:
        return self._field.slabs[0]

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """The shape of arrays of links: slice, parity, direction, slot, lane and component."""
        layout, reals = self._slab.layout, self._slab.group.components
        return (layout.slices, 2, 4, layout.slots, layout.lanes, reals)

    def _drawn(self, random: np.random.Generator) -> NDArray[Any]:
        """Return links that are drawn from some random unitary matrices.

        The stored reals of a link are the first ones of its matrix, row by row, for the groups that
        there are. Those of SU(2) are a unit quaternion, and so are the reals of a row.
        """
        group, reals = self._slab.group, self._shape[-1]
        shape = (MATRICES, group.colours, group.colours)
        gaussian = random.normal(size=shape) + 1j * random.normal(size=shape)
        unitary = np.stack([np.linalg.qr(one)[0] for one in gaussian]).reshape(MATRICES, -1)
        rows = np.zeros((MATRICES, max(reals, 2 * unitary.shape[1])), self._slab.layout.real)
        rows[:, : 2 * unitary.shape[1]] = unitary.view(float)
        return rows[random.integers(MATRICES, size=self._shape[:-1]), :reals]

    def _updated(self, links: NDArray[Any], one: UpdateSet) -> NDArray[Any]:
        """Return links after the update of a set."""
        slab = self._slab
        layout, device = slab.layout, slab.device
        *outer, _, reals = self._shape
        together = layout.packet_bytes // layout.real.itemsize
        if together:  # [packet][slot][component] instead of [slot][component][lane]
            parts = links.reshape(*outer, reals // together, together).swapaxes(3, 4)
        else:
            parts = links.swapaxes(4, 5)
        device.write(slab.buffer, 0, np.ascontiguousarray(parts).reshape(-1).view(np.uint8))
        slab.launch(self._kernel, whole(slab, one), *self._choices, **self._values)
        found = device.read(slab.buffer, 0, links.nbytes).view(layout.real).reshape(parts.shape)
        return (found.swapaxes(3, 4) if together else found.swapaxes(4, 5)).reshape(self._shape)


def _differ(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which links of two arrays differ in any bit."""
    first, second = (np.ascontiguousarray(links).view(np.uint32) for links in (one, other))
    different: NDArray[np.bool_] = (first != second).any(axis=-1)
    return different
