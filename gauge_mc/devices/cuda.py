"""An NVIDIA GPU, by PyCUDA; kernels are compiled at run time by nvcc."""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Device, Launch, Mark, Registers
from gauge_mc.devices.bounds import USUAL, Bounds, Tuned
from gauge_mc.devices.source import Variant, compiled, version_of
from gauge_mc.devices.structures import DivisorStruct
from gauge_mc.errors import GaugeError


def find_nvcc() -> str | None:
    """The path of nvcc: on PATH, or under CUDA_HOME, CUDA_PATH or /usr/local/cuda."""
    found = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    paths = [found] + [str(Path(root) / "bin" / "nvcc") for root in roots if root]
    return next((path for path in paths if path and os.access(path, os.X_OK)), None)


def nvcc_release(nvcc: str) -> str:
    """The line in which nvcc says which release it is."""
    lines = (version_of(nvcc) or "").splitlines()
    return next((line for line in lines if "release" in line), "of an unknown release")


def nvcc_command(nvcc: str, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
    """The command that compiles a kernel to machine code for an architecture such as ``sm_90``."""
    return [
        nvcc,
        "-std=c++17",
        "-O3",
        f"-arch={architecture}",
        "-cubin",
        "-Xptxas",
        "-v",
        # Single precision: subnormal links are none, and 1 ulp more saves a tenth of the heatbath.
        "-ftz=true",
        "-prec-div=false",
        "-prec-sqrt=false",
        f"-DMAX_THREADS={bounds.threads}",
        f"-DMIN_BLOCKS={bounds.blocks}",
        *variant.definitions,
    ]


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

    @property
    def cost(self) -> float:
        """What a site costs, in arbitrary units: links from outside, and lanes that idle.

        Threads that are neighbours in x read neighbouring 16 bytes: eight make a cache line.
        """
        outside = 1 + 0.5 / self.half_x + 1 / self.y + 1 / self.z + 1 / self.t
        idle = -(-self.threads // 32) * 32 / self.threads
        few = 1 + 32 / self.threads
        return outside * idle * few * max(1.0, 8 / self.half_x)

    def struct(self, extent_z: int) -> TileStruct:
        """What kernels are told of it."""
        return TileStruct(DivisorStruct.of(self.z), DivisorStruct.of(extent_z // self.z), self.t)


class TileStruct(ctypes.Structure):
    """``Tile`` of ``cuda_src/kernel.h``."""

    _fields_ = [("z", DivisorStruct), ("tiles_z", DivisorStruct), ("t", ctypes.c_int)]


@functools.cache
def best_tile(extents: tuple[int, int, int], slices: int, threads: int) -> Tile:
    """The tile of so many sites at most for a lattice so large, with extents that divide it."""

    def divisors(n: int) -> list[int]:
        return [k for k in range(1, n + 1) if n % k == 0 and k <= threads]

    x, y, z = extents
    tiles = (Tile(*t) for t in product(*map(divisors, (x // 2, y, z, slices))))
    fitting = (t for t in tiles if t.threads <= threads and t.z * t.t <= 64)
    return min(fitting, key=lambda t: t.cost)


def registers_of(report: str, kernel: str) -> Registers | None:
    """Registers and spilled bytes of a kernel in what ptxas reports with ``-v``."""
    report = report.partition(f"entry function '{kernel}'")[2].partition("entry function")[0]
    used = re.search(r"Used (\d+) registers", report)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    if not used or not spilled:
        return None
    return Registers(int(used[1]), int(spilled[1]) + int(spilled[2]))


class CudaBuffer:
    """Memory of a GPU."""

    def __init__(self, allocation: Any, nbytes: int):
        self.allocation = allocation
        self.nbytes = nbytes

    @property
    def address(self) -> int:
        """The device's address."""
        return int(self.allocation)


SWEEP = 8
"""Steps in one launch of a ``_sweep`` function, as in ``cuda_src/kernel.h``."""


@dataclass
class Arrivals:
    """A counter in a GPU's memory by which the blocks of a launch wait for each other.

    Attributes
    ----------
    buffer : CudaBuffer
        Where it is.
    count : int
        What it will be when all launches so far have ended.
    blocks : int
        Blocks that the GPU can hold at once.
    """

    buffer: CudaBuffer
    count: int
    blocks: int


Extents = tuple[int, int, int]


class CudaKernel:
    """A loaded kernel. Launches are asynchronous and keep their order.

    Parameters
    ----------
    device : CudaDevice
        Where it is loaded.
    function : pycuda Function
        One step a launch.
    sweep : pycuda Function or None
        `SWEEP` steps a launch, for lattices whose blocks `arrivals` says can wait for each other.
    threads : int
        Of a block at most.
    registers : Registers or None
        Of `function`.
    """

    def __init__(
        self,
        device: CudaDevice,
        function: Any,
        sweep: Any,
        arrivals: Arrivals,
        threads: int,
        registers: Registers | None,
    ):
        self._device = device
        self._function = function
        self._sweep = sweep
        self._arrivals = arrivals
        self._threads = threads
        self._prepared = 0
        self.registers = registers

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Launch steps in order."""
        grid, block, shape = self._shape(steps)
        if not self._sweep or len(steps) % SWEEP or math.prod(grid) > self._arrivals.blocks:
            for launch in self.launches(steps):
                launch()
            return
        self._device.activate()
        for sweep in _pieces(steps, SWEEP):
            before = self._arrivals.count
            address = self._arrivals.buffer.address
            self._sweep.prepared_async_call(
                grid, block, self._device.stream, sweep, shape, address, before
            )
            self._arrivals.count = (before + SWEEP * math.prod(grid)) % 2**32

    def launches(self, steps: ctypes.Array[Any]) -> list[Launch]:
        """The steps, to be launched one by one."""
        grid, block, shape = self._shape(steps)
        return [partial(self._launch, grid, block, step, shape) for step in _pieces(steps, 1)]

    def _launch(self, grid: Extents, block: Extents, step: bytes, shape: bytes) -> None:
        self._device.activate()
        self._function.prepared_async_call(grid, block, self._device.stream, step, shape)

    def _shape(self, steps: ctypes.Array[Any]) -> tuple[Extents, Extents, bytes]:
        """The grid and the block of threads that steps need, and what they are told of it."""
        first, size = steps[0], ctypes.sizeof(steps[0])
        extents, work = tuple(first.geometry.extent), first.work
        # A sum belongs to one slice, so that slabs may begin anywhere.
        depth = 1 if hasattr(first, "sums") else work.slices
        tile = best_tile(extents, depth, self._threads)
        if size != self._prepared:
            self._prepare(size)
        parities = 1 if work.parity < 2 else 2
        grid = (
            extents[0] // 2 // tile.half_x,
            extents[1] // tile.y,
            extents[2] // tile.z * parities * (work.slices // tile.t),
        )
        return grid, (tile.half_x, tile.y, tile.z * tile.t), bytes(tile.struct(extents[2]))

    def _prepare(self, size: int) -> None:
        tile = f"{ctypes.sizeof(TileStruct)}s"
        self._function.prepare([f"{size}s", tile])
        if self._sweep:
            self._sweep.prepare([f"{SWEEP * size}s", tile, "P", "I"])
        self._prepared = size


def _pieces(steps: ctypes.Array[Any], together: int) -> list[bytes]:
    """The memory of so many steps each."""
    size = together * ctypes.sizeof(steps[0])
    arguments = memoryview(steps).cast("B")
    return [bytes(arguments[n : n + size]) for n in range(0, len(arguments), size)]


class CudaDevice:
    """One GPU, in its primary context, retained by the thread that makes this object.

    Parameters
    ----------
    ordinal : int
        The GPU's number, as CUDA counts.

    Raises
    ------
    GaugeError
        If PyCUDA, a GPU or nvcc is missing.
    """

    backend = "cuda"
    group_bytes = 16
    cache_bytes = 0

    def __init__(self, ordinal: int = 0):
        self._driver = _load_driver()
        count = gpu_count()
        if ordinal >= count:
            raise GaugeError(f"GPU {ordinal} is not here: CUDA sees {count}, numbered from 0.")
        nvcc = find_nvcc()
        if nvcc is None:
            raise GaugeError(
                "nvcc is not here, which compiles the GPU kernels: install the CUDA toolkit and "
                "put its bin folder on PATH, or run with --backend cpu."
            )
        self._nvcc = nvcc
        self.compiler_name = f"nvcc, {nvcc_release(nvcc)}"
        device = self._driver.Device(ordinal)
        self._device = device
        self._context = device.retain_primary_context()
        self._peers: set[int] = set()
        self.ordinal = ordinal
        self.activate()
        try:
            # Both wait for the copies of `read` and `write`, and those for them.
            self.stream, self._transfers = self._driver.Stream(), self._driver.Stream()
        except self._driver.Error as error:
            self._driver.Context.pop()
            raise GaugeError(
                f"GPU {ordinal} does not work ({error}): check `nvidia-smi`."
            ) from error
        major, minor = device.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self._multiprocessors = device.multiprocessor_count
        self.name = f"{device.name()} (GPU {ordinal})"
        atexit.register(self.close)
        self.tuned = Tuned(device.name())
        self._kernels: dict[tuple[str, Variant], CudaKernel] = {}
        self._modules: list[Any] = []
        self._scratch: dict[str, CudaBuffer] = {}

    def lanes(self, precision: str) -> int:
        """One site a thread."""
        return 1

    def kernel(self, name: str, variant: Variant) -> CudaKernel:
        """Compile (or find compiled) and load a kernel."""
        if (name, variant) not in self._kernels:
            self.bind(name, variant, self.tuned.bounds(name, variant))
        return self._kernels[name, variant]

    def bind(self, name: str, variant: Variant, bounds: Bounds) -> None:
        """Use a kernel with these launch bounds from now on."""
        self.activate()
        command = nvcc_command(self._nvcc, self.architecture, variant, bounds)
        path, report = compiled(name, command, version_of(self._nvcc) or "", ".cubin")
        module = self._driver.module_from_file(str(path))
        self._modules.append(module)
        arrivals = Arrivals(self.allocate(16), 0, bounds.blocks * self._multiprocessors)
        function, sweep = module.get_function(name), None
        if f"{name}_sweep" in report:
            sweep = module.get_function(f"{name}_sweep")
        self._kernels[name, variant] = CudaKernel(
            self, function, sweep, arrivals, bounds.threads, registers_of(report, name)
        )

    def pieces(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Pieces of which a sum kernel gives the sums: a thread block each, of either parity."""
        # Sum kernels have the usual bounds: tuning must not change the order of additions.
        threads = USUAL[variant.group, variant.precision].threads
        return math.prod(extents) // best_tile(extents, 1, threads).threads

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Zeroed memory.

        Raises
        ------
        GaugeError
            If the GPU has less memory left.
        """
        self.activate()
        try:
            allocation = self._driver.mem_alloc(max(nbytes, 16))
        except self._driver.MemoryError as error:
            free, total = self._driver.mem_get_info()
            raise GaugeError(
                f"The lattice needs {nbytes / 2**30:.3g} GiB at once on {self.name}, where "
                f"{free / 2**30:.3g} of {total / 2**30:.3g} GiB are free: take a smaller lattice, "
                "single precision or more GPUs."
            ) from error
        self._driver.memset_d8(allocation, 0, max(nbytes, 16))
        # Another GPU may write there next, which does not wait for this one's streams.
        self._driver.Context.synchronize()
        return CudaBuffer(allocation, nbytes)

    def scratch(self, use: str, nbytes: int) -> CudaBuffer:
        """Memory that holds anything, until the next call for the same use."""
        if use not in self._scratch or self._scratch[use].nbytes < nbytes:
            self._scratch.pop(use, None)
            self._scratch[use] = self.allocate(nbytes)
        return self._scratch[use]

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""
        self.activate()
        self._driver.memcpy_htod(buffer.address + offset, np.ascontiguousarray(data))

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of bytes of the buffer, after all work before it has ended."""
        self.activate()
        data = np.empty(nbytes, dtype=np.uint8)
        self._driver.memcpy_dtoh(data, buffer.address + offset)
        return data

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""
        self.activate()
        self._driver.memcpy_dtod(target.address, source.address, source.nbytes)

    def mark(self) -> Any:
        """The point that the work launched so far leads to: an event."""
        self.activate()
        return self._event(self.stream)

    def wait(self, mark: Mark) -> None:
        """Launch nothing more until a GPU, this one or another, has reached its mark."""
        self.activate()
        self.stream.wait_for_event(mark)

    def send(self, target: Device, to: int, origin: int, nbytes: int, after: Mark) -> Any:
        """Copy to another GPU: straight, or where they cannot by the driver through the host."""
        assert isinstance(target, CudaDevice)
        self._befriend(target)
        self.activate()
        self._transfers.wait_for_event(after)
        if target.ordinal == self.ordinal:
            self._driver.memcpy_dtod_async(to, origin, nbytes, self._transfers)
        else:
            self._driver.memcpy_peer_async(
                to, origin, nbytes, target._context, self._context, self._transfers
            )
        return self._event(self._transfers)

    def reaches(self, target: CudaDevice) -> bool:
        """Whether copies to another GPU go straight to it."""
        return bool(self._device.can_access_peer(target._device))

    def _befriend(self, target: CudaDevice) -> None:
        """Let copies go straight to another GPU, if they can."""
        if target.ordinal in self._peers or target.ordinal == self.ordinal:
            return
        self._peers.add(target.ordinal)
        if self.reaches(target):
            self.activate()
            # LogicError: it was enabled before, by another object for this GPU.
            with suppress(self._driver.LogicError):
                self._driver.Context.enable_peer_access(target._context)

    def _event(self, stream: Any) -> Any:
        event = self._driver.Event(self._driver.event_flags.DISABLE_TIMING)
        return event.record(stream)

    def host_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Page-locked memory, which copies reach without a detour."""
        self.activate()
        data: NDArray[np.uint8] = self._driver.pagelocked_empty(nbytes, np.uint8)
        return data

    def fetch(self, data: NDArray[np.uint8], origin: int, after: Mark) -> Any:
        """Copy from an address to the host, beside the work that follows."""
        self.activate()
        self._transfers.wait_for_event(after)
        self._driver.memcpy_dtoh_async(data, origin, self._transfers)
        return self._event(self._transfers)

    def put(self, to: int, data: NDArray[np.uint8]) -> Any:
        """Copy from the host to an address, beside the work under way."""
        self.activate()
        self._driver.memcpy_htod_async(to, data, self._transfers)
        return self._event(self._transfers)

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.activate()
        self._context.synchronize()

    def activate(self) -> None:
        """Make this GPU the one that this thread's calls of the driver are for."""
        context = self._driver.Context
        try:
            if context.get_device() == self._device:
                return
            context.pop()
        except self._driver.LogicError:
            pass  # there is none yet
        self._context.push()

    def close(self) -> None:
        """Give back what the GPU holds, in the thread that opened it; no more use after that."""
        atexit.unregister(self.close)
        self.synchronize()
        for items in (self._kernels, self._modules, self._scratch):
            items.clear()
        self.stream = self._transfers = None
        # A context that is still current when its thread ends would end the program.
        self._driver.Context.pop()


def gpu_count() -> int:
    """How many GPUs CUDA sees.

    Raises
    ------
    GaugeError
        If PyCUDA is missing, or finds none that works.
    """
    return int(_load_driver().Device.count())


def gpu_id(ordinal: int) -> str:
    """The PCI bus address of a GPU, which tells it from all others of a host."""
    return str(_load_driver().Device(ordinal).pci_bus_id())


def _load_driver() -> Any:
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise GaugeError(
            "PyCUDA is not installed or does not load: `pip install 'gauge-mc[cuda]'`, or run "
            "with --backend cpu."
        ) from error
    try:
        driver.init()
    except driver.Error as error:
        raise GaugeError(
            f"CUDA finds no GPU that works here ({error}): check `nvidia-smi`, or run with "
            "--backend cpu."
        ) from error
    return driver
