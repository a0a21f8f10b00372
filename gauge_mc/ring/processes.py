"""Processes that share a lattice: usually there is one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Request(Protocol):
    """A message under way."""

    def wait(self) -> object:
        """Wait until the array that was given may be used."""


class Processes(Protocol):
    """Processes that do the same at the same time, numbered from 0, the root, which does files."""

    rank: int
    size: int
    device_memory: bool
    """Whether messages may lie in the memory of GPUs."""

    def gather(self, value: T) -> list[T]:
        """The values of all processes, in all of them."""

    def share(self, value: T) -> T:
        """The root's value, in all of them."""

    def send(self, value: Any, to: int) -> None:
        """Give another process a value, which it is to `receive`."""

    def receive(self, source: int) -> Any:
        """Take the next value that another process sends."""

    def together(self) -> AbstractContextManager[None]:
        """While this is entered, a failure of one process ends all."""

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Send bytes, while work goes on."""

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Receive bytes that were sent with the same tag, while work goes on."""


class Alone:
    """One process."""

    rank = 0
    size = 1
    device_memory = False

    def gather(self, value: T) -> list[T]:
        """The value."""
        return [value]

    def share(self, value: T) -> T:
        """The value."""
        return value

    def together(self) -> AbstractContextManager[None]:
        """Nothing has to be done."""
        return nullcontext()

    def send(self, value: Any, to: int) -> None:
        """Not possible."""
        raise AssertionError("There is no other process.")

    def receive(self, source: int) -> Any:
        """Not possible."""
        raise AssertionError("There is no other process.")

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Not possible."""
        raise AssertionError("There is no other process.")

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Not possible."""
        raise AssertionError("There is no other process.")
