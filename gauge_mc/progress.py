"""Progress of long work: live on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator
from html import escape
from importlib import import_module
from typing import Any

import rich.progress
from rich.console import RenderableType
from rich.progress import BarColumn, TextColumn
from rich.text import Text

from gauge_mc.console import Console

LIVE_SECONDS = 0.5
"""Minimum time in seconds between two updates of a live display."""

PLAIN_SECONDS = 30.0
"""Time in seconds after which a plain line is printed at the latest.

A line is also printed at every tenth of the work."""

PLAIN_LEAST_SECONDS = 1.0
"""Minimum time in seconds between two plain lines."""


class Progress:
    """Progress of some work. A quiet console shows nothing.

    Parameters
    ----------
    console : Console
        Where it is shown.
    total : int
        Amount of work.
    unit : str
        Unit of the amount in the plural, such as ``updates``; empty if the amount is not shown.
    text : str
        Text of a live display before any work is done.
    plain : bool
        Whether lines are printed where no live display is possible.
    first : int
        Amount of work whose time says nothing about the others, since kernels are compiled.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        unit: str = "",
        text: str = "",
        plain: bool = True,
        first: int = 0,
    ) -> None:
        self.total, self.unit = total, unit
        self._console, self._first, self._tenth, self.count = console, first, 0, 0.0
        self._live = console.is_terminal or console.is_jupyter
        self._quiet = console.quiet or not (self._live or plain)
        self._since = self._began = time.monotonic()
        self._shown = -math.inf if self._live else self._began
        self._bar = self._handle = None
        if self._live and not (self._quiet or console.is_jupyter):
            self._bar = _Bar(console, text)
        elif self._live and not self._quiet:
            display: Any = import_module("IPython.display")
            self._html = display.HTML
            self._handle = display.display(self._html(self._cell(0, text)), display_id=True)

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def due(self, count: float) -> bool:
        """Return whether to show that an amount of work is done, as it is at the end if live."""
        silence = time.monotonic() - self._shown
        if self._live:
            return not self._quiet and (count >= self.total or silence >= LIVE_SECONDS)
        new = 10 * count >= (self._tenth + 1) * max(1, self.total)
        return not self._quiet and silence >= (PLAIN_LEAST_SECONDS if new else PLAIN_SECONDS)

    def show(
        self, count: float, line: str, title: str = "", text: str = "", note: str = ""
    ) -> None:
        """Show that an amount of work is done.

        A plain line consists of `line`; a live display has a title, a text, and a note below.
        """
        self._shown, self._tenth = time.monotonic(), int(10 * count / max(1, self.total))
        if self._handle:
            words = "  ".join(filter(None, (title, text, note)))
            self._handle.update(self._html(self._cell(count, words)))
        elif self._bar:
            amount = f"{count:.0f}/{self.total} {self.unit}" if self.unit else ""
            self._bar.show(count, self.total, title, amount, text, note)
        elif not self._quiet:
            self._console.print(line, soft_wrap=True)

    def advance(self, amount: float, line: str = "", title: str = "") -> None:
        """Show that some more work is done; see `update`."""
        self.update(self.count + amount, line, title)

    def update(self, count: float, line: str = "", title: str = "") -> None:
        """Show that an amount of work is done, with the remaining time, if it is due."""
        self.count = count
        if count == self._first:
            self._since = time.monotonic()
        if self.due(count):
            later, seconds = count - self._first, time.monotonic() - self._since
            eta = f"ETA {duration(seconds / later * (self.total - count) if later > 0 else None)}"
            self.show(count, f"{line}  {eta}", title or line, eta)

    def _cell(self, count: float, words: str) -> str:
        amount = f"{count:.0f}/{self.total} {self.unit}"
        return (
            f'<progress value="{count:.0f}" max="{self.total}" style="width: 20em"></progress> '
            f'<span style="font-family: monospace; white-space: pre-wrap">{escape(amount)}  '
            f"{escape(words)}</span>"
        )


class _Bar(rich.progress.Progress):
    """A bar, and a line below it."""

    def __init__(self, console: Console, note: str) -> None:
        self._note = Text(note, style="dim")
        super().__init__(
            TextColumn("{task.description}", style="bold"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[text]}", style="cyan"),
            console=console,
            transient=True,
            expand=True,
        )
        self._task = self.add_task("starting", total=None, amount="", text="")

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the line below it."""
        yield self.make_tasks_table(self.tasks)
        if self._note:
            yield self._note

    def show(self, count: float, total: int, title: str, amount: str, text: str, note: str) -> None:
        """Show how much is done."""
        fields = {"completed": count, "total": total, "amount": amount, "text": text}
        self.update(self._task, description=title, **fields, refresh=True)  # type: ignore[arg-type]
        self._note = Text(note)


def duration(seconds: float | None) -> str:
    """Return a time as ``H:MM:SS``, or as seconds below one minute; dashes if it is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "-:--:--"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return str(datetime.timedelta(seconds=round(seconds)))
