"""Processes that share a lattice; usually there is only one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Request(Protocol):
    """A message that is being sent or received."""

    def wait(self) -> object:
        """Wait until the array of the message can be used again."""


class Processes(Protocol):
    """Processes that execute the same program and share lattices.

    They are numbered from 0. Process 0 is the root, which reads and writes files.
    """

    rank: int
    """The number of this process."""
    size: int
    """The number of processes."""
    device_memory: bool
    """Whether messages can be sent from and received in GPU memory."""

    def allgather(self, value: T) -> list[T]:
        """Return the values that all processes pass, in every process.

        All processes must call this.

        Parameters
        ----------
        value : object
            The value of this process.

        Returns
        -------
        list
            One value per process, in the order of their ranks.
        """

    def broadcast(self, value: T) -> T:
        """Return the root's value in every process."""

    def send(self, value: Any, to: int) -> None:
        """Send a value, for which the other process must call `receive`."""

    def receive(self, source: int) -> Any:
        """Return the next value that process `source` sends."""

    def aborting(self) -> AbstractContextManager[None]:
        """Return a context manager that ends all processes if one of them fails."""

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Start to send bytes without waiting."""

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Start to receive bytes that are sent with the same tag, without waiting."""


class OneProcess:
    """A single process, which exchanges no messages."""

    rank = 0
    size = 1
    device_memory = False

    def allgather(self, value: T) -> list[T]:
        """Return a list with the value."""
        return [value]

    def broadcast(self, value: T) -> T:
        """Return the value."""
        return value

    def aborting(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        return nullcontext()

    def send(self, value: Any, to: int) -> None:
        """Fail, because there is no other process."""
        raise AssertionError("There is no other process.")

    def receive(self, source: int) -> Any:
        """Fail, because there is no other process."""
        raise AssertionError("There is no other process.")

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Fail, because there is no other process."""
        raise AssertionError("There is no other process.")

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Fail, because there is no other process."""
        raise AssertionError("There is no other process.")
