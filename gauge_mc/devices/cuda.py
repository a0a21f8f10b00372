"""An NVIDIA GPU, by PyCUDA; kernels are compiled at run time by nvcc."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Copy, Device, Mark
from gauge_mc.devices.bounds import USUAL, Bounds, Tuned
from gauge_mc.devices.cuda_kernel import CudaBuffer, CudaKernel, Sweep, best_tile
from gauge_mc.devices.nvcc import find_nvcc, nvcc_command, nvcc_release, registers_of
from gauge_mc.devices.source import Variant, compiled, version_of
from gauge_mc.errors import GaugeError


class _Contexts(threading.local):
    """The GPUs' primary contexts that a thread has retained, and which of them is current.

    They are kept: PyCUDA makes a context current again when it gives it back, unknown to its own
    stack, and frees what belongs to a context only in the thread that retained it.
    """

    def __init__(self) -> None:
        self._retained: dict[int, Any] = {}
        self._current: Any = None

    def of(self, device: Any, ordinal: int) -> Any:
        """Retain a GPU's context, once."""
        if ordinal not in self._retained:
            self._retained[ordinal] = device.retain_primary_context()
        return self._retained[ordinal]

    def make_current(self, context: Any) -> None:
        """Make a context current, or none: one still current when its thread ends, ends all."""
        if context is self._current:
            return
        if self._current is not None:
            self._current.pop()
        self._current = context
        if context is not None:
            context.push()


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
    copies_beside = True
    _contexts = _Contexts()

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
        self._reached: dict[int, bool] = {}
        self.ordinal = ordinal
        try:
            self._context = self._contexts.of(device, ordinal)
            self.activate()
            # All wait for the copies of `read` and `write`, and those for them.
            self.stream, self.beside, self._arriving = (self._driver.Stream() for _ in range(3))
            self._forked, self._joined = self._event(), self._event()
        except self._driver.Error as error:
            self._contexts.make_current(None)
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

    def bind(self, name: str, variant: Variant, bounds: Bounds, whole_sweeps: bool = True) -> None:
        """Use a kernel with these launch bounds from now on, and for whole sweeps what has none."""
        self.activate()
        command = nvcc_command(self._nvcc, self.architecture, variant, bounds)
        path, report = compiled(name, command, version_of(self._nvcc) or "", ".cubin")
        module = self._driver.module_from_file(str(path))
        self._modules.append(module)
        sweep = None
        # Blocks that wait for each other must not wait for room that another process has.
        usable = whole_sweeps and not _beside_others()
        if usable and (found := registers_of(report, f"{name}_sweep")):
            function, counter = module.get_function(f"{name}_sweep"), self.allocate(16)
            sweep = Sweep(function, found.count, self._multiprocessors, counter)
        function, registers = module.get_function(name), registers_of(report, name)
        self._kernels[name, variant] = CudaKernel(self, function, sweep, bounds.threads, registers)

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
        return self._event().record(self.stream)

    def wait(self, mark: Mark) -> None:
        """Launch nothing more until a GPU, this one or another, has reached its mark."""
        # Streams may be told to wait whichever GPU is active: to turn to another takes time.
        self.stream.wait_for_event(mark)

    def fork(self) -> None:
        """Let what is launched beside from here on follow the work so far."""
        self.activate()
        self.beside.wait_for_event(self._forked.record(self.stream))

    def join(self) -> None:
        """Let the work from here on follow all that was launched beside."""
        self.activate()
        self.stream.wait_for_event(self._joined.record(self.beside))

    def sending(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Any]:
        """Copies to GPUs: straight, or where they cannot by the driver through the host."""
        calls = [self._copying(copy, nbytes) for copy in copies]
        self.activate()
        return partial(self._send, calls, partial(self._event().record, self.stream))

    def _copying(self, copy: Copy, nbytes: int) -> Callable[[], object]:
        target, what = copy.target, (copy.to, copy.origin, nbytes)
        assert isinstance(target, CudaDevice)
        if target.ordinal == self.ordinal:
            return partial(self._driver.memcpy_dtod_async, *what, self.stream)
        self.stores_in(target)  # then copies go straight
        contexts = target._context, self._context
        return partial(self._driver.memcpy_peer_async, *what, *contexts, self.stream)

    def _send(self, copies: Sequence[Callable[[], object]], record: Callable[[], Any]) -> Any:
        self.activate()
        for copy in copies:
            copy()
        return record()

    def stores_in(self, other: Device) -> bool:
        """Whether its kernels, and copies, reach another GPU's memory: now they may."""
        assert isinstance(other, CudaDevice)
        if other.ordinal not in self._reached:
            reached = other.ordinal == self.ordinal
            if not reached and self._device.can_access_peer(other._device):
                reached = True
                self.activate()
                # LogicError: it was enabled before, by another object for this GPU.
                with suppress(self._driver.LogicError):
                    self._driver.Context.enable_peer_access(other._context)
            self._reached[other.ordinal] = reached
        return self._reached[other.ordinal]

    def _event(self) -> Any:
        return self._driver.Event(self._driver.event_flags.DISABLE_TIMING)

    def host_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Page-locked memory, which copies reach without a detour."""
        self.activate()
        data: NDArray[np.uint8] = self._driver.pagelocked_empty(nbytes, np.uint8)
        return data

    def fetch(self, data: NDArray[np.uint8], origin: int) -> Any:
        """Copy from an address to the host."""
        self.activate()
        self._driver.memcpy_dtoh_async(data, origin, self.stream)
        return self.mark()

    def put(self, to: int, data: NDArray[np.uint8]) -> Any:
        """Copy from the host to an address, beside the work under way."""
        self.activate()
        self._driver.memcpy_htod_async(to, data, self._arriving)
        return self._event().record(self._arriving)

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.activate()
        self._context.synchronize()

    def activate(self) -> None:
        """Make this GPU the one that this thread's calls of the driver are for."""
        self._contexts.make_current(self._context)

    def close(self) -> None:
        """Give back what the GPU holds, in the thread that opened it; no more use after that."""
        atexit.unregister(self.close)
        self.synchronize()
        for items in (self._kernels, self._modules, self._scratch):
            items.clear()
        self.stream = self.beside = self._arriving = self._forked = self._joined = None
        self._contexts.make_current(None)


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


def _beside_others() -> bool:
    """Tell whether other processes' kernels run beside ours: CUDA's Multi-Process Service."""
    pipes = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    return (Path(pipes) / "control").exists()


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
