"""`pycuda.driver` without a GPU. Work is delayed and done in any order that the program allows.

Environment variables and their defaults: GAUGE_EMULATOR_GPUS, the number of GPUs (4);
GAUGE_EMULATOR_BYTES, the memory per GPU (2^30); GAUGE_EMULATOR_SEED, the seed for the order (0);
GAUGE_EMULATOR_ORDER, the order of work (random). The other orders are the extremes: nothing is done
before somebody waits for it (lazy), except for all work of one GPU (its number), work in every
second stream of a GPU (even, odd), or copies from one GPU to another (copies), which are done as
soon as they may.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import enum
import gc
import math
import os
import random
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

POISON = 0xCD
PAGE = 4096
READ_WRITE, NOTHING = 3, 0
DONT_NEED = 4
RANDOM, COPIES = "random", "copies"
STREAMS = ("even", "odd")
NON_BLOCKING = 1
OUTCOMES = {
    1: "its parameters have the wrong size",
    2: "a block has more threads than the launch bounds allow",
    3: "an illegal memory access was encountered",
}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Error(Exception): ...


class MemoryError(Error, builtins.MemoryError): ...


class LogicError(Error): ...


class LaunchError(Error): ...


class RuntimeError(Error): ...


_Address = Callable[[], int]


@dataclass(eq=False)
class _Operation:
    """An operation of a GPU, which starts after others have ended."""

    run: Callable[[], None]
    haste: float
    before: tuple[_Operation, ...]
    waits: int = 0
    followers: list[_Operation] = field(default_factory=list)
    done: bool = False


class _Schedule:
    """Runs operations late, in an order that respects streams and events.

    Parameters
    ----------
    seed : int
        Seed of random numbers.
    order : str
        The order: random, or an extreme one; see above.
    """

    def __init__(self, seed: int, order: str):
        self.lock = threading.RLock()
        self.random = random.Random(seed)
        self.ready: list[_Operation] = []
        self.order = order

    def issue(
        self, run: Callable[[], None], haste: float, after: Sequence[_Operation | None]
    ) -> _Operation:
        undone = tuple(dict.fromkeys(a for a in after if a and not a.done))
        operation = _Operation(run, haste, undone, len(undone))
        for before in undone:
            before.followers.append(operation)
        if not operation.waits:
            self.ready.append(operation)
        return operation

    def step(self) -> None:
        """Run one operation, which is chosen at random."""
        ready = tuple(self.ready)
        (operation,) = self.random.choices(ready, [o.haste for o in ready])
        self._run(operation)

    def _run(self, operation: _Operation) -> None:
        if operation not in self.ready:
            return  # already run, because memory was freed in this thread just now
        self.ready.remove(operation)
        # Memory that is collected now would be freed after a wait for this very operation.
        collects = gc.isenabled()
        gc.disable()
        try:
            operation.run()
        finally:
            if collects:
                gc.enable()
            operation.done, operation.before = True, ()
            for follower in operation.followers:
                follower.waits -= 1
                if not follower.waits:
                    self.ready.append(follower)

    def force(self, operation: _Operation) -> None:
        """Run an operation, and before it only those that must precede it."""
        chain = [operation]
        while chain:
            before = next((one for one in chain[-1].before if not one.done), None)
            if before:
                chain.append(before)
            else:
                self._run(chain.pop())

    def wait(self, *operations: _Operation | None) -> None:
        for operation in operations:
            while operation and not operation.done:
                with self.lock:
                    if self.order != RANDOM:
                        self.force(operation)
                    elif not operation.done:
                        self.step()


@dataclass(frozen=True)
class _Region:
    """Allocated memory, followed by a page that cannot be accessed."""

    address: int
    size: int
    mapping: int
    pages: int

    @classmethod
    def allocate(cls, size: int) -> _Region:
        pages = -(-size // PAGE)
        mapping = _libc.mmap(None, (pages + 2) * PAGE, NOTHING, 0x22, -1, 0)
        region = cls(mapping + (pages + 1) * PAGE - -(-size // 16) * 16, size, mapping, pages)
        region.protect(READ_WRITE)
        ctypes.memset(mapping + PAGE, POISON, pages * PAGE)
        return region

    def protect(self, protection: int) -> None:
        _libc.mprotect(self.mapping + PAGE, self.pages * PAGE, protection)

    def close(self) -> None:
        """Give the content back, so that each access fails; the addresses stay in use."""
        self.protect(NOTHING)
        _libc.madvise(self.mapping + PAGE, self.pages * PAGE, DONT_NEED)

    def free(self) -> None:
        _libc.munmap(self.mapping, (self.pages + 2) * PAGE)

    def holds(self, address: int, size: int) -> bool:
        return self.address <= address and address + size <= self.address + self.size


class _Gpu:
    """The state of a GPU, which all its contexts share."""

    def __init__(self, number: int):
        self.number = number
        self.regions: dict[int, _Region] = {}
        self.peers: set[_Gpu] = set()
        self.streams: list[Stream] = []
        self.default = Stream.__new__(Stream)
        self.default._join(self, 0)

    def at(self, address: Any, size: int) -> _Address:
        """Return a function that returns an address, if the bytes there belong to this GPU.

        This is checked at once, and again when the function is called.
        """
        number = int(address)

        def check() -> int:
            if not any(r.holds(number, size) for r in self.regions.values()):
                raise LogicError(f"invalid argument: {size} bytes at {number:#x} on {self}")
            return number

        check()
        return check

    def owner(self, address: Any, size: int) -> _Gpu:
        """Return the GPU that has the bytes: this one, or a peer that it can access."""
        number = int(address)
        for gpu in self.peers:
            if any(region.holds(number, size) for region in gpu.regions.values()):
                return gpu
        return self

    def free(self, address: int) -> None:
        """Free memory at once. The driver may wait for work before that, but does not promise it.

        The addresses are not used again before all work has ended that has been issued by now.
        """
        with _schedule.lock:
            region = self.regions.pop(address)
            region.close()
            pending = [one._last for gpu in _gpus for one in gpu.streams if one._last]
            _freed.append((region, [one for one in pending if not one.done]))

    @staticmethod
    def use_addresses_again() -> None:
        """Let addresses be used again that no work can refer to any more."""
        for region, pending in tuple(_freed):
            if all(one.done for one in pending):
                _freed.remove((region, pending))
                region.free()

    def unused(self) -> int:
        return _TOTAL - sum(region.size for region in self.regions.values())

    def synchronize(self) -> None:
        _schedule.wait(*(stream._last for stream in self.streams))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Protect the memory that kernels of this GPU must not access."""
        others = [gpu for gpu in _gpus if gpu is not self and gpu not in self.peers]
        hidden = [region for gpu in others for region in gpu.regions.values()]
        for region in hidden:
            region.protect(NOTHING)
        yield
        for region in hidden:
            region.protect(READ_WRITE)

    def __str__(self) -> str:
        return f"GPU {self.number}"


