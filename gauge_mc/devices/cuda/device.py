"""An NVIDIA GPU as a device."""

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

from gauge_mc.devices.base import Buffer, Copy, Device, Event
from gauge_mc.devices.cache import compiled, version_of
from gauge_mc.devices.cuda import load_driver
from gauge_mc.devices.cuda.bounds import Bounds, TunedBounds, candidates, usual_bounds
from gauge_mc.devices.cuda.kernel import CudaBuffer, CudaKernel, SweepFunction, best_tile
from gauge_mc.devices.cuda.nvcc import describe, find_nvcc, nvcc_command, registers_of
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError

LEAST_BYTES = 16
"""Size of the smallest allocation."""


class _Contexts(threading.local):
    """The primary contexts that a thread has retained, and which of them is current.

    They are kept until the thread ends: PyCUDA makes a context current again when it is released,
    without noting that in its own stack, and frees what belongs to a context only in the thread
    that retained it.
    """

    def __init__(self) -> None:
        self._retained: dict[int, Any] = {}
        self._current: Any = None

    def of(self, device: Any, ordinal: int) -> Any:
        """Retain a GPU's context once, and return it."""
        if ordinal not in self._retained:
            self._retained[ordinal] = device.retain_primary_context()
        return self._retained[ordinal]

    def make_current(self, context: Any) -> None:
        """Make a context current, or none.

        None must be current when the thread ends, or PyCUDA ends the process.
        """
        if context is self._current:
            return
        if self._current is not None:
            self._current.pop()
        self._current = context
        if context is not None:
            context.push()


