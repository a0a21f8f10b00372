"""The interface of devices and the declaration of backends."""

from __future__ import annotations

import ctypes
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.results import documented, result_field


class Buffer(Protocol):
    """A piece of a device's memory."""

    @property
    def address(self) -> int:
        """The address that kernels use."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""


@dataclass(frozen=True)
class BufferPart:
    """A part of a buffer. It keeps the whole buffer allocated."""

    whole: Buffer
    """The buffer, which stays allocated as long as the part exists."""
    offset: int
    """Position of the part in bytes."""
    nbytes: int
    """Size of the part in bytes."""

    @property
    def address(self) -> int:
        """The address that kernels use."""
        return self.whole.address + self.offset


AnyBuffer = TypeVar("AnyBuffer", bound=Buffer)


class BufferOwner(ABC, Generic[AnyBuffer]):
    """A device that knows its buffers, some of which are used again and again."""

    def __init__(self) -> None:
        self._scratch: dict[str, AnyBuffer] = {}
        self._buffers: WeakSet[AnyBuffer] = WeakSet()

    @abstractmethod
    def allocate(self, nbytes: int) -> AnyBuffer:
        """Allocate memory filled with zeros."""

    def allocated_bytes(self) -> int:
        """Return the memory in bytes of all buffers in use."""
        return sum(buffer.nbytes for buffer in self._buffers)

    def scratch(self, use: str, nbytes: int) -> AnyBuffer:
        """Return memory with arbitrary content, valid until the next call with the same `use`."""
        if use not in self._scratch or self._scratch[use].nbytes < nbytes:
            self._scratch.pop(use, None)
            self._scratch[use] = self.allocate(nbytes)
        return self._scratch[use]


@dataclass(frozen=True)
class Registers:
    """Register usage of a kernel, as reported by the compiler."""

    count: int
    """Registers per thread."""
    spilled: int
    """Bytes per thread that are spilled to memory."""


Launch = Callable[[], object]
"""A call that launches a kernel, a copy or a message."""


class LoadedKernel(Protocol):
    """A compiled kernel that is loaded on a device."""

    def launches(
        self, steps: ctypes.Array[Any], lengths: Sequence[int], side: bool = False
    ) -> Iterator[Launch]:
        """Return calls, each of which runs some consecutive steps.

        Parameters
        ----------
        steps : ctypes array
            The kernel's arguments for every step.
        lengths : sequence of int
            The number of steps of each call. The sequence is repeated until all steps are used.
        side : bool
            Whether to run the steps on the side stream.
        """

    def prepared(self, steps: ctypes.Array[Any]) -> Launch:
        """Return a call that runs steps in order, with the arguments that they have at that time.

        Between calls only arguments other than ``geometry`` and ``work`` may be changed.
        """

    def registers(self, steps: ctypes.Array[Any] | None = None) -> Registers | None:
        """Return the register usage of the function that runs these steps.

        Without `steps`, return that of the function that runs a single step. On a CPU the result
        is None.
        """

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Run steps in order; each step begins after the previous one has ended.

        Later changes of `steps` have no effect.
        """


def repeated(steps: Sequence[ctypes.Structure], times: int) -> ctypes.Array[Any]:
    """Return an array with the steps repeated `times` times, to be passed to a kernel."""
    kind = type(steps[0])
    once = (kind * len(steps))(*steps)
    return (kind * (len(steps) * times)).from_buffer_copy(bytes(once) * times)


def split_steps(steps: ctypes.Array[Any], lengths: Sequence[int]) -> Iterator[ctypes.Array[Any]]:
    """Yield consecutive parts of `steps`, which share its memory.

    The sequence of lengths is repeated until all steps are used.
    """
    kind: Any = steps._type_
    size = ctypes.sizeof(kind)
    begin = 0
    for length in itertools.cycle(lengths):
        if begin == len(steps):
            return
        yield (kind * length).from_buffer(steps, begin * size)
        begin += length


class Event(Protocol):
    """A point in the sequence of a device's work."""

    def query(self) -> bool:
        """Return whether the device has reached it."""

    def synchronize(self) -> None:
        """Wait until the device has reached it."""


@dataclass(frozen=True)
class Copy:
    """A copy from one device to another of the same kind."""

    origin: int
    """The address of the data on the device that copies."""
    target: Device
    """The device that receives the data."""
    to: int
    """The address on `target`."""


