"""Reasons to stop a run early: a signal, or the time limit."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType
from typing import Any

from gauge_mc import interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Signals upon which a run writes a checkpoint and stops.

SIGHUP comes when the terminal is lost. Programs that are started with nohup ignore it."""


class Stop:
    """The reason to stop a run now, if there is one: a signal or the time limit.

    Used as a context manager in the main thread, it records the signals in `SIGNALS` instead of
    letting them interrupt the program. A second SIGINT interrupts the program as usual.

    Parameters
    ----------
    time_limit : float, optional
        Time in seconds from now within which the run must have stopped.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self._signal: str | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            numbers = [one for one in SIGNALS if not (ignored and one is signal.SIGHUP)]
            self._handlers = {number: signal.signal(number, self._note) for number in numbers}
            # The exception that ends a program by an earlier signal is lost if it is raised where
            # Python ignores exceptions, such as in a finalizer or in an import that may fail.
            self._signal = interruption.noted()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._handlers:
            interruption.forget()

    def __call__(self, seconds_to_stop: float) -> str | None:
        """Return the reason to stop now, or None.

        Parameters
        ----------
        seconds_to_stop : float
            Time in seconds that stopping would take.
        """
        if self._signal is None and time.monotonic() + seconds_to_stop >= self._deadline:
            return "the time limit"
        return self._signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = signal.Signals(number).name
        interruption.note(self._signal)
        signal.signal(signal.SIGINT, signal.default_int_handler)
