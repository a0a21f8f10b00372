"""Tables of results on the terminal, a row for each of several data classes of a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.results import headings


def table_of(
    title: str,
    kind: type[Any],
    rows: Sequence[Any],
    digits: int,
    justify: Literal["left", "right"] = "right",
) -> Table:
    """Return a table of results, with the columns that are known for some row.

    Parameters
    ----------
    title : str
        Title of the table.
    kind : type
        Data class of the rows; its fields that have a symbol are the columns.
    rows : sequence of object
        The results.
    digits : int
        Number of digits of numbers without an error.
    justify : str
        Alignment of the columns.
    """
    shown = {
        name: heading
        for name, heading in headings(kind).items()
        if any(getattr(one, name) is not None for one in rows)
    }
    table = Table(title=title)
    for heading in shown.values():
        table.add_column(heading, justify=justify)
    for one in rows:
        table.add_row(*(_cell(getattr(one, name), digits) for name in shown))
    return table


def _cell(value: object, digits: int) -> str:
    """Return a result in words, empty if it is not known."""
    if isinstance(value, Estimate):
        return str(value) if math.isfinite(value.value) else "?"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)
