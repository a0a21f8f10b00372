"""HIP's library, behind the few calls of ``pycuda.driver`` that we use.

Names, arguments and errors are those of PyCUDA; see `gauge_mc.devices.cuda.bindings`. A GPU has no
contexts but is current in a thread by its number. A handle is released on the GPU on which it was
made, when nothing refers to it any more. Numbers of constants are those of ``hip_runtime_api.h``.
The library is called by ctypes, so that no package of Python is needed.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import os
import re
import weakref
from collections.abc import Callable, Sequence
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

OUT_OF_MEMORY = 2
"""hipErrorOutOfMemory."""

NOT_READY = 600
"""hipErrorNotReady, of an event that has not been reached."""

PORTABLE = 1
"""hipHostMallocPortable: page-locked memory for all GPUs."""

HANDLE_BYTES = 64
"""HIP_IPC_HANDLE_SIZE."""

BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 3
"""HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE and HIP_LAUNCH_PARAM_END."""

PROPERTIES_BYTES = 2**14
"""Bytes for the properties of a GPU, more than any release of HIP writes."""

event_flags = SimpleNamespace(DISABLE_TIMING=2, INTERPROCESS=4)
"""Flags of events."""


class HipError(Exception):
    """A call of the driver failed."""


class HipMemoryError(HipError, builtins.MemoryError):
    """The GPU does not have enough memory."""


class HipLogicError(HipError):
    """A call of the driver failed for another reason."""


class SharedHandle(ctypes.Structure):
    """The handle of memory or of an event that other processes open."""

    _fields_ = (("reserved", c_char * HANDLE_BYTES),)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the library."""
    library = hip_library()
    try:
        code = getattr(library, name)(*arguments)
    except AttributeError as error:
        raise HipLogicError(f"HIP's library has no {name}") from error
    if code:
        kind = HipMemoryError if code == OUT_OF_MEMORY else HipLogicError
        raise kind(f"{name} failed: {error_text(library, code)}")


def _made(name: str, *arguments: Any, kind: Any = c_void_p) -> Any:
    """Call a function that stores its result where its first argument says; return the result."""
    result = kind()
    _call(name, byref(result), *arguments)
    return result.value


def _pointer(address: Any) -> c_void_p:
    return c_void_p(int(address))


def _released(owner: Any, release: str, handle: int) -> None:
    """Release a handle, on the GPU that is current now, with its owner."""
    ordinal, library = _made("hipGetDevice", kind=c_int), hip_library()

    def finish() -> None:
        before = c_int()
        library.hipGetDevice(byref(before))
        library.hipSetDevice(c_int(ordinal))
        getattr(library, release)(c_void_p(handle))
        library.hipSetDevice(before)

    # The collector calls weak references to objects of a cycle before destructors, such as those
    # that wait for work before memory is freed. Arrays are objects that it does not know.
    owner.kept = np.empty(0)
    weakref.finalize(owner.kept, finish).atexit = False  # the driver frees everything then


def init() -> None:
    """Initialise the driver."""
    _call("hipInit", c_uint(0))
    HipGpu.count()


