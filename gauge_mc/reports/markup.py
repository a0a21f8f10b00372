"""HTML whose texts cannot be anything but texts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gauge_mc.console import Console
from gauge_mc.quoting import printable

EMPTY = {"col", "img", "input", "link", "meta"}
"""Elements without an end tag."""


class Markup(str):
    """Text that is HTML already. Only the functions of this module make it."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as HTML: markup as it is, anything else as text that is shown as it is."""
    return value if isinstance(value, Markup) else Markup(escape(printable(str(value))))


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Return parts one after the other; see `text`."""
    return Markup(escape(between).join(map(text, parts)))


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """Return an element of HTML or SVG."""
    words = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(attribute)
        elif value is not None and value is not False:
            words.append(f'{attribute}="{text(value)}"')
    begin = f"<{' '.join(words)}>"
    return Markup(begin if name in EMPTY else f"{begin}{joined(content)}</{name}>")


def data(content: object, **attributes: object) -> Markup:
    """Return an element with data for the scripts of the page, as JSON that contains no tags."""
    letters = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028"}
    dumps = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for letter, code in letters.items():
        dumps = dumps.replace(letter, code)
    return element("script", Markup(dumps), type="application/json", **attributes)


def table(
    names: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    marked: Sequence[bool] = (),
) -> Markup:
    """Return a table whose first column has the names of its rows.

    Parameters
    ----------
    names : sequence
        Headings of the columns.
    rows : iterable of sequences
        Cells of each row.
    caption : str
        Caption, which screen readers read first.
    marked : sequence of bool
        Whether each row is marked; by default none is.
    """
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = []
    for number, row in enumerate(rows):
        first, *values = row
        cells = [element("th", first, scope="row"), *(element("td", x) for x in values)]
        mark = "marked" if number < len(marked) and marked[number] else None
        body.append(element("tr", *cells, class_=mark))
    parts = [element("thead", head), element("tbody", *body)]
    if caption:
        parts.insert(0, element("caption", caption))
    region = {"class_": "scroll", "tabindex": "0", "role": "region"}
    return element("div", element("table", *parts), **region, aria_label=caption or "table")


def folded(title: object, *content: object, **attributes: Any) -> Markup:
    """Return content that the reader unfolds."""
    return element("details", element("summary", title), *content, **attributes)


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
    names = [str(column.header) for column in shown.columns]
    columns = [[*column.cells] for column in shown.columns]
    rows = [[_cell(x) for x in row] for row in zip(*columns, strict=True)]
    below = as_html(shown.caption) if shown.caption else Markup("")
    if not rows:
        return below
    return joined([table(names, rows, str(shown.title or "")), below])


def _cell(shown: object) -> object:
    return str(shown) if isinstance(shown, str | Text) else as_html(shown)
