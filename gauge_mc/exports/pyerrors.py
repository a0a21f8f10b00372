"""Export to pyerrors."""

from __future__ import annotations

import dataclasses
import gzip
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.exports import EXPORTS, Export
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import TableData
from gauge_mc.libraries import load
from gauge_mc.observables import OF_TABLE, Observable, TimeSeries, observable_of_table
from gauge_mc.run.chain import version
from gauge_mc.run.parameters import Parameters

MARK_BYTES = 200
"""Number of bytes in which a file of pyerrors names the program."""


class PyerrorsExport(Export):
    """JSON file of pyerrors with a dictionary of observables and correlators.

    It is read by ``pyerrors.input.json.load_json_dict``. The outer keys are the names of the
    tables. The inner keys are those of `Observable.series`: usually the columns, and for Wilson
    loops the smearing level, path and r, such as ``smearing=25,path=100,r=3``, of a correlator in
    t. The columns of the gradient flow are correlators in the flow time, which is counted in units
    of the time between records; with records of time slices, those such as ``charge,t=0.3`` are
    correlators in the time of the slices. An ensemble and its replica are named by the parameters
    and the seed of the run, such as ``su2_b2.5_8x8x8x16|r1``. Configurations are numbered by
    update. Tables with fewer than `least_records` records are left out, because pyerrors does not
    accept them.
    """

    name: ClassVar[str] = "pyerrors"
    ending: ClassVar[str] = ".json.gz"
    summary: ClassVar[str] = "pyerrors' JSON: observables and correlators, with replica by seed"
    least_records: ClassVar[int] = 5

    def recognises(self, path: Path) -> bool:
        """Return whether a file is pyerrors' compressed JSON."""
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            return b"pyerrors" in file.read(MARK_BYTES)
        return False

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables; see `Export.write`."""
        load("pyerrors")
        from pyerrors.input.json import dump_dict_to_json

        ensemble = dataclasses.replace(parameters, seed=Parameters.seed).name
        replica = f"{ensemble}|r{parameters.seed}"
        made = {name: self._observables(name, table, replica) for name, table in tables.items()}
        content = {name: observables for name, observables in made.items() if observables}
        if not content:
            raise GaugeError(
                f"No table has the {self.least_records} records that pyerrors needs; measure more, "
                "or export to another kind of file."
            )
        description = {
            "program": version(),
            "parameters": parameters.values(),
            "tables": {name: tables[name].header for name in content},
        }
        with replacing(out, kind=self.kind) as file, tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "tables.json.gz"
            dump_dict_to_json(content, str(written), description, indent=0)
            file.write(written.read_bytes())
        return list(content)

    def _observables(self, name: str, table: TableData, replica: str) -> dict[str, Any]:
        """Return the observables and correlators of a table that have enough records."""
        if OF_TABLE in table.header:
            return {}
        observable = observable_of_table(table) or Observable
        series = observable.series(table, f"{name}.csv")
        return {
            key: _convert(one, replica)
            for key, one in series.items()
            if len(one.sweeps) >= self.least_records
        }


EXPORTS.register(PyerrorsExport())


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
