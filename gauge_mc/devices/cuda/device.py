"""The device of the CUDA backend: an NVIDIA GPU."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, BufferOwner, Copy, Device, Event, Launch, Offer
from gauge_mc.devices.cache import compiled
from gauge_mc.devices.cuda import graphs
from gauge_mc.devices.cuda import kernel as gpu_kernel
from gauge_mc.devices.cuda.compiler import GpuCompiler, usable_compiler
from gauge_mc.devices.cuda.driver import INSTALL, LEAST_CAPABILITY, driver_library, load_driver
from gauge_mc.devices.energy import EnergyCounter, nvidia_counter
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError, NoKernelsError, NoMemoryError

EVENTS = 2
"""Number of events that take turns, so that none is recorded again before others wait for it."""


class CudaSharedBuffer:
    """A buffer of a GPU that other processes can write to, and events that they can wait for.

    Parameters
    ----------
    driver : module
        ``pycuda.driver``.
    stream : pycuda Stream
        The stream whose work precedes the events.
    buffer : CudaBuffer
        The memory that is offered to other processes.

    Raises
    ------
    pycuda Error
        If the driver does not share memory between processes.
    """

    def __init__(self, driver: Any, stream: Any, buffer: gpu_kernel.CudaBuffer) -> None:
        flags = driver.event_flags.DISABLE_TIMING | driver.event_flags.INTERPROCESS
        self._stream = stream
        self._buffer = buffer
        self._events = [driver.Event(flags) for _ in range(EVENTS)]
        memory = driver.mem_get_ipc_handle(buffer.address)
        events = [event.ipc_handle() for event in self._events]
        self.offer = Offer(bytes(memory), tuple(map(bytes, events)))

    def record(self, turn: int) -> None:
        """Record the event of a turn after the work issued so far."""
        self._events[turn % EVENTS].record(self._stream)


class CudaForeignBuffer:
    """A buffer that another process offers.

    Parameters
    ----------
    driver : module
        ``pycuda.driver``. The context that is current gets access to the memory.
    offer : Offer
        Offer that the owner of the buffer has sent.

    Raises
    ------
    pycuda Error
        If the memory cannot be reached.

    Attributes
    ----------
    address : int
        The address of the buffer in this process.
    """

    def __init__(self, driver: Any, offer: Offer) -> None:
        self._memory = driver.IPCMemoryHandle(bytearray(offer.memory))
        self._events = [driver.Event.from_ipc_handle(bytearray(event)) for event in offer.events]
        self.address = int(self._memory)

    def event(self, turn: int) -> Any:
        """Return the event that the other process has recorded in a turn."""
        return self._events[turn % EVENTS]


LEAST_BYTES = 16
"""Minimum size of an allocation, in bytes."""


class Contexts(threading.local):
    """The primary contexts that a thread has retained, and the one that is current.

    Contexts are kept until the thread ends, for two reasons. When PyCUDA releases a context, it
    makes it current without recording that in its own stack. And it frees memory of a context only
    in the thread that retained the context.
    """

    def __init__(self) -> None:
        self._retained: dict[int, Any] = {}
        self.current: Any = None

    def of(self, device: Any, ordinal: int) -> Any:
        """Return a GPU's context, which is retained by the first call."""
        if ordinal not in self._retained:
            self._retained[ordinal] = device.retain_primary_context()
        return self._retained[ordinal]

    def make_current(self, context: Any) -> None:
        """Make a context current; with None, no context is current.

        PyCUDA aborts the process if a context is still current when the thread ends.
        """
        if context is self.current:
            return
        if self.current is not None:
            self.current.pop()
        self.current = context
        if context is not None:
            context.push()


