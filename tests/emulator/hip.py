"""HIP's library without an AMD GPU: its functions, as ctypes calls them, on the emulated GPUs.

Every call is compared with `SIGNATURES`, the interface of HIP as its header declares it, since
ctypes takes any arguments: an address without a type would be cut to 32 bits. The last calls are
noted, and those that are named in `Library.failing` fail.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable
from ctypes import c_char, c_int, c_size_t, c_uint, c_void_p
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emulator.pycuda import driver

SIGNATURES = {
    "hipInit": "unsigned",
    "hipGetDeviceCount": "int*",
    "hipDeviceGetName": "char* int int",
    "hipDeviceGetPCIBusId": "char* int int",
    "hipGetDeviceProperties": "char* int",
    "hipDeviceCanAccessPeer": "int* int int",
    "hipSetDevice": "int",
    "hipGetDevice": "int*",
    "hipDeviceSynchronize": "",
    "hipDeviceEnablePeerAccess": "int unsigned",
    "hipStreamCreate": "void**",
    "hipStreamDestroy": "void*",
    "hipStreamWaitEvent": "void* void* unsigned",
    "hipEventCreateWithFlags": "void** unsigned",
    "hipEventDestroy": "void*",
    "hipEventRecord": "void* void*",
    "hipEventQuery": "void*",
    "hipEventSynchronize": "void*",
    "hipIpcGetEventHandle": "handle* void*",
    "hipIpcOpenEventHandle": "void** handle",
    "hipIpcGetMemHandle": "handle* void*",
    "hipIpcOpenMemHandle": "void** handle unsigned",
    "hipIpcCloseMemHandle": "void*",
    "hipMalloc": "void** size_t",
    "hipFree": "void*",
    "hipMemGetInfo": "size_t* size_t*",
    "hipMemset": "void* int size_t",
    "hipMemcpyHtoD": "void* void* size_t",
    "hipMemcpyDtoH": "void* void* size_t",
    "hipMemcpyDtoD": "void* void* size_t",
    "hipMemcpyHtoDAsync": "void* void* size_t void*",
    "hipMemcpyDtoHAsync": "void* void* size_t void*",
    "hipMemcpyDtoDAsync": "void* void* size_t void*",
    "hipMemcpyPeerAsync": "void* int void* int size_t void*",
    "hipHostMalloc": "void** size_t unsigned",
    "hipHostFree": "void*",
    "hipModuleLoad": "void** char*",
    "hipModuleUnload": "void*",
    "hipModuleGetFunction": "void** void* char*",
    "hipModuleLaunchKernel": " ".join(["void*", *7 * ["unsigned"], "void*", "void**", "void**"]),
    "hipStreamBeginCapture": "void* int",
    "hipStreamEndCapture": "void* void**",
    "hipGraphInstantiateWithFlags": "void** void* size_t",
    "hipGraphDestroy": "void*",
    "hipGraphLaunch": "void* void*",
    "hipGraphExecDestroy": "void*",
}
"""The types of the arguments of every function that is called (hip_runtime_api.h)."""

WORDS = {
    1: "hipErrorInvalidValue",
    2: "hipErrorOutOfMemory",
    100: "hipErrorNoDevice",
    600: "hipErrorNotReady",
    704: "hipErrorPeerAccessAlreadyEnabled",
    719: "hipErrorLaunchFailure",
    801: "hipErrorNotSupported",
    900: "hipErrorStreamCaptureUnsupported",
}
"""Results of functions, and HIP's words for them."""

CODES = ((driver.MemoryError, 2), (driver.LaunchError, 719), (driver.Error, 1))
"""Results for the errors of the emulated driver."""

NOT_RECORDED = ("hipFree", "hipDeviceSynchronize", "hipEventSynchronize", "hipMemset", "hipMemcpy")
"""Beginnings of the names of functions that end a recording, unless they issue work to a stream."""

DISABLE_TIMING, INTERPROCESS = 2, 4
"""hipEventDisableTiming and hipEventInterprocess."""

ARCHITECTURE = b"gfx90a:sramecc+:xnack-"


