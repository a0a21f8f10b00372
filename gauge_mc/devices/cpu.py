"""The CPU: kernels compiled at run time by a C++ compiler, with SIMD lanes and threads."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import mmap
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Copy, Device, Mark, Registers
from gauge_mc.devices.source import Variant, compiled, version_of
from gauge_mc.devices.worker import Moment, Worker
from gauge_mc.errors import GaugeError, UsageError

FLAGS = [
    "-std=c++20",
    "-O3",
    "-march=native",
    # Multiplications and additions fuse; anything that would hide a NaN stays off.
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
    "-pthread",
    "-w",
    "-x",
    "c++",
]

CACHES = "/sys/devices/system/cpu/cpu0/cache"

SLOTS_PER_PIECE = 32
"""``PIECE`` of ``cuda_src/kernel.h``."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler that works here: the command, and what it says of its version."""

    command: str
    version: str


def candidates() -> list[str]:
    """Compilers to try, in order."""
    named = [os.environ["CXX"]] if os.environ.get("CXX") else []
    zig = [f"{sys.executable} -m ziglang c++"] if importlib.util.find_spec("ziglang") else []
    return named + [c for c in ("c++", "g++", "clang++") if shutil.which(c)] + zig


@functools.cache
def find_compiler() -> Compiler:
    """The first compiler that runs.

    Raises
    ------
    GaugeError
        If there is none.
    """
    for command in candidates():
        version = version_of(command)
        if version is not None:
            return Compiler(command, version)
    raise GaugeError(
        "There is no C++ compiler here, which the CPU kernels need: install g++ "
        "(Debian and Ubuntu: apt install g++), or `pip install 'gauge-mc[zig]'`, or name one in "
        "the environment variable CXX."
    )


@functools.cache
def processor() -> tuple[str, frozenset[str]]:
    """The processor's name and the instruction sets that it offers (Linux names)."""
    name, flags = platform.machine(), frozenset[str]()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = frozenset(value.split())
    return name, flags


def register_bytes() -> int:
    """The size of a SIMD register."""
    flags = processor()[1]
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags:
        return 64
    return 32 if "avx2" in flags else 16


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0))


@functools.cache
def cache_bytes() -> int:
    """The size of the processor's largest cache; 0 where the system does not tell."""
    sizes = [path.read_text() for path in Path(CACHES).glob("index*/size")]
    return max((int(size.strip().removesuffix("K")) * 1024 for size in sizes), default=0)


class CpuBuffer:
    """Anonymous memory, in huge pages where the system has them; kept while a worker uses it."""

    def __init__(self, nbytes: int, worker: Worker | None = None):
        self.nbytes = nbytes
        self._worker = worker
        self._map = mmap.mmap(-1, max(nbytes, 1))
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.address = int(self.bytes.ctypes.data)

    def __del__(self) -> None:
        if self._worker:
            self._worker.mark().synchronize()


