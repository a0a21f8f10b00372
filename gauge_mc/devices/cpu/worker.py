"""A thread that carries out tasks one after the other, like the stream of a GPU."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

Task = Callable[[], object]


class TaskEvent:
    """A point in the sequence of a worker's tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def reach(self) -> None:
        """Mark the event as reached and wake up all threads that wait for it."""
        self._lock.release()

    def query(self) -> bool:
        """Return whether the worker has reached this point."""
        return not self._lock.locked()

    def synchronize(self) -> None:
        """Wait until the worker has reached this point."""
        with self._lock:
            pass


class Worker:
    """A thread that carries out tasks in the order in which they are given.

    If a task fails, the later ones are still carried out, because other threads may wait for events
    among them.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._failures: list[BaseException] = []
        words = (self._tasks, self._failures)
        thread = threading.Thread(target=_work, args=words, daemon=True)
        thread.start()
        # The thread does not refer to this object, so that it ends when the object is deleted.
        self.close = weakref.finalize(self, _end, thread, self._tasks)

    def do(self, task: Task) -> None:
        """Carry out a task after all tasks given so far."""
        self._tasks.put(task)

    def event(self) -> TaskEvent:
        """Return an event that is reached when all tasks given so far are done."""
        event = TaskEvent()
        if self.close.alive:
            self._tasks.put(event.reach)
        else:
            event.reach()
        return event

    def synchronize(self) -> None:
        """Wait until all tasks given so far are done, and raise the first failure among them."""
        self.event().synchronize()
        if self._failures:
            raise self._failures[0]


def _end(thread: threading.Thread, tasks: SimpleQueue[Task | None]) -> None:
    tasks.put(None)
    thread.join()


def _work(tasks: SimpleQueue[Task | None], failures: list[BaseException]) -> None:
    while task := tasks.get():
        try:
            task()
        except BaseException as error:
            failures.append(error)
