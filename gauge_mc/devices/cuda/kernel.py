"""Kernels on a GPU: the sites of a thread block, and the launch of steps."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

from gauge_mc.devices.base import Launch, Registers
from gauge_mc.devices.cache import cache_folder, keep, kept, make_private_folder
from gauge_mc.devices.host import divisor
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.devices.source import constants, source_folder, structure
from gauge_mc.errors import GaugeError, not_written
from gauge_mc.files.structured import parse_json

if TYPE_CHECKING:
    from gauge_mc.devices.cuda.device import CudaDevice

REGISTERS = 65536
"""Registers per multiprocessor (all NVIDIA GPUs since 2014)."""

MOST_REGISTERS = 255
"""Maximum number of registers per thread."""


@dataclass(frozen=True)
class Bounds:
    """Launch bounds of a kernel, which limit the number of registers per thread."""

    threads: int
    """Maximum number of threads per block."""
    blocks: int
    """Minimum number of resident blocks per multiprocessor."""

    @property
    def registers(self) -> int:
        """Maximum number of registers per thread, a multiple of eight."""
        return min(MOST_REGISTERS, REGISTERS // (self.threads * self.blocks) // 8 * 8)

    def __str__(self) -> str:
        return f"{self.threads:3} threads per block, {self.blocks:2} resident blocks"


THREADS = (64, 128, 256)
"""Numbers of threads per block that tuning tries."""

REGISTER_LIMITS = (64, 72, 80, 96, 112, 128, 168, 255)
"""Limits for the registers per thread that tuning tries."""


def candidates() -> list[Bounds]:
    """Return launch bounds that differ in the threads per block or the registers per thread."""
    by_limits = {}
    for threads in THREADS:
        for registers in REGISTER_LIMITS:
            bounds = Bounds(threads, max(1, REGISTERS // (threads * registers)))
            by_limits[threads, bounds.registers] = bounds
    return list(by_limits.values())


DEFAULT = Bounds(128, 4)
"""Launch bounds of kernels that do not depend on the group."""


@functools.cache
def default_bounds(variant: Variant) -> Bounds:
    """Return the default launch bounds: of another choice, or the group's for the precision.

    For choices that need more registers, a fifth fewer blocks than the group's are resident.
    """
    for choice in variant.choices:
        if choice.launch_bounds:
            return Bounds(*choice.launch_bounds)
    usual = next((choice.usual_bounds for choice in variant.choices if choice.usual_bounds), None)
    if usual is None:
        return DEFAULT
    threads, blocks = dict(usual)[variant.precision]
    if any(choice.needs_registers for choice in variant.choices):
        blocks = 4 * blocks // 5
    return Bounds(threads, blocks)


class TunedBounds:
    """Launch bounds found fastest on one model of GPU, stored next to the compiled kernels.

    They apply only to the kernel sources with which they were found, and do not change results.

    Parameters
    ----------
    gpu : str
        Name of the GPU model.
    """

    def __init__(self, gpu: str) -> None:
        self._path = cache_folder() / f"bounds-{re.sub(r'[^A-Za-z0-9]+', '-', gpu)}.json"
        self._found = self._read()

    def bounds(self, kernel: Kernel, variant: Variant) -> Bounds:
        """Return the launch bounds found for a kernel, or else the default ones."""
        tuned = self._found.get(_key(kernel, variant))
        return tuned or default_bounds(kernel.narrowed(variant))

    def keep(self, kernel: Kernel, variant: Variant, bounds: Bounds) -> None:
        """Store the launch bounds to use for a kernel from now on."""
        self._found[_key(kernel, variant)] = bounds
        text = json.dumps({name: astuple(bounds) for name, bounds in self._found.items()}, indent=1)
        try:
            make_private_folder()
        except OSError as error:
            raise not_written(self._path, error) from error
        keep(self._path, text.encode())

    def _read(self) -> dict[str, Bounds]:
        """Read the stored bounds; a missing or damaged file counts as empty."""
        try:
            stored = parse_json(kept(self._path) or b"{}")
            bounds = {str(name): Bounds(*map(int, two)) for name, two in stored.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return {}
        right = (x.threads in THREADS and 1 <= x.blocks <= REGISTERS for x in bounds.values())
        return bounds if all(right) else {}


def _key(kernel: Kernel, variant: Variant) -> str:
    """Return a string that identifies a kernel, its variant and its sources."""
    digest = hashlib.sha256(kernel.digest(variant)).hexdigest()[:16]
    return f"{kernel.name} {kernel.narrowed(variant)} {digest}"


LAUNCH = source_folder() / "arch" / "gpu_launch.h"
"""The header that declares how kernels are launched on a GPU."""

SWEEP = constants(LAUNCH)["SWEEP"]
"""Number of steps of a sweep."""

SWEEP_THREADS = constants(LAUNCH)["SWEEP_THREADS"]
"""Maximum number of threads per block if whole sweeps run in one launch."""

DIRECTIONS = constants(LAUNCH.with_name("launch.h"))["DIRECTIONS"]
"""Number of blocks that work on links in different directions of the same sites."""

WARP = 32
"""Number of threads that execute together on NVIDIA GPUs."""

MOST_WARPS, MOST_BLOCKS = 32, 16
"""Warps and blocks that fit on any multiprocessor since 2017, if there are enough registers."""

PARTITIONS = 4
"""Parts of a multiprocessor among which its warps and registers are divided (all since 2017)."""

MOST_THREADS_Z = 64
"""Maximum extent of a block along z (CUDA C++ Programming Guide, table of compute capabilities)."""

MOST_BLOCKS_Z = 2**16 - 1
"""Largest extent of a grid along y and z (table of compute capabilities, as above)."""

MOST_SLICES = 16
"""Maximum extent of a tile along t."""

CACHE_LINE_THREADS = 8
"""Number of threads whose packets of 16 bytes fill a cache line of 128 bytes."""


@dataclass(frozen=True)
class Tile:
    """The sites of a thread block: extents along x (halved), y, z and t.

    A tile holds sites of one parity, half of those along x.
    """

    half_x: int
    y: int
    z: int
    t: int

    @property
    def threads(self) -> int:
        """The number of sites of one parity."""
        return self.half_x * self.y * self.z * self.t

    def cost(self, slices: int, shares: int = 1, warp: int = WARP) -> float:
        """Estimate the time per site, in arbitrary units.

        The estimate is a product of factors. Links outside the tile must be loaded: those across
        the faces along t are rarely in the cache, because the neighbouring blocks run much later,
        and half of those across the faces along x share a cache line. Threads, of which each site
        has `shares`, are idle in partly filled warps, small blocks are slow, and the last tile
        along t may reach beyond the `slices`. Rows along x that do not fill a cache line waste
        bandwidth. The weights are fits to measurements on an H200.
        """
        outside = 1 + 0.5 / self.half_x + 1 / self.y + 1 / self.z + 1.5 / self.t
        threads = self.threads * shares
        idle = -(-threads // warp) * warp / threads
        few = 1 + warp / threads
        empty = -(-slices // self.t) * self.t / slices
        return outside * idle * few * empty * max(1.0, CACHE_LINE_THREADS / self.half_x)


@functools.cache
def packed_tile(tile: Tile, extent_z: int, blocks: int) -> bytes:
    """Return a tile as the structure ``Tile`` of the kernels."""
    values = {"z": tile.z, "tiles_z": extent_z // tile.z, "threads": tile.z * tile.t}
    divisors = {name: divisor(value) for name, value in (values | {"blocks": blocks}).items()}
    return bytes(tile_structure()(t=tile.t, **divisors))


@functools.cache
def tile_structure() -> type[ctypes.Structure]:
    """Return the ctypes class of the structure ``Tile`` in ``arch/gpu_launch.h``."""
    return structure("Tile", (LAUNCH,))


@functools.cache
def best_tile(
    extents: tuple[int, int, int], slices: int, threads: int, shares: int = 1, warp: int = WARP
) -> Tile:
    """Return the tile with the lowest cost."""

    def divisors(n: int) -> list[int]:
        return [k for k in range(1, n + 1) if n % k == 0 and k <= threads]

    x, y, z = extents
    depths = range(1, min(slices, MOST_SLICES) + 1)
    tiles = (Tile(*t) for t in product(*map(divisors, (x // 2, y, z)), depths))
    fitting = (
        t for t in tiles if t.threads * shares <= threads and t.z * t.t * shares <= MOST_THREADS_Z
    )
    return min(fitting, key=lambda t: t.cost(slices, shares, warp))


class CudaBuffer:
    """Memory of a GPU, which is freed after a call that waits for all GPUs that access it.

    The driver may wait for work when it frees memory, but does not promise it (CUDA Runtime API,
    `cudaFree`), and it does not wait for other GPUs.
    """

    def __init__(self, allocation: Any, nbytes: int, wait: Callable[[], object]):
        self.allocation = allocation
        self.nbytes = nbytes
        self.address = int(allocation)
        self._wait = wait

    def __del__(self) -> None:
        self._wait()


@dataclass
class SweepFunction:
    """The function of a kernel that runs whole sweeps; its blocks synchronise after every step."""

    function: Any
    """The loaded function."""
    registers: Registers
    """Its register usage."""
    multiprocessors: int
    """Number of multiprocessors of the GPU."""
    arrived: CudaBuffer
    """Counter in the GPU's memory of the blocks that have arrived at the barrier."""
    count: int = 0
    """Value of the counter after all launches so far, modulo 2**32."""

    def threads(self, sites: int) -> int:
        """Return the number of threads per block that spreads `sites` over all multiprocessors."""
        warps = -(-sites // (WARP * self.multiprocessors))
        return WARP * min(warps, SWEEP_THREADS // WARP)

    def fits(self, blocks: int, threads: int) -> bool:
        """Return whether all blocks can be resident on the GPU at the same time.

        If they cannot, their barrier waits forever. Each of the `PARTITIONS` of a multiprocessor
        has its own registers, so that it may be full although the multiprocessor is not.
        """
        warps, registers = -(-threads // WARP), -(-self.registers.count // 8) * 8
        resident = REGISTERS // PARTITIONS // (WARP * registers) * PARTITIONS
        each = min(min(resident, MOST_WARPS) // warps, MOST_BLOCKS)
        return blocks <= each * self.multiprocessors


Extents = tuple[int, int, int]


@dataclass(eq=False)
class CudaKernel:
    """A kernel loaded on a GPU. Launches are asynchronous and run in order.

    Parameters
    ----------
    device : CudaDevice
        The GPU on which the kernel is loaded.
    function : pycuda Function
        The function that runs one step per launch.
    sweep : SweepFunction or None
        The function that runs whole sweeps, for lattices so small that all blocks are resident.
    threads : int
        Maximum number of threads per block.
    registers : Registers or None
        Register usage of `function`.
    sums : bool
        Whether this is a sum kernel. Its tiles lie in one slice, so that the sums do not depend on
        the division into slabs.
    of_links : bool
        Whether a thread works on links in one direction of both sites of a slot.
    shared : bool
        Whether threads share the work on a site, as the argument ``shares`` says.
    warp : int
        Number of threads that execute together.
    """

    device: CudaDevice
    function: Any
    sweep: SweepFunction | None
    threads: int
    _registers: Registers | None
    sums: bool
    of_links: bool = False
    shared: bool = False
    warp: int = WARP

    def registers(self, steps: ctypes.Array[Any] | None = None) -> Registers | None:
        """Return the register usage of a function; see `LoadedKernel.registers`."""
        if steps is not None and self.sweep and self._sweep_shape(steps):
            return self.sweep.registers
        return self._registers

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Launch steps in order."""
        self.prepared(steps)()

    def prepared(self, steps: ctypes.Array[Any]) -> Launch:
        """Return a call that launches steps in order; see `LoadedKernel.prepared`."""
        shape = self._sweep_shape(steps)
        if shape:
            return partial(self._launch_sweeps, _parts(steps, SWEEP), *shape)
        return partial(self._launch_steps, _parts(steps, 1), *self._shape(steps, self.threads))

    def _sweep_shape(self, steps: ctypes.Array[Any]) -> tuple[Extents, Extents, bytes] | None:
        """Return grid, block and tile for launching whole sweeps.

        None if the steps do not make up whole sweeps or the lattice is too large.
        """
        sweep = self.sweep
        if not sweep or len(steps) % SWEEP:
            return None
        work = steps[0].work
        sites = work.slices * steps[0].geometry.slots // (work.rows_y * work.rows_z)
        grid, block, tile = self._shape(steps, sweep.threads(sites))
        fits = sweep.fits(math.prod(grid), math.prod(block))
        return (grid, block, tile) if fits else None

    def _launch_sweeps(
        self, sweeps: Sequence[memoryview], grid: Extents, block: Extents, tile: bytes
    ) -> None:
        """Launch sweeps; consecutive sweeps with the same arguments share a launch."""
        sweep = self.sweep
        assert sweep is not None
        self.device.activate()
        # PyCUDA's public functions end up here, but first pack the arguments, which takes longer
        # than the launch.
        launch, stream = sweep.function._launch_kernel, self.device.stream
        for arguments, repeats in groupby(map(bytes, sweeps)):
            times = len(list(repeats))
            values = arguments, tile, sweep.arrived.address, sweep.count, times
            packed = struct.pack(f"{len(arguments)}s{len(tile)}sPIi", *values)
            launch(grid, block, packed, 0, stream)
            sweep.count = (sweep.count + times * SWEEP * math.prod(grid)) % 2**32

    def _launch_steps(
        self, steps: Sequence[memoryview], grid: Extents, block: Extents, tile: bytes
    ) -> None:
        """Launch steps one by one."""
        self.device.activate()
        launch, stream = self.function._launch_kernel, self.device.stream
        for step in steps:
            launch(grid, block, bytes(step) + tile, 0, stream)

    def launches(
        self, steps: ctypes.Array[Any], lengths: Sequence[int], side: bool = False
    ) -> Iterator[Launch]:
        """Return launches of one step each; see `LoadedKernel.launches`.

        Launches are prepared one by one, so that the GPU works while the next one is prepared.
        """
        assert all(length == 1 for length in lengths)
        grid, block, tile = self._shape(steps, self.threads)
        stream = self.device.side_stream if side else self.device.stream
        parts = _parts(steps, 1)
        return (partial(self._launch, grid, block, bytes(step) + tile, stream) for step in parts)

    def _launch(self, grid: Extents, block: Extents, arguments: bytes, stream: Any) -> None:
        self.device.activate()
        self.function._launch_kernel(grid, block, arguments, 0, stream)

    def _shape(self, steps: ctypes.Array[Any], threads: int) -> tuple[Extents, Extents, bytes]:
        """Return grid, block and tile for launching steps, with at most `threads` per block."""
        work = steps[0].work
        x, y, z = steps[0].geometry.extent
        extents = x, y // work.rows_y, z // work.rows_z
        each, times = 1, DIRECTIONS if self.of_links else 1
        if self.shared:
            each, times = steps[0].shares.threads, steps[0].shares.blocks
        tile = best_tile(extents, 1 if self.sums else work.slices, threads, each, self.warp)
        parities = 1 if work.parity < 2 or self.of_links else 2
        blocks = extents[2] // tile.z * parities * -(-work.slices // tile.t)
        grid = (extents[0] // 2 // tile.half_x, extents[1] // tile.y, blocks * times)
        if max(grid[1:]) > MOST_BLOCKS_Z:
            raise GaugeError(
                f"Work on {work.slices} time slices of {x}x{y}x{z} sites needs a grid of "
                f"{grid[0]}x{grid[1]}x{grid[2]} thread blocks, but a GPU has at most "
                f"{MOST_BLOCKS_Z} along y and z: share the lattice among more GPUs, or treat fewer "
                "lattices or vectors together."
            )
        block = (tile.half_x, tile.y, tile.z * tile.t * each)
        return grid, block, packed_tile(tile, extents[2], blocks)


def _parts(steps: ctypes.Array[Any], together: int) -> list[memoryview]:
    """Return the memory of the steps, `together` steps at a time."""
    size = together * ctypes.sizeof(steps[0])
    memory = memoryview(steps).cast("B")
    return [memory[n : n + size] for n in range(0, len(memory), size)]