class CudaDevice:
    """One GPU in its primary context, retained by the thread that makes this object.

    Parameters
    ----------
    ordinal : int
        The GPU's number, as CUDA counts.

    Raises
    ------
    GaugeError
        If PyCUDA, the GPU or nvcc is missing.
    """

    backend = "cuda"
    packet_bytes = 16
    cache_bytes = 0
    in_host_memory = False
    has_side_stream = True
    _contexts = _Contexts()

    def __init__(self, ordinal: int = 0):
        self._driver = load_driver()
        count = self._driver.Device.count()
        if ordinal >= count:
            raise GaugeError(f"GPU {ordinal} is not here: CUDA sees {count}, numbered from 0.")
        nvcc = find_nvcc()
        if nvcc is None:
            raise GaugeError(
                "nvcc, which compiles the GPU kernels, is not here: `pip install 'gauge-mc[cuda]'` "
                "brings it, or put the bin folder of a CUDA toolkit on PATH."
            )
        self._nvcc = nvcc
        self.compiler_name = f"nvcc, {describe(nvcc)}"
        device = self._driver.Device(ordinal)
        self._device = device
        self._reached: dict[int, bool] = {}
        self.ordinal = ordinal
        try:
            self._context = self._contexts.of(device, ordinal)
            self.activate()
            # Every stream waits for the copies of `read` and `write`, and these for every stream.
            streams = (self._driver.Stream() for _ in range(3))
            self.stream, self.side_stream, self._arriving = streams
            self._forked, self._joined = self._new_event(), self._new_event()
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
        self.tuned = TunedBounds(device.name())
        self._kernels: dict[tuple[Kernel, Variant], CudaKernel] = {}
        self._modules: list[Any] = []
        self._scratch: dict[str, CudaBuffer] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def lanes(self, precision: str) -> int:
        """Return 1: a thread has one site."""
        return 1

    def kernel(self, kernel: Kernel, variant: Variant) -> CudaKernel:
        """Compile a kernel, or find it compiled, and load it."""
        key = (kernel, kernel.narrowed(variant))
        if key not in self._kernels:
            self.bind(*key, self.tuned.bounds(*key))
        return self._kernels[key]

    def bind(
        self, kernel: Kernel, variant: Variant, bounds: Bounds, whole_sweeps: bool = True
    ) -> None:
        """Use a kernel with these launch bounds from now on.

        Parameters
        ----------
        kernel : Kernel
        variant : Variant
        bounds : Bounds
        whole_sweeps : bool
            Whether to run sweeps of small lattices in one launch, whose bounds are fixed.
        """
        self.activate()
        variant = kernel.narrowed(variant)
        command = nvcc_command(self._nvcc, self.architecture, variant, bounds)
        identity = version_of(self._nvcc) or ""
        path, report = compiled(kernel, variant, command, identity, ".cubin", "Tile")
        module = self._driver.module_from_file(str(path))
        self._modules.append(module)
        sweep = None
        # Blocks that wait for each other must not wait for room that another process occupies.
        usable = whole_sweeps and not _is_shared_with_processes()
        if usable and (found := registers_of(report, f"{kernel.name}_sweep")):
            function = module.get_function(f"{kernel.name}_sweep")
            counter = self.allocate(LEAST_BYTES)
            sweep = SweepFunction(function, found, self._multiprocessors, counter)
        self._kernels[kernel, variant] = CudaKernel(
            self,
            module.get_function(kernel.name),
            sweep,
            bounds.threads,
            registers_of(report, kernel.name),
            kernel.sums,
        )

    def tuning_choices(self, kernel: Kernel, variant: Variant) -> list[Bounds]:
        """Return launch bounds for a kernel, the present ones first."""
        before = self.tuned.bounds(kernel, variant)
        return [before, *(bounds for bounds in candidates() if bounds != before)]

    def use(self, kernel: Kernel, variant: Variant, choice: Bounds) -> None:
        """Use a kernel with these launch bounds, to time single launches of it."""
        # Whole sweeps in one launch, of a small lattice, do not depend on the bounds.
        self.bind(kernel, variant, choice, whole_sweeps=False)

    def keep(self, kernel: Kernel, variant: Variant, choice: Bounds) -> None:
        """Use a kernel with these launch bounds from now on, in later processes too."""
        self.bind(kernel, variant, choice)
        self.tuned.keep(kernel, variant, choice)

    def partial_sums(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Return how many partial sums a sum kernel stores: one a thread block, of either parity."""
        # Sum kernels have the usual bounds, since tuning must not change the order of additions.
        threads = usual_bounds(variant).threads
        return math.prod(extents) // best_tile(extents, 1, threads).threads

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Allocate zeroed memory.

        Raises
        ------
        GaugeError
            If the GPU has less memory left.
        """
        self.activate()
        try:
            allocation = self._driver.mem_alloc(max(nbytes, LEAST_BYTES))
        except self._driver.MemoryError as error:
            free, total = self._driver.mem_get_info()
            raise GaugeError(
                f"The lattice needs {nbytes / 2**30:.3g} GiB at once on {self.name}, where "
                f"{free / 2**30:.3g} of {total / 2**30:.3g} GiB are free: take a smaller lattice, "
                "single precision or more GPUs."
            ) from error
        self._driver.memset_d8(allocation, 0, max(nbytes, LEAST_BYTES))
        # Another GPU, which does not wait for this one's streams, may write there next.
        self._driver.Context.synchronize()
        return CudaBuffer(allocation, nbytes)

    def free_bytes(self) -> int:
        """Return how much memory is free."""
        self.activate()
        return int(self._driver.mem_get_info()[0])

    def scratch(self, use: str, nbytes: int) -> CudaBuffer:
        """Return memory with arbitrary content, valid until the next call for the same use."""
        if use not in self._scratch or self._scratch[use].nbytes < nbytes:
            self._scratch.pop(use, None)
            self._scratch[use] = self.allocate(nbytes)
        return self._scratch[use]

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""
        self.activate()
        self._driver.memcpy_htod(buffer.address + offset, np.ascontiguousarray(data))

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return a copy of bytes of the buffer, after all work issued before has ended."""
        self.activate()
        data = np.empty(nbytes, dtype=np.uint8)
        self._driver.memcpy_dtoh(data, buffer.address + offset)
        return data

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""
        self.activate()
        self._driver.memcpy_dtod(target.address, source.address, source.nbytes)

    def event(self) -> Any:
        """Return the point at the end of the work issued so far."""
        self.activate()
        return self._new_event().record(self.stream)

    def wait(self, event: Event) -> None:
        """Begin no later work until a GPU, this one or another, has reached an event."""
        # A stream may be told to wait whichever GPU is active; activating this one would take time.
        self.stream.wait_for_event(event)

    def fork(self) -> None:
        """Let what is launched on the side stream from here on follow the work so far."""
        self.activate()
        self.side_stream.wait_for_event(self._forked.record(self.stream))

    def join(self) -> None:
        """Let the work from here on follow all that was launched on the side stream."""
        self.activate()
        self.stream.wait_for_event(self._joined.record(self.side_stream))

    def prepare_copies(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Any]:
        """Return a call that issues copies to GPUs: directly, or else by the driver via the host."""
        calls = [self._prepare_copy(copy, nbytes) for copy in copies]
        self.activate()
        return partial(self._issue, calls, partial(self._new_event().record, self.stream))

    def _prepare_copy(self, copy: Copy, nbytes: int) -> Callable[[], object]:
        target, what = copy.target, (copy.to, copy.origin, nbytes)
        assert isinstance(target, CudaDevice)
        if target.ordinal == self.ordinal:
            return partial(self._driver.memcpy_dtod_async, *what, self.stream)
        self.reaches(target)  # enables direct copies
        contexts = target._context, self._context
        return partial(self._driver.memcpy_peer_async, *what, *contexts, self.stream)

    def _issue(self, copies: Sequence[Callable[[], object]], record: Callable[[], Any]) -> Any:
        self.activate()
        for copy in copies:
            copy()
        return record()

    def reaches(self, other: Device) -> bool:
        """Return whether kernels and copies reach another GPU's memory, and enable that."""
        assert isinstance(other, CudaDevice)
        if other.ordinal not in self._reached:
            reached = other.ordinal == self.ordinal
            if not reached and self._device.can_access_peer(other._device):
                reached = True
                self.activate()
                # LogicError: another object for this GPU has enabled it before.
                with suppress(self._driver.LogicError):
                    self._driver.Context.enable_peer_access(other._context)
            self._reached[other.ordinal] = reached
        return self._reached[other.ordinal]

    def _new_event(self) -> Any:
        return self._driver.Event(self._driver.event_flags.DISABLE_TIMING)

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return page-locked memory, which the GPU copies from and to directly."""
        self.activate()
        data: NDArray[np.uint8] = self._driver.pagelocked_empty(nbytes, np.uint8)
        return data

    def download(self, data: NDArray[np.uint8], origin: int) -> Any:
        """Copy from an address to the host."""
        self.activate()
        self._driver.memcpy_dtoh_async(data, origin, self.stream)
        return self.event()

    def upload(self, to: int, data: NDArray[np.uint8]) -> Any:
        """Copy from the host to an address, beside the work under way."""
        self.activate()
        self._driver.memcpy_htod_async(to, data, self._arriving)
        return self._new_event().record(self._arriving)

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.activate()
        self._context.synchronize()

    def activate(self) -> None:
        """Make this GPU the one that this thread's calls of the driver refer to."""
        self._contexts.make_current(self._context)

    def close(self) -> None:
        """Release what the GPU holds, in the thread that opened it. It cannot be used again."""
        atexit.unregister(self.close)
        self.synchronize()
        for items in (self._kernels, self._modules, self._scratch):
            items.clear()
        self.stream = self.side_stream = self._arriving = self._forked = self._joined = None
        self._contexts.make_current(None)


def _is_shared_with_processes() -> bool:
    """Return whether kernels of other processes run beside ours: CUDA's Multi-Process Service."""
    pipes = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    return (Path(pipes) / "control").exists()
