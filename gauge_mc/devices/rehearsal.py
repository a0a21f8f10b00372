"""A device that only counts memory: a measurement is rehearsed on it before it takes any."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, BufferOwner, Copy, Device, Launch, Registers
from gauge_mc.devices.kernels import Kernel, Variant

FIRST_ADDRESS = 1 << 40
"""Address of the first buffer; nothing is ever read or written there."""


class CountedMemory:
    """Bytes that are in use, and the most that ever were.

    Attributes
    ----------
    used, most : int
        The bytes.
    """

    def __init__(self) -> None:
        self.used = self.most = 0
        self._next = FIRST_ADDRESS

    def take(self, nbytes: int) -> int:
        """Count bytes as used, and return an address for them that no other bytes have."""
        self.used += nbytes
        self.most = max(self.most, self.used)
        address, self._next = self._next, self._next + max(nbytes, 1)
        return address

    def give_back(self, nbytes: int) -> None:
        """Count bytes as free again."""
        self.used -= nbytes


class CountedBuffer:
    """A piece of memory that is only counted, as long as the object exists."""

    def __init__(self, nbytes: int, memory: CountedMemory) -> None:
        self.nbytes, self._memory = nbytes, memory
        self.address = memory.take(nbytes)

    def __del__(self) -> None:
        self._memory.give_back(self.nbytes)


class NoEvent:
    """An event of a device that does nothing, which is therefore always reached."""

    def query(self) -> bool:
        """Return True."""
        return True

    def synchronize(self) -> None:
        """Return at once."""


class NoKernel:
    """A kernel whose launches are only counted.

    Parameters
    ----------
    launched : callable
        Called for every launch.
    """

    def __init__(self, launched: Callable[[], None]) -> None:
        self._launched = launched

    def launches(
        self, steps: ctypes.Array[Any], lengths: Sequence[int], side: bool = False
    ) -> Iterator[Launch]:
        """Return as many calls as a kernel does; see `LoadedKernel.launches`."""
        remaining, n = len(steps), 0
        while remaining > 0:
            remaining, n = remaining - lengths[n % len(lengths)], n + 1
            yield self._launched

    def prepared(self, steps: ctypes.Array[Any]) -> Launch:
        """Return a call that counts a launch."""
        return self._launched

    def registers(self, steps: ctypes.Array[Any] | None = None) -> Registers | None:
        """Return None, since nothing is compiled."""
        return None

    def __call__(self, steps: ctypes.Array[Any]) -> None:
        """Count a launch."""
        self._launched()


class RehearsalDevice(BufferOwner[CountedBuffer]):
    """Another device of which nothing is used but its properties.

    It counts the memory that it is asked for. What is read from it is zero, and kernels are neither
    compiled nor run, so that a solver, for which all residuals are zero, is done once it has taken
    its memory. So a rehearsal takes the code of the measurement itself for a formula.

    Parameters
    ----------
    device : Device
        The device that it stands for.

    Attributes
    ----------
    memory : CountedMemory
        The memory in use.
    launches : int
        Number of launches of kernels so far.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        self._device, self.memory, self.launches = device, CountedMemory(), 0

    def __getattr__(self, name: str) -> Any:
        """Return a property of the device that it stands for."""
        return getattr(self._device, name)

    def kernel(self, kernel: Kernel, variant: Variant) -> NoKernel:
        """Return a kernel that does nothing."""
        return NoKernel(self._count)

    def _count(self) -> None:
        self.launches += 1

    def allocate(self, nbytes: int) -> CountedBuffer:
        """Count memory; see `Device.allocate`."""
        return CountedBuffer(nbytes, self.memory)

    def allocated_bytes(self) -> int:
        """Return the memory in use."""
        return self.memory.used

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return zeros."""
        return np.zeros(nbytes, np.uint8)

    def prepare_copies(self, copies: Sequence[Copy], nbytes: int) -> Callable[[], NoEvent]:
        """Return a call that does nothing."""
        return partial(NoEvent)

    def reaches(self, peer: Device) -> bool:
        """Return False for all others, so that halos are copied."""
        return peer is self

    def pinned_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Return host memory."""
        return np.empty(nbytes, np.uint8)

    def event(self, *_: object) -> NoEvent:
        """Return an event that is reached."""
        return NoEvent()

    download = upload = event

    def synchronize(self, *_: object) -> None:
        """Return at once, since there is nothing to do."""

    compile = write = copy = wait = fork = join = swap_streams = synchronize

    def close(self) -> None:
        """Forget the scratch memory; the device that it stands for stays open."""
        self._scratch.clear()