class _Contexts(threading.local):
    """The stack of contexts of a thread; the last one is current."""

    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.stale = False  # whether a released context is current
        self.sentinel = _Sentinel(self.stack)


class _Sentinel:
    """Aborts the process, as PyCUDA does, if a context is still current when the thread ends."""

    def __init__(self, stack: list[Context]):
        self.stack = stack

    def check(self) -> None:
        if self.stack:
            print("The context stack was not empty upon module cleanup.", file=sys.stderr)
            os.abort()

    def __del__(self) -> None:
        self.check()


def _current() -> _Gpu:
    if not _contexts.stack or _contexts.stale:
        raise LogicError("invalid device context: none that is alive is current in this thread")
    return _contexts.stack[-1]._gpu


class Stream:
    def __init__(self, flags: int = 0):
        self._join(_current(), flags)

    def _join(self, gpu: _Gpu, flags: int) -> None:
        self._gpu = gpu
        self._haste = 10 ** _schedule.random.uniform(
            -2, 2
        )  # some streams are much faster than others
        self._blocking = not flags & NON_BLOCKING
        self._last: _Operation | None = None
        self._name = STREAMS[len(gpu.streams) % 2]
        gpu.streams.append(self)

    @staticmethod
    def _of(stream: Stream | None) -> Stream:
        """Return a stream of the current context; by default its default stream."""
        gpu = _current()
        if stream and stream._gpu is not gpu:
            raise LogicError(f"invalid resource handle: a stream of {stream._gpu} on {gpu}")
        return stream or gpu.default

    def _issue(
        self, run: Callable[[], None], *others: _Operation | None, between: bool = False
    ) -> _Operation:
        """Issue an operation, which may be a copy between GPUs."""
        with _schedule.lock:
            gpu = self._gpu
            after = [self._last, *others]
            if self is gpu.default:
                after += [stream._last for stream in gpu.streams if stream._blocking]
            elif self._blocking:
                after.append(gpu.default._last)
            self._last = operation = _schedule.issue(run, self._haste, after)
            kinds = (str(gpu.number), self._name, COPIES if between else RANDOM)
            if _schedule.order != RANDOM and _schedule.order in kinds:
                _schedule.force(operation)
            return operation

    def _copy(self, to: _Address, origin: _Address, size: int, between: bool = False) -> None:
        self._issue(lambda: ctypes.memmove(to(), origin(), size) and None, between=between)

    def synchronize(self) -> None:
        _schedule.wait(self._last)

    def wait_for_event(self, event: Event) -> None:
        self._issue(lambda: None, event._operation)


