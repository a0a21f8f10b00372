"""Exports of tables to pyerrors: its JSON, and XML of primary or derived observables."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tempfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.exports import EXPORTS, Export, TablesByName
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import TableData
from gauge_mc.libraries import load
from gauge_mc.observables import OF_TABLE, Observable, TimeSeries, observable_of_table
from gauge_mc.registry import in_words
from gauge_mc.run.parameters import Parameters, version

MARK_BYTES = 1000
"""Number of bytes in which a file of observables says what it is."""


LEAST_RECORDS = 5
"""Minimum number of records that pyerrors accepts."""

Content = dict[str, dict[str, Any]]
"""Observables and correlators, by the name of their table and by that of their series."""


def observables_of(parameters: Parameters, tables: TablesByName) -> Content:
    """Return the observables and correlators of the tables that have enough records.

    An ensemble and its replica are named by the parameters and the seed of the run, such as
    ``su2_b2.5_8x8x8x16|r1``. Configurations are numbered by update.
    """
    load("pyerrors")
    ensemble = dataclasses.replace(parameters, seed=Parameters.seed).name
    replica = f"{ensemble}|r{parameters.seed}"
    every = {name: _observables(name, table, replica) for name, table in tables.items()}
    content = {name: observables for name, observables in every.items() if observables}
    if not content:
        raise GaugeError(
            f"No table has the {LEAST_RECORDS} records that pyerrors needs; measure more, "
            "or export to another kind of file."
        )
    return content


def description_of(
    parameters: Parameters, tables: TablesByName, content: Content
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
        for key, observable in series.items():
            name = "".join(f"{table}:{key}".split())
            if not hasattr(observable, "content"):
                yield name, observable
                continue
            for t, element in enumerate(observable.content):
                if element is not None:
                    yield f"{name}[{t}]", element[0]


def _observables(name: str, table: TableData, replica: str) -> dict[str, Any]:
    """Return the observables and correlators of a table that have enough records."""
    if OF_TABLE in table.header:
        return {}
    every = (observable_of_table(table) or Observable).series(table, f"{name}.csv").items()
    return {key: _convert(x, replica) for key, x in every if len(x.sweeps) >= LEAST_RECORDS}


def _convert(series: TimeSeries, replica: str) -> Any:
    """Return a time series as an observable, or as a correlator in t."""
    from pyerrors import Corr, Obs

    def observable(samples: NDArray[Any]) -> Any:
        return Obs([samples.astype(np.float64)], [replica], idl=[series.sweeps.tolist()])

    if series.samples.ndim == 1:
        return observable(series.samples)
    elements: list[Any] = [None] * ((series.samples.shape[1] - 1) * series.step + 1)
    elements[:: series.step] = map(observable, series.samples.T)
    return Corr(elements, padding=[series.first, 0])


def _head_of(path: Path) -> bytes:
    """Return the first bytes of a compressed file; none if it cannot be read."""
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        return file.read(MARK_BYTES)
    return b""


JSON_MARK_BYTES = 200
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
    least_records: ClassVar[int] = LEAST_RECORDS

    def recognises(self, path: Path) -> bool:
        """Return whether a file is pyerrors' compressed JSON."""
        return b"pyerrors" in _head_of(path)[:JSON_MARK_BYTES]

    def write(self, out: Path, parameters: Parameters, tables: TablesByName) -> list[str]:
        """Write tables; see `Export.write`."""
        content = observables_of(parameters, tables)
        from pyerrors.input.json import dump_dict_to_json

        description = description_of(parameters, tables, content)
        with replacing(out, kind=self.kind) as file, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tables.json.gz"
            dump_dict_to_json(content, str(path), description, indent=0)
            file.write(path.read_bytes())
        return list(content)


EXPORTS.register(PyerrorsExport())


