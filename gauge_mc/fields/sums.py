"""Sums over the sites of a field, computed as tree reductions in double precision."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import repeated
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.field import Field

ADD_PARTIAL_SUMS = Kernel("add_partial_sums")

ANY_VARIANT = Variant("double")
"""A variant of `ADD_PARTIAL_SUMS`, which depends neither on the group nor on the precision."""

SUM_BYTES = 8
"""Bytes per sum, in double precision."""


class SlabSums:
    """Sums over a slab of the values that a kernel computes at every site.

    Launch all sums first, then read them together with `by_slice`.

    Parameters
    ----------
    slab : Slab
    values : int
        Number of values per site.
    rows : int
        Total number of launches. Their partial sums share the device's scratch memory.
    over : ctypes structure, optional
        The time slices to sum over, of both parities; by default `Slab.whole`.
    """

    def __init__(
        self, slab: Slab, values: int, rows: int, over: ctypes.Structure | None = None
    ) -> None:
        self.slab = slab
        self._over = slab.whole() if over is None else over
        self.slices = int(self._over.slices)
        self._values, self._rows, self._launched = values, rows, 0
        self._parts = slab.device.partial_sums(slab.layout.extents, slab.variant())
        self._row_bytes = SUM_BYTES * self.slices * self._parts * values
        nbytes = rows * (self._row_bytes + SUM_BYTES * self.slices * values)
        self._memory = slab.device.scratch("sums", nbytes)

    def launch(self, kernel: Kernel, *steps: Mapping[str, Any]) -> None:
        """Launch a sum kernel once for each of `steps`.

        Parameters
        ----------
        kernel : Kernel
        *steps : mapping of str to object
            The kernel's arguments by name, without ``geometry``, ``work`` and ``sums``.
        """
        filled = []
        for values in steps:
            sums = self.partial_sums(self._launched)
            filled.append(self.slab.arguments(kernel, self._over, sums=sums, **values))
            self._launched += 1
        self.slab.kernel(kernel)(repeated(filled, 1))

    def partial_sums(self, row: int) -> int:
        """Return the address at which a launch stores its partial sums."""
        return self._memory.address + row * self._row_bytes

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the sums over time slices: (rows, slices, values)."""
        return self._rows, self.slices, self._values

    def by_slice(self) -> NDArray[np.float64]:
        """Wait for all launches and add up their partial sums.

        Returns
        -------
        ndarray, shape (rows, slices, values), float64
            The sums over each time slice, in the order of the launches.
        """
        offset = self._rows * self._row_bytes
        self.add_up(self._memory.address + offset)
        data = self.slab.device.read(self._memory, offset, SUM_BYTES * math.prod(self.shape))
        return data.view(np.float64).reshape(self.shape)

    def add_up(self, totals: int) -> None:
        """Add up the partial sums of all launches, and store what `by_slice` returns.

        Parameters
        ----------
        totals : int
            Address in the memory of the device.
        """
        arguments = ADD_PARTIAL_SUMS.arguments(
            ANY_VARIANT,
            geometry=self.slab.layout.geometry,
            work=work(0, 1, self.slices, parity=0),
            partial=self._memory.address,
            totals=totals,
            rows=self._rows,
            slices=self.slices,
            parts=self._parts,
            values=self._values,
        )
        self.slab.device.kernel(ADD_PARTIAL_SUMS, ANY_VARIANT)(repeated([arguments], 1))


def total(field: Field, sums: Sequence[SlabSums]) -> NDArray[np.float64]:
    """Add up sums over all slabs of a field.

    Parameters
    ----------
    field : Field
    sums : sequence of SlabSums
        The sums over this process's slabs.

    Returns
    -------
    ndarray, shape (rows, values), float64
        The totals. The order of additions depends only on the lattice, not on its division.
    """
    return add_slices(field.devices, [one.by_slice() for one in sums])