class HipGpu:
    """A GPU, by its number, which can be current in a thread."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    @staticmethod
    def count() -> int:
        """Return the number of GPUs."""
        return int(_made("hipGetDeviceCount", kind=c_int))

    def name(self) -> str:
        """Return the name of the GPU."""
        return self._text("hipDeviceGetName", 256)

    def pci_bus_id(self) -> str:
        """Return the address on the PCI bus, such as ``0000:3B:00.0``."""
        return self._text("hipDeviceGetPCIBusId", 32)

    def architecture(self) -> str:
        """Return the name of the architecture, such as ``gfx90a``.

        It is searched for in the properties, because its place in them depends on the release, and
        the other texts there, the name and the address of the GPU, come before it.
        """
        properties = ctypes.create_string_buffer(PROPERTIES_BYTES)
        newer = hasattr(hip_library(), "hipGetDevicePropertiesR0600")
        name = "hipGetDevicePropertiesR0600" if newer else "hipGetDeviceProperties"
        _call(name, properties, c_int(self.ordinal))
        names = re.findall(rb"gfx[0-9a-f]{3,4}(?=[:\0])", properties.raw)
        if not names:
            raise HipLogicError(f"{name} names no architecture")
        return str(names[-1].decode())

    def can_access_peer(self, peer: HipGpu) -> bool:
        """Return whether the GPU can access the memory of another one."""
        pair = c_int(self.ordinal), c_int(peer.ordinal)
        return bool(_made("hipDeviceCanAccessPeer", *pair, kind=c_int))

    def retain_primary_context(self) -> HipGpu:
        """Return what makes the GPU current, which is the GPU itself."""
        return self

    def _text(self, name: str, size: int) -> str:
        text = ctypes.create_string_buffer(size)
        _call(name, text, c_int(size), c_int(self.ordinal))
        return text.value.decode()

    def push(self) -> None:
        """Make the GPU current."""
        _call("hipSetDevice", c_int(self.ordinal))

    @staticmethod
    def pop() -> None:
        """Do nothing: the next GPU that is made current takes the place of this one."""

    @staticmethod
    def synchronize() -> None:
        """Wait for all work of the current GPU."""
        _call("hipDeviceSynchronize")

    @staticmethod
    def enable_peer_access(peer: HipGpu) -> None:
        """Let the current GPU access the memory of another one."""
        _call("hipDeviceEnablePeerAccess", c_int(peer.ordinal), c_uint(0))


class HipStream:
    """A stream of work of the current GPU."""

    def __init__(self) -> None:
        self.handle = _made("hipStreamCreate")
        _released(self, "hipStreamDestroy", self.handle)

    def wait_for_event(self, event: HipEvent) -> None:
        """Delay later work until an event has been reached."""
        _call("hipStreamWaitEvent", c_void_p(self.handle), c_void_p(event.handle), c_uint(0))


class HipEvent:
    """An event in streams of the current GPU."""

    def __init__(self, flags: int = 0, handle: int | None = None) -> None:
        self.handle = handle or int(_made("hipEventCreateWithFlags", c_uint(flags)))
        _released(self, "hipEventDestroy", self.handle)

    @classmethod
    def from_ipc_handle(cls, data: bytes | bytearray) -> HipEvent:
        """Return an event of another process."""
        shared = SharedHandle.from_buffer_copy(data)
        return cls(handle=_made("hipIpcOpenEventHandle", shared))

    def record(self, stream: HipStream) -> HipEvent:
        """Let the event be reached after the work that a stream has now; return it."""
        _call("hipEventRecord", c_void_p(self.handle), c_void_p(stream.handle))
        return self

    def query(self) -> bool:
        """Return whether the event has been reached."""
        library = hip_library()
        code = library.hipEventQuery(c_void_p(self.handle))
        if code and code != NOT_READY:
            raise HipLogicError(f"hipEventQuery failed: {error_text(library, code)}")
        return not code

    def synchronize(self) -> None:
        """Wait until the event has been reached."""
        _call("hipEventSynchronize", c_void_p(self.handle))

    def ipc_handle(self) -> bytes:
        """Return the handle that other processes open."""
        shared = SharedHandle()
        _call("hipIpcGetEventHandle", byref(shared), c_void_p(self.handle))
        return bytes(shared)


class HipAllocation:
    """Memory of a GPU; `int` gives its address."""

    def __init__(self, nbytes: int) -> None:
        self._address = _made("hipMalloc", c_size_t(nbytes))
        _released(self, "hipFree", self._address)

    def __int__(self) -> int:
        return int(self._address)


class HipMemoryHandle:
    """Memory of another process; `int` gives its address here."""

    def __init__(self, data: bytes | bytearray) -> None:
        shared = SharedHandle.from_buffer_copy(data)
        self._address = _made("hipIpcOpenMemHandle", shared, c_uint(0))
        _released(self, "hipIpcCloseMemHandle", self._address)

    def __int__(self) -> int:
        return int(self._address)


def mem_get_ipc_handle(address: int) -> bytes:
    """Return the handle of memory that other processes open."""
    shared = SharedHandle()
    _call("hipIpcGetMemHandle", byref(shared), _pointer(address))
    return bytes(shared)


mem_alloc = HipAllocation


def mem_get_info() -> tuple[int, int]:
    """Return the free and the whole memory of the GPU, in bytes."""
    free, total = c_size_t(), c_size_t()
    _call("hipMemGetInfo", byref(free), byref(total))
    return free.value, total.value


def memset_d8(target: HipAllocation, value: int, nbytes: int) -> None:
    """Fill memory with a byte."""
    _call("hipMemset", _pointer(target), c_int(value), c_size_t(nbytes))


def memcpy_htod(to: int, data: NDArray[Any]) -> None:
    """Copy an array to an address on the GPU."""
    _call("hipMemcpyHtoD", _pointer(to), _pointer(data.ctypes.data), c_size_t(data.nbytes))


def memcpy_dtoh(data: NDArray[Any], origin: int) -> None:
    """Copy from an address on the GPU to an array."""
    _call("hipMemcpyDtoH", _pointer(data.ctypes.data), _pointer(origin), c_size_t(data.nbytes))


def memcpy_dtod(to: int, origin: int, nbytes: int) -> None:
    """Copy from an address to another one."""
    _call("hipMemcpyDtoD", _pointer(to), _pointer(origin), c_size_t(nbytes))


def memcpy_htod_async(to: int, data: NDArray[Any], stream: HipStream) -> None:
    """Copy page-locked memory to an address on the GPU, in a stream."""
    _copy_async("hipMemcpyHtoDAsync", to, data.ctypes.data, data.nbytes, stream)


def memcpy_dtoh_async(data: NDArray[Any], origin: int, stream: HipStream) -> None:
    """Copy from an address on the GPU to page-locked memory, in a stream."""
    _copy_async("hipMemcpyDtoHAsync", data.ctypes.data, origin, data.nbytes, stream)


def memcpy_dtod_async(to: int, origin: int, nbytes: int, stream: HipStream) -> None:
    """Copy from an address to another one, in a stream."""
    _copy_async("hipMemcpyDtoDAsync", to, origin, nbytes, stream)


def _copy_async(name: str, to: int, origin: int, nbytes: int, stream: HipStream) -> None:
    where = _pointer(to), _pointer(origin)
    _call(name, *where, c_size_t(nbytes), c_void_p(stream.handle))


def memcpy_peer_async(
    to: int, origin: int, nbytes: int, target: HipGpu, source: HipGpu, stream: HipStream
) -> None:
    """Copy from an address on a GPU to one on another GPU, in a stream."""
    ends = _pointer(to), c_int(target.ordinal), _pointer(origin), c_int(source.ordinal)
    _call("hipMemcpyPeerAsync", *ends, c_size_t(nbytes), c_void_p(stream.handle))


def pagelocked_empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array in page-locked memory."""
    nbytes = max(1, size * np.dtype(dtype).itemsize)
    address = _made("hipHostMalloc", c_size_t(nbytes), c_uint(PORTABLE))
    memory = (c_char * nbytes).from_address(address)
    _released(memory, "hipHostFree", address)
    return np.frombuffer(memoryview(memory), dtype, size)


