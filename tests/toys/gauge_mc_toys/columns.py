"""A conversion: some columns of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc.files.table import read_table, write_table
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.convert import OtherConversion, new_file


@documented
@dataclass(frozen=True)
class ColumnsReport:
    """A table that was written."""

    file: str = result_field("File that was written or read.")


class ColumnsConversion(OtherConversion):
    """A table that is written with fewer columns."""

    name = "columns"
    options = (Option("columns", str, "Columns of a table for OUT.", metavar="NAME,..."),)
    alone = "Columns are those of a table; give this option alone."
    results = (f"{__name__}:ColumnsReport",)

    def convert(self, source: Path, target: Path, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Write the columns in the order in which they are named."""
        table, names = read_table(source), values[self.name].split(",")
        rows = zip(*(table[name].tolist() for name in names), strict=True)
        write_table(new_file(target), table.header, names, rows)
        return f"{target}: {len(table)} rows", ColumnsReport(str(target))


COLUMNS = ColumnsConversion()
