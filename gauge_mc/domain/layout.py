"""How a lattice lies in a device's memory: lanes, slots and packets.

``cuda_src/lattice/geometry.h`` and ``cuda_src/lattice/links.h`` explain the layout.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.structures import divisor, geometry_structure
from gauge_mc.domain.lattice import Lattice

REALS = {"single": "float32", "double": "float64"}
"""NumPy's names of the stored reals, by precision."""

BOTH_PARITIES = 2
"""The parity of work on even and odd sites."""

WORD_BYTES = 4
"""Bytes of a word of a random number generator's state."""


def split_lanes(lattice: Lattice, most: int) -> tuple[int, int, int]:
    """Divide a lattice into at most `most` equal sub-lattices along x, y and z, one a lane.

    Every sub-lattice has even extents, so that a site's parity is the same in all lanes. If no
    division into `most` sub-lattices fits, fewer lanes are used. Of several divisions the one that
    divides x least is chosen, since sites along x are contiguous in memory.

    Parameters
    ----------
    lattice : Lattice
    most : int
        A power of two.

    Returns
    -------
    tuple of int
        The number of sub-lattices along x, y and z.
    """
    powers = [2**k for k in range(most.bit_length())]

    def fits(split: tuple[int, ...]) -> bool:
        pairs = zip(lattice.extents, split, strict=False)
        return bool(np.prod(split) <= most) and all(n % (2 * lanes) == 0 for n, lanes in pairs)

    splits = [split for split in product(powers, repeat=3) if fits(split)]
    x, y, z = max(splits, key=lambda s: (np.prod(s), -s[0], -max(s[1], s[2]), -s[1]))
    return x, y, z


@dataclass(frozen=True)
class Layout:
    """Consecutive time slices of a lattice in a device's memory.

    Attributes
    ----------
    lattice : Lattice
        The whole lattice.
    precision : str
        ``single`` or ``double``.
    split : tuple of int
        Lanes along x, y and z.
    packet_bytes : int
        Bytes of a link's components that lie together; 0 if all of them do.
    first, slices : int
        The first time slice, and how many there are without the halo.
    above, below : int
        Halo depth above and below, in time slices. The halo is stored after the slab's own slices.
    """

    lattice: Lattice
    precision: str
    split: tuple[int, int, int]
    packet_bytes: int
    first: int
    slices: int
    above: int = 0
    below: int = 0

    @property
    def slices_in_memory(self) -> int:
        """The number of slices in memory, halo included."""
        return self.slices + self.above + self.below

    @property
    def times(self) -> range:
        """The lattice's time slices that belong to this slab."""
        return range(self.first, self.first + self.slices)

    @property
    def halo(self) -> dict[int, int]:
        """The lattice's time slices in the halo, by their place in memory."""
        after = {self.slices + n: self.first + self.slices + n for n in range(self.above)}
        before = {self.slices_in_memory - n: self.first - n for n in range(1, self.below + 1)}
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
        """The number of slots of one parity of a slice."""
        return math.prod(self.extents) // 2

    @cached_property
    def geometry(self) -> ctypes.Structure:
        """The structure ``Geometry`` of kernels; its tables live as long as this layout."""
        x, y, _ = self.extents
        crossing = [3**d if lanes > 1 else 0 for d, lanes in enumerate(self.split)]
        described: ctypes.Structure = geometry_structure("Geometry")(
            extent=self.extents,
            full=self.lattice.extents,
            slices=self.slices_in_memory,
            first=self.first,
            crossing=tuple(crossing),
            half_x=divisor(x // 2),
            y=divisor(y),
            slots=self.slots,
            lane_orders=self._lane_orders.ctypes.data,
            lane_site=self._lane_site.ctypes.data,
        )
        return described

    @property
    def real(self) -> np.dtype[np.floating[Any]]:
        """The type of the stored reals."""
        return np.dtype(REALS[self.precision])

    def slice_bytes(self, components: int) -> int:
        """Return the bytes of a slice of a field with so many components a link."""
        return 8 * components * self.slots * self.lanes * self.real.itemsize

    def field_bytes(self, components: int) -> int:
        """Return the bytes of all slices in memory."""
        return self.slices_in_memory * self.slice_bytes(components)

    def pack_links(self, links: NDArray[Any], t: int) -> NDArray[Any]:
        """Put the links of a time slice in the order of the device's memory.

        Parameters
        ----------
        links : ndarray, shape (Z, Y, X, 4, components)
            The stored components of the links.
        t : int
            The lattice's time slice.

        Returns
        -------
        ndarray
            One-dimensional, of `slice_bytes(components)` bytes.
        """
        components = links.shape[-1]
        by_site = links.reshape(-1, 4, components)[self._site_order(t)]
        if self.packet_bytes:
            packet = self.packet_bytes // self.real.itemsize
            packed = by_site.reshape(2, self.slots, 4, components // packet, packet)
            ordered = packed.transpose(0, 2, 3, 1, 4)
        else:
            ordered = by_site.transpose(0, 3, 1, 4, 2)
        return np.ascontiguousarray(ordered, dtype=self.real).reshape(-1)

    def unpack_links(self, packed: NDArray[Any], t: int, components: int) -> NDArray[Any]:
        """Return the links of a time slice from the device's memory; the inverse of `pack_links`."""
        if self.packet_bytes:
            packet = self.packet_bytes // self.real.itemsize
            ordered = packed.reshape(2, 4, components // packet, self.slots, packet)
            by_site = ordered.transpose(0, 3, 1, 2, 4).reshape(2, self.slots, 1, 4, components)
        else:
            ordered = packed.reshape(2, 4, self.slots, components, self.lanes)
            by_site = ordered.transpose(0, 2, 4, 1, 3)
        links = np.empty((self.lattice.slice_sites, 4, components), packed.dtype)
        links[self._site_order(t)] = by_site
        x, y, z, _ = self.lattice.extents
        return links.reshape(z, y, x, 4, components)

    def pack_words(self, words: NDArray[np.uint32], t: int) -> NDArray[np.uint32]:
        """Put words of the sites of slice `t`, shape (Z, Y, X, words), in the order of the memory.

        They are packed like the components of a link, in packets if they fill these.
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
        """Return the words of a slice from the device's memory; the inverse of `pack_words`."""
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
        """The number (z Y + y) X + x of each [parity, slot, lane] in a slice of even t."""
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
    def _lane_site(self) -> NDArray[np.uint32]:
        """The number (z Y + y) X + x of the first site of each lane's sub-lattice."""
        x, y, z = (
            lane * extent for lane, extent in zip(self._lane_coordinates, self.extents, strict=True)
        )
        return np.asarray((z * self.lattice.y + y) * self.lattice.x + x, dtype=np.uint32)

    @cached_property
    def _lane_orders(self) -> NDArray[Any]:
        """The lane of a neighbour, [27][lanes], by the sub-lattice edges that lie between.

        The edges are a number in base 3 with a digit for x, y and z, 0 to 2 for -1 to 1.
        """
        lx, ly, lz = self.split
        table = np.empty((27, self.lanes), f"i{self.real.itemsize}")
        for number, (dz, dy, dx) in enumerate(product((-1, 0, 1), repeat=3)):
            x, y, z = self._lane_coordinates
            table[number] = (((z + dz) % lz) * ly + (y + dy) % ly) * lx + (x + dx) % lx
        return table
