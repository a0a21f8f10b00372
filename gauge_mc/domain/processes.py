"""Processes that share a lattice; usually there is one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Request(Protocol):
    """A message under way."""

    def wait(self) -> object:
        """Wait until the array of the message may be used again."""


class Processes(Protocol):
    """Processes that do the same work at the same time, numbered from 0.

    Number 0 is the root, which reads and writes the files.
    """

    rank: int
    size: int
    device_memory: bool
    """Whether messages may lie in the memory of GPUs."""

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in all of them."""

    def broadcast(self, value: T) -> T:
        """Return the root's value, in all processes."""

    def send(self, value: Any, to: int) -> None:
        """Send a value that another process is to `receive`."""

    def receive(self, source: int) -> Any:
        """Return the next value that another process sends."""

    def aborting(self) -> AbstractContextManager[None]:
        """Return a context in which a failure of one process ends all processes."""

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Send bytes while work goes on."""

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Receive bytes that are sent with the same tag while work goes on."""


class OneProcess:
    """A single process, which has nobody to exchange messages with."""

    rank = 0
    size = 1
    device_memory = False

    def gather(self, value: T) -> list[T]:
        """Return the value."""
        return [value]

    def broadcast(self, value: T) -> T:
        """Return the value."""
        return value

    def aborting(self) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    def send(self, value: Any, to: int) -> None:
        """Refuse: there is no other process."""
        raise AssertionError("There is no other process.")

    def receive(self, source: int) -> Any:
        """Refuse: there is no other process."""
        raise AssertionError("There is no other process.")

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Refuse: there is no other process."""
        raise AssertionError("There is no other process.")

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Refuse: there is no other process."""
        raise AssertionError("There is no other process.")