class XmlExport(Export):
    """Compressed XML of observables, in one of Zeuthen's formats."""

    least_records: ClassVar[int] = LEAST_RECORDS
    tag: ClassVar[bytes]
    """An element that all files of the format have."""

    def recognises(self, path: Path) -> bool:
        """Return whether a file is such compressed XML."""
        head = _head_of(path)
        return b"lattobs" in head and self.tag in head

    def write(self, out: Path, parameters: Parameters, tables: TablesByName) -> list[str]:
        """Write tables, whole or not at all; see `Export.write`."""
        content = observables_of(parameters, tables)
        named = dict(elements_of(content))
        origin = {**description_of(parameters, tables, content), "observables": [*named]}
        titles = {
            "name": escape(parameters.name),
            "spec": "tables of gauge-mc",
            "origin": escape(json.dumps(origin)),
            "symbol": [escape(name) for name in named],
        }
        text = self.text([*named.values()], sorted(content), titles)
        with replacing(out, kind=self.kind) as file:
            file.write(gzip.compress(text.encode(), mtime=0))
        return list(content)

    @abstractmethod
    def text(self, observables: list[Any], tables: list[str], titles: dict[str, Any]) -> str:
        """Return the content of a file.

        Parameters
        ----------
        observables : list of pyerrors.Obs
            The observables.
        tables : list of str
            Names of their tables, for messages.
        titles : dict of str to object
            What the functions of pyerrors write beside the observables, which they do not quote.
        """


class PobsExport(XmlExport):
    """XML of primary observables (Zeuthen's pobs format), compressed.

    It is read by ``pyerrors.input.dobs.read_pobs``. The file has one row per configuration with the
    samples of all observables, whose names are those of a dobs file. So all tables must have been
    measured after the same updates; `--table` chooses one of them otherwise.
    """

    name: ClassVar[str] = "pobs"
    ending: ClassVar[str] = ".pobs.xml.gz"
    summary: ClassVar[str] = "XML of primary observables (pobs): samples of each configuration"
    tag: ClassVar[bytes] = b"<pobs>"

    def text(self, observables: list[Any], tables: list[str], titles: dict[str, Any]) -> str:
        """Return the content of a file; see `XmlExport.text`."""
        from pyerrors.input.dobs import create_pobs_string

        if any(o.idl != observables[0].idl for o in observables):
            raise UsageError(
                "A file of primary observables has one set of configurations, and the tables have "
                f"several; choose {in_words(tables, 'or')} by --table, or let the name end in "
                ".dobs.xml.gz."
            )
        return str(create_pobs_string(observables, **titles))


EXPORTS.register(PobsExport())


class DobsExport(XmlExport):
    """XML of derived observables (Zeuthen's dobs format), compressed.

    It is read by ``pyerrors.input.dobs.read_dobs``. The file is a list of all observables: the
    columns, and the elements of correlators at each time. Their names are the table and the key in
    pyerrors' JSON, such as ``plaquette:plaquette`` and, at t = 2,
    ``wilson_loops:smearing=0,path=100,r=3[2]``. They are the ``symbol`` of the file, separated by
    blanks, and ``observables`` in its ``origin``, which is JSON, with program, parameters and the
    headers of the tables; pyerrors returns that with ``full_output=True``. Observables that are
    measured after different updates share a file, which then has a 0 for each that is absent.

    The format has the deviations of the samples from their mean, and cannot tell a deviation of 0,
    nor pyerrors a sample of 0, from a configuration that is absent. Such a number is written as the
    next one that the format can hold, which changes a sample by less than a rounding error of the
    mean. Samples that are read back agree within such errors.
    """

    name: ClassVar[str] = "dobs"
    ending: ClassVar[str] = ".dobs.xml.gz"
    summary: ClassVar[str] = "XML of derived observables (dobs), for pyerrors, pyobs and others"
    tag: ClassVar[bytes] = b"<dobs>"

    def text(self, observables: list[Any], tables: list[str], titles: dict[str, Any]) -> str:
        """Return the content of a file; see `XmlExport.text`."""
        from pyerrors.input.dobs import create_dobs_string

        return str(create_dobs_string([_present(o) for o in observables], **titles))


EXPORTS.register(DobsExport())


def _present(observable: Any) -> Any:
    """Return an observable whose configurations all seem to be present.

    It is changed in place, which only the file sees.
    """
    value = observable.value
    for deltas in observable.deltas.values():
        if not deltas.any():
            deltas[0] = np.spacing(value)  # a constant would have no configurations at all
        deltas[deltas == 0] = np.finfo(np.float64).smallest_subnormal
        gone = deltas + value == 0
        deltas[gone] = np.nextafter(deltas[gone], np.inf)
    return observable
