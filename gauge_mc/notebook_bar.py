"""Progress in notebooks: one output that changes."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any


class NotebookBar:
    """A progress bar in a notebook, which stays there in its last state.

    Parameters
    ----------
    total : int
        Amount of work, in the units of `show`.
    unit : str
        Unit in the plural, such as ``updates``.
    words : str
        Words that are shown before the first call of `show`.
    """

    def __init__(self, total: int, unit: str, words: str = "") -> None:
        display: Any = import_module("IPython.display")
        self._total, self._unit, self._html = total, unit, display.HTML
        self._handle = display.display(self._html(self._bar(0, words)), display_id=True)

    def show(self, done: int, words: str) -> None:
        """Show how much is done, with words beside it."""
        self._handle.update(self._html(self._bar(done, words)))

    def _bar(self, done: int, words: str) -> str:
        return (
            f'<progress value="{done}" max="{self._total}" style="width: 20em"></progress> '
            f'<span style="font-family: monospace; white-space: pre-wrap">{done}/{self._total} '
            f"{escape(self._unit)}  {escape(words)}</span>"
        )