class event_flags(enum.IntFlag):  # noqa: N801
    DEFAULT, BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS = 0, 1, 2, 4


class Event:
    def __init__(self, flags: int = 0):
        self._gpu = _current()
        self._operation: _Operation | None = None

    def record(self, stream: Stream | None = None) -> Event:
        stream = Stream._of(stream)
        if stream._gpu is not self._gpu:
            raise LogicError(f"invalid resource handle: an event of {self._gpu} on {stream._gpu}")
        self._operation = stream._issue(lambda: None)
        return self

    def synchronize(self) -> Event:
        _schedule.wait(self._operation)
        return self

    def query(self) -> bool:
        with _schedule.lock:
            if _schedule.order != RANDOM:
                _schedule.wait(self._operation)
            elif _schedule.ready:
                _schedule.step()
        return self._operation is None or self._operation.done


def mem_get_ipc_handle(address: int) -> bytearray:
    raise LogicError("operation not supported: emulated memory belongs to one process")


class Device:
    multiprocessor_count = 8

    def __init__(self, number: int):
        if not 0 <= number < len(_gpus):
            raise LogicError("cuDeviceGet failed: invalid device ordinal")
        self._gpu = _gpus[number]

    @staticmethod
    def count() -> int:
        return len(_gpus)

    def name(self) -> str:
        return "Emulated GPU"

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0

    def pci_bus_id(self) -> str:
        return f"0000:{self._gpu.number + 1:02x}:00.0"

    def can_access_peer(self, other: Device) -> bool:
        return other != self

    def retain_primary_context(self) -> Context:
        return Context(self._gpu)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other._gpu is self._gpu

    def __hash__(self) -> int:
        return self._gpu.number


