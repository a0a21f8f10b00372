"""Writing of configurations in the background, while the chain goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from gauge_mc.configurations.writing import Snapshot, stored_by, write, write_field
from gauge_mc.devices.host import free_memory
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import FieldBlocks
from gauge_mc.fields.sums import averages
from gauge_mc.storage.links import Block

IN_FLIGHT = 2
"""Largest number of configurations that are in host memory until they are on disk."""


def prepare_writing(field: Field, format: str) -> None:
    """Load the kernels that `BackgroundWriter.write` needs; all processes must call this."""
    averages(field)
    stored = stored_by(format, field.lattice, field.group.name, field.precision)
    FieldBlocks(field, stored).prepare()


class _GivenUpError(Exception):
    """An earlier configuration could not be written."""


class BackgroundWriter:
    """Writes configurations in threads of its own, while the chain goes on.

    At most `IN_FLIGHT` of them are in memory, and written at the same time, because one file alone
    does not keep a disk busy. They appear in their order. `write` waits until there is room. If
    the memory of the host is too small for that, configurations are written at once, slice by
    slice. After a failure nothing more is written, and every call raises the error.

    Attributes
    ----------
    waited : float
        Total time that callers have waited.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._longest = 0.0
        self._begun: dict[Path, float] = {}
        self._threads = ThreadPoolExecutor(IN_FLIGHT, "writer")
        self._pending: deque[Future[bool]] = deque()
        self._memory: list[Block] = []
        self._failure: BaseException | None = None
        self._begun_so_far = 0
        self._left: dict[int, Callable[[], object]] = {}

    def __enter__(self) -> BackgroundWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._failure = None
        self._left.clear()
        self._memory.clear()

    def write(
        self,
        field: Field,
        path: Path,
        format: str,
        provenance: Mapping[str, str],
        before: Callable[[], object],
    ) -> None:
        """Write the links that the field has now; all processes that share it must call this."""
        if not field.devices.root:
            if field.devices.processes.broadcast(None):
                Snapshot.of(field, format)
            else:
                write_field(field, path, field.precision, format, provenance)
            return
        self.flush(IN_FLIGHT - 1)
        stored = stored_by(format, field.lattice, field.group.name, field.precision)
        memory = self._room(field, stored.nbytes)
        if not field.devices.processes.broadcast(memory is not None):
            self.flush()
            before()
            write_field(field, path, field.precision, format, provenance)
            return
        snapshot = Snapshot.of(field, format, memory)
        assert snapshot
        assert memory is not None

        number = self._begun_so_far = self._begun_so_far + 1
        again = partial(write, path, snapshot, format, provenance)
        previous = self._pending[-1] if self._pending else None

        def turn() -> None:
            if previous and not previous.result():
                raise _GivenUpError

        def task() -> bool:
            began = self._begun[path] = time.monotonic()
            try:
                if previous and previous.done():
                    turn()
                before()
                write(path, snapshot, format, provenance, turn)
                self._longest = max(self._longest, time.monotonic() - began)
                return True
            except _GivenUpError:
                self._left[number] = again
                return False
            except BaseException as error:
                # Its frames would keep the field alive, which this thread must not free.
                self._failure = self._failure or error.with_traceback(None)
                self._left[number] = again
                return False
            finally:
                del self._begun[path]
                if number not in self._left:
                    self._memory.append(memory)

        self._pending.append(self._threads.submit(task))

    def flush(self, in_flight: int = 0) -> None:
        """Wait until everything is on disk, or at most some configurations are in flight."""
        began = time.monotonic()
        while len(self._pending) > in_flight:
            self._pending.popleft().result()
        self.waited += time.monotonic() - began
        self.check()

    @property
    def unwritten(self) -> int:
        """Number of configurations that are not yet on disk."""
        return sum(not x.done() for x in list(self._pending)) + len(self._left)

    @property
    def failed(self) -> bool:
        """Whether a configuration could not be written."""
        return self._failure is not None

    def rewrite(self) -> None:
        """Write everything again that could not be written, in its order, after a failure."""
        for pending in self._pending:
            pending.result()
        self._pending.clear()
        for number in sorted(self._left):
            self._left[number]()
            del self._left[number]
        self._failure = None

    @property
    def seconds(self) -> float:
        """Longest time that writing a configuration has taken so far, including the current one."""
        now = time.monotonic()
        return max([self._longest, *(now - began for began in list(self._begun.values()))])

    def check(self) -> None:
        """Raise the error of a configuration that could not be written."""
        if self._failure:
            raise self._failure

    def _room(self, field: Field, nbytes: int) -> Block | None:
        """Return memory for a configuration, or None if there is too little."""
        if self._memory:
            return self._memory.pop()
        if nbytes > free_memory() // 2:
            return None
        return field.devices.devices[0].pinned_memory(nbytes)
