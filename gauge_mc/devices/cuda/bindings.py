"""NVIDIA's own bindings of the CUDA driver, behind the few calls of ``pycuda.driver`` that we use.

``cuda-bindings`` is a wheel, so that nothing need be compiled to use a GPU; see
`gauge_mc.devices.cuda.driver`. Names, arguments and errors are those of PyCUDA. A handle is
released in the context in which it was made, when nothing refers to it any more.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import struct
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from cuda.bindings import driver as cuda
from numpy.typing import DTypeLike, NDArray

OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""

NOT_READY = 600
"""CUDA_ERROR_NOT_READY, of an event that has not been reached."""

PORTABLE = 1
"""CU_MEMHOSTALLOC_PORTABLE: page-locked memory for all contexts."""

LAZY_PEERS = 1
"""CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS."""

BUFFER_POINTER, BUFFER_SIZE = 1, 2
"""CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE."""

event_flags = SimpleNamespace(DISABLE_TIMING=2, INTERPROCESS=4)
"""Flags of events."""


class Error(Exception):
    """A call of the driver failed."""


class MemoryError(Error, builtins.MemoryError):
    """The GPU does not have enough memory."""


class LogicError(Error):
    """A call of the driver failed for another reason."""


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the driver and return its result; of several ones a tuple."""
    try:
        code, *values = function(*arguments)
    except RuntimeError as error:  # there is no driver, or it lacks the function
        raise LogicError(" ".join(str(error).split())) from error
    if code:
        _, message = cuda.cuGetErrorString(code)
        words = message.decode() if message else str(int(code))
        kind = MemoryError if int(code) == OUT_OF_MEMORY else LogicError
        raise kind(f"{function.__name__} failed: {words}")
    return values[0] if len(values) == 1 else tuple(values)


def _released(owner: object, release: Callable[[Any], Any], handle: Any) -> None:
    """Release a handle, in the context that is current now, with its owner."""
    context = _call(cuda.cuCtxGetCurrent)

    def finish() -> None:
        cuda.cuCtxPushCurrent(context)
        release(handle)
        cuda.cuCtxPopCurrent()

    weakref.finalize(owner, finish).atexit = False  # the driver frees everything then


def init() -> None:
    """Initialise the driver."""
    _call(cuda.cuInit, 0)


class BoundDevice:
    """A GPU, by its number."""

    def __init__(self, ordinal: int) -> None:
        self._device = _call(cuda.cuDeviceGet, ordinal)

    @staticmethod
    def count() -> int:
        """Return the number of GPUs."""
        return int(_call(cuda.cuDeviceGetCount))

    def name(self) -> str:
        """Return the name of the GPU."""
        return str(_call(cuda.cuDeviceGetName, 256, self._device).split(b"\0")[0].decode())

    def pci_bus_id(self) -> str:
        """Return the address on the PCI bus, such as ``0000:3B:00.0``."""
        return str(_call(cuda.cuDeviceGetPCIBusId, 32, self._device).split(b"\0")[0].decode())

    def compute_capability(self) -> tuple[int, int]:
        """Return the major and the minor compute capability."""
        CUdevice_attribute = cuda.CUdevice_attribute
        return (
            self._attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )

    @property
    def multiprocessor_count(self) -> int:
        """Number of multiprocessors."""
        CUdevice_attribute = cuda.CUdevice_attribute
        return self._attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)

    def can_access_peer(self, peer: BoundDevice) -> bool:
        """Return whether the GPU can access the memory of another one."""
        return bool(_call(cuda.cuDeviceCanAccessPeer, self._device, peer._device))

    def retain_primary_context(self) -> BoundContext:
        """Return the primary context of the GPU."""
        return BoundContext(_call(cuda.cuDevicePrimaryCtxRetain, self._device))

    def _attribute(self, name: Any) -> int:
        return int(_call(cuda.cuDeviceGetAttribute, name, self._device))


