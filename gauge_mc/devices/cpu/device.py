"""The device of the CPU backend, and the thread that carries out its tasks in order."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import base
from gauge_mc.devices.cache import compiled
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.topology import (
    Claim,
    Core,
    claim_cores,
    in_order,
    team_caches,
    topology,
    usable_cores,
)
from gauge_mc.devices.energy import EnergyCounter, package_counters
from gauge_mc.devices.host import free_memory
from gauge_mc.devices.kernels import REAL_BYTES, Kernel, Library, Variant
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.errors import NoKernelsError, NoMemoryError, UsageError


def touch_first(address: int, nbytes: int, cores: Sequence[Core]) -> None:
    """Write zeros to new memory, each part from the core of the thread that will work on it.

    Without effect if all cores are in the same node. The parts are those of a launch that works on
    all slices of a field.
    """
    if len({core.node for core in cores}) < 2:
        return
    writers = [
        threading.Thread(target=_write_zeros, args=(core.number, address + begin, end - begin))
        for core, begin, end in parts(nbytes, cores)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def parts(nbytes: int, cores: Sequence[Core]) -> Iterator[tuple[Core, int, int]]:
    """Yield every core with the first byte of its part, and the byte after its last one."""
    for n, core in enumerate(cores):
        yield core, nbytes * n // len(cores), nbytes * (n + 1) // len(cores)


def _write_zeros(core: int, address: int, nbytes: int) -> None:
    os.sched_setaffinity(0, {core})  # of this thread alone
    ctypes.memset(address, 0, nbytes)  # releases the interpreter's lock meanwhile


TEAM = Library("cpu_team", source_folder() / "arch")
"""The code of teams, which is the same for all kernels."""


class Team:
    """Threads that wait for kernels to run; the thread that launches a kernel is one of them.

    Parameters
    ----------
    library : CDLL
        The compiled `TEAM`.
    threads : int
        Number of threads.
    cores : sequence of Core
        The core of every thread; the system moves the threads if there are none. The launching
        thread is brought to its core, but may leave it.
    """

    def __init__(self, library: ctypes.CDLL, threads: int, cores: Sequence[Core] = ()) -> None:
        self._make, self._end = library.make_team, library.end_team
        self._make.restype = ctypes.c_void_p
        self._end.argtypes = [ctypes.c_void_p]
        self._threads = threads
        self._begin([core.number for core in cores[:threads]])

    @property
    def address(self) -> ctypes.c_void_p:
        """The address of the C++ object."""
        if os.getpid() != self._process:  # a forked process has no threads, nor cores of its own
            self._finalizer.detach()
            self._begin([])
        return self._address

    def _begin(self, cores: Sequence[int]) -> None:
        numbers = (ctypes.c_int * self._threads)(*cores) if cores else None
        self._process = os.getpid()
        self._address = ctypes.c_void_p(self._make(self._threads, numbers))
        self._finalizer = weakref.finalize(self, _end, self._end, self._address, self._process)


def _end(end: Any, address: ctypes.c_void_p, process: int) -> None:
    if os.getpid() == process:
        end(address)


class Teams:
    """The teams of a device: one for every number of threads that has been used.

    Parameters
    ----------
    most : int
        The maximum number of threads, for which cores are claimed when the first team is made.
    load : callable
        Function that returns the compiled `TEAM`; it is called when the first team is made.
    """

    def __init__(self, most: int, load: Callable[[], ctypes.CDLL]) -> None:
        self._most = self._threads = most
        self._load = load
        self._claim: Claim | None = None
        self._teams: dict[int, Team] = {}

    def use(self, threads: int) -> None:
        """Choose the number of threads of later launches."""
        self._threads = threads

    def current(self) -> Team:
        """Return the team of the chosen size."""
        team = self._teams.get(self._threads)
        if team is None:
            team = Team(self._load(), self._threads, self.cores())
            self._teams[self._threads] = team
        return team

    def cores(self) -> list[Core]:
        """Return the core of every thread of the current team; none if they are not bound.

        Threads that follow each other share boundaries, so their cores share a cache if possible.
        """
        if self._claim is None:
            self._claim = claim_cores(self._most)
        return sorted(in_order(self._claim.cores)[: self._threads], key=lambda core: core.place)

    def close(self) -> None:
        """End all threads, and release their cores."""
        self._teams.clear()
        if self._claim is not None:
            self._claim.release()
            self._claim = None


@cache
def slots_per_part() -> int:
    """Return the number of slots per partial sum of a sum kernel."""
    return constants(source_folder() / "arch" / "cpu_launch.h")["SLOTS_PER_PART"]


class CpuBuffer:
    """Memory in huge pages, if available; it is not freed while the worker may use it."""

    def __init__(self, nbytes: int, worker: Worker | None = None):
        self.nbytes = nbytes
        self._worker = worker
        self._map = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.address = int(self.bytes.ctypes.data)

    def __del__(self) -> None:
        if self._worker:
            self._worker.event().synchronize()


class CpuKernel:
    """A kernel in a shared library, run by a team of threads; ctypes releases the GIL meanwhile."""

    def __init__(self, function: Any, teams: Teams, worker: Worker | None):
        self._function = function
        self._function.restype = None
        self._teams = teams
        self._worker = worker

    def launches(
        self, steps: ctypes.Array[Any], lengths: Sequence[int], side: bool = False
    ) -> Iterator[base.Launch]:
        """Return calls that run consecutive steps; see `LoadedKernel.launches`."""
        return (partial(self, part) for part in base.split_steps(steps, lengths))

    def prepared(self, steps: ctypes.Array[Any]) -> base.Launch:
        """Return a call that runs steps in order; see `LoadedKernel.prepared`."""
        return partial(self, steps)

    def registers(self, steps: ctypes.Array[Any] | None = None) -> base.Registers | None:
        """Return None: C++ compilers do not report registers."""
        return None

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Run steps in order; see `LoadedKernel`."""
        team = self._teams.current().address
        if self._worker is None:
            self._function(steps, len(steps), team)
        else:
            buffer_copy = type(steps).from_buffer_copy(steps)
            self._worker.do(partial(self._function, buffer_copy, len(buffer_copy), team))