class Context:
    """A primary context. As in PyCUDA, static methods refer to the current context."""

    def __init__(self, gpu: _Gpu):
        self._gpu = gpu
        self._thread = threading.get_ident()

    def push(self) -> None:
        _contexts.stack.append(self)
        _contexts.stale = False

    @staticmethod
    def pop() -> None:
        if not _contexts.stack:
            raise LogicError("cannot pop non-current context")
        _contexts.stack.pop()
        _contexts.stale = False

    def __del__(self) -> None:
        # To release the context, PyCUDA makes it current without recording that in its own stack.
        if sys and not sys.is_finalizing() and self._thread == threading.get_ident():
            _contexts.stale = True

    @staticmethod
    def synchronize() -> None:
        _current().synchronize()

    @staticmethod
    def enable_peer_access(peer: Context, flags: int = 0) -> None:
        gpu = _current()
        if peer._gpu is gpu or peer._gpu in gpu.peers:
            raise LogicError(f"peer access is already enabled from {gpu} to {peer._gpu}")
        gpu.peers.add(peer._gpu)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and other._gpu is self._gpu

    def __hash__(self) -> int:
        return self._gpu.number


class DeviceAllocation:
    """Device memory. As in PyCUDA, only the thread that retained its context can free it."""

    def __init__(self, region: _Region):
        self._region: _Region | None = region
        self._context = _contexts.stack[-1]

    def __int__(self) -> int:
        if self._region is None:
            raise LogicError("invalid resource handle: this memory was freed")
        return self._region.address

    __index__ = __int__

    def free(self) -> None:
        address = int(self)
        if self._context._thread == threading.get_ident():
            self._context._gpu.free(address)
        else:
            warnings.warn(
                "device_allocation in out-of-thread context could not be cleaned up", stacklevel=2
            )
        self._region = None

    def __del__(self) -> None:
        if self._region and sys and not sys.is_finalizing():  # at the end of a program, sys is None
            self.free()


def init(flags: int = 0) -> None:
    if not _gpus:
        raise RuntimeError("cuInit failed: no CUDA-capable device is detected")


def mem_get_info() -> tuple[int, int]:
    _current().synchronize()
    return _current().unused(), _TOTAL


def mem_alloc(size: int) -> DeviceAllocation:
    if size < 1:
        raise LogicError("cuMemAlloc failed: invalid argument")
    if size > _current().unused() and size > mem_get_info()[0]:
        raise MemoryError("cuMemAlloc failed: out of memory")
    region = _Region.allocate(size)
    with _schedule.lock:
        _Gpu.use_addresses_again()
        _current().regions[region.address] = region
    return DeviceAllocation(region)


class PagelockedHostAllocation(bytearray):
    """Host memory that a GPU accesses directly, at the time when the copy runs."""


def pagelocked_empty(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> NDArray[Any]:
    shape = (shape,) if np.isscalar(shape) else tuple(shape)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = PagelockedHostAllocation(bytes([POISON]) * size)
    return np.ndarray(shape, dtype, memory, order="C" if order == "C" else "F")


def _host(data: Any) -> tuple[NDArray[np.uint8], PagelockedHostAllocation | None]:
    """Return the bytes of host data, and their page-locked memory if they have any."""
    array = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if not array.flags.forc:
        raise ValueError("ndarray is not contiguous")
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    flat = array.ravel(order="K").view(np.uint8)
    return flat, base if isinstance(base, PagelockedHostAllocation) else None


def _page_locked(array: NDArray[np.uint8], memory: PagelockedHostAllocation) -> _Address:
    """Return a function that returns the address of bytes, if their memory still exists then."""
    number, exists = array.ctypes.data, weakref.ref(memory)

    def check() -> int:
        if exists() is None:
            raise LogicError(f"invalid argument: page-locked memory at {number:#x} was freed")
        return number

    return check


def memset_d8(dest: Any, data: int, count: int) -> None:
    stream = _current().default
    to = stream._gpu.at(dest, count)
    stream._issue(lambda: ctypes.memset(to(), data, count) and None)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    stream = Stream._of(stream)
    array, pagelocked = _host(src)
    if pagelocked is not None:
        origin = _page_locked(array, pagelocked)
    else:
        copied = array.copy()
        origin = lambda: copied.ctypes.data  # noqa: E731
    stream._copy(stream._gpu.at(dest, array.size), origin, array.size)


def memcpy_htod(dest: Any, src: Any) -> None:
    memcpy_htod_async(dest, src)
    if _host(src)[1] is not None:
        _current().default.synchronize()


def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    stream = Stream._of(stream)
    data, pagelocked = _host(dest)
    to = (lambda: data.ctypes.data) if pagelocked is None else _page_locked(data, pagelocked)
    stream._copy(to, stream._gpu.at(src, data.size), data.size)
    if pagelocked is None:
        stream.synchronize()


def memcpy_dtoh(dest: Any, src: Any) -> None:
    memcpy_dtoh_async(dest, src)
    _current().default.synchronize()


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    """Copy on a GPU, or between it and peers that it can access, whose addresses differ."""
    stream = Stream._of(stream)
    ends = [stream._gpu.owner(one, size) for one in (dest, src)]
    target, origin = (gpu.at(one, size) for gpu, one in zip(ends, (dest, src), strict=True))
    stream._copy(target, origin, size, between=ends[0] is not ends[1])


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    memcpy_dtod_async(dest, src, size)


def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
    stream: Stream | None = None,
) -> None:
    """Copy between GPUs. Both contexts are required, because PyCUDA 2026.1 crashes without them."""
    if not dest_context or not src_context:
        raise LogicError("invalid device context: PyCUDA crashes without both")
    target, origin = dest_context._gpu.at(dest, size), src_context._gpu.at(src, size)
    Stream._of(stream)._copy(target, origin, size, between=True)