class BoundContext:
    """A context of a GPU."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def push(self) -> None:
        """Make the context current."""
        _call(cuda.cuCtxPushCurrent, self.handle)

    @staticmethod
    def pop() -> None:
        """Make the context current that was so before."""
        _call(cuda.cuCtxPopCurrent)

    @staticmethod
    def synchronize() -> None:
        """Wait for all work of the current context."""
        _call(cuda.cuCtxSynchronize)

    @staticmethod
    def enable_peer_access(peer: BoundContext) -> None:
        """Let the current context access the memory of another one."""
        _call(cuda.cuCtxEnablePeerAccess, peer.handle, 0)


class BoundStream:
    """A stream of work of the current context."""

    def __init__(self) -> None:
        self.handle = _call(cuda.cuStreamCreate, 0)
        self.address = int(self.handle)
        _released(self, cuda.cuStreamDestroy, self.handle)

    def wait_for_event(self, event: BoundEvent) -> None:
        """Delay later work until an event has been reached."""
        _call(cuda.cuStreamWaitEvent, self.handle, event.handle, 0)


class BoundEvent:
    """An event in streams of the current context."""

    def __init__(self, flags: int = 0, handle: Any = None) -> None:
        self.handle = _call(cuda.cuEventCreate, flags) if handle is None else handle
        _released(self, cuda.cuEventDestroy, self.handle)

    @classmethod
    def from_ipc_handle(cls, data: bytes | bytearray) -> BoundEvent:
        """Return an event of another process."""
        return cls(handle=_call(cuda.cuIpcOpenEventHandle, _shared(cuda.CUipcEventHandle, data)))

    def record(self, stream: BoundStream) -> BoundEvent:
        """Let the event be reached after the work that a stream has now; return it."""
        _call(cuda.cuEventRecord, self.handle, stream.handle)
        return self

    def query(self) -> bool:
        """Return whether the event has been reached."""
        (code,) = cuda.cuEventQuery(self.handle)
        if int(code) == NOT_READY:
            return False
        _call(lambda: (code,))  # raises what has failed
        return True

    def synchronize(self) -> None:
        """Wait until the event has been reached."""
        _call(cuda.cuEventSynchronize, self.handle)

    def ipc_handle(self) -> bytes:
        """Return the handle that other processes open."""
        return bytes(_call(cuda.cuIpcGetEventHandle, self.handle).reserved)


class Allocation:
    """Memory of a GPU; `int` gives its address."""

    def __init__(self, nbytes: int) -> None:
        self._address = int(_call(cuda.cuMemAlloc, nbytes))
        _released(self, cuda.cuMemFree, self._address)

    def __int__(self) -> int:
        return self._address


class IPCMemoryHandle:
    """Memory of another process; `int` gives its address here."""

    def __init__(self, data: bytes | bytearray) -> None:
        handle = _shared(cuda.CUipcMemHandle, data)
        self._address = int(_call(cuda.cuIpcOpenMemHandle, handle, LAZY_PEERS))
        _released(self, cuda.cuIpcCloseMemHandle, self._address)

    def __int__(self) -> int:
        return self._address


def _shared(kind: Callable[[], Any], data: bytes | bytearray) -> Any:
    """Return the handle of another process."""
    handle = kind()
    handle.reserved = bytes(data)
    return handle


def mem_get_ipc_handle(address: int) -> bytes:
    """Return the handle of memory that other processes open."""
    return bytes(_call(cuda.cuIpcGetMemHandle, address).reserved)


mem_alloc = Allocation


def mem_get_info() -> tuple[int, int]:
    """Return the free and the whole memory of the GPU, in bytes."""
    free, total = _call(cuda.cuMemGetInfo)
    return int(free), int(total)


def memset_d8(target: Allocation, value: int, nbytes: int) -> None:
    """Fill memory with a byte."""
    _call(cuda.cuMemsetD8, int(target), value, nbytes)


def memcpy_htod(to: int, data: NDArray[Any]) -> None:
    """Copy an array to an address on the GPU."""
    _call(cuda.cuMemcpyHtoD, to, data.ctypes.data, data.nbytes)


def memcpy_dtoh(data: NDArray[Any], origin: int) -> None:
    """Copy from an address on the GPU to an array."""
    _call(cuda.cuMemcpyDtoH, data.ctypes.data, origin, data.nbytes)


def memcpy_dtod(to: int, origin: int, nbytes: int) -> None:
    """Copy from an address to another one."""
    _call(cuda.cuMemcpyDtoD, to, origin, nbytes)


def memcpy_htod_async(to: int, data: NDArray[Any], stream: BoundStream) -> None:
    """Copy page-locked memory to an address on the GPU, in a stream."""
    _call(cuda.cuMemcpyHtoDAsync, to, data.ctypes.data, data.nbytes, stream.handle)


def memcpy_dtoh_async(data: NDArray[Any], origin: int, stream: BoundStream) -> None:
    """Copy from an address on the GPU to page-locked memory, in a stream."""
    _call(cuda.cuMemcpyDtoHAsync, data.ctypes.data, origin, data.nbytes, stream.handle)


def memcpy_dtod_async(to: int, origin: int, nbytes: int, stream: BoundStream) -> None:
    """Copy from an address to another one, in a stream."""
    _call(cuda.cuMemcpyDtoDAsync, to, origin, nbytes, stream.handle)


def memcpy_peer_async(
    to: int,
    origin: int,
    nbytes: int,
    target: BoundContext,
    source: BoundContext,
    stream: BoundStream,
) -> None:
    """Copy from an address on a GPU to one on another GPU, in a stream."""
    contexts = (to, target.handle, origin, source.handle)
    _call(cuda.cuMemcpyPeerAsync, *contexts, nbytes, stream.handle)


def pagelocked_empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array in page-locked memory."""
    nbytes = max(1, size * np.dtype(dtype).itemsize)
    address = int(_call(cuda.cuMemHostAlloc, nbytes, PORTABLE))
    memory = (ctypes.c_char * nbytes).from_address(address)
    _released(memory, cuda.cuMemFreeHost, address)
    return np.frombuffer(memoryview(memory), dtype, size)