class CudaDevice(BufferOwner[gpu_kernel.CudaBuffer]):
    """One GPU in its primary context, which the thread that creates this object retains.

    A subclass for GPUs with another driver and compiler overrides the attributes below `interface`
    and the methods that find these; the driver has the form of ``pycuda.driver``.

    Parameters
    ----------
    ordinal : int
        CUDA's number of the GPU.

    Raises
    ------
    GaugeError
        If bindings of the driver or a compiler are missing, or the GPU does not exist, is too old
        or does not work.
    """

    backend = "cuda"
    interface = "CUDA"
    """The interface by which programs use these GPUs, as shown to the user."""
    monitor = "nvidia-smi"
    """The command that shows what the GPUs do."""
    install_command = INSTALL
    """The command that installs another compiler."""
    object_suffix = ".cubin"
    """Suffix of compiled kernels."""
    warp = gpu_kernel.WARP
    """Number of threads that execute together."""
    runs_whole_sweeps = True
    """Whether whole sweeps of small lattices run in one launch."""
    libraries: tuple[Kernel, ...] = ()
    packet_bytes = 16
    cache_bytes = 0
    in_host_memory = False
    has_side_stream = True
    counter: Callable[[str], EnergyCounter] = staticmethod(nvidia_counter)
    """Returns the energy counter of the GPU at a PCI bus address."""
    _contexts = Contexts()

    def __init__(self, ordinal: int = 0):
        super().__init__()
        self._driver = self._find_driver()
        count = self._driver.Device.count()
        if ordinal >= count:
            raise GaugeError(
                f"There is no GPU {ordinal}: {self.interface} sees {count}, numbered from 0."
            )
        self._compiler = self._find_compiler()
        self.compiler_name = str(self._compiler)
        device = self._driver.Device(ordinal)
        self.architecture = self._architecture_of(device, ordinal)
        self._device = device
        self._reached: dict[int, bool] = {}
        self._users: WeakSet[CudaDevice] = WeakSet((self,))  # which access the GPU's memory
        self.ordinal = ordinal
        self.strict = False
        try:
            self._context = self._contexts.of(device, ordinal)
            self.activate()
            # These streams and the default stream (`read`, `write`) wait for each other.
            streams = (self._driver.Stream() for _ in range(3))
            self.stream, self.side_stream, self._arriving = streams
            self._forked, self._joined = self._new_event(), self._new_event()
        except self._driver.Error as error:
            self._contexts.make_current(None)
            if isinstance(error, self._driver.MemoryError):
                raise GaugeError(
                    f"The memory of GPU {ordinal} is full ({error}): end other programs that use "
                    f"it, which `{self.monitor}` shows, or choose another GPU with --devices."
                ) from error
            raise GaugeError(
                f"GPU {ordinal} does not work ({error}): check the output of `{self.monitor}`."
            ) from error
        self.name = f"{device.name()} (GPU {ordinal})"
        atexit.register(self.close)
        self.tuned = gpu_kernel.TunedBounds(device.name())
        self._kernels: dict[tuple[Kernel, Variant], gpu_kernel.CudaKernel] = {}
        self._modules: list[Any] = []
        self._files: dict[tuple[Kernel, Variant, gpu_kernel.Bounds], tuple[Path, str]] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @staticmethod
    def _find_driver() -> Any:
        return load_driver()

    @staticmethod
    def _find_compiler() -> GpuCompiler:
        return usable_compiler()

    @staticmethod
    def _graph_functions() -> graphs.GraphFunctions | None:
        return graphs.GraphFunctions.of(driver_library(), graphs.CUDA_NAMES)

    def _early_starts(self) -> graphs.EarlyStarts | None:
        able = self._device.compute_capability() >= graphs.EARLY_CAPABILITY
        return graphs.EarlyStarts.of(driver_library(), graphs.EARLY_NAMES) if able else None

    @staticmethod
    def _architecture_of(device: Any, ordinal: int) -> str:
        """Return the name of a GPU's architecture for the compiler."""
        major, minor = device.compute_capability()
        if (major, minor) < LEAST_CAPABILITY:
            raise GaugeError(
                f"GPU {ordinal}, {device.name()}, has compute capability {major}.{minor}, but "
                "kernels are written for {}.{} (Volta, 2017) and later: use the CPU, or choose "
                "another GPU with --devices.".format(*LEAST_CAPABILITY)
            )
        return f"sm_{major}{minor}"

    def lanes(self, precision: str) -> int:
        """Return 1: every thread works on one site."""
        return 1

    def compile(self, kernel: Kernel, variant: Variant) -> None:
        """Compile a kernel if it is not in the cache; see `Device.compile`."""
        key = (kernel, kernel.narrowed(variant))
        self._compiled_file(*key, self.tuned.bounds(*key))

    def _compiled_file(
        self, kernel: Kernel, variant: Variant, bounds: gpu_kernel.Bounds
    ) -> tuple[Path, str]:
        """Return the object file and the report of the compiler."""
        key = (kernel, variant, bounds)
        if key not in self._files:
            compiler = self._compiler
            command = compiler.command(self.architecture, variant, bounds)
            try:
                self._files[key] = compiled(
                    kernel, variant, command, compiler.identity, self.object_suffix, "Tile"
                )
            except NoKernelsError as error:
                if compiler.compiles_for(self.architecture):
                    raise
                raise NoKernelsError(
                    f"{self.name} is of the architecture {self.architecture}, for which {compiler} "
                    f"does not compile: run `{self.install_command}`, or put the bin folder of a "
                    f"{self.interface} toolkit that knows it first on PATH."
                ) from error
        return self._files[key]

    def kernel(self, kernel: Kernel, variant: Variant) -> gpu_kernel.CudaKernel:
        """Load a kernel, compiling it if it is not in the cache."""
        key = (kernel, kernel.narrowed(variant))
        if key not in self._kernels:
            self.bind(*key, self.tuned.bounds(*key))
        return self._kernels[key]

    def bind(
        self, kernel: Kernel, variant: Variant, bounds: gpu_kernel.Bounds, whole_sweeps: bool = True
    ) -> None:
        """Compile and load a kernel with the given launch bounds, and use it from now on."""
        self.activate()
        variant = kernel.narrowed(variant)
        path, report = self._compiled_file(kernel, variant, bounds)
        try:
            module = self._driver.module_from_file(str(path))
        except self._driver.Error as error:
            raise NoKernelsError(
                f"The compiled kernel {path} cannot be loaded ({error}): run `gauge-mc doctor "
                f"--clear-cache`, and check the output of `{self.monitor}`."
            ) from error
        self._modules.append(module)
        sweep = None
        # Blocks that wait for each other must all be resident, which other processes could prevent.
        usable = self.runs_whole_sweeps and whole_sweeps and not _is_shared_with_processes()
        registers_of = self._compiler.registers_of
        if usable and (usage := registers_of(report, f"{kernel.name}_sweep")):
            function = module.get_function(f"{kernel.name}_sweep")
            counter = self.allocate(LEAST_BYTES)
            sweep = gpu_kernel.SweepFunction(
                function, usage, self._device.multiprocessor_count, counter
            )
        function, registers = module.get_function(kernel.name), registers_of(report, kernel.name)
        kind = kernel.sums, kernel.of_links, kernel.shared, self.warp
        loaded = gpu_kernel.CudaKernel(self, function, sweep, bounds.threads, registers, *kind)
        self._kernels[kernel, variant] = loaded

    def tuning_choices(self, kernel: Kernel, variant: Variant) -> list[gpu_kernel.Bounds]:
        """Return launch bounds to try for a kernel, the current ones first."""
        before = self.tuned.bounds(kernel, variant)
        return [before, *(bounds for bounds in gpu_kernel.candidates() if bounds != before)]

    def use(self, kernel: Kernel, variant: Variant, choice: gpu_kernel.Bounds) -> None:
        """Compile a kernel with the given launch bounds, in order to time single launches of it."""
        # Whole sweeps in one launch do not depend on the bounds.
        self.bind(kernel, variant, choice, whole_sweeps=False)

    def keep(self, kernel: Kernel, variant: Variant, choice: gpu_kernel.Bounds) -> None:
        """Use a kernel with the given launch bounds from now on, in later processes too."""
        self.bind(kernel, variant, choice)
        self.tuned.keep(kernel, variant, choice)

    def partial_sums(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Return the number of partial sums per time slice: one per thread block."""
        # Sum kernels use the default bounds, because tuning must not change the order of additions.
        threads = gpu_kernel.default_bounds(variant).threads
        return (
            math.prod(extents) // gpu_kernel.best_tile(extents, 1, threads, warp=self.warp).threads
        )

    def allocate(self, nbytes: int) -> gpu_kernel.CudaBuffer:
        """Allocate memory filled with zeros."""
        self.activate()
        try:
            allocation = self._driver.mem_alloc(max(nbytes, LEAST_BYTES))
        except self._driver.MemoryError as error:
            free, total = self._driver.mem_get_info()
            raise NoMemoryError(
                f"{nbytes / 2**30:.3g} GiB for the lattice cannot be allocated on {self.name}, "
                f"where {free / 2**30:.3g} of {total / 2**30:.3g} GiB are free: use a smaller "
                "lattice, single precision or more GPUs."
            ) from error
        self._driver.memset_d8(allocation, 0, max(nbytes, LEAST_BYTES))
        # Another GPU, which does not wait for the streams of this one, may write there next.
        self._driver.Context.synchronize()
        buffer = gpu_kernel.CudaBuffer(
            allocation, nbytes, partial(_wait_for, self._users, self._contexts)
        )
        self._buffers.add(buffer)
        return buffer

    def free_bytes(self) -> int:
        """Return the free memory in bytes."""
        self.activate()
        return int(self._driver.mem_get_info()[0])

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""
        self.activate()
        self._driver.memcpy_htod(buffer.address + offset, np.ascontiguousarray(data))

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return a copy of bytes of the buffer, after all work issued so far has ended."""
        self.activate()
        data = np.empty(nbytes, dtype=np.uint8)
        self._driver.memcpy_dtoh(data, buffer.address + offset)
        return data

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""
        self.activate()
        self._driver.memcpy_dtod(target.address, source.address, source.nbytes)

    def event(self) -> Any:
        """Return an event at the end of the work issued so far."""
        self.activate()
        return self._new_event().record(self.stream)

    def recorded(self, launches: Callable[[], object], others: Sequence[Device] = ()) -> Launch:
        """Return a call that repeats launches; see `Device.recorded`."""
        functions, early = self._graph_functions(), self._early_starts()
        return graphs.RecordedLaunches(launches, self, others, self._driver.Error, functions, early)

    def wait(self, event: Event) -> None:
        """Delay all later work until an event of this or another GPU has been reached."""
        # This works whichever GPU is active, so the time to activate this one is saved.
        self.stream.wait_for_event(event)

    def fork(self) -> None:
        """Make later work on the side stream wait for all work issued so far."""
        self.activate()
        self.side_stream.wait_for_event(self._forked.record(self.stream))

    def join(self) -> None:
        """Make later work wait for all work issued on the side stream so far."""
        self.activate()
        self.stream.wait_for_event(self._joined.record(self.side_stream))

    def swap_streams(self) -> None:
        """Issue later work on the side stream, or again on the other one."""
        self.stream, self.side_stream = self.side_stream, self.stream

    def prepare_copies(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Any]:
        """Return a call that issues copies to GPUs; see `Device.prepare_copies`.

        GPUs copy to each other directly if they can; otherwise the driver copies through the host.
        """
        calls = [self._prepare_copy(copy, nbytes) for copy in copies]
        self.activate()
        return partial(self._issue, calls, partial(self._new_event().record, self.stream))

    def _prepare_copy(self, copy: Copy, nbytes: int) -> Callable[[], object]:
        target, span = copy.target, (copy.to, copy.origin, nbytes)
        assert isinstance(target, CudaDevice)
        if self.reaches(target):  # and has enabled direct copies, which a graph can contain
            return partial(self._driver.memcpy_dtod_async, *span, self.stream)
        contexts = target._context, self._context
        return partial(self._driver.memcpy_peer_async, *span, *contexts, self.stream)

    def _issue(self, copies: Sequence[Callable[[], object]], record: Callable[[], Any]) -> Any:
        self.activate()
        for copy in copies:
            copy()
        return record()

    def reaches(self, peer: Device) -> bool:
        """Return whether this GPU can access another GPU's memory; enable the access if so."""
        assert isinstance(peer, CudaDevice)
        if peer.ordinal not in self._reached:
            reached = peer.ordinal == self.ordinal
            if not reached and self._device.can_access_peer(peer._device):
                reached = True
                self.activate()
                # LogicError: another object for this GPU has already enabled it.
                with suppress(self._driver.LogicError):
                    self._driver.Context.enable_peer_access(peer._context)
            self._reached[peer.ordinal] = reached
        peer._users.add(self)
        return self._reached[peer.ordinal]

    def share(self, buffer: Buffer) -> CudaSharedBuffer | None:
        """Offer a buffer to other processes on the host; see `SharingDevice.share`."""
        self.activate()
        assert isinstance(buffer, gpu_kernel.CudaBuffer)
        with suppress(self._driver.Error):
            return CudaSharedBuffer(self._driver, self.stream, buffer)
        return None

    def foreign(self, offer: Offer) -> CudaForeignBuffer | None:
        """Return a buffer that another process offers; see `SharingDevice.foreign`."""
        self.activate()
        with suppress(self._driver.Error):
            return CudaForeignBuffer(self._driver, offer)
        return None

    def _new_event(self) -> Any:
        return self._driver.Event(self._driver.event_flags.DISABLE_TIMING)

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return page-locked host memory, which the GPU accesses directly."""
        self.activate()
        data: NDArray[np.uint8] = self._driver.pagelocked_empty(nbytes, np.uint8)
        return data

    def download(self, data: NDArray[np.uint8], origin: int) -> Any:
        """Copy from an address to host memory; see `Device.download`."""
        self.activate()
        self._driver.memcpy_dtoh_async(data, origin, self.stream)
        return self.event()

    def upload(self, to: int, data: NDArray[np.uint8]) -> Any:
        """Copy from host memory to an address while other work goes on; see `Device.upload`."""
        self.activate()
        self._driver.memcpy_htod_async(to, data, self._arriving)
        return self._new_event().record(self._arriving)

    def energy_counters(self) -> list[EnergyCounter]:
        """Return the counter of the GPU; see `Device.energy_counters`."""
        return [self.counter(self._device.pci_bus_id())]

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.activate()
        self._context.synchronize()

    def activate(self) -> None:
        """Make this GPU's context current, so that driver calls of this thread refer to it."""
        self._contexts.make_current(self._context)

    def close(self) -> None:
        """Release all resources of the GPU, in the thread that opened it; see `Device.close`."""
        atexit.unregister(self.close)
        self.synchronize()
        self._users.clear()
        for items in (self._kernels, self._modules, self._scratch):
            items.clear()
        self.stream = self.side_stream = self._arriving = self._forked = self._joined = None
        self._contexts.make_current(None)


def _wait_for(users: Iterable[CudaDevice], contexts: Contexts) -> None:
    """Wait for GPUs, and leave the current context as it is."""
    before = contexts.current
    for device in users:
        with suppress(device._driver.Error):  # which the next call reports
            device.synchronize()
    contexts.make_current(before)


def _is_shared_with_processes() -> bool:
    """Return whether CUDA's Multi-Process Service runs kernels of other processes next to ours."""
    pipes = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    return (Path(pipes) / "control").exists()
