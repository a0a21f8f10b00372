"""Sums over the sites of a field, computed as tree reductions in double precision."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.host import GEOMETRY
from gauge_mc.devices.kernels import ANY_VARIANT, Choice, Kernel
from gauge_mc.devices.source import constants, source_folder, structure
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import PLAQUETTES, Loops
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Averages
from gauge_mc.signatures import checks_types

ADD_PARTIAL_SUMS = Kernel("add_partial_sums")

PARTIAL_SUMS = source_folder() / "lattice" / "partial_sums.h"
"""The header that declares the structure ``PartialSums``."""

SUM_BYTES = 8
"""Bytes per sum, in double precision."""

LEVELS = constants(GEOMETRY)["LEVELS"]
"""Number of parts, the largest first, of a value that may have any size, in strict sums."""


class SlabSums:
    """Sums over a slab of the values that a kernel computes at every site.

    Launch all sums first, then read them together with `by_slice`.

    Parameters
    ----------
    slab : Slab
        The slab whose sites are summed.
    values : int
        Number of values per site.
    rows : int
        Largest number of launches.
    over : ctypes structure, optional
        The time slices to sum over, of one or both parities; by default `Slab.whole`.
    own_memory : bool
        Whether the partial sums are not in the scratch memory, where the next sums replace them.
    choices : tuple of Choice
        Compile-time choices of the kernels other than the group.
    scratch : str
        Use of the scratch memory. Sums of another use replace no sums that have not been read.
    wide : bool
        Whether all kernels are `Kernel.wide`.
    """

    def __init__(
        self,
        slab: Slab,
        values: int,
        rows: int,
        over: ctypes.Structure | None = None,
        own_memory: bool = False,
        choices: tuple[Choice, ...] = (),
        scratch: str = "sums",
        wide: bool = False,
    ) -> None:
        self.slab, self._choices, self._wide = slab, choices, wide
        self._levels = LEVELS if wide and self.strict else 1
        self._over = slab.whole() if over is None else over
        self.slices = int(self._over.slices)
        self.values, self._rows, self._launched = values, rows, 0
        parities = 1 if self._over.parity < BOTH_PARITIES else 2
        parts = slab.device.partial_sums(slab.layout.extents, slab.variant())
        self._parts = parts // 2 * parities
        sums = values * self._levels
        self._row_bytes = SUM_BYTES * self.slices * self._parts * sums
        nbytes = rows * (self._row_bytes + SUM_BYTES * self.slices * sums)
        device = slab.device
        use = f"{scratch} from {slab.layout.first}"  # several slabs may be on one device
        self._memory = device.allocate(nbytes) if own_memory else device.scratch(use, nbytes)
        self._adding: dict[tuple[int, int], Launch] = {}

    def launch(self, kernel: Kernel, *steps: Mapping[str, Any]) -> None:
        """Launch a sum kernel once for each of `steps`.

        Parameters
        ----------
        kernel : Kernel
            The sum kernel, which its source file declares.
        *steps : mapping of str to object
            The kernel's arguments by name, without ``geometry``, ``work`` and ``sums``.

        Raises
        ------
        ValueError
            If the kernel is wide, and the sums are not, or the other way round.
        """
        numbers = range(self._launched, self._launched + len(steps))
        filled = [self._arguments(kernel, n, step) for n, step in zip(numbers, steps, strict=True)]
        self._launched += len(steps)
        self.slab.kernel(kernel, *self._choices)(repeated(filled, 1))

    def launches(self, kernel: Kernel, values: Mapping[str, Any], side: bool) -> list[Launch]:
        """Return calls that launch a sum kernel with the same arguments, one for every row.

        With `side`, they run on the side stream of the device.
        """
        filled = [self._arguments(kernel, row, values) for row in range(self._rows)]
        return list(
            self.slab.kernel(kernel, *self._choices).launches(repeated(filled, 1), [1], side)
        )

    def _arguments(self, kernel: Kernel, row: int, values: Mapping[str, Any]) -> ctypes.Structure:
        if kernel.wide != self._wide:
            raise ValueError(f"Sums of the kernel {kernel.name} must {'not ' * self._wide}be wide.")
        sums = self.partial_sums(row)
        return self.slab.arguments(kernel, self._over, *self._choices, sums=sums, **values)

    @property
    def described(self) -> ctypes.Structure:
        """The structure ``PartialSums`` of the first row."""
        description: ctypes.Structure = structure("PartialSums", (PARTIAL_SUMS,))(
            data=self.partial_sums(0), parts=self._parts, values=self.values, levels=self._levels
        )
        return description

    @property
    def strict(self) -> bool:
        """Whether they are the same on all machines."""
        return self.slab.variant().strict

    def partial_sums(self, row: int) -> int:
        """Return the address at which a launch stores its partial sums."""
        return self._memory.address + row * self._row_bytes

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the sums over time slices: (rows, slices, values)."""
        return self._rows, self.slices, self.values

    def by_slice(self, launched: int | None = None) -> NDArray[np.float64]:
        """Wait for all launches since the last call, and add up their partial sums.

        Parameters
        ----------
        launched : int, optional
            Number of launches of `launches`, if those were used.

        Returns
        -------
        ndarray, shape (launches, slices, values), float64
            The sums over each time slice, in the order of the launches.
        """
        rows = self._launched if launched is None else launched
        shape = (rows, self.slices, self.values)
        self._launched = 0
        if not rows:
            return np.empty(shape)
        offset = self._rows * self._row_bytes
        self.add_up(self._memory.address + offset, rows)
        nbytes = SUM_BYTES * math.prod(shape) * self._levels
        return self._joined(self.slab.device.read(self._memory, offset, nbytes), shape)

    def by_block(self) -> NDArray[np.float64]:
        """Wait for all launches since the last call, and return their partial sums.

        Returns
        -------
        ndarray, shape (launches, slices, blocks, values), float64
            The sums over each block of sites of every time slice. Strict sums over a slice are
            exact and one block, because other machines have other blocks.
        """
        rows, self._launched = self._launched, 0
        data = self.slab.device.read(self._memory, 0, rows * self._row_bytes)
        shape = (rows, self.slices, self._parts, self.values)
        if not self.strict:
            return data.view(np.float64).reshape(shape)
        blocks = data.view(np.float64).reshape(rows, self.slices, self._parts, -1)
        sums = np.ascontiguousarray(blocks.sum(axis=2, keepdims=True))
        return self._joined(sums, (*shape[:2], 1, self.values))

    def _joined(self, data: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return sums of this shape, given those of the parts of all values."""
        parts = data.view(np.float64).reshape(*shape, self._levels)
        total = parts[..., -1]
        for level in range(self._levels - 2, -1, -1):
            total = total + parts[..., level]
        return total

    def add_up(self, totals: int, rows: int | None = None) -> None:
        """Add up partial sums, and store what `by_slice` returns.

        Parameters
        ----------
        totals : int
            Address in the memory of the device.
        rows : int, optional
            Number of rows that have been launched; by default all.
        """
        rows = self._rows if rows is None else rows
        if (totals, rows) not in self._adding:
            where = {
                "geometry": self.slab.layout.geometry,
                "work": work(0, 1, self.slices, parity=0),
            }
            memory = {"partial": self._memory.address, "totals": totals}
            sizes = {"rows": rows, "slices": self.slices, "parts": self._parts}
            sizes["values"] = self.values * self._levels
            arguments = ADD_PARTIAL_SUMS.arguments(ANY_VARIANT, **where, **memory, **sizes)
            kernel = self.slab.device.kernel(ADD_PARTIAL_SUMS, ANY_VARIANT)
            self._adding[totals, rows] = kernel.prepared(repeated([arguments], 1))
        self._adding[totals, rows]()


def total(field: Field, sums: Sequence[SlabSums]) -> NDArray[np.float64]:
    """Add up sums over all slabs of a field."""
    return add_slices(field.devices, [s.by_slice() for s in sums])


def add_slices(devices: DeviceGroup, local: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add up sums over time slices, of shape (rows, slices, values), of all slabs; see `total`."""
    return np.asarray(slices_of_all_slabs(devices, local).sum(axis=1))


def slices_of_all_slabs(
    devices: DeviceGroup, local: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Join sums over time slices, of shape (rows, slices, …), in the order of the slabs."""
    parts = devices.processes.allgather(local)
    return np.concatenate([x for process in parts for x in process], axis=1)


def lattice_sums(field: Field, kernel: Kernel, values: int) -> NDArray[np.float64]:
    """Sum the values that a kernel computes at every site.

    Parameters
    ----------
    field : Field
        The links.
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
    for slab_sums in sums:
        slab_sums.launch(kernel, {"links": slab_sums.slab.buffer.address})
    return np.asarray(total(field, sums)[0])


BLOCK = 64
"""Number of sums that stay on a device until they are fetched together."""


class DeferredSums:
    """Sums of a kernel over a field, which stay on the devices and are fetched in blocks.

    Launches are prepared once, because a small lattice takes less time than that.

    Parameters
    ----------
    field : Field
        The links, which may change between two sums.
    kernel : Kernel
        A sum kernel.
    values : int
        Number of values per site.
    arguments : sequence of mapping
        The kernel's other arguments, for each slab of this process; see `SlabSums.launch`.
    over : sequence of ctypes structure
        The time slices to sum over, for each slab of this process; see `SlabSums`. Their number may
        be 0. Every replica must have the same number.
    block : int
        Largest number of sums on the devices; when it is exceeded, they are fetched. A single one
        may be in the scratch memory, so fetch it before other sums begin.
    side : bool
        Whether the kernel runs on the side stream, if the devices have one.
    """

    def __init__(
        self,
        field: Field,
        kernel: Kernel,
        values: int,
        arguments: Sequence[Mapping[str, Any]],
        over: Sequence[ctypes.Structure],
        block: int = BLOCK,
        side: bool = False,
    ) -> None:
        self._devices, self._block = field.devices, block
        self._replicas, self._values = len(field.replicas), values
        slabs = zip(field.slabs, arguments, over, strict=True)
        shared = len({id(slab.device) for slab in field.slabs}) < len(field.slabs)
        self._slabs = []
        for slab, passed, region in slabs:
            if region.slices:
                beside = side and slab.device.has_side_stream
                sums = SlabSums(slab, values, block, region, own_memory=block > 1 or shared)
                self._slabs.append((sums, sums.launches(kernel, passed, beside)))
        self._empty = len(self._slabs) < len(field.slabs)
        self._begun = 0
        self._fetched: list[NDArray[np.float64]] = []

    def begin(self) -> None:
        """Begin to sum, within `DeviceGroup.measuring`; all processes must make the same calls."""
        if self._begun == self._block:
            self._fetched.append(self._fetch())
        for _, launches in self._slabs:
            launches[self._begun]()
        self._begun += 1

    def fetch(self) -> NDArray[np.float64]:
        """Return the sums begun since the last call; their contexts must have ended."""
        self._fetched.append(self._fetch())
        totals = np.concatenate(self._fetched)
        self._fetched.clear()
        return totals

    def _fetch(self) -> NDArray[np.float64]:
        local = [sums.by_slice(self._begun) for sums, _ in self._slabs]
        if self._empty:
            local.insert(0, np.empty((self._begun, 0, self._values)))
        self._begun = 0
        by_slice = slices_of_all_slabs(self._devices, local)
        begun, slices, values = by_slice.shape
        by_replica = by_slice.reshape(begun, self._replicas, slices // self._replicas, values)
        totals = np.zeros((begun, self._replicas, values))
        for t in range(by_replica.shape[2]):
            totals += by_replica[:, :, t]
        return totals


PLAQUETTE = PLAQUETTES.kernel
LINK_TRACE = Kernel("link_trace")
AVERAGED = {PLAQUETTE: 2, LINK_TRACE: 1}
"""Kernels whose sums are averaged, with their numbers of values."""

PLANES = 3
"""Number of spatial planes, which equals the number of temporal planes."""


def averages(field: Field) -> Averages:
    """Return the averages over a field, in the precision of the field."""
    sums = [lattice_sums(field, kernel, values=values) for kernel, values in AVERAGED.items()]
    return normalised(np.concatenate(sums), field.group.colours, field.lattice.sites)


def slice_sums(slab: Slab, place: int) -> NDArray[np.float64]:
    """Return the sums of Re Tr over spatial plaquettes, temporal ones and links of a slice."""
    traces = []
    for kernel, values in AVERAGED.items():
        sums = SlabSums(slab, values, 1, work(place, 1, 1, BOTH_PARITIES))
        sums.launch(kernel, {"links": slab.buffer.address})
        traces.append(sums.by_slice()[0, 0])
    return np.concatenate(traces)


def normalised(sums: NDArray[np.float64], colours: int, sites: int) -> Averages:
    """Return averages, given the sums that `slice_sums` returns, over the whole lattice."""
    spatial, temporal = (float(s) / (PLANES * colours * sites) for s in sums[:2])
    link_trace = float(sums[2]) / (4 * colours * sites)
    return Averages((spatial + temporal) / 2, spatial, temporal, link_trace)


@checks_types
def action_density(
    field: Field, beta: float, action: str | Action = defaults.ACTION, **options: float
) -> float:
    """Return the action of a field, divided by the number of sites; 0 if all links are 1.

    Parameters
    ----------
    field : Field
        A field of one replica, whose halos are up to date.
    beta : float
        The coupling; 2 N / g^2 for most actions.
    action : str or Action
        The action or its name.
    **options : float
        Options of the action by name, such as ``anisotropy`` or ``c1``.

    Raises
    ------
    UsageError
        If the action is unknown, declares no loops, or an option is invalid.
    """
    coupling = Coupling.of(beta, action, **options)
    averages = {loop: loop_averages(field, loop) for loop in coupling.action.loops}
    return float(coupling.density(averages))


def loop_averages(field: Field, loops: Loops) -> NDArray[np.float64]:
    """Return the averages of Re Tr U / N over the loops of each kind."""
    sums = lattice_sums(field, loops.kernel, values=len(loops.kinds))
    return normalised_loops(sums, loops, field.group.colours, field.lattice.sites)


def normalised_loops(
    sums: NDArray[np.float64], loops: Loops, colours: int, sites: int
) -> NDArray[np.float64]:
    """Return averages over loops of each kind, given the sums along the last axis."""
    return np.asarray(sums / (np.array(loops.kinds) * colours * sites))
