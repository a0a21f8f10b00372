"""Observables and correlators of pyerrors from tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData
from gauge_mc.libraries import load
from gauge_mc.observables import OF_TABLE, Observable, TimeSeries, observable_of_table
from gauge_mc.run.chain import version
from gauge_mc.run.parameters import Parameters

LEAST_RECORDS = 5
"""Minimum number of records that pyerrors accepts."""

Content = dict[str, dict[str, Any]]
"""Observables and correlators, by the name of their table and by that of their series."""


def observables_of(parameters: Parameters, tables: Mapping[str, TableData]) -> Content:
    """Return the observables and correlators of the tables that have enough records.

    An ensemble and its replica are named by the parameters and the seed of the run, such as
    ``su2_b2.5_8x8x8x16|r1``. Configurations are numbered by update.

    Raises
    ------
    GaugeError
        If pyerrors is missing, if a table is damaged, or if no table has enough records.
    """
    load("pyerrors")
    ensemble = dataclasses.replace(parameters, seed=Parameters.seed).name
    replica = f"{ensemble}|r{parameters.seed}"
    made = {name: _observables(name, table, replica) for name, table in tables.items()}
    content = {name: observables for name, observables in made.items() if observables}
    if not content:
        raise GaugeError(
            f"No table has the {LEAST_RECORDS} records that pyerrors needs; measure more, "
            "or export to another kind of file."
        )
    return content


def description_of(
    parameters: Parameters, tables: Mapping[str, TableData], content: Content
) -> dict[str, Any]:
    """Return what is known of the content of a file: program, parameters, headers of tables."""
    return {
        "program": version(),
        "parameters": parameters.values(),
        "tables": {name: tables[name].header for name in content},
    }


def elements_of(content: Content) -> Iterator[tuple[str, Any]]:
    """Yield the names of all observables, those of each time of correlators, and the observables.

    A name has no blanks, such as ``wilson_loops:smearing=0,path=100,r=3[2]``.
    """
    for table, series in content.items():
        for key, one in series.items():
            name = "".join(f"{table}:{key}".split())
            if not hasattr(one, "content"):
                yield name, one
                continue
            for t, element in enumerate(one.content):
                if element is not None:
                    yield f"{name}[{t}]", element[0]


def _observables(name: str, table: TableData, replica: str) -> dict[str, Any]:
    """Return the observables and correlators of a table that have enough records."""
    if OF_TABLE in table.header:
        return {}
    observable = observable_of_table(table) or Observable
    series = observable.series(table, f"{name}.csv")
    return {
        key: _convert(one, replica)
        for key, one in series.items()
        if len(one.sweeps) >= LEAST_RECORDS
    }


def _convert(series: TimeSeries, replica: str) -> Any:
    """Return a time series as an observable, or as a correlator in t."""
    from pyerrors import Corr

    if series.samples.ndim == 1:
        return _observable(series.samples, series.sweeps, replica)
    elements: list[Any] = [None] * ((series.samples.shape[1] - 1) * series.step + 1)
    elements[:: series.step] = [
        _observable(samples, series.sweeps, replica) for samples in series.samples.T
    ]
    return Corr(elements, padding=[series.first, 0])


def _observable(samples: NDArray[Any], sweeps: NDArray[Any], replica: str) -> Any:
    from pyerrors import Obs

    return Obs([samples.astype(np.float64)], [replica], idl=[sweeps.tolist()])
