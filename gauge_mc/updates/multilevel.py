"""Multilevel averages of two lines along t, after Luescher and Weisz, hep-lat/0108014.

The lattice is divided into slabs of time slices, whose interior is updated many times. The two-link
operators of a slab are averaged over these updates. Their product over all slabs is an unbiased
estimate of the correlator of two Polyakov loops, whose error falls exponentially with the number of
slabs. Products over some slabs are the sides of Wilson loops.

Updates of the interior of slabs of time slices, whose boundaries do not change.

The lattice is divided into slabs of equal thickness. The links in space on the first slice of every
slab are its boundary and are not updated. If the loops of the action extend over one slice in time,
no loop contains links that are updated in two slabs. All slabs are then independent: they can be
updated at the same time, and devices that share the lattice need no halo exchange.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_above
from gauge_mc.domain.slab import BOTH_PARITIES, MOST_PACKETS, Slab, work
from gauge_mc.errors import GaugeError, NoMemoryError, UsageError
from gauge_mc.fields.decorated_links import LineMemory, hand_on
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums, add_slices
from gauge_mc.groups import Group
from gauge_mc.quoting import quoted
from gauge_mc.updates.checks import check_independence
from gauge_mc.updates.heatbath import HEATBATH, OVERRELAXATION
from gauge_mc.updates.schedule import Stage
from gauge_mc.updates.sweep import NO_TARGETS, ONE_REPLICA, SlabSweep, norms_of

TIME = 3
"""The direction of time."""


class SubLatticeUpdates:
    """Updates of the interior of slabs: heatbath and overrelaxation sweeps.

    The random numbers are those of Philox for the sites of the whole lattice, so that the links do
    not depend on how it is divided among devices.

    Parameters
    ----------
    field : Field
        Updated in place, except for its halos.
    thickness : int
        Number of time slices of a slab.
    coupling : Coupling
        Action and couplings of the ensemble.
    seed : int
        Seed of the random numbers of all sites.
    overrelax : int
        Overrelaxation sweeps after each heatbath sweep.

    Raises
    ------
    UsageError
        If the action is unknown or extends over more than one time slice, or if the slabs do not
        fit the division of the lattice among devices.
    """

    def __init__(
        self, field: Field, thickness: int, coupling: Coupling, seed: int, overrelax: int
    ) -> None:
        action = coupling.action
        if action.halo_depth != 1:
            raise UsageError(
                f"The action {action.name} has loops that extend over {action.halo_depth} time "
                "slices, so that slabs are not independent; measure without multilevel averages."
            )
        norms = norms_of(field.precision)
        check_independence(field, action, OVERRELAXATION, norms)
        check_division(field, thickness)
        coefficients = coupling.coefficients(field.group)
        random = Random.for_field(field, defaults.START_RNG, seed)
        shared = {"action": coefficients, "actions": None}
        self._overrelax = overrelax

        def values(number: int) -> dict[str, Any]:
            return {"stream": random.stream(number), "keys": None, **shared}

        of_heatbath, divided = (random.choice, ONE_REPLICA, norms), (field, thickness)
        self._heatbath = _sweeps(*divided, HEATBATH, action, of_heatbath, values)
        self._reflection = _sweeps(*divided, OVERRELAXATION, action, (norms,), lambda _: shared)

    def __call__(self, step: int) -> None:
        """Do one heatbath sweep and the overrelaxation sweeps."""
        for slab in self._heatbath:
            slab.run(1, step)
        for slab in self._reflection if self._overrelax else ():
            slab.run(self._overrelax, None)


def check_division(field: Field, thickness: int) -> None:
    """Refuse slabs that do not fit the division of a lattice among devices."""
    if field.lattice.t % thickness:
        raise UsageError(
            f"Slabs of {thickness} time slices do not make up the lattice {field.lattice}; choose "
            f"a thickness that divides {field.lattice.t}."
        )
    for layout in field.layouts:
        if layout.first % thickness or layout.slices % thickness:
            raise UsageError(
                f"Slabs of {thickness} time slices do not fit a device with the slices "
                f"{layout.first} to {layout.first + layout.slices - 1} of {field.lattice}; choose "
                "thinner slabs or another number of devices."
            )


def _sweeps(
    field: Field,
    thickness: int,
    kernel: Kernel,
    action: Action,
    choices: Sequence[Choice],
    values: Callable[[int], Mapping[str, Any]],
) -> list[SlabSweep]:
    """Return a sweep over the interior of the slabs on each device of this process."""
    return [
        SlabSweep(
            slab,
            kernel,
            (*action.choices, *choices),
            [Stage(tuple(_interior(slab, action, thickness)))],
            None,
            {**values(number), "halo": NO_TARGETS},
        )
        for number, slab in enumerate(field.slabs)
    ]


def _interior(slab: Slab, action: Action, thickness: int) -> list[ctypes.Structure]:
    """Return the work of a sweep, in the order of execution: one slice of every slab at a time."""
    count = slab.layout.slices // thickness
    return [
        work(t, thickness, count, s.parity, s.mu)
        for s in action.update_sets(slab.layout.lattice)
        for t in range(0 if s.mu == TIME else 1, thickness)
    ]


SLAB_LINES = Kernel("slab_lines")
MEAN_SLAB_LINES = Kernel("mean_slab_lines")
TWO_LINKS = Kernel("two_links")
ADD_TWO_LINKS = Kernel("add_two_links")
TWO_LINKS_PRODUCT = Kernel("two_links_product")
TWO_LINKS_TRACE = Kernel("two_links_trace")

MOST_LEVELS = 2
"""Largest number of nested levels."""

MOST_VALUES = 100_000
"""Largest number of values per level, to catch typing errors."""

STEP_BITS = 24
"""Bits of the number of a heatbath sweep that count sweeps on one field; the upper bits are from
the digest of the field, so that no two fields are updated with the same random numbers."""

Vector = tuple[int, int, int]
"""The vector from one line to the other."""


@dataclass(frozen=True)
class Level:
    """A division of the lattice into slabs, and the number of values that each slab averages."""

    thickness: int
    """Number of time slices of a slab."""
    values: int
    """Number of values of every slab. The first is that of the links as they are; an update of the
    slabs precedes each of the others.
    """

    def __str__(self) -> str:
        return f"{self.thickness},{self.values}"


def parse_levels(text: str | tuple[Any, ...]) -> tuple[Level, ...]:
    """Read levels such as ``4,100``, or ``4,20/2,50`` with the thicker slabs first."""
    pairs: tuple[Any, ...] = text if isinstance(text, tuple) else ((),)
    if isinstance(text, str):
        words = [word.strip() for word in text.split("/")]
        if all(re.fullmatch("[0-9]{1,9},[0-9]{1,9}", word) for word in words):
            pairs = tuple(tuple(map(int, word.split(","))) for word in words)
    pairs = (pairs,) if all(isinstance(pair, int) for pair in pairs) else pairs
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise UsageError(
            f"--multilevel: {quoted(text)} is not of the form THICKNESS,VALUES, such as "
            "4,100, or 4,20/2,50 for two levels."
        )
    levels = tuple(Level(*pair) for pair in pairs)
    check_levels(levels)
    return levels


def check_levels(levels: Sequence[Level]) -> None:
    """Refuse levels with impossible numbers, or that do not fit each other."""
    if len(levels) > MOST_LEVELS:
        raise UsageError(f"There are {len(levels)} levels; choose at most {MOST_LEVELS}.")
    for level in levels:
        if level.thickness < 1 or not 1 <= level.values <= MOST_VALUES:
            raise UsageError(
                f"--multilevel: {level} has an invalid number; choose slabs of at least one time "
                f"slice, and from 1 to {MOST_VALUES} values."
            )
    for outer, inner in pairwise(levels):
        if outer.thickness <= inner.thickness or outer.thickness % inner.thickness:
            raise UsageError(
                f"--multilevel: slabs of {outer.thickness} time slices are not made up of several "
                f"slabs of {inner.thickness}; give the thicker slabs first."
            )


class _SlabMemory:
    """The lines and two-link operators on one device.

    Parameters
    ----------
    slab : Slab
        A slab of the field that is measured.
    levels : sequence of Level
        The levels, the thicker slabs first.
    vectors : int
        Number of vectors between lines.
    places : int
        Number of operators of thick slabs in memory for one vector.
    """

    def __init__(self, slab: Slab, levels: Sequence[Level], vectors: int, places: int) -> None:
        self.slab = slab
        inner, two = levels[-1], len(levels) > 1
        group, layout = slab.group, slab.layout
        element = layout.lattice.slice_sites * layout.real.itemsize
        pairs = group.colours**2
        # A row of an operator fills whole packets; see two_links.h.
        components = pairs * ((2 * pairs + 3) // 4 * 4)
        self.product_bytes = element * components
        self.lines_bytes = layout.slices // inner.thickness * element * group.matrix_components
        self._average_bytes = places * self.product_bytes if two else 0
        operators = (layout.slices // inner.thickness if two else places) * self.product_bytes
        parts = (inner.values * self.lines_bytes, operators, vectors * self._average_bytes)
        largest = max(operators, self._average_bytes)
        if layout.packet_bytes and largest > MOST_PACKETS * layout.packet_bytes:
            raise GaugeError(
                f"Multilevel averages need {largest / 2**30:.3g} GiB for the operators of a "
                f"device, and kernels find at most {MOST_PACKETS * layout.packet_bytes >> 30} GiB "
                "of them: choose thicker slabs or more devices."
            )
        try:
            self.lines, self.operators, averages = map(slab.device.allocate, parts)
        except NoMemoryError as error:
            raise GaugeError(
                f"Multilevel averages need {sum(parts) / 2**30:.3g} GiB of memory for "
                f"{inner.values} lines in every slab and for {vectors} distances: choose fewer "
                "values, thicker slabs, a smaller --r-max or more devices."
            ) from error
        thick = averages if two else self.operators
        # The operators of a thick slab are as large as a slice of links with so many components.
        self.thick = Slab(group, slab.device, layout, thick, components // 4)

    def line(self, number: int) -> int:
        """Return the address of the lines of one configuration of the slabs."""
        return self.lines.address + number * self.lines_bytes

    def average(self, number: int) -> int:
        """Return the address of the averages of the thick slabs for one vector."""
        return self.thick.buffer.address + self.offset(number)

    def offset(self, number: int) -> int:
        """Return the offset in bytes of the averages for one vector; 0 with a single level."""
        return number * self._average_bytes


class MultilevelAverages:
    """Multilevel averages of products of two lines along t, with the memory that they need.

    The memory is that of one more field, of a line for every value, thinnest slab and site in
    space, and of a two-link operator for every thinnest slab and site in space. With two levels
    there is one more operator for every thick slab, site in space and vector. In single precision,
    a line has 80 bytes and an operator 720 for SU(3); for SU(2) they have 16 and 128.

    Parameters
    ----------
    like : Field
        A field of the same kind as those to be measured. It is not changed.
    levels : sequence of Level
        The levels, the thicker slabs first.
    vectors : sequence of (int, int, int)
        The vectors from one line to the other.
    coupling : Coupling
        Action and couplings of the ensemble.
    seed, overrelax
        See `SubLatticeUpdates`.
    multihit : bool
        Whether links of lines are replaced by their means, given all other links. This is correct
        unless two lines contain links of the same loop of the action.
    above : int
        Number of slabs following those of a device whose operators it needs as well. They are
        copied from other devices if there are any.

    Raises
    ------
    UsageError
        If the slabs do not fit the lattice or its division among devices, or the action; or if the
        coupling is too large for means of links.
    GaugeError
        If a device does not have enough memory.
    """

    def __init__(
        self,
        like: Field,
        levels: Sequence[Level],
        vectors: Sequence[Vector],
        coupling: Coupling,
        seed: int,
        overrelax: int,
        multihit: bool = False,
        above: int = 0,
    ) -> None:
        check_levels(levels)
        if multihit:
            check_means(like.group, coupling)
        self._multihit = multihit
        self._levels, self._vectors = tuple(levels), tuple(vectors)
        self._seed, self._overrelax = seed, overrelax
        self._field = like.repeated(1)
        self._prepared: dict[Coupling, list[SubLatticeUpdates]] = {}
        self._updates(coupling)
        counts = [layout.slices // levels[0].thickness for layout in like.layouts]
        above = above if len(counts) > 1 else 0
        sizes = len(vectors), max(counts) + above
        self._memory = [_SlabMemory(slab, levels, *sizes) for slab in self._field.slabs]
        thick = [x.thick for x in self._memory]
        self._halo = HaloExchange(like.devices, thick, transfers_above(counts, above))

    def _updates(self, coupling: Coupling) -> list[SubLatticeUpdates]:
        """Return the updates of every level."""
        if coupling not in self._prepared:
            options = (coupling, self._seed, self._overrelax)
            self._prepared[coupling] = [
                SubLatticeUpdates(self._field, level.thickness, *options) for level in self._levels
            ]
        return self._prepared[coupling]

    def __call__(self, field: Field, coupling: Coupling, digest: int) -> NDArray[np.float64]:
        """Return the sums over space of the averages of Re [Tr L(x) (Tr L(x + R))^*].

        Here L are the lines through the whole lattice. See `operators` for the parameters.
        """
        last = next((x for x in self._memory if _is_last(x.slab)), None)
        sums = None
        if last:
            over = work(last.slab.layout.first % 2, 1, 1, BOTH_PARITIES)
            sums = SlabSums(last.slab, 1, len(self._vectors), over)
        for operators in self.operators(field, coupling, digest):
            self._trace(operators, sums)
        return add_slices(self._field.devices, [sums.by_slice()] if sums else [])[:, 0]

    def operators(self, field: Field, coupling: Coupling, digest: int) -> Iterator[list[int]]:
        """Average the two-link operators of the thickest slabs."""
        for mine, slab in zip(self._field.slabs, field.slabs, strict=True):
            mine.device.copy(mine.own_slices, slab.own_slices)
        self._field.exchange_halo()
        self._step = digest << STEP_BITS
        updates, outer = self._updates(coupling), self._levels[0]
        single = len(self._levels) == 1
        for n in range(1 if single else outer.values):
            if n:
                self._update(updates[0])
            self._draw_lines(updates[-1], coupling)
            for memory in () if single else self._memory:
                for number, vector in enumerate(self._vectors):
                    self._two_links(memory, vector)
                    self._add(memory, number, first=n == 0)
        for number, vector in enumerate(self._vectors):
            for memory in self._memory if single else ():
                self._two_links(memory, vector)
            first = self._memory[0]
            self._halo.post(SliceRange(first.offset(number), first.product_bytes))
            self._halo.wait()
            yield [x.average(number) for x in self._memory]
            if len(self._field.layouts) > 1:
                self._field.devices.fence()  # the next operators replace those on other devices

    def _update(self, updates: SubLatticeUpdates) -> None:
        self._step += 1
        updates(self._step)

    def _draw_lines(self, updates: SubLatticeUpdates, coupling: Coupling) -> None:
        """Compute the lines through the thinnest slabs, and again after every update of them."""
        inner = self._levels[-1]
        for n in range(inner.values):
            if n:
                self._update(updates)
            for memory in self._memory:
                self._lines(memory, n, coupling)

    def _lines(self, memory: _SlabMemory, number: int, coupling: Coupling) -> None:
        """Compute the lines through the thinnest slabs on a device."""
        inner, slab = self._levels[-1], memory.slab
        values = {
            "links": slab.buffer.address,
            "lines": memory.line(number),
            "thickness": inner.thickness,
        }
        if not self._multihit:
            slab.launch(SLAB_LINES, _slabs(slab, inner), **values)
            return
        choice = coupling.action.choice
        kind = MEAN_SLAB_LINES.part("ACTION::Coefficients", slab.variant(choice))
        coefficients = kind(**coupling.coefficients(slab.group))
        slab.launch(MEAN_SLAB_LINES, _slabs(slab, inner), choice, **values, action=coefficients)

    def _two_links(self, memory: _SlabMemory, vector: Vector) -> None:
        """Average the operators of the thinnest slabs over all lines."""
        inner, slab = self._levels[-1], memory.slab
        lines = {"lines": memory.lines.address, "stride": memory.lines_bytes, "count": inner.values}
        outputs = {"thickness": inner.thickness, "operators": memory.operators.address}
        slab.launch(TWO_LINKS, _slabs(slab, inner), **lines, end=vector, **outputs)

    def _add(self, memory: _SlabMemory, number: int, first: bool) -> None:
        """Add products of operators to the averages of the thick slabs."""
        outer, inner = self._levels
        memory.slab.launch(
            ADD_TWO_LINKS,
            _slabs(memory.slab, outer),
            thin=memory.operators.address,
            average=memory.average(number),
            thickness=outer.thickness,
            factors=outer.thickness // inner.thickness,
            first=int(first),
            weight=1 / outer.values,
        )

    def _trace(self, operators: Sequence[int], sums: SlabSums | None) -> None:
        """Multiply the operators for one vector, one device after the other; sum the traces."""
        field, count = self._field, len(self._field.layouts)
        first, thickness = field.devices.first_slab, self._levels[0].thickness
        local = dict(enumerate(self._memory, first))
        for number in range(count):
            memory, following = local.get(number), local.get(number + 1)
            after = _product(memory, "after") if memory and number < count - 1 else None
            if memory:
                slab = memory.slab
                before = _product(memory, "before")[1].address if number else None
                values = {
                    "operators": operators[number - first],
                    "slabs": slab.layout.slices // thickness,
                    "before": before,
                }
                if after:
                    over = work(0, 1, 1, BOTH_PARITIES)
                    slab.launch(TWO_LINKS_PRODUCT, over, **values, after=after[1].address)
                else:
                    assert sums is not None
                    sums.launch(TWO_LINKS_TRACE, values)
            if number < count - 1:
                target = _product(following, "before") if following else None
                hand_on(field, after, target, number, self._memory[0].product_bytes)


def check_means(group: Group, coupling: Coupling) -> None:
    """Refuse couplings for which the means of links along t are not computed."""
    factor, largest = coupling.action.anisotropy, group.largest_mean_beta
    beta = coupling.beta * factor
    if beta > largest:
        quantity = "beta" if factor == 1 else "beta times the anisotropy"
        raise UsageError(
            f"The means of links of {group} are computed for {quantity} up to {largest:.3g}, not "
            f"{beta:g}; leave out multihit."
        )


def _slabs(slab: Slab, level: Level) -> ctypes.Structure:
    """Return the work on the first slices of all slabs of a level."""
    return work(0, level.thickness, slab.layout.slices // level.thickness, BOTH_PARITIES)


def _is_last(slab: Slab) -> bool:
    return slab.layout.times.stop == slab.layout.lattice.t


def _product(memory: _SlabMemory, where: str) -> LineMemory:
    """Return memory for the product of the operators before or after those of a device."""
    return memory.slab, memory.slab.device.scratch(f"product {where}", memory.product_bytes)
