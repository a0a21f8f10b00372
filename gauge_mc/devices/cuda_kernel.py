"""Kernels on a GPU: which sites a thread block takes, and how steps are launched."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from typing import Any, Protocol

from gauge_mc.devices.base import Launch, Registers
from gauge_mc.devices.bounds import REGISTERS
from gauge_mc.devices.structures import DivisorStruct


class Owner(Protocol):
    """The GPU that a kernel is loaded on.

    Attributes
    ----------
    stream : pycuda Stream
        The launches' order.
    beside : pycuda Stream
        That of the launches beside them.
    """

    stream: Any
    beside: Any

    def activate(self) -> None:
        """Make it the one that this thread's calls of the driver are for."""


@dataclass(frozen=True)
class Tile:
    """The sites of a thread block: extents along half x, y, z and t."""

    half_x: int
    y: int
    z: int
    t: int

    @property
    def threads(self) -> int:
        """Sites of one parity."""
        return self.half_x * self.y * self.z * self.t

    def cost(self, slices: int) -> float:
        """What a site costs, in arbitrary units: links from outside, and lanes that idle.

        Threads that are neighbours in x read neighbouring 16 bytes: eight make a cache line. What
        lies next in t is read by blocks that come much later. The last of so many slices may leave
        a part of a tile empty.
        """
        outside = 1 + 0.5 / self.half_x + 1 / self.y + 1 / self.z + 1.5 / self.t
        idle = -(-self.threads // 32) * 32 / self.threads
        few = 1 + 32 / self.threads
        empty = -(-slices // self.t) * self.t / slices
        return outside * idle * few * empty * max(1.0, 8 / self.half_x)

    def struct(self, extent_z: int) -> TileStruct:
        """What kernels are told of it."""
        return TileStruct(DivisorStruct.of(self.z), DivisorStruct.of(extent_z // self.z), self.t)


class TileStruct(ctypes.Structure):
    """``Tile`` of ``cuda_src/kernel.h``."""

    _fields_ = [("z", DivisorStruct), ("tiles_z", DivisorStruct), ("t", ctypes.c_int)]


@functools.cache
def best_tile(extents: tuple[int, int, int], slices: int, threads: int) -> Tile:
    """The tile of so many sites at most for a lattice so large; its x, y and z divide it."""

    def divisors(n: int) -> list[int]:
        return [k for k in range(1, n + 1) if n % k == 0 and k <= threads]

    x, y, z = extents
    depths = range(1, min(slices, 16) + 1)
    tiles = (Tile(*t) for t in product(*map(divisors, (x // 2, y, z)), depths))
    fitting = (t for t in tiles if t.threads <= threads and t.z * t.t <= 64)
    return min(fitting, key=lambda t: t.cost(slices))


class CudaBuffer:
    """Memory of a GPU."""

    def __init__(self, allocation: Any, nbytes: int):
        self.allocation = allocation
        self.nbytes = nbytes
        self.address = int(allocation)


SWEEP = 8
"""Steps of a sweep, as in ``cuda_src/kernel.h``."""

SWEEP_THREADS = 256
"""Of a block of a ``_sweep`` function at most, as there."""

MOST_WARPS, MOST_BLOCKS = 32, 16
"""That every multiprocessor since 2017 holds, if their registers fit."""


@dataclass
class Sweep:
    """A kernel's function for whole sweeps, whose blocks wait for each other after every step.

    Attributes
    ----------
    function : pycuda Function
    registers : int
        Of a thread.
    multiprocessors : int
        Of the GPU.
    arrived : CudaBuffer
        A counter in its memory.
    count : int
        What the counter will be when all launches so far have ended.
    """

    function: Any
    registers: int
    multiprocessors: int
    arrived: CudaBuffer
    count: int = 0

    def threads(self, sites: int) -> int:
        """Threads of a block for so many sites, so that all multiprocessors have a share."""
        warps = -(-sites // (32 * self.multiprocessors))
        return 32 * min(warps, SWEEP_THREADS // 32)

    def fits(self, blocks: int, threads: int) -> bool:
        """Whether the GPU can hold so many blocks of so many threads at once."""
        warps, registers = -(-threads // 32), -(-self.registers // 8) * 8
        each = min(REGISTERS // (32 * warps * registers), MOST_WARPS // warps, MOST_BLOCKS)
        return blocks <= each * self.multiprocessors


Extents = tuple[int, int, int]


class CudaKernel:
    """A loaded kernel. Launches are asynchronous and keep their order.

    Parameters
    ----------
    device : Owner
        Where it is loaded.
    function : pycuda Function
        One step a launch.
    sweep : Sweep or None
        Whole sweeps in one launch, for lattices whose blocks fit on the GPU at once.
    threads : int
        Of a block at most.
    registers : Registers or None
        Of `function`.
    """

    def __init__(
        self,
        device: Owner,
        function: Any,
        sweep: Sweep | None,
        threads: int,
        registers: Registers | None,
    ):
        self._device = device
        self._function = function
        self._sweep = sweep
        self._threads = threads
        self._prepared = 0
        self.registers = registers

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Launch steps in order."""
        if not self._in_sweeps(steps):
            for launch in self.launches(steps):
                launch()

    def _in_sweeps(self, steps: ctypes.Array[Any]) -> bool:
        """Launch steps as whole sweeps, if they are and the lattice is small enough."""
        sweep = self._sweep
        if not sweep or len(steps) % SWEEP:
            return False
        sites = steps[0].work.slices * steps[0].geometry.slots
        grid, block, shape = self._shape(steps, sweep.threads(sites))
        blocks = math.prod(grid)
        if not sweep.fits(blocks, math.prod(block)):
            return False
        self._device.activate()
        stream, address = self._device.stream, sweep.arrived.address
        for arguments, same in groupby(_pieces(steps, SWEEP)):
            times = sum(1 for _ in same)
            sweep.function.prepared_async_call(
                grid, block, stream, arguments, shape, address, sweep.count, times
            )
            sweep.count = (sweep.count + times * SWEEP * blocks) % 2**32
        return True

    def launches(self, steps: ctypes.Array[Any], beside: bool = False) -> Iterator[Launch]:
        """The steps, to be launched one by one, beside other work if so wanted.

        Each is made when it is asked for, so that the GPU works while the next is.
        """
        grid, block, shape = self._shape(steps, self._threads)
        stream = self._device.beside if beside else self._device.stream
        return (
            partial(self._launch, grid, block, step + shape, stream) for step in _pieces(steps, 1)
        )

    def _launch(self, grid: Extents, block: Extents, arguments: bytes, stream: Any) -> None:
        self._device.activate()
        # PyCUDA's public calls come to this, but take longer than the driver to pack arguments.
        self._function._launch_kernel(grid, block, arguments, 0, stream)

    def _shape(self, steps: ctypes.Array[Any], threads: int) -> tuple[Extents, Extents, bytes]:
        """The grid and the block of so many threads that steps need, and what they are told."""
        first, size = steps[0], ctypes.sizeof(steps[0])
        extents, work = tuple(first.geometry.extent), first.work
        # A sum belongs to one slice, so that slabs may begin anywhere.
        depth = 1 if hasattr(first, "sums") else work.slices
        tile = best_tile(extents, depth, threads)
        if size != self._prepared:
            self._prepare(size)
        parities = 1 if work.parity < 2 else 2
        grid = (
            extents[0] // 2 // tile.half_x,
            extents[1] // tile.y,
            extents[2] // tile.z * parities * -(-work.slices // tile.t),
        )
        return grid, (tile.half_x, tile.y, tile.z * tile.t), bytes(tile.struct(extents[2]))

    def _prepare(self, size: int) -> None:
        tile = f"{ctypes.sizeof(TileStruct)}s"
        self._function.prepare([f"{size}s", tile])
        if self._sweep:
            self._sweep.function.prepare([f"{SWEEP * size}s", tile, "P", "I", "i"])
        self._prepared = size


def _pieces(steps: ctypes.Array[Any], together: int) -> Iterator[bytes]:
    """The memory of so many steps each."""
    size = together * ctypes.sizeof(steps[0])
    arguments = memoryview(steps).cast("B")
    return (bytes(arguments[n : n + size]) for n in range(0, len(arguments), size))