def add_slices(devices: DeviceGroup, local: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add up sums over time slices, of shape (rows, slices, values), of all slabs; see `total`."""
    return np.asarray(_of_all_slabs(devices, local).sum(axis=1))


def _of_all_slabs(devices: DeviceGroup, local: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Join sums over time slices, of shape (rows, slices, values), in the order of the slabs."""
    parts = devices.processes.gather(local)
    return np.concatenate([one for process in parts for one in process], axis=1)


def lattice_sums(field: Field, kernel: Kernel, values: int) -> NDArray[np.float64]:
    """Sum the values that a kernel computes at every site.

    Parameters
    ----------
    field : Field
    kernel : Kernel
        A sum kernel whose only other argument is ``links``.
    values : int
        Number of values per site.

    Returns
    -------
    ndarray, shape (values,), float64
        The sums. The order of additions depends only on the lattice, not on its division.
    """
    sums = [SlabSums(slab, values, 1) for slab in field.slabs]
    for one in sums:
        one.launch(kernel, {"links": one.slab.buffer.address})
    return np.asarray(total(field, sums)[0])


BLOCK = 64
"""Number of sums that stay on a device until they are fetched together."""


Total = Callable[[], NDArray[np.float64]]
"""Function that returns the totals of a sum, and waits for them if necessary."""


class DeferredSums:
    """Sums that stay on the devices and are fetched in blocks, because waiting for each costs time.

    Parameters
    ----------
    field : Field
    values : int
        Number of values per site.
    over : sequence of ctypes structure
        The time slices to sum over, for each slab of this process; see `SlabSums`. Their number may
        be 0. Every replica must have the same number.
    """

    def __init__(self, field: Field, values: int, over: Sequence[ctypes.Structure]) -> None:
        self._devices = field.devices
        self._values = values
        self._replicas = len(field.replicas)
        self._slabs = list(zip(field.slabs, over, strict=True))
        self._memory = [
            slab.device.allocate(BLOCK * SUM_BYTES * one.slices * values)
            for slab, one in self._slabs
        ]
        self._fetched: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._begun = self._done = 0

    def begin(self, launch: Callable[[int, SlabSums], object]) -> list[Total]:
        """Begin to sum; all processes that share the field must make the same calls.

        Parameters
        ----------
        launch : callable
            Takes the number of a slab in this process, and launches its sum.

        Returns
        -------
        list of callable
            One per replica. It returns the totals, an array of shape (values,), once, after waiting
            for them if necessary.
        """
        if self._begun - self._done == BLOCK:
            self._fetch()
        place = self._begun - self._done
        for n, (slab, over) in enumerate(self._slabs):
            if over.slices:
                sums = SlabSums(slab, self._values, 1, over)
                launch(n, sums)
                totals = place * SUM_BYTES * sums.slices * self._values
                sums.add_up(self._memory[n].address + totals)
        self._devices.fence()  # the next update must not change a halo that is still read
        number = self._begun
        self._begun += 1
        return [partial(self._total, number, replica) for replica in range(self._replicas)]

    def _total(self, number: int, replica: int) -> NDArray[np.float64]:
        if number >= self._done:
            self._fetch()
        return self._fetched.pop((number, replica))

    def _fetch(self) -> None:
        """Fetch all sums that have begun."""
        count = self._begun - self._done
        local = []
        for (slab, over), memory in zip(self._slabs, self._memory, strict=True):
            nbytes = count * SUM_BYTES * over.slices * self._values
            data = slab.device.read(memory, 0, nbytes) if nbytes else np.empty(0, np.uint8)
            local.append(data.view(np.float64).reshape(count, over.slices, self._values))
        by_slice = _of_all_slabs(self._devices, local)
        slices = by_slice.shape[1] // self._replicas
        for n, replica in product(range(count), range(self._replicas)):
            # One row at a time, so that the order of additions is that of a single sum.
            own = by_slice[n : n + 1, replica * slices : (replica + 1) * slices]
            self._fetched[self._done + n, replica] = np.asarray(own.sum(axis=1)[0])
        self._done = self._begun
