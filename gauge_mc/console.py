"""The console that shows text from files and from other users without effect on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import rich.console
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from gauge_mc.quoting import printable


class Console(rich.console.Console):
    """A console of Rich that shows control characters in texts as escape sequences.

    Texts are shown as they are, without markup and highlighting.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to show, whose width is that of what is shown."""
        return super().render_str(printable(text), **options)

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Return the segments of something to show; see `rich.console.Console.render`."""
        for segment in super().render(*arguments, **options):
            text, style, control = segment
            yield segment if control or text == "\n" else Segment(printable(text), style)


def plain_table(left: Iterable[str], right: Iterable[str] = (), **more: Any) -> Table:
    """Return a table without lines and rows, given the headings of its columns by alignment."""
    columns = [*(Column(x) for x in left), *(Column(x, justify="right") for x in right)]
    return Table(*columns, box=None, pad_edge=False, header_style="bold", **more)
