"""Memory and events of a GPU that processes on a host share, by interprocess handles of CUDA."""

from __future__ import annotations

from typing import Any

from gauge_mc.devices.base import Offer
from gauge_mc.devices.cuda.kernel import CudaBuffer

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

    def __init__(self, driver: Any, stream: Any, buffer: CudaBuffer) -> None:
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
        self._events = [driver.Event.from_ipc_handle(bytearray(one)) for one in offer.events]
        self.address = int(self._memory)

    def event(self, turn: int) -> Any:
        """Return the event that the other process has recorded in a turn."""
        return self._events[turn % EVENTS]
