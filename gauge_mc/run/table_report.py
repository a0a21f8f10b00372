"""Reports on tables: averages over their columns, and cautions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.analysis.timeseries.cautions import caution_series, caution_spacing
from gauge_mc.analysis.timeseries.estimates import caution_short
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import TableData
from gauge_mc.observables import observable_of_table
from gauge_mc.results import documented, result_field
from gauge_mc.run.averages import Average
from gauge_mc.run.source_versions import rows_of_others


@documented
@dataclass(frozen=True)
class TableReport:
    """A table with averages over its columns, for JSON."""

    file: str = result_field("File that was written or read.")
    records: int = result_field("Number of records in the table.")
    header: Mapping[str, str] = result_field("Header of the table.")
    averages: Mapping[str, Average] = result_field(
        "Averages by column; none if there are several records per configuration."
    )
    cautions: Sequence[str] = result_field(
        "Cautions about the averages and the number of configurations, one sentence each."
    )
    records_of_others: int = result_field(
        "Number of records that other versions of the observable's sources have measured.", 0
    )

    @classmethod
    def of(cls, path: Path, table: TableData, further: Sequence[str] = ()) -> TableReport:
        """Return the report on a table that `measure` has written, with further cautions."""
        averages = _averages(table)
        cautions = [*_cautions(table, averages), *further]
        others = rows_of_others(path, table)
        return cls(str(path), len(table), table.header, averages, cautions, others)


@documented
@dataclass(frozen=True)
class TableReports:
    """The tables of several ensembles, for JSON."""

    tables: Sequence[TableReport] = result_field("Tables that were written, one for each ensemble.")
    failures: Sequence[str] = result_field("Why the others could not be measured.")


def _averages(table: TableData) -> dict[str, Average]:
    """Return the averages of the columns of a table that has one row per configuration."""
    observable = observable_of_table(table)
    if observable is None or not observable.columns.averaged:
        return {}
    steps = set(np.diff(table[SWEEP]).tolist())
    updates = steps.pop() if len(steps) == 1 else None
    columns = {name: column for name, column in table.columns.items() if name != SWEEP}
    return {name: Average.of(estimate(column), updates) for name, column in columns.items()}


def _cautions(table: TableData, averages: Mapping[str, Average]) -> list[str]:
    """Return cautions about averages: the chain is short, or has not thermalised."""
    if not averages:
        return []
    slowest = max(one.tau_int + one.tau_int_error for one in averages.values())
    series = [table[name] for name in averages]
    return (
        caution_spacing(table[SWEEP])
        + caution_short(len(table), slowest)
        + caution_series(table[SWEEP], *series)
    )
