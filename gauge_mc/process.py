"""The signal that asks the process to stop, and values of variables in a context.

Signal handlers only record the signal here. Code that waits for something outside of the
process, such as a compiler, checks from time to time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from gauge_mc.errors import StoppedError

LOOK_SECONDS = 0.1
"""Time in seconds between two checks for a signal."""

_noted: list[str] = []


def note(name: str) -> None:
    """Record a signal by its name."""
    _noted.append(name)


def noted() -> str | None:
    """Return the name of the first signal that has been noted, or None."""
    return next(iter(_noted), None)


def forget() -> None:
    """Forget all signals, when the work that they were to stop has ended."""
    _noted.clear()


def check(stage: str) -> None:
    """Raise an error if a signal has been noted."""
    if _noted:
        raise StoppedError(
            f"Stopped by {_noted[0]} {stage}; repeat the same command to begin or continue."
        )


T = TypeVar("T")


@contextmanager
def in_context(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Give a variable a value within a context, which yields the value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
