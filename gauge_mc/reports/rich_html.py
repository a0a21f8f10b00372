"""Reports of fits on a terminal, as HTML."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gauge_mc.console import Console
from gauge_mc.reports.markup import Markup, element, folded, joined, table

WIDE = 100
"""Width in characters of what is neither a table nor a text."""


def as_html(shown: object) -> Markup:
    """Return something that Rich shows as HTML: a table as a table, a text as a paragraph."""
    if isinstance(shown, Table):
        return _table(shown)
    if isinstance(shown, Group):
        return joined(map(as_html, shown.renderables))
    if isinstance(shown, str | Text):
        words = str(shown).strip()
        return joined(element("p", line) for line in words.splitlines() if line.strip())
    console = Console(file=io.StringIO(), width=WIDE)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return element("pre", console.file.getvalue())


def further_as_html(tables: Sequence[object]) -> Markup:
    """Return further tables of a fit, which the reader unfolds; nothing without any."""
    return folded("Further tables", *map(as_html, tables)) if tables else Markup("")


def _table(shown: Table) -> Markup:
    names = [str(one.header) for one in shown.columns]
    columns = [[*one.cells] for one in shown.columns]
    rows = [[_cell(one) for one in row] for row in zip(*columns, strict=True)]
    below = as_html(shown.caption) if shown.caption else Markup("")
    if not rows:
        return below
    return joined([table(names, rows, str(shown.title or "")), below])


def _cell(shown: object) -> object:
    return str(shown) if isinstance(shown, str | Text) else as_html(shown)
