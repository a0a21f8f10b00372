"""Reading ahead and writing behind, so that files and devices work at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Output = TypeVar("Output")

AHEAD = 1
"""Number of time slices that are read before they are needed, or written later."""

READING = AHEAD + 2
"""Number of blocks in memory while blocks are read and converted: those that are read ahead, and
one that is converted together with the next one."""

WRITING = AHEAD + 2
"""Number of blocks in memory while blocks are made and written."""


class Memory:
    """Memory for blocks. It is reused after some blocks, because fresh memory costs time.

    Parameters
    ----------
    nbytes : int
        Size of a block.
    count : int
        Number of blocks that are in use at the same time.
    """

    def __init__(self, nbytes: int, count: int) -> None:
        self._nbytes, self._count = nbytes, count
        self._blocks: deque[NDArray[np.uint8]] = deque()

    def next(self) -> NDArray[np.uint8]:
        """Return memory for the next block."""
        full = len(self._blocks) == self._count
        block = self._blocks.popleft() if full else np.empty(self._nbytes, np.uint8)
        self._blocks.append(block)
        return block


def read_ahead(read: Callable[[Output], T], items: Iterable[Output]) -> Iterator[T]:
    """Yield the results of `read` for all items, and read the next ones meanwhile."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(1) as thread:
        try:
            for item in items:
                waiting.append(thread.submit(read, item))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def write_behind(write: Callable[[T], object], items: Iterable[T]) -> None:
    """Call `write` for all items, in order, while the next ones are being made."""
    waiting: deque[Future[object]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            waiting.append(thread.submit(write, item))
            if len(waiting) > AHEAD:
                waiting.popleft().result()
        for future in waiting:
            future.result()
