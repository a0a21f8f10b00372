"""When to stop a run in order: a signal has come, or its time is running out."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Stop:
    """Tells why to stop now: because of a signal, or of the time limit.

    While it is entered in the main thread, SIGINT, SIGTERM and SIGUSR1 are only noted. A second
    SIGINT interrupts as usual.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self._signal: str | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def __call__(self, seconds_to_stop: float) -> str | None:
        """Return why to stop now if stopping takes so many seconds, or None."""
        if self._signal is None and time.monotonic() + seconds_to_stop >= self._deadline:
            return "the time limit"
        return self._signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = signal.Signals(number).name
        signal.signal(signal.SIGINT, signal.default_int_handler)