class Device(Protocol):
    """A processor with its memory. Work may run asynchronously; `read` waits for it.

    Kernels and outgoing copies run in the order in which they were issued, except on the side
    stream. A device that receives a copy does not wait for it unless told to with `wait`.
    """

    backend: str
    """The name of the backend."""
    name: str
    """The name of the processor, as shown to the user."""
    compiler_name: str
    """The name and version of the compiler of its kernels, as shown to the user."""
    in_host_memory: bool
    """Whether the device works in the memory of the host."""
    has_side_stream: bool
    """Whether kernels can run beside other work; such a device is a `StreamedDevice`."""
    strict: bool
    """Whether kernels of fields that are made from now on compute the same bits on all machines."""
    cache_bytes: int
    """Size of the largest cache, for wavefront blocking; 0 on a GPU, which does without it."""
    packet_bytes: int
    """Bytes of a link's components that are stored together: 16 on a GPU.

    0 means that all components of a link are stored together (CPU)."""
    libraries: tuple[Kernel, ...]
    """Code that launches need besides the kernels, and that is compiled like them."""

    def lanes(self, precision: str) -> int:
        """Return the maximum number of sites in a SIMD register; 1 on a GPU."""

    def compile(self, kernel: Kernel, variant: Variant) -> None:
        """Compile a kernel if it is not in the cache; any thread may call this."""

    def kernel(self, kernel: Kernel, variant: Variant) -> LoadedKernel:
        """Load a kernel, compiling it if it is not in the cache."""

    def partial_sums(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Return the number of partial sums that a sum kernel stores per time slice.

        Parameters
        ----------
        extents : tuple of int
            Extents of a slice, or of a lane's part of it, along x, y and z.
        variant : Variant
            The compile-time parameters of the kernel.
        """

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate memory filled with zeros.

        Raises
        ------
        GaugeError
            If the device does not have enough free memory.
        """

    def scratch(self, use: str, nbytes: int) -> Buffer:
        """Return memory with arbitrary content, valid until the next call with the same `use`."""

    def free_bytes(self) -> int:
        """Return the free memory in bytes."""

    def allocated_bytes(self) -> int:
        """Return the memory in bytes that `allocate` has returned and that is still in use."""

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return a copy of bytes of the buffer, after all work issued so far has ended."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""

    def event(self) -> Event:
        """Return an event at the end of the work issued so far."""

    def recorded(self, launches: Callable[[], object], others: Sequence[Device] = ()) -> Launch:
        """Return a call that repeats what `launches` does: kernels, copies, and waits for these.

        Later calls may leave out what the host does besides, such as to set arguments.

        Parameters
        ----------
        launches : callable
            Launches kernels on this device, and on others of the same kind.
        others : sequence of Device
            These. Work that is issued there before a call must end first, see `DeviceGroup.fence`,
            and later work there must wait until that on this device has ended.
        """

    def wait(self, event: Event) -> None:
        """Delay all later work until an event of this or another device has been reached."""

    def prepare_copies(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Event]:
        """Return a call that issues copies of `nbytes` bytes each and can be made repeatedly.

        The call returns an event, which is reached when all copies have arrived. A later call
        invalidates the event of an earlier one.
        """

    def reaches(self, peer: Device) -> bool:
        """Return whether kernels of this device can write to another device's memory."""

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return host memory from and to which the device copies fastest."""

    def download(self, data: NDArray[np.uint8], origin: int) -> Event:
        """Copy from an address to host memory; the event is reached when the data have arrived."""

    def upload(self, to: int, data: NDArray[np.uint8]) -> Event:
        """Copy from host memory to an address, without waiting for the work issued so far.

        The host memory must not be changed until the event is reached.
        """

    def energy_counters(self) -> Sequence[EnergyCounter]:
        """Return counters of the energy that the device uses.

        Raises
        ------
        GaugeError
            If there is none that can be read; the message is a clause that says why.
        """

    def synchronize(self) -> None:
        """Wait until all work has ended."""

    def close(self) -> None:
        """Release all resources of the device, which cannot be used afterwards.

        This must be called in the thread that opened the device.
        """


class StreamedDevice(Device, Protocol):
    """A device with a side stream, which runs kernels beside outgoing copies and other kernels."""

    def fork(self) -> None:
        """Make later work on the side stream wait for all work issued so far."""

    def join(self) -> None:
        """Make later work wait for all work issued on the side stream so far."""

    def swap_streams(self) -> None:
        """Issue later work on the side stream, or again on the other one."""


def streamed(devices: Iterable[Device]) -> list[StreamedDevice]:
    """Return the devices that have a side stream."""
    return [cast(StreamedDevice, device) for device in devices if device.has_side_stream]


@dataclass(frozen=True)
class Offer:
    """Handles with which another process on the host writes to a buffer and waits for its owner."""

    memory: bytes
    """Handle of the buffer."""
    events: tuple[bytes, ...]
    """Handles of the events that the owner records."""


class SharedBuffer(Protocol):
    """A buffer that other processes on the host can write to."""

    offer: Offer
    """The handles that they need for it."""

    def record(self, turn: int) -> None:
        """Record the event of a turn after the work issued so far.

        Turns are numbered from 0. The event of a turn is recorded again two turns later.
        """


class ForeignBuffer(Protocol):
    """A buffer of another process that this one can write to."""

    address: int
    """The address of the buffer in this process."""

    def event(self, turn: int) -> Event:
        """Return the event of a turn, which the owner must have recorded."""


@runtime_checkable
class SharingDevice(Device, Protocol):
    """A device whose memory other processes on the host can write to."""

    def share(self, buffer: Buffer) -> SharedBuffer | None:
        """Offer a buffer to other processes; None if that is impossible on this machine."""

    def foreign(self, offer: Offer) -> ForeignBuffer | None:
        """Return a buffer that another process offers; None if it is out of reach."""


@runtime_checkable
class ThreadedDevice(Device, Protocol):
    """A device whose kernels run on a number of threads that can be changed between launches."""

    threads: int
    """The maximum number of threads."""
    threads_are_fixed: bool
    """Whether the user has chosen this number, so that no other should be used."""
    synchronous: bool
    """Whether kernels have ended when their call returns, so that it can be timed."""
    own_cache_bytes: int
    """Size of the caches that each core has to itself, of all threads together."""

    def use_threads(self, threads: int) -> None:
        """Use this number of threads for kernels from now on. Results do not depend on it."""

    def identity(self) -> str:
        """Return a string on which the speed of its kernels depends: processor, cores, compiler."""


@runtime_checkable
class TunableDevice(Device, Protocol):
    """A device whose kernels can be compiled in several ways that give the same results."""

    def tuning_choices(self, kernel: Kernel, variant: Variant) -> Sequence[object]:
        """Return the ways to compile a kernel, the current one first; `str` describes each."""

    def use(self, kernel: Kernel, variant: Variant, choice: Any) -> None:
        """Compile a kernel in one of these ways, in order to time single launches of it."""

    def keep(self, kernel: Kernel, variant: Variant, choice: Any) -> None:
        """Compile a kernel in one of these ways from now on, in later processes too."""


@documented
@dataclass(frozen=True)
class Finding:
    """The result of checking one prerequisite on this machine."""

    subject: str = result_field("Name of the thing that was checked.")
    works: bool = result_field("Whether it works; for the whole, whether any device works.")
    detail: str = result_field("The result of the check, in words.")
    remedy: str = result_field("A command that fixes the problem, if there is one.", "")


class Backend(ABC):
    """A kind of device."""

    name: str
    """Name of the backend, the value of ``--backend``."""
    label: str
    """The usual word for such a device: ``GPU``, ``CPU``."""
    numbered: bool
    """Whether there may be several devices, which are chosen by number. Otherwise the backend has a
    single device, which can be divided into parts that share its threads.
    """
    preference: int
    """Rank among the backends. The default is the usable backend with the highest preference."""
    bench_extent: int
    """Extent of the hypercubic lattice for benchmarks, large enough to keep a device busy."""
    busy_sites: int
    """Number of sites above which more of them, or more lattices at a time, are not updated faster;
    it is the size of the batches of a scan.
    """
    remedy: str
    """The command that makes the backend usable."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of devices.

        Raises
        ------
        GaugeError
            If no device can be used; the message says what is missing.
        """

    def hint(self) -> str | None:
        """Explain why a device of this machine cannot be used, and what to do about it.

        Returns
        -------
        str or None
            One sentence, to be shown when another backend is used instead; None if there is no
            such device or nothing is wrong with it.
        """
        return None

    def is_here(self) -> bool:
        """Return whether the diagnosis of this machine is to mention such devices at all."""
        return True

    @abstractmethod
    def open(self, ordinal: int = 0, threads: int | None = None, worker: bool = False) -> Device:
        """Open a device.

        Parameters
        ----------
        ordinal : int
            Number of the device.
        threads : int, optional
            Number of threads of a device that is not numbered; by default all threads that this
            process may use.
        worker : bool
            Whether the device works asynchronously, in a thread of its own.

        Raises
        ------
        UsageError, GaugeError
            If the device cannot be used.
        """

    def available_threads(self) -> int:
        """Return the number of threads that the parts of a device share, if it is not numbered."""
        return 1

    def identity(self, ordinal: int) -> str:
        """Return a string that identifies a device among all devices of a host."""
        return str(ordinal)

    def install(self, say: Callable[[str], None]) -> None:
        """Install the software that the devices of this machine need.

        Parameters
        ----------
        say : callable
            Shows the user a line of text; called before every step.

        Raises
        ------
        GaugeError
            If the installation fails.
        """
        say(f"Nothing can be installed automatically for the backend {self.name}: {self.remedy}")

    def findings(self) -> Iterator[Finding]:
        """Check the prerequisites of the backend and yield the results."""
        return iter(())
