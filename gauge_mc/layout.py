"""How a lattice lies in a device's memory: lanes, slots, components.

``cuda_src/lattice.h`` explains the layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.structures import DivisorStruct, GeometryStruct
from gauge_mc.lattice import Lattice

COMPONENTS = {"su2": 4, "su3": 12}
"""Stored reals of a link: (a0, a1, a2, a3), or the first two rows."""

REALS = {"single": "float32", "double": "float64"}


BOTH_PARITIES = 2


def split_lanes(lattice: Lattice, most: int) -> tuple[int, int, int]:
    """Deal the lattice to at most `most` lanes as equal sub-lattices along x, y and z.

    Every sub-lattice has even extents, so that its sites have their lattice's parity in all lanes.
    Where no split fits, fewer lanes are used; of several, the one that splits x least, since runs
    in x are contiguous.

    Parameters
    ----------
    lattice : Lattice
        The lattice.
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

    Parameters
    ----------
    lattice : Lattice
        The whole lattice.
    precision : str
        ``single`` or ``double``.
    split : tuple of int
        Lanes along x, y and z.
    group_bytes : int
        Bytes of a link's components that lie together; 0 for all of them.
    first, slices : int
        The first time slice and how many there are.
    above, below : int
        Copies of so many slices that follow and that precede, behind them in memory.
    """

    lattice: Lattice
    precision: str
    split: tuple[int, int, int]
    group_bytes: int
    first: int
    slices: int
    above: int = 0
    below: int = 0

    @property
    def stored(self) -> int:
        """Slices in memory, copies too."""
        return self.slices + self.above + self.below

    @property
    def times(self) -> range:
        """The lattice's time slices that are stored here, without copies."""
        return range(self.first, self.first + self.slices)

    @property
    def copies(self) -> dict[int, int]:
        """Copies of others' slices: from the place in memory to the lattice's time slice."""
        behind = {self.slices + n: self.first + self.slices + n for n in range(self.above)}
        before = {self.stored - n: self.first - n for n in range(1, self.below + 1)}
        return {place: t % self.lattice.t for place, t in (behind | before).items()}

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
        """Slots in one parity of a slice."""
        return math.prod(self.extents) // 2

    @property
    def stride(self) -> int:
        """Slots from one group of components to the next."""
        return self.slots

    @cached_property
    def geometry(self) -> GeometryStruct:
        """What kernels are told of it. The tables in it live as long as this layout."""
        x, y, _ = self.extents
        turn = [3**d if lanes > 1 else 0 for d, lanes in enumerate(self.split)]
        return GeometryStruct(
            extent=self.extents,
            full=self.lattice.extents,
            slices=self.stored,
            first=self.first,
            turn=tuple(turn),
            half_x=DivisorStruct.of(x // 2),
            y=DivisorStruct.of(y),
            slots=self.slots,
            stride=self.stride,
            turns=self._turns.ctypes.data,
            lane_site=self._lane_site.ctypes.data,
        )

    @property
    def real(self) -> np.dtype[np.floating[Any]]:
        """The real type stored."""
        return np.dtype(REALS[self.precision])

    def slice_bytes(self, components: int) -> int:
        """Bytes of a slice of a field with so many components a link."""
        return 8 * components * self.stride * self.lanes * self.real.itemsize

    def field_bytes(self, components: int) -> int:
        """Bytes of all slices stored."""
        return self.stored * self.slice_bytes(components)

    def stored_slice(self, links: NDArray[Any], t: int) -> NDArray[Any]:
        """Put the links of time slice `t` in the order of the device's memory.

        Parameters
        ----------
        links : ndarray, shape (Z, Y, X, 4, components)
            The links' stored components.
        t : int
            The lattice's time slice.

        Returns
        -------
        ndarray
            One-dimensional, of `slice_bytes(components)`.
        """
        components = links.shape[-1]
        by_site = links.reshape(-1, 4, components)[self._site_order(t)]
        if self.group_bytes:
            group = self.group_bytes // self.real.itemsize
            grouped = by_site.reshape(2, self.slots, 4, components // group, group)
            ordered = grouped.transpose(0, 2, 3, 1, 4)
        else:
            ordered = by_site.transpose(0, 3, 1, 4, 2)
        return np.ascontiguousarray(ordered, dtype=self.real).reshape(-1)

    def links_of(self, stored: NDArray[Any], t: int, components: int) -> NDArray[Any]:
        """The inverse of `stored_slice`."""
        if self.group_bytes:
            group = self.group_bytes // self.real.itemsize
            grouped = stored.reshape(2, 4, components // group, self.slots, group)
            by_site = grouped.transpose(0, 3, 1, 2, 4).reshape(2, self.slots, 1, 4, components)
        else:
            ordered = stored.reshape(2, 4, self.slots, components, self.lanes)
            by_site = ordered.transpose(0, 2, 4, 1, 3)
        links = np.empty((self._volume, 4, components), stored.dtype)
        links[self._site_order(t)] = by_site
        x, y, z, _ = self.lattice.extents
        return links.reshape(z, y, x, 4, components)

    def stored_words(self, words: NDArray[np.uint32], t: int) -> NDArray[np.uint32]:
        """Words of the sites of slice `t`, shape (Z, Y, X, words), as the device's memory has them.

        Like the components of a link: in groups of `group_bytes`, or of one word.
        """
        count = words.shape[-1]
        by_site = words.reshape(-1, count)[self._site_order(t)]
        if self.group_bytes:
            grouped = by_site.reshape(2, self.slots, -1, self._word_group(count))
            ordered = grouped.transpose(0, 2, 1, 3)
        else:
            ordered = by_site.transpose(0, 1, 3, 2)
        return np.ascontiguousarray(ordered, np.uint32).reshape(-1)

    def words_of(self, stored: NDArray[np.uint32], t: int) -> NDArray[np.uint32]:
        """The inverse of `stored_words`."""
        count = stored.size // self._volume
        if self.group_bytes:
            grouped = stored.reshape(2, -1, self.slots, self._word_group(count))
            by_site = grouped.transpose(0, 2, 1, 3).reshape(2, self.slots, 1, count)
        else:
            by_site = stored.reshape(2, self.slots, count, self.lanes).transpose(0, 1, 3, 2)
        words = np.empty((self._volume, count), np.uint32)
        words[self._site_order(t)] = by_site
        x, y, z, _ = self.lattice.extents
        return words.reshape(z, y, x, count)

    def _word_group(self, words: int) -> int:
        group = self.group_bytes // 4
        return group if words % group == 0 else 1

    @property
    def _volume(self) -> int:
        return self.lattice.sites // self.lattice.t

    def _site_order(self, t: int) -> NDArray[np.int64]:
        return self._even_order if t % 2 == 0 else self._even_order[::-1]

    @cached_property
    def _even_order(self) -> NDArray[np.int64]:
        """Where in a slice of even t each [parity, slot, lane] is: (z Y + y) X + x."""
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
        x, y, z = (
            lane * extent for lane, extent in zip(self._lane_coordinates, self.extents, strict=True)
        )
        return np.asarray((z * self.lattice.y + y) * self.lattice.x + x, dtype=np.uint32)

    @cached_property
    def _turns(self) -> NDArray[Any]:
        """[27][lanes]: the lane of a neighbour across edges; base 3, a digit -1..1 a direction."""
        lx, ly, lz = self.split
        table = np.empty((27, self.lanes), f"i{self.real.itemsize}")
        for number, (dz, dy, dx) in enumerate(product((-1, 0, 1), repeat=3)):
            x, y, z = self._lane_coordinates
            table[number] = (((z + dz) % lz) * ly + (y + dy) % ly) * lx + (x + dx) % lx
        return table
