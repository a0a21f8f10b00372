"""What a device offers to the rest of the program, and how backends are declared."""

from __future__ import annotations

import ctypes
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel, Variant


class Buffer(Protocol):
    """Memory of a device."""

    @property
    def address(self) -> int:
        """The address, as kernels see it."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""


@dataclass(frozen=True)
class Registers:
    """What the CUDA compiler reports of a kernel: registers of a thread, and bytes spilled."""

    count: int
    spilled: int


Launch = Callable[[], object]
"""A call that launches something."""


class LoadedKernel(Protocol):
    """A compiled kernel, ready to run on a device."""

    def launches(
        self, steps: ctypes.Array[Any], lengths: Sequence[int], side: bool = False
    ) -> Iterator[Launch]:
        """Return calls that run consecutive steps, in numbers that repeat.

        Parameters
        ----------
        steps : ctypes array
        lengths : sequence of int
            How many steps the calls run; after the last length comes the first again.
        side : bool
            Whether to run them on the side stream.
        """

    def registers(self, steps: ctypes.Array[Any] | None = None) -> Registers | None:
        """Return the registers of the function that runs these steps, or single steps.

        None on a CPU.
        """

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Run steps in order; each begins when the one before it has ended.

        Parameters
        ----------
        steps : ctypes array
            The kernel's arguments for every step. All steps work on the same number of slices and
            parities.
        """


def repeated(steps: Sequence[ctypes.Structure], times: int) -> ctypes.Array[Any]:
    """Return the steps as a kernel takes them, repeated so many times."""
    kind = type(steps[0])
    once = (kind * len(steps))(*steps)
    return (kind * (len(steps) * times)).from_buffer_copy(bytes(once) * times)


def split_steps(steps: ctypes.Array[Any], lengths: Sequence[int]) -> Iterator[ctypes.Array[Any]]:
    """Yield consecutive parts of steps, sharing their memory; the lengths repeat."""
    kind: Any = steps._type_
    size = ctypes.sizeof(kind)
    begin = 0
    for length in itertools.cycle(lengths):
        if begin == len(steps):
            return
        yield (kind * length).from_buffer(steps, begin * size)
        begin += length


class Event(Protocol):
    """A point in a device's work."""

    def query(self) -> bool:
        """Return whether the device has reached it."""

    def synchronize(self) -> None:
        """Wait until the device has reached it."""


@dataclass(frozen=True)
class Copy:
    """Bytes to be copied from an address of one device to an address of another of its kind."""

    origin: int
    target: Device
    to: int


