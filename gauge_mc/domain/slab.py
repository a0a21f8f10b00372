"""Slabs: consecutive time slices of a field in the memory of one device.

The layout of a lattice in the memory of a device: lanes, slots and packets.

``cuda_src/lattice/geometry.h`` and ``cuda_src/lattice/links.h`` explain the layout.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer, Device, LoadedKernel
from gauge_mc.devices.base import BufferPart, repeated
from gauge_mc.devices.host import GEOMETRY, divisor, geometry_structure
from gauge_mc.devices.kernels import Choice, Kernel, Variant
from gauge_mc.devices.source import constants
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group

REALS = {"single": "float32", "double": "float64"}
"""NumPy names of the types of stored reals, by precision."""


def real_type(precision: str) -> np.dtype[np.floating[Any]]:
    """Return the type of stored reals."""
    if precision not in REALS:
        raise UsageError(f"There is no precision '{precision}'; choose {' or '.join(REALS)}.")
    return np.dtype(REALS[precision])


BOTH_PARITIES = 2
"""Value of `parity` for work on even and odd sites."""

WORD_BYTES = 4
"""Bytes per word of a random number generator's state."""


def split_lanes(lattice: Lattice, most: int) -> tuple[int, int, int]:
    """Divide a lattice into at most `most` equal sub-lattices along x, y and z, one per lane.

    Every sub-lattice has even extents, so that the sites of a slot have the same parity in all
    lanes. If the lattice cannot be divided into `most` such sub-lattices, fewer lanes are used. If
    several divisions are possible, the one with the fewest parts along x is chosen, because sites
    along x are contiguous in memory.
    """
    powers = [2**k for k in range(most.bit_length())]

    def fits(split: tuple[int, ...]) -> bool:
        pairs = zip(lattice.extents, split, strict=False)
        return bool(np.prod(split) <= most) and all(n % (2 * lanes) == 0 for n, lanes in pairs)

    splits = [split for split in product(powers, repeat=3) if fits(split)]
    x, y, z = max(splits, key=lambda s: (np.prod(s), -s[0], -max(s[1], s[2]), -s[1]))
    return x, y, z


def sum_shift(lattice: Lattice) -> float:
    """Return 1.5 * 2**52 units of the values that strict sums over a time slice add up.

    The unit is the smallest power of two for which sums of as many values as a slice has sites,
    each of at most `LARGEST_SUMMAND`, are below 2**53 units and therefore exact in any order.
    """
    largest = constants(GEOMETRY)["LARGEST_SUMMAND"]
    return 1.5 * 2.0 ** ((lattice.slice_sites * largest - 1).bit_length() - 1)


