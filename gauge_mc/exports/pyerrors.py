"""Export to pyerrors."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from gauge_mc.exports import EXPORTS, Export
from gauge_mc.exports.pyerrors_files.observables import (
    LEAST_RECORDS,
    description_of,
    observables_of,
)
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import TableData
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
    least_records: ClassVar[int] = LEAST_RECORDS

    def recognises(self, path: Path) -> bool:
        """Return whether a file is pyerrors' compressed JSON."""
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            return b"pyerrors" in file.read(MARK_BYTES)
        return False

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables; see `Export.write`."""
        content = observables_of(parameters, tables)
        from pyerrors.input.json import dump_dict_to_json

        description = description_of(parameters, tables, content)
        with replacing(out, kind=self.kind) as file, tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "tables.json.gz"
            dump_dict_to_json(content, str(written), description, indent=0)
            file.write(written.read_bytes())
        return list(content)


EXPORTS.register(PyerrorsExport())
