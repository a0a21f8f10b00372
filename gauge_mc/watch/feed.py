"""The newest parts of a page, for any number of readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gauge_mc.errors import GaugeError
from gauge_mc.reports.markup import Markup, element

Parts = Mapping[str, Markup]
"""Parts of a page by their names, in the order in which they are shown."""

TROUBLE = "trouble"
"""The part that says why the others cannot be made."""

SHARE = 0.05
"""Fraction of the time that reading the files of a run may take, at most."""


@dataclass(frozen=True)
class FeedState:
    """The parts of a page at some time."""

    number: int
    """Number of the state, counted from 1."""
    parts: Parts
    """The parts."""
    changed: Mapping[str, int]
    """Number of the state in which each part has changed last."""

    def since(self, number: int) -> dict[str, Markup | None]:
        """Return all parts in order, those that have changed after a state with their content."""
        return {
            name: part if self.changed[name] > number else None for name, part in self.parts.items()
        }


class Feed:
    """The parts of a page, which are made again when somebody asks for them and they are old.

    Nothing is read while nobody asks, and several readers share what was read.

    Parameters
    ----------
    read : callable
        Makes the parts.
        The first one has the name `TROUBLE`.
    seconds : float
        Age from which parts are made again. It grows with the time that this takes, see `SHARE`.
    """

    def __init__(self, read: Callable[[], Parts], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._state = FeedState(0, {}, {})
        self._due = -float("inf")
        self._lock = threading.Lock()

    def state(self) -> FeedState:
        """Return the newest state."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._due:
                self._renew(self._parts())
                end = time.monotonic()
                self._due = end + max(self._seconds, (end - begun) / SHARE)
            return self._state

    def _parts(self) -> Parts:
        """Return the parts, or the old ones if a file cannot be read, with the reason."""
        try:
            return self._read()
        except (GaugeError, OSError) as error:
            words = element("p", str(error), class_="caution")
            trouble = element("section", words, data_part=TROUBLE)
            return {**self._state.parts, TROUBLE: trouble}

    def _renew(self, parts: Parts) -> None:
        old = self._state
        if [*parts.items()] == [*old.parts.items()]:
            return
        number = old.number + 1
        changed = {
            name: old.changed[name] if old.parts.get(name) == part else number
            for name, part in parts.items()
        }
        self._state = FeedState(number, parts, changed)