class Device(Protocol):
    """A processor with its memory. Work may be asynchronous; `read` waits for it.

    Kernels and outgoing copies run in the order in which they were issued, except on the side
    stream. A device that receives a copy goes on working until it is told to `wait`.
    """

    backend: str
    """The name of the backend."""
    name: str
    """The name of the processor, for people."""
    compiler_name: str
    """The compiler of its kernels, for people."""
    in_host_memory: bool
    """Whether its memory is that of the host."""
    has_side_stream: bool
    """Whether kernels can run beside outgoing copies, which makes it a `StreamedDevice`."""
    cache_bytes: int
    """Size of the largest cache that keeps time slices from one update to the next; 0 on a GPU."""
    packet_bytes: int
    """Bytes of consecutive components in memory: 16 on a GPU; 0 if all of a link's are (CPU)."""

    def lanes(self, precision: str) -> int:
        """Return the largest number of sites in a register."""

    def kernel(self, kernel: Kernel, variant: Variant) -> LoadedKernel:
        """Compile a kernel, or find it compiled, and load it."""

    def partial_sums(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Return how many partial sums a sum kernel stores for a slice of such a (sub-)lattice."""

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate zeroed memory; GaugeError if there is not enough."""

    def scratch(self, use: str, nbytes: int) -> Buffer:
        """Return memory with arbitrary content, valid until the next call for the same use."""

    def free_bytes(self) -> int:
        """Return how much memory is free."""

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return a copy of bytes of the buffer, after all work issued before has ended."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""

    def event(self) -> Event:
        """Return the point at the end of the work issued so far."""

    def wait(self, event: Event) -> None:
        """Begin no later work until a device, this one or another, has reached an event."""

    def prepare_copies(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Event]:
        """Return a call that issues copies of so many bytes each, to be made again and again.

        The event it returns is reached when all copies have arrived. Only that of the last call
        counts.
        """

    def reaches(self, other: Device) -> bool:
        """Return whether its kernels can store in another device's memory."""

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return host memory that `download` and `upload` reach fastest."""

    def download(self, data: NDArray[np.uint8], origin: int) -> Event:
        """Copy from an address to host memory, which is filled when the event is reached."""

    def upload(self, to: int, data: NDArray[np.uint8]) -> Event:
        """Copy from host memory to an address, perhaps before the work issued so far has ended.

        The host memory must not be changed until the event is reached.
        """

    def synchronize(self) -> None:
        """Wait until all work has ended."""

    def close(self) -> None:
        """Release what the device holds, in the thread that opened it. It cannot be used again."""


class StreamedDevice(Device, Protocol):
    """A device whose side stream runs kernels beside outgoing copies."""

    def fork(self) -> None:
        """Let what is launched on the side stream from here on follow the work so far."""

    def join(self) -> None:
        """Let the work from here on follow all that was launched on the side stream."""


@runtime_checkable
class TunableDevice(Device, Protocol):
    """A device whose kernels can be compiled in several ways, with the same results."""

    def tuning_choices(self, kernel: Kernel, variant: Variant) -> Sequence[object]:
        """Return the ways to compile a kernel, the present one first; str describes them."""

    def use(self, kernel: Kernel, variant: Variant, choice: Any) -> None:
        """Use a kernel compiled in one of these ways, to time single launches of it."""

    def keep(self, kernel: Kernel, variant: Variant, choice: Any) -> None:
        """Use a kernel compiled in one of these ways from now on, in later processes too."""


@dataclass(frozen=True)
class Finding:
    """Something that works on this machine, or does not.

    Attributes
    ----------
    subject : str
        What was tried.
    works : bool
    detail : str
        What was found.
    remedy : str
        The command that mends it, if it does not work.
    """

    subject: str
    works: bool
    detail: str
    remedy: str = ""


class Backend(ABC):
    """A kind of device.

    Attributes
    ----------
    name : str
        As in ``--backend``.
    label : str
        What people call one such device: ``GPU``, ``CPU``.
    numbered : bool
        Whether there may be several devices, which are chosen by number. A backend whose devices
        are not numbered is one device, which can be divided into parts that share its threads.
    preference : int
        Of the backends that work here, the one with the highest preference is the default.
    bench_extent : int
        Extent of a hypercubic lattice that fills such a device, for benchmarks.
    remedy : str
        The command that mends a backend that does not work.
    """

    name: str
    label: str
    numbered: bool
    preference: int
    bench_extent: int
    remedy: str

    @abstractmethod
    def count(self) -> int:
        """Return how many devices there are.

        Raises
        ------
        GaugeError
            If none can be used here; the message says what is missing.
        """

    def hint(self) -> str | None:
        """Return what keeps a device that is here from being used and how to mend it, or None.

        One sentence, for a program that is about to use another backend instead.
        """
        return None

    @abstractmethod
    def open(self, ordinal: int = 0, threads: int | None = None, worker: bool = False) -> Device:
        """Open a device.

        Parameters
        ----------
        ordinal : int
            Its number.
        threads : int, optional
            Threads of a device that is not numbered; by default all that this process may use.
        worker : bool
            Whether the device is to work in a thread of its own, beside the caller.

        Raises
        ------
        UsageError, GaugeError
            If the device cannot be used.
        """

    def available_threads(self) -> int:
        """Return how many threads the parts of a device that is not numbered can share."""
        return 1

    def identity(self, ordinal: int) -> str:
        """Return what distinguishes a device from all others of a host."""
        return str(ordinal)

    def install(self, say: Callable[[str], None]) -> None:
        """Install what a device that is here lacks to be used.

        Parameters
        ----------
        say : callable
            Takes a line for the user before every step.

        Raises
        ------
        GaugeError
            If the installation fails.
        """
        say(f"The backend {self.name} needs nothing that can be installed by itself: {self.remedy}")

    def findings(self) -> Iterator[Finding]:
        """Yield what is found out about the prerequisites of the backend."""
        return iter(())