class Function:
    def __init__(self, library: ctypes.CDLL, name: str, gpu: _Gpu):
        self._run = getattr(library, f"emulate_{name}")
        self._run.argtypes = [
            ctypes.POINTER(ctypes.c_uint),
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
        ]
        self._name, self._gpu = name, gpu

    def _launch_kernel(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        parameters: bytes,
        shared: int,
        stream: Stream | None,
    ) -> None:
        stream = Stream._of(stream)
        if stream._gpu is not self._gpu:
            raise LogicError(f"invalid resource handle: a kernel of {self._gpu} on {stream._gpu}")
        grid, block = ((*shape, 1, 1)[:3] for shape in (grid, block))
        fits = max(grid[1:]) < 2**16 and grid[0] < 2**31 and min(grid + block) > 0
        if not fits or math.prod(block) > 1024 or block[2] > 64:
            raise LogicError(f"cuLaunchKernel failed: invalid argument: grid {grid}, block {block}")
        shape = (ctypes.c_uint * 6)(*grid, *block)
        stream._issue(lambda: self._launch(shape, parameters))

    def _launch(self, shape: ctypes.Array[ctypes.c_uint], parameters: bytes) -> None:
        with self._gpu.alone():
            seed = _schedule.random.getrandbits(32)
            outcome = self._run(shape, parameters, len(parameters), seed)
        if outcome:
            raise LaunchError(f"{self._name} on {self._gpu} failed: {OUTCOMES[outcome]}")


class Module:
    def __init__(self, path: str):
        self._library, self._gpu = ctypes.CDLL(path), _current()

    def get_function(self, name: str) -> Function:
        try:
            return Function(self._library, name, self._gpu)
        except AttributeError as error:
            raise LogicError(
                f"cuModuleGetFunction failed: named symbol not found: {name}"
            ) from error


def module_from_file(path: str) -> Module:
    return Module(path)


_TOTAL = int(os.environ.get("GAUGE_EMULATOR_BYTES", 2**30))
_schedule = _Schedule(
    int(os.environ.get("GAUGE_EMULATOR_SEED", "0")), os.environ.get("GAUGE_EMULATOR_ORDER", RANDOM)
)
_freed: list[tuple[_Region, list[_Operation]]] = []
_gpus = [_Gpu(number) for number in range(int(os.environ.get("GAUGE_EMULATOR_GPUS", "4")))]
_contexts = _Contexts()
atexit.register(_contexts.sentinel.check)
