"""What a device offers to the rest of the program."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.source import Variant


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
    """What the CUDA compiler reports of a kernel: registers a thread and bytes spilled."""

    count: int
    spilled: int


Launch = Callable[[], object]
"""A call that launches something."""


class Kernel(Protocol):
    """A compiled kernel."""

    registers: Registers | None

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Run steps in order, each begun when the one before it has ended.

        Parameters
        ----------
        steps : ctypes array
            The kernel's arguments for every step; all work on as many slices and parities.
        """


class LaunchedKernel(Kernel, Protocol):
    """A kernel of a `ForkingDevice`."""

    def launches(self, steps: ctypes.Array[Any], beside: bool = False) -> Iterator[Launch]:
        """The same steps, to be launched one by one; beside other work, between fork and join."""


def repeated(steps: Sequence[ctypes.Structure], times: int) -> ctypes.Array[Any]:
    """The steps, so many times over, as a kernel takes them."""
    kind = type(steps[0])
    once = (kind * len(steps))(*steps)
    return (kind * (len(steps) * times)).from_buffer_copy(bytes(once) * times)


def parted(steps: ctypes.Array[Any], numbers: Sequence[int]) -> list[ctypes.Array[Any]]:
    """Parts of so many steps, over and over, sharing their memory."""
    kind: Any = steps._type_
    size = ctypes.sizeof(kind)
    parts: list[ctypes.Array[Any]] = []
    begin = 0
    for number in itertools.cycle(numbers):
        if begin == len(steps):
            return parts
        parts.append((kind * number).from_buffer(steps, begin * size))
        begin += number
    return parts


class Mark(Protocol):
    """A point in a device's work."""

    def query(self) -> bool:
        """Whether the device has reached it."""

    def synchronize(self) -> None:
        """Wait until the device has reached it."""


@dataclass(frozen=True)
class Copy:
    """Bytes that go from an address of one device to an address of another of its kind."""

    origin: int
    target: Device
    to: int


class Device(Protocol):
    """A processor with its memory. Work may be asynchronous; `read` waits for it.

    Work keeps its order, copies that leave the device among it, but for what is launched beside it.
    The work of a device that receives goes on as if nothing came, until told to `wait`.
    """

    backend: str
    name: str
    compiler_name: str
    copies_beside: bool
    """Whether it works on while it copies, at what is launched beside: a `ForkingDevice`."""
    cache_bytes: int
    """Of the largest cache that holds time slices from one update to the next; 0 on a GPU."""
    group_bytes: int
    """Bytes of components that lie together: 16 on a GPU; 0 where a link's all do (CPU)."""

    def lanes(self, precision: str) -> int:
        """The most sites that a register holds."""

    def kernel(self, name: str, variant: Variant) -> Kernel:
        """Compile (or find compiled) and load a kernel."""

    def pieces(self, extents: tuple[int, int, int], variant: Variant) -> int:
        """Pieces of which a sum kernel gives the sums, in a slice of (sub-)lattices so large."""

    def allocate(self, nbytes: int) -> Buffer:
        """Zeroed memory; GaugeError where there is not enough."""

    def scratch(self, use: str, nbytes: int) -> Buffer:
        """Memory that holds anything, until the next call for the same use."""

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Copy `data` to byte `offset` of the buffer."""

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of bytes of the buffer, after all work before it has ended."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy a whole buffer to another of the same size."""

    def mark(self) -> Mark:
        """The point that the work launched so far leads to."""

    def wait(self, mark: Mark) -> None:
        """Launch nothing more until a device, this one or another, has reached its mark."""

    def sending(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], Mark]:
        """Copies of so many bytes each, to be launched together, again and again.

        The mark is reached when all are there. Only the last one counts.
        """

    def stores_in(self, other: Device) -> bool:
        """Whether its kernels store what others have copies of in their memory, too."""

    def host_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Memory of the host that `fetch` and `put` reach fastest."""

    def fetch(self, data: NDArray[np.uint8], origin: int) -> Mark:
        """Copy from address `origin` to host memory, which is filled when the mark is reached."""

    def put(self, to: int, data: NDArray[np.uint8]) -> Mark:
        """Copy from host memory, not to be changed until the mark is reached, to address `to`.

        It may be there before the work so far has ended.
        """

    def synchronize(self) -> None:
        """Wait until all work has ended."""

    def close(self) -> None:
        """Give back what the device holds, in the thread that opened it; no more use after that."""


class ForkingDevice(Device, Protocol):
    """A device that copies beside its work."""

    def fork(self) -> None:
        """Let what is launched beside from here on follow the work so far."""

    def join(self) -> None:
        """Let the work from here on follow all that was launched beside."""
