"""A thread that does one thing after the other, as a GPU's stream does."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

Task = Callable[[], object]


class Moment:
    """A point in a worker's tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def reach(self) -> None:
        """Let those go on who wait."""
        self._lock.release()

    def query(self) -> bool:
        """Whether the worker has come here."""
        return not self._lock.locked()

    def synchronize(self) -> None:
        """Wait until the worker has come here."""
        with self._lock:
            pass


class Worker:
    """A thread that does tasks in the order in which they are given. None of them may fail."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        thread = threading.Thread(target=_work, args=(self._tasks,), daemon=True)
        thread.start()
        # The thread knows the tasks, not this object, and ends with it or with the program.
        self.close = weakref.finalize(self, _end, thread, self._tasks)

    def do(self, task: Task) -> None:
        """Have something done after all that was given before."""
        self._tasks.put(task)

    def mark(self) -> Moment:
        """The point where all tasks given so far are done."""
        moment = Moment()
        if self.close.alive:
            self._tasks.put(moment.reach)
        else:
            moment.reach()
        return moment


def _end(thread: threading.Thread, tasks: SimpleQueue[Task | None]) -> None:
    tasks.put(None)
    thread.join()


def _work(tasks: SimpleQueue[Task | None]) -> None:
    while task := tasks.get():
        task()