class CpuKernel:
    """A kernel in a shared object, run by a number of threads. ctypes drops the GIL meanwhile."""

    registers: Registers | None = None

    def __init__(self, path: Path, name: str, threads: int, worker: Worker | None):
        self._function = getattr(ctypes.CDLL(str(path)), name)
        self._function.restype = None
        self._threads = threads
        self._worker = worker

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Run steps in order."""
        call = partial(self._function, steps, len(steps), self._threads)
        if self._worker is None:
            call()
        else:
            self._worker.do(call)


class CpuDevice:
    """The cores of this machine.

    Parameters
    ----------
    threads : int, optional
        How many to use; by default as many as this process may run on.
    lanes : int, optional
        At most so many sites in a register, a power of two; by default what the register holds.
    beside : bool
        Whether to work beside the caller, in a thread that is the first of the `threads`, as a
        device that shares a lattice with others must.
    """

    backend = "cpu"
    copies_beside = False
    group_bytes = 0

    def __init__(self, threads: int | None = None, lanes: int | None = None, beside: bool = False):
        if threads is not None and threads < 1:
            raise UsageError(f"The number of threads is {threads}; it must be at least 1.")
        self.threads = threads or cores()
        self.compiler = find_compiler()
        self.compiler_name = self.compiler.version.partition("\n")[0]
        self.cache_bytes = cache_bytes()
        self._lanes = lanes
        self._kernels: dict[tuple[str, Variant], CpuKernel] = {}
        self._scratch: dict[str, CpuBuffer] = {}
        self._worker = Worker() if beside else None
        self.name = f"{processor()[0]}, {self.threads} thread{'s' * (self.threads > 1)}"

    def lanes(self, precision: str) -> int:
        """The most sites that a register holds."""
        most = register_bytes() // (4 if precision == "single" else 8)
        return most if self._lanes is None else min(most, self._lanes)

    def kernel(self, name: str, variant: Variant) -> CpuKernel:
        """Compile (or find compiled) and load a kernel."""
        key = (name, variant)
        if key not in self._kernels:
            command = [*self.compiler.command.split(), *FLAGS, *variant.definitions]
            identity = self.compiler.version + repr(sorted(processor()[1]))
            path, _ = compiled(name, command, identity, ".so")
            self._kernels[key] = CpuKernel(path, name, self.threads, self._worker)
        return self._kernels[key]

    def pieces(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Pieces of which a sum kernel gives the sums: so many slots, of either parity."""
        return 2 * -(-math.prod(extents) // (2 * SLOTS_PER_PIECE))

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Zeroed memory.

        Raises
        ------
        GaugeError
            If this machine has less memory left.
        """
        free = _available_memory()
        if nbytes <= free:
            try:
                return CpuBuffer(nbytes, self._worker)
            except OSError:
                pass
        raise GaugeError(
            f"The lattice needs {nbytes / 2**30:.3g} GiB of memory at once and "
            f"{free / 2**30:.3g} GiB are left: take a smaller lattice or single precision."
        )

    def scratch(self, use: str, nbytes: int) -> CpuBuffer:
        """Memory that holds anything, until the next call for the same use."""
        if use not in self._scratch or self._scratch[use].nbytes < nbytes:
            self._scratch.pop(use, None)
            self._scratch[use] = self.allocate(nbytes)
        return self._scratch[use]

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""
        assert isinstance(buffer, CpuBuffer)
        self.synchronize()
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        buffer.bytes[offset : offset + flat.size] = flat

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of bytes of the buffer."""
        assert isinstance(buffer, CpuBuffer)
        self.synchronize()
        return buffer.bytes[offset : offset + nbytes].copy()

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""
        self._move([(target.address, source.address, source.nbytes)])

    def mark(self) -> Moment:
        """The point that the work given so far leads to."""
        if self._worker:
            return self._worker.mark()
        moment = Moment()
        moment.reach()
        return moment

    def wait(self, mark: Mark) -> None:
        """Do nothing more until a device, this one or another, has reached its mark."""
        if self._worker:
            self._worker.do(mark.synchronize)
        else:
            mark.synchronize()

    def sending(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Moment]:
        """Copies from one address to another each."""
        return partial(self._move, [(copy.to, copy.origin, nbytes) for copy in copies])

    def stores_in(self, other: Device) -> bool:
        """No: in waves it is not the last update that stores the last links."""
        return False

    def host_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """An array."""
        return np.empty(nbytes, np.uint8)

    def fetch(self, data: NDArray[np.uint8], origin: int) -> Moment:
        """Copy from an address to an array."""
        return self._move([(data.ctypes.data, origin, data.nbytes)])

    def put(self, to: int, data: NDArray[np.uint8]) -> Moment:
        """Copy from an array to an address."""
        return self._move([(to, data.ctypes.data, data.nbytes)])

    def _move(self, copies: Sequence[tuple[int, int, int]]) -> Moment:
        """Copy in the order of the work."""
        for copy in copies:
            if self._worker:
                self._worker.do(partial(ctypes.memmove, *copy))
            else:
                ctypes.memmove(*copy)
        return self.mark()

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        if self._worker:
            self._worker.synchronize()

    def close(self) -> None:
        """Drop the kernels and the scratch memory, and end the thread."""
        self.synchronize()
        self._kernels.clear()
        self._scratch.clear()
        if self._worker:
            self._worker.close()


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return sys.maxsize