class CpuDevice(base.BufferOwner[CpuBuffer]):
    """A number of cores of this machine.

    Parameters
    ----------
    threads : int, optional
        Number of threads. By default it is the number of cores that this process may use, and
        updates of small lattices choose fewer if that is faster.
    lanes : int, optional
        Maximum number of sites in a SIMD register, a power of two; by default as many as fit.
    worker : bool
        Whether the device works asynchronously, in a thread of its own, which is the first of its
        `threads`. Devices that share a lattice must do so.
    """

    backend = "cpu"
    in_host_memory = True
    has_side_stream = False
    packet_bytes = 0
    libraries: tuple[Kernel, ...] = (TEAM,)

    def __init__(self, threads: int | None = None, lanes: int | None = None, worker: bool = False):
        if threads is not None and threads < 1:
            raise UsageError(f"The number of threads is {threads}; it must be at least 1.")
        super().__init__()
        self.threads = threads or usable_cores()
        self.threads_are_fixed = threads is not None
        self.synchronous = not worker
        self.compiler = compiler.find_compiler()
        self.compiler_name = self.compiler.version.partition("\n")[0]
        self.cache_bytes, self.own_cache_bytes = team_caches(self.threads)
        self.strict = False
        self._lanes = lanes
        self._kernels: dict[tuple[Kernel, Variant], CpuKernel] = {}
        self._files: dict[tuple[Kernel, Variant], str] = {}
        self._worker = Worker() if worker else None
        library = partial(self._library, TEAM, Variant("double"), "make_team", "end_team")
        self._teams = Teams(self.threads, library)
        threads_in_words = f"{self.threads} thread{'s' * (self.threads > 1)}"
        self.name = f"{compiler.processor()[0]}, {threads_in_words}"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def lanes(self, precision: str) -> int:
        """Return the maximum number of sites in a SIMD register."""
        most = compiler.register_bytes() // REAL_BYTES[precision]
        return most if self._lanes is None else min(most, self._lanes)

    def compile(self, kernel: Kernel, variant: Variant) -> None:
        """Compile a kernel if it is not in the cache; see `Device.compile`."""
        self._compiled_file(kernel, kernel.narrowed(variant))

    def kernel(self, kernel: Kernel, variant: Variant) -> CpuKernel:
        """Load a kernel, compiling it if it is not in the cache."""
        key = (kernel, kernel.narrowed(variant))
        if key not in self._kernels:
            library = self._library(*key, kernel.name)
            self._kernels[key] = CpuKernel(library[kernel.name], self._teams, self._worker)
        return self._kernels[key]

    def _library(self, kernel: Kernel, variant: Variant, *functions: str) -> ctypes.CDLL:
        """Load a compiled file, which has these functions."""
        path = self._compiled_file(kernel, variant)
        try:
            library = ctypes.CDLL(path)
            for name in functions:
                library[name]
            return library
        except (OSError, AttributeError) as error:
            raise NoKernelsError(
                f"The compiled kernel {path} cannot be loaded ({error}): choose another compiler "
                "in the environment variable CXX, and run `gauge-mc doctor --clear-cache`."
            ) from error

    def use_threads(self, threads: int) -> None:
        """Use this number of threads from now on; see `ThreadedDevice.use_threads`."""
        self._teams.use(threads)

    def identity(self) -> str:
        """Return processor, cores, caches and compiler; see `ThreadedDevice.identity`."""
        limits = self.threads, self.threads_are_fixed, self.cache_bytes, self.own_cache_bytes
        return repr((compiler.processor()[0], topology(), limits, self.compiler.version))

    def _compiled_file(self, kernel: Kernel, variant: Variant) -> str:
        key = (kernel, variant)
        if key not in self._files:
            register = variant.lanes * REAL_BYTES[variant.precision]
            flags = [*self.compiler.flags_for(register), compiler.CONTRACTIONS[variant.strict]]
            command = [*self.compiler.words, *flags, *variant.definitions]
            self._files[key] = str(compiled(*key, command, self.compiler.identity, ".so")[0])
        return self._files[key]

    def partial_sums(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Return the number of partial sums per time slice: one per `slots_per_part` slots."""
        return 2 * -(-math.prod(extents) // (2 * slots_per_part()))

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Allocate memory filled with zeros."""
        free = self.free_bytes()
        if nbytes <= free:
            try:
                buffer = CpuBuffer(nbytes, self._worker)
                touch_first(buffer.address, nbytes, self._teams.cores())
                self._buffers.add(buffer)
                return buffer
            except OSError:
                pass
        raise NoMemoryError(
            f"{nbytes / 2**30:.3g} GiB for the lattice cannot be allocated, because only "
            f"{free / 2**30:.3g} GiB are free: use a smaller lattice or single precision."
        )

    def free_bytes(self) -> int:
        """Return the available memory in bytes."""
        return free_memory()

    def write(self, buffer: base.Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""
        self.synchronize()
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        assert offset + flat.size <= buffer.nbytes
        ctypes.memmove(buffer.address + offset, flat.ctypes.data, flat.size)

    def read(self, buffer: base.Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return a copy of bytes of the buffer."""
        self.synchronize()
        assert offset + nbytes <= buffer.nbytes
        data = np.empty(nbytes, np.uint8)
        ctypes.memmove(data.ctypes.data, buffer.address + offset, nbytes)
        return data

    def copy(self, target: base.Buffer, source: base.Buffer) -> None:
        """Copy a whole buffer to another of the same size."""
        self._move([(target.address, source.address, source.nbytes)])

    def event(self) -> TaskEvent:
        """Return an event at the end of the work issued so far."""
        if self._worker:
            return self._worker.event()
        event = TaskEvent()
        event.reach()
        return event

    def wait(self, event: base.Event) -> None:
        """Delay all later work until an event of this or another device has been reached."""
        if self._worker:
            self._worker.do(event.synchronize)
        else:
            event.synchronize()

    def prepare_copies(self, copies: Sequence[base.Copy], nbytes: int) -> Callable[[], TaskEvent]:
        """Return a call that issues copies of `nbytes` bytes each; see `Device.prepare_copies`."""
        return partial(self._move, [(copy.to, copy.origin, nbytes) for copy in copies])

    def reaches(self, peer: base.Device) -> bool:
        """Return False: kernels on a CPU do not store links in the halos of other slabs."""
        return False

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return an ordinary array; there is no need to pin it."""
        return np.empty(nbytes, np.uint8)

    def recorded(
        self, launches: Callable[[], object], others: Sequence[base.Device] = ()
    ) -> base.Launch:
        """Return the call itself, because launches take little time."""
        return launches

    def download(self, data: NDArray[np.uint8], origin: int) -> TaskEvent:
        """Copy from an address to an array."""
        return self._move([(data.ctypes.data, origin, data.nbytes)])

    def upload(self, to: int, data: NDArray[np.uint8]) -> TaskEvent:
        """Copy from an array to an address."""
        return self._move([(to, data.ctypes.data, data.nbytes)])

    def _move(self, copies: Sequence[tuple[int, int, int]]) -> TaskEvent:
        """Issue copies (target, origin, nbytes), which run in order with all other work."""
        for copy in copies:
            if self._worker:
                self._worker.do(partial(ctypes.memmove, *copy))
            else:
                ctypes.memmove(*copy)
        return self.event()

    def energy_counters(self) -> list[EnergyCounter]:
        """Return the counters of the processor's packages; see `Device.energy_counters`."""
        return package_counters()

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        if self._worker:
            self._worker.synchronize()

    def close(self) -> None:
        """Release the kernels and the scratch memory, and end the worker."""
        self.synchronize()
        self._kernels.clear()
        self._scratch.clear()
        if self._worker:
            self._worker.close()
        self._teams.close()


Task = Callable[[], object]


class TaskEvent:
    """A point in the sequence of a worker's tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def reach(self) -> None:
        """Mark the event as reached and wake up all threads that wait for it."""
        self._lock.release()

    def query(self) -> bool:
        """Return whether the worker has reached this point."""
        return not self._lock.locked()

    def synchronize(self) -> None:
        """Wait until the worker has reached this point."""
        with self._lock:
            pass


class Worker:
    """A thread that carries out tasks in the order in which they are given.

    If a task fails, the later ones are still carried out, because other threads may wait for events
    among them.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._failures: list[BaseException] = []
        words = (self._tasks, self._failures)
        thread = threading.Thread(target=_work, args=words, daemon=True)
        thread.start()
        # The thread does not refer to this object, so that it ends when the object is deleted.
        self.close = weakref.finalize(self, _end_work, thread, self._tasks)

    def do(self, task: Task) -> None:
        """Carry out a task after all tasks given so far."""
        self._tasks.put(task)

    def event(self) -> TaskEvent:
        """Return an event that is reached when all tasks given so far are done."""
        event = TaskEvent()
        if self.close.alive:
            self._tasks.put(event.reach)
        else:
            event.reach()
        return event

    def synchronize(self) -> None:
        """Wait until all tasks given so far are done, and raise the first failure among them."""
        self.event().synchronize()
        if self._failures:
            raise self._failures[0]


def _end_work(thread: threading.Thread, tasks: SimpleQueue[Task | None]) -> None:
    tasks.put(None)
    thread.join()


def _work(tasks: SimpleQueue[Task | None], failures: list[BaseException]) -> None:
    while task := tasks.get():
        try:
            task()
        except BaseException as error:
            failures.append(error)
