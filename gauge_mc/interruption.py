"""The signal that asks this process to stop, for code that waits for something outside of it.

The signal handlers only record the signal here. Code that waits, for example for a compiler, checks
from time to time.
"""

from __future__ import annotations

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
