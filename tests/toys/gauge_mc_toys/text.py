"""An export: the names and columns of all tables as plain text."""

from collections.abc import Mapping
from pathlib import Path

from gauge_mc.exports import Export
from gauge_mc.files.table import TableData
from gauge_mc.run.parameters import Parameters


class Text(Export):
    """A text file."""

    name = "text"
    ending = ".txt"
    summary = "plain text: the names and columns of all tables"

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write one line per table."""
        lines = [f"{name}: {', '.join(table.columns)}" for name, table in tables.items()]
        out.write_text("\n".join(lines) + "\n")
        return list(tables)


TEXT = Text()