class HipFunction:
    """A kernel of a module."""

    def __init__(self, module: HipModule, name: str) -> None:
        self._module = module  # which must stay loaded
        self._function = c_void_p(
            _made("hipModuleGetFunction", c_void_p(module.handle), name.encode())
        )

    def _launch_kernel(
        self, grid: Sequence[int], block: Sequence[int], arguments: bytes, shared: int, stream: Any
    ) -> None:
        """Launch the kernel with arguments in the bytes of its parameters."""
        # The driver copies all of this before it returns.
        size, data = c_size_t(len(arguments)), ctypes.create_string_buffer(arguments)
        where = ctypes.addressof(data), BUFFER_SIZE, ctypes.addressof(size), END
        extra = (c_void_p * 5)(BUFFER_POINTER, *where)
        shape = (c_uint(x) for x in (*grid, *block, shared))
        stream = c_void_p(stream.handle)
        _call("hipModuleLaunchKernel", self._function, *shape, stream, None, extra)


class HipModule:
    """A compiled file with kernels."""

    def __init__(self, path: str) -> None:
        self.handle = _made("hipModuleLoad", path.encode())
        _released(self, "hipModuleUnload", self.handle)

    def get_function(self, name: str) -> HipFunction:
        """Return a kernel by name."""
        return HipFunction(self, name)


module_from_file = HipModule
Device, Context, Stream, Event = HipGpu, HipGpu, HipStream, HipEvent
Error, MemoryError, LogicError = HipError, HipMemoryError, HipLogicError
IPCMemoryHandle = HipMemoryHandle


LIBRARY = "libamdhip64.so"
"""Name of the library, which a development package installs."""

RELEASES = (7, 6, 5)
"""Releases of ROCm whose library is looked for, by its name with a number."""

USUAL_HOME = "/opt/rocm"
"""Default location of ROCm, used if neither ROCM_PATH nor HIP_PATH is set."""


def rocm_folders() -> list[Path]:
    """Return the folders in which ROCm may be."""
    roots = [os.environ.get(name) for name in ("ROCM_PATH", "HIP_PATH")]
    return [Path(root) for root in roots if root] or [Path(USUAL_HOME)]


@functools.cache
def hip_library() -> Any:
    """Return HIP's library, or None if it does not load."""
    names = [LIBRARY, *(f"{LIBRARY}.{number}" for number in RELEASES)]
    for name in (*names, *(str(folder / "lib" / LIBRARY) for folder in rocm_folders())):
        try:
            library = ctypes.CDLL(name)
            library.hipGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError):
            continue
        return library
    return None


def error_text(library: Any, code: int) -> str:
    """Return HIP's own words for a result of a call."""
    text: Callable[[int], bytes | None] = library.hipGetErrorString
    return (text(code) or str(code).encode()).decode()