CONFIGURATION = struct.Struct("7I4xPPI4x")
"""CUlaunchConfig: grid, block, shared memory, stream, and attributes, of which there are none."""


@functools.cache
def _launcher() -> Callable[..., int]:
    """Return the function of the driver that launches kernels.

    The bindings convert its arguments in more time than a launch takes, and let other threads run,
    for which a launch is too short.
    """
    launch = ctypes.PyDLL("libcuda.so.1").cuLaunchKernelEx
    launch.argtypes = [ctypes.c_void_p] * 4
    return launch


class BoundFunction:
    """A kernel of a module."""

    def __init__(self, module: BoundModule, name: str) -> None:
        self._module = module  # which must stay loaded
        self._function = int(_call(cuda.cuModuleGetFunction, module.handle, name.encode()))
        self._size = ctypes.c_size_t()
        self._shape = ctypes.create_string_buffer(CONFIGURATION.size)
        self._extra = (ctypes.c_void_p * 5)()
        self._addresses = ctypes.addressof(self._shape), ctypes.addressof(self._extra)

    def _launch_kernel(
        self, grid: Sequence[int], block: Sequence[int], arguments: bytes, shared: int, stream: Any
    ) -> None:
        """Launch the kernel with arguments in the bytes of its parameters."""
        if len(arguments) != self._size.value:
            self._make_room(len(arguments))
        # The driver copies all of this before it returns.
        self._bytes[:] = arguments
        CONFIGURATION.pack_into(self._shape, 0, *grid, *block, shared, stream.address, 0, 0)
        shape, extra = self._addresses
        code = _launcher()(shape, self._function, None, extra)
        if code:
            _call(lambda: (cuda.CUresult(code),))

    def _make_room(self, size: int) -> None:
        """Let arguments have a number of bytes."""
        self._size.value = size
        self._arguments = ctypes.create_string_buffer(size)
        self._bytes = memoryview(self._arguments).cast("B")
        where, count = map(ctypes.addressof, (self._arguments, self._size))
        self._extra[:] = [BUFFER_POINTER, where, BUFFER_SIZE, count, 0]


class BoundModule:
    """A compiled file with kernels."""

    def __init__(self, path: str) -> None:
        self.handle = _call(cuda.cuModuleLoad, path.encode())
        _released(self, cuda.cuModuleUnload, self.handle)

    def get_function(self, name: str) -> BoundFunction:
        """Return a kernel by name."""
        return BoundFunction(self, name)


module_from_file = BoundModule
Device, Context, Stream, Event = BoundDevice, BoundContext, BoundStream, BoundEvent