@dataclass(frozen=True)
class Layout:
    """The layout of consecutive time slices of a lattice in the memory of a device."""

    lattice: Lattice
    """The whole lattice."""
    precision: str
    """``single`` or ``double``."""
    split: tuple[int, int, int]
    """Number of lanes along x, y and z."""
    packet_bytes: int
    """Bytes of a link's components that are stored together; 0 if all of them are."""
    first: int
    """The first time slice."""
    slices: int
    """Number of slices without the halo."""
    above: int = 0
    """Halo depth above, in time slices. The halo is stored after the slab's own slices."""
    below: int = 0
    """Halo depth below, in time slices."""
    replicas: int = 1
    """Number of lattices, one after the other in memory; there is a halo only if it is 1."""

    @property
    def period(self) -> int:
        """The number of slices of a replica in memory, halo included."""
        return self.slices + self.above + self.below

    @property
    def slices_in_memory(self) -> int:
        """The number of slices of all replicas in memory, halo included."""
        return self.replicas * self.period

    @property
    def times(self) -> range:
        """The lattice's time slices that belong to this slab."""
        return range(self.first, self.first + self.slices)

    @property
    def halo(self) -> dict[int, int]:
        """The lattice's time slices in the halo, by their position in memory."""
        after = {self.slices + n: self.first + self.slices + n for n in range(self.above)}
        before = {self.period - n: self.first - n for n in range(1, self.below + 1)}
        return {place: t % self.lattice.t for place, t in (after | before).items()}

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return math.prod(self.split)

    @property
    def extents(self) -> tuple[int, int, int]:
        """The extents of a lane's sub-lattice."""
        x, y, z = (n // k for n, k in zip(self.lattice.extents, self.split, strict=False))
        return x, y, z

    @property
    def slots(self) -> int:
        """The number of slots of one parity in a slice."""
        return math.prod(self.extents) // 2

    @cached_property
    def geometry(self) -> ctypes.Structure:
        """The structure ``Geometry`` for kernels; its tables exist as long as this layout."""
        x, y, _ = self.extents
        crossing = [3**d if lanes > 1 else 0 for d, lanes in enumerate(self.split)]
        described: ctypes.Structure = geometry_structure("Geometry")(
            extent=self.extents,
            full=self.lattice.extents,
            slices=self.period,
            first=self.first,
            crossing=tuple(crossing),
            half_x=divisor(x // 2),
            y=divisor(y),
            period=divisor(self.period),
            slots=self.slots,
            lane_orders=self._lane_orders.ctypes.data,
            lane_site=self._lane_site.ctypes.data,
            sum_shift=sum_shift(self.lattice),
        )
        return described

    @cached_property
    def of_replica(self) -> Layout:
        """The layout of each replica alone."""
        return replace(self, replicas=1)

    @property
    def real(self) -> np.dtype[np.floating[Any]]:
        """The type of stored reals."""
        return real_type(self.precision)

    def slice_bytes(self, components: int) -> int:
        """Return the bytes of a slice of a field with the given number of components per link."""
        return 8 * components * self.slots * self.lanes * self.real.itemsize

    def field_bytes(self, components: int) -> int:
        """Return the bytes of all slices in memory, halo included."""
        return self.slices_in_memory * self.slice_bytes(components)

    def pack_words(self, words: NDArray[np.uint32], t: int) -> NDArray[np.uint32]:
        """Arrange words per site of a time slice in the order of the device's memory.

        They are stored in packets if they fill whole packets, as the components of links always do.
        """
        count = words.shape[-1]
        by_site = words.reshape(-1, count)[self._site_order(t)]
        if self.packet_bytes:
            packed = by_site.reshape(2, self.slots, -1, self._words_per_packet(count))
            ordered = packed.transpose(0, 2, 1, 3)
        else:
            ordered = by_site.transpose(0, 1, 3, 2)
        return np.ascontiguousarray(ordered, np.uint32).reshape(-1)

    def unpack_words(self, packed: NDArray[np.uint32], t: int) -> NDArray[np.uint32]:
        """Arrange the words of a time slice by sites; the inverse of `pack_words`."""
        count = packed.size // self.lattice.slice_sites
        if self.packet_bytes:
            ordered = packed.reshape(2, -1, self.slots, self._words_per_packet(count))
            by_site = ordered.transpose(0, 2, 1, 3).reshape(2, self.slots, 1, count)
        else:
            by_site = packed.reshape(2, self.slots, count, self.lanes).transpose(0, 1, 3, 2)
        words = np.empty((self.lattice.slice_sites, count), np.uint32)
        words[self._site_order(t)] = by_site
        x, y, z, _ = self.lattice.extents
        return words.reshape(z, y, x, count)

    def _words_per_packet(self, words: int) -> int:
        packet = self.packet_bytes // WORD_BYTES
        return packet if words % packet == 0 else 1

    def _site_order(self, t: int) -> NDArray[np.int64]:
        return self._even_order if t % 2 == 0 else self._even_order[::-1]

    @cached_property
    def _even_order(self) -> NDArray[np.int64]:
        """The number (z Y + y) X + x of each site in a slice of even t, as [parity, slot, lane]."""
        nx, ny, nz = self.extents
        z, y, half = np.meshgrid(range(nz), range(ny), range(nx // 2), indexing="ij")
        order = np.empty((2, self.slots, self.lanes), np.int64)
        for parity in range(2):
            x = 2 * half + (parity + y + z) % 2
            first = (z * self.lattice.y + y) * self.lattice.x + x
            order[parity] = first.reshape(-1, 1) + self._lane_site
        return order

    @cached_property
    def _lane_coordinates(self) -> NDArray[np.int64]:
        lx, ly, lz = self.split
        z, y, x = np.meshgrid(range(lz), range(ly), range(lx), indexing="ij")
        return np.stack([x.ravel(), y.ravel(), z.ravel()])

    @cached_property
    def lane_origin(self) -> NDArray[np.int32]:
        """The coordinates of the first site of each lane's sub-lattice: [lanes][3]."""
        return np.ascontiguousarray((self._lane_coordinates.T * self.extents), np.int32)

    def places_in(self, layout: Layout) -> NDArray[np.int32] | None:
        """Return where the sites of a slice of even t are in another layout of the same lattice."""
        if self.split == layout.split:
            return None
        place = np.empty(self.lattice.slice_sites, np.int32)
        for order in layout._even_order:
            place[order] = np.arange(order.size).reshape(order.shape)
        return np.ascontiguousarray(place[self._even_order])

    def lanes_at_boundary(self, mu: int, forward: bool) -> NDArray[np.bool_]:
        """Return for every lane whether its edge in direction mu is the boundary of the lattice."""
        if mu == 3:
            return np.ones(self.lanes, bool)
        last = self.split[mu] - 1 if forward else 0
        return np.asarray(self._lane_coordinates[mu] == last)

    @cached_property
    def _lane_site(self) -> NDArray[np.uint32]:
        """The number (z Y + y) X + x of the first site of each lane's sub-lattice."""
        x, y, z = (
            lane * extent for lane, extent in zip(self._lane_coordinates, self.extents, strict=True)
        )
        return np.asarray((z * self.lattice.y + y) * self.lattice.x + x, dtype=np.uint32)

    @cached_property
    def _lane_orders(self) -> NDArray[Any]:
        """The lane that holds a neighbour, for each set of sub-lattice edges crossed: [27][lanes].

        The row is a number in base 3. Its digits for x (lowest), y and z are 0, 1 and 2 for a
        backward step across an edge, none, and a forward step.
        """
        lx, ly, lz = self.split
        table = np.empty((27, self.lanes), f"i{self.real.itemsize}")
        for number, (dz, dy, dx) in enumerate(product((-1, 0, 1), repeat=3)):
            x, y, z = self._lane_coordinates
            table[number] = (((z + dz) % lz) * ly + (y + dy) % ly) * lx + (x + dx) % lx
        return table


MOST_PACKETS = 2**32
"""Number of packets of a field from which on kernels count them by integers of 64 bits."""

MOST_STATE_WORDS = 20
"""Upper limit for the words per site of a random number generator's state."""


@lru_cache(maxsize=1024)
def work(
    t_begin: int,
    t_step: int,
    slices: int,
    parity: int,
    mu: int = 0,
    first_slot: int = 0,
    slots: int = 0,
    colour: int = 0,
    colours: int = 0,
    rows: tuple[int, int] = (1, 1),
) -> ctypes.Structure:
    """Return the structure ``Work``, which selects the sites and the direction of a launch.

    It is shared by all who ask for the same: copy it before it is changed.
    """
    kind = geometry_structure("Work")
    places = (t_begin, t_step, slices, parity, mu, first_slot, slots)
    structure: ctypes.Structure = kind(*places, colour, colours, *rows)
    return structure


def nowhere() -> ctypes.Structure:
    """Return the structure ``Work`` of a launch without sites."""
    return work(0, 1, 0, BOTH_PARITIES)


@dataclass(frozen=True)
class Slab:
    """Consecutive time slices of a field on one device, and their halo."""

    group: Group
    """The gauge group."""
    device: Device
    """The device that holds the links."""
    layout: Layout
    """Layout of the slices and of the halo in the buffer."""
    buffer: Buffer
    """The memory that holds the links."""
    components: int | None = None
    """Number of stored reals per link, if they are not those of the group's links."""

    @cached_property
    def slice_bytes(self) -> int:
        """The bytes of a time slice."""
        return self.layout.slice_bytes(self.components or self.group.components)

    @property
    def own_slices(self) -> BufferPart:
        """The memory of the slices of all replicas, without the halo."""
        slices = self.layout.replicas * self.layout.slices
        return BufferPart(self.buffer, 0, slices * self.slice_bytes)

    def whole(
        self, parity: int = BOTH_PARITIES, mu: int = 0, some: range | None = None
    ) -> ctypes.Structure:
        """Return the work on all time slices, without the halo, of all replicas or of `some`."""
        layout = self.layout
        replicas = range(layout.replicas) if some is None else some
        return work(replicas.start * layout.period, 1, len(replicas) * layout.slices, parity, mu)

    def first_slices(self) -> ctypes.Structure:
        """Return the work on the first time slice of every replica."""
        return work(0, self.layout.period, self.layout.replicas, BOTH_PARITIES)

    def replica(self, number: int) -> Slab:
        """Return one of the replicas, as a slab in the same memory."""
        nbytes = self.layout.period * self.slice_bytes
        part = BufferPart(self.buffer, number * nbytes, nbytes)
        return Slab(self.group, self.device, self.layout.of_replica, part)

    def part(self, first: int, count: int) -> Slab:
        """Return consecutive replicas, as a slab in the same memory."""
        nbytes = self.layout.period * self.slice_bytes
        part = BufferPart(self.buffer, first * nbytes, count * nbytes)
        return Slab(self.group, self.device, replace(self.layout, replicas=count), part)

    def boundary(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the first and last slice, which are in the neighbours' halos."""
        return work(0, self.layout.slices - 1, 2, parity, mu)

    def interior(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the slices between the first and the last one."""
        return work(1, 1, self.layout.slices - 2, parity, mu)

    def variant(self, *choices: Choice) -> Variant:
        """Return the variant of kernels for this slab, given all choices except for the group."""
        if choices not in self._variants:
            layout = self.layout
            sites = layout.lattice.slice_sites * layout.slices_in_memory
            largest = max(self.buffer.nbytes, WORD_BYTES * MOST_STATE_WORDS * sites)
            large = bool(layout.packet_bytes) and largest // layout.packet_bytes >= MOST_PACKETS
            combined, strict = (*self.group.choices, *choices), self.device.strict
            variant = Variant(layout.precision, combined, layout.lanes, large, strict)
            self._variants[choices] = variant
        return self._variants[choices]

    @cached_property
    def _variants(self) -> dict[tuple[Choice, ...], Variant]:
        return {}

    def kernel(self, kernel: Kernel, *choices: Choice) -> LoadedKernel:
        """Load a kernel for this slab, given the choices other than the group."""
        return self.device.kernel(kernel, self.variant(*choices))

    def arguments(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> ctypes.Structure:
        """Return the arguments of a kernel that works on this slab; see `Kernel.arguments`."""
        variant = self.variant(*choices)
        return kernel.arguments(variant, geometry=self.layout.geometry, work=work, **values)

    def launch(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> None:
        """Run a kernel once on this slab."""
        arguments = self.arguments(kernel, work, *choices, **values)
        self.kernel(kernel, *choices)(repeated([arguments], 1))
