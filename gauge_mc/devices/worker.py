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
    """A thread that does tasks in the order in which they are given, also after one that fails."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._failures: list[BaseException] = []
        words = (self._tasks, self._failures)
        thread = threading.Thread(target=_work, args=words, daemon=True)
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

    def synchronize(self) -> None:
        """Wait until all tasks given so far are done; raise what the first that failed raised."""
        self.mark().synchronize()
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
            # Others wait for this thread's moments, so it goes on.
            failures.append(error)