def kind_of(argument: Any) -> str:
    """Return the type of an argument in C, or in Python if ctypes would have to guess it."""
    if argument is None or (isinstance(argument, ctypes.Array) and argument._type_ is c_void_p):
        return "void**"
    if isinstance(argument, bytes) or (
        isinstance(argument, ctypes.Array) and argument._type_ is c_char
    ):
        return "char*"
    star = "*" if hasattr(argument, "_obj") else ""
    kind = type(argument._obj if star else argument)
    names = {c_int: "int", c_uint: "unsigned", c_size_t: "size_t", c_void_p: "void*"}
    handle = "handle" if issubclass(kind, ctypes.Structure) else kind.__name__
    return names.get(kind, handle) + star


def _write(handle: ctypes.Structure, number: int) -> None:
    """Write a number into a handle."""
    ctypes.memmove(ctypes.addressof(handle), number.to_bytes(8, sys.byteorder), 8)


def _number_in(handle: ctypes.Structure) -> int:
    return int.from_bytes(bytes(handle)[:8], sys.byteorder)


class Library:
    """HIP's library.

    Attributes
    ----------
    calls : deque of str
        The names of the last calls.
    failing : dict
        Results of functions that are to fail, by name.
    """

    def __init__(self) -> None:
        self.calls: deque[str] = deque(maxlen=1000)
        self.failing: dict[str, int] = {}
        self._here = threading.local()
        atexit.register(self._here.__dict__.clear)  # contexts end before the driver does
        self._numbers = itertools.count(1)
        self._shared_events: set[int] = set()
        self._things: dict[int, Any] = {}
        self._pinned: dict[int, tuple[int, driver.PagelockedHostAllocation]] = {}
        self.hipGetErrorString: Any = lambda code: WORDS[code].encode()

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in SIGNATURES:
            raise AttributeError(name)
        function = getattr(type(self), f"_{name}", None)

        def call(*arguments: Any) -> int:
            found = " ".join(map(kind_of, arguments))
            assert found == SIGNATURES[name], f"{name}({found}), but not ({SIGNATURES[name]})"
            self.calls.append(name)
            if self._graph is not None and name.startswith(NOT_RECORDED) and "Async" not in name:
                self._here.graph = None
                return 900
            if name in self.failing or function is None:
                if name == "hipStreamEndCapture":
                    self._here.graph = None
                return self.failing.get(name, 801)
            try:
                return int(function(self, *arguments) or 0)
            except driver.Error as error:
                return next(code for kind, code in CODES if isinstance(error, kind))

        return call

    # GPUs

    @property
    def _ordinal(self) -> int:
        return int(getattr(self._here, "ordinal", 0))

    def _context(self, ordinal: int) -> driver.Context:
        if not hasattr(self._here, "contexts"):
            self._here.contexts = {}
        if ordinal not in self._here.contexts:
            self._here.contexts[ordinal] = driver.Device(ordinal).retain_primary_context()
        return self._here.contexts[ordinal]

    def _on(self, ordinal: int, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call the driver with a context that is current meanwhile."""
        context = self._context(ordinal)
        context.push()
        try:
            return call(*arguments)
        finally:
            context.pop()

    def _now(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return self._on(self._ordinal, call, *arguments)

    def _issue(self, call: Callable[..., Any], *arguments: Any, ordinal: int | None = None) -> None:
        """Issue work to a stream, or record it for a graph."""
        where = self._ordinal if ordinal is None else ordinal
        work = partial(self._on, where, call, *arguments)
        if self._graph is None:
            work()
        else:
            self._graph.append(work)

    def _hipInit(self, flags: Any) -> int:
        return 0 if driver.Device.count() else 100

    def _hipGetDeviceCount(self, count: Any) -> None:
        count._obj.value = driver.Device.count()

    def _hipDeviceGetName(self, text: Any, size: Any, ordinal: Any) -> None:
        text.value = driver.Device(ordinal.value).name().encode()

    def _hipDeviceGetPCIBusId(self, text: Any, size: Any, ordinal: Any) -> None:
        text.value = driver.Device(ordinal.value).pci_bus_id().encode()

    def _hipGetDeviceProperties(self, data: Any, ordinal: Any) -> None:
        text = driver.Device(ordinal.value).name().encode().ljust(300, b"\0") + ARCHITECTURE
        ctypes.memmove(data, text + b"\0", len(text) + 1)

    def _hipDeviceCanAccessPeer(self, able: Any, one: Any, other: Any) -> None:
        able._obj.value = driver.Device(one.value).can_access_peer(driver.Device(other.value))

    def _hipSetDevice(self, ordinal: Any) -> int:
        if not 0 <= ordinal.value < driver.Device.count():
            return 1
        self._here.ordinal = ordinal.value
        return 0

    def _hipGetDevice(self, ordinal: Any) -> None:
        ordinal._obj.value = self._ordinal

    def _hipDeviceSynchronize(self) -> None:
        self._now(driver.Context.synchronize)

    def _hipDeviceEnablePeerAccess(self, peer: Any, flags: Any) -> int:
        try:
            self._now(driver.Context.enable_peer_access, self._context(peer.value))
        except driver.LogicError:
            return 704
        return 0

    # Handles

    def _keep(self, result: Any, thing: Any, number: int | None = None) -> None:
        result._obj.value = number or next(self._numbers)
        self._things[result._obj.value] = thing

    def _hipStreamCreate(self, result: Any) -> None:
        self._keep(result, self._now(driver.Stream))

    def _hipEventCreateWithFlags(self, result: Any, flags: Any) -> None:
        self._keep(result, self._now(driver.Event, flags.value & DISABLE_TIMING))
        if flags.value & INTERPROCESS:
            self._shared_events.add(result._obj.value)

    # Handles that other processes open. Here it is this one, in which an address is itself.

    def _hipIpcGetMemHandle(self, handle: Any, address: Any) -> int:
        if address.value not in self._things:
            return 1
        _write(handle._obj, address.value)
        return 0

    def _hipIpcOpenMemHandle(self, result: Any, handle: Any, flags: Any) -> int:
        result._obj.value = _number_in(handle)
        return 0 if result._obj.value in self._things else 1

    def _hipIpcCloseMemHandle(self, address: Any) -> None:
        """Do nothing: the memory belongs to this process."""

    def _hipIpcGetEventHandle(self, handle: Any, event: Any) -> int:
        if event.value not in self._shared_events:
            return 1
        _write(handle._obj, event.value)
        return 0

    def _hipIpcOpenEventHandle(self, result: Any, handle: Any) -> int:
        if _number_in(handle) not in self._things:
            return 1
        self._keep(result, self._things[_number_in(handle)])
        return 0

    def _hipStreamDestroy(self, handle: Any) -> None:
        del self._things[handle.value]

    _hipEventDestroy = _hipModuleUnload = _hipStreamDestroy  # noqa: N815

    def _thing(self, handle: Any) -> Any:
        return self._things[handle.value]

    def _hipStreamWaitEvent(self, stream: Any, event: Any, flags: Any) -> None:
        self._issue(self._thing(stream).wait_for_event, self._thing(event))

    def _hipEventRecord(self, event: Any, stream: Any) -> None:
        thing = self._thing(event)
        self._issue(thing.record, self._thing(stream), ordinal=thing._gpu.number)

    def _hipEventQuery(self, event: Any) -> int:
        return 0 if self._thing(event).query() else 600

    def _hipEventSynchronize(self, event: Any) -> None:
        self._thing(event).synchronize()

    # Memory

    def _hipMalloc(self, result: Any, nbytes: Any) -> None:
        memory = self._now(driver.mem_alloc, nbytes.value)
        self._keep(result, memory, int(memory))

    def _hipFree(self, address: Any) -> None:
        memory = self._things.pop(address.value)
        memory._context._gpu.free(int(memory))  # any thread may free it
        memory._region = None

    def _hipMemGetInfo(self, free: Any, total: Any) -> None:
        free._obj.value, total._obj.value = self._now(driver.mem_get_info)

    def _hipMemset(self, to: Any, value: Any, nbytes: Any) -> None:
        self._now(driver.memset_d8, to.value, value.value, nbytes.value)

    def _hipHostMalloc(self, result: Any, nbytes: Any, flags: Any) -> None:
        whole = driver.pagelocked_empty(nbytes.value, np.uint8)
        result._obj.value = whole.ctypes.data
        self._pinned[whole.ctypes.data] = nbytes.value, whole.base

    def _hipHostFree(self, address: Any) -> None:
        del self._pinned[address.value]

    def _host(self, address: Any, nbytes: Any) -> NDArray[np.uint8]:
        """Return memory of the host, which is page-locked or not."""
        place, size = address.value, nbytes.value
        for begin, (length, memory) in self._pinned.items():
            if begin <= place and place + size <= begin + length:
                return np.ndarray(length, np.uint8, memory)[place - begin :][:size]
        return np.frombuffer((c_char * size).from_address(place), np.uint8)

    def _hipMemcpyHtoD(self, to: Any, data: Any, nbytes: Any) -> None:
        self._now(driver.memcpy_htod, to.value, self._host(data, nbytes))

    def _hipMemcpyDtoH(self, data: Any, origin: Any, nbytes: Any) -> None:
        self._now(driver.memcpy_dtoh, self._host(data, nbytes), origin.value)

    def _hipMemcpyDtoD(self, to: Any, origin: Any, nbytes: Any) -> None:
        self._now(driver.memcpy_dtod, to.value, origin.value, nbytes.value)

    def _hipMemcpyHtoDAsync(self, to: Any, data: Any, nbytes: Any, stream: Any) -> None:
        array = self._host(data, nbytes)
        self._issue(driver.memcpy_htod_async, to.value, array, self._thing(stream))

    def _hipMemcpyDtoHAsync(self, data: Any, origin: Any, nbytes: Any, stream: Any) -> None:
        array = self._host(data, nbytes)
        self._issue(driver.memcpy_dtoh_async, array, origin.value, self._thing(stream))

    def _hipMemcpyDtoDAsync(self, to: Any, origin: Any, nbytes: Any, stream: Any) -> None:
        what = to.value, origin.value, nbytes.value
        self._issue(driver.memcpy_dtod_async, *what, self._thing(stream))

    def _hipMemcpyPeerAsync(
        self, to: Any, target: Any, origin: Any, source: Any, nbytes: Any, stream: Any
    ) -> None:
        contexts = self._context(target.value), self._context(source.value)
        what = to.value, origin.value, nbytes.value
        self._issue(driver.memcpy_peer_async, *what, *contexts, self._thing(stream))

    # Kernels

    def _hipModuleLoad(self, result: Any, path: bytes) -> None:
        self._keep(result, self._now(driver.module_from_file, path.decode()))

    def _hipModuleGetFunction(self, result: Any, module: Any, name: bytes) -> None:
        self._keep(result, self._thing(module).get_function(name.decode()))

    def _hipModuleLaunchKernel(self, function: Any, *rest: Any) -> None:
        *numbers, stream, _, extra = rest
        x, y, z, *block, shared = (one.value for one in numbers)
        assert [extra[0], extra[2], extra[4]] == [1, 2, 3]
        data = ctypes.string_at(extra[1], c_size_t.from_address(extra[3]).value)
        launch = self._thing(function)._launch_kernel
        self._issue(launch, (x, y, z), (*block,), data, shared, self._thing(stream))

    # Graphs: everything that the thread issues meanwhile is recorded, whichever the stream is. A
    # graph waits for its own stream, and later work there for all of it; other streams neither
    # delay it nor wait for it.

    @property
    def _graph(self) -> list[Callable[[], Any]] | None:
        return getattr(self._here, "graph", None)

    def _hipStreamBeginCapture(self, stream: Any, mode: Any) -> int:
        if self._graph is not None:
            return 1
        self._here.graph = []
        return 0

    def _hipStreamEndCapture(self, stream: Any, result: Any) -> int:
        graph, self._here.graph = self._graph, None
        if graph is None:
            return 900
        self._keep(result, graph)
        return 0

    def _hipGraphInstantiateWithFlags(self, result: Any, graph: Any, flags: Any) -> None:
        self._keep(result, self._thing(graph))

    _hipGraphDestroy = _hipGraphExecDestroy = _hipStreamDestroy  # noqa: N815

    def _hipGraphLaunch(self, graph: Any, stream: Any) -> None:
        own, streams = self._thing(stream), [one for gpu in driver._gpus for one in gpu.streams]
        begun = own._issue(lambda: None)
        before = [one._last for one in streams]
        for one in streams:
            one._last = begun
        for work in self._thing(graph):
            work()
        ends = [one._last for one in streams]
        for one, last in zip(streams, before, strict=True):
            one._last = last
        own._issue(lambda: None, *ends)
