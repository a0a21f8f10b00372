"""Export to the XML of primary observables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.exports import EXPORTS, Export
from gauge_mc.exports.pyerrors_files.observables import (
    LEAST_RECORDS,
    elements_of,
    observables_of,
)
from gauge_mc.exports.pyerrors_files.xml import is_xml_of, titles, write_xml
from gauge_mc.files.table import TableData
from gauge_mc.registry import in_words
from gauge_mc.run.parameters import Parameters


class PobsExport(Export):
    """XML of primary observables (Zeuthen's pobs format), compressed.

    It is read by ``pyerrors.input.dobs.read_pobs``. The file has one row per configuration with the
    samples of all observables, whose names are those of a dobs file. So all tables must have been
    measured after the same updates; `--table` chooses one of them otherwise.
    """

    name: ClassVar[str] = "pobs"
    ending: ClassVar[str] = ".pobs.xml.gz"
    summary: ClassVar[str] = "XML of primary observables (pobs): samples of each configuration"
    least_records: ClassVar[int] = LEAST_RECORDS

    def recognises(self, path: Path) -> bool:
        """Return whether a file is such compressed XML."""
        return is_xml_of(path, b"<pobs>")

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables; see `Export.write`."""
        content = observables_of(parameters, tables)
        from pyerrors.input.dobs import create_pobs_string

        found = dict(elements_of(content))
        observables = [*found.values()]
        if any(one.idl != observables[0].idl for one in observables):
            raise UsageError(
                "A file of primary observables has one set of configurations, and the tables have "
                f"several; choose {in_words(sorted(content), 'or')} by --table, or let the name "
                "end in .dobs.xml.gz."
            )
        text = create_pobs_string(observables, **titles(parameters, tables, content, [*found]))
        write_xml(out, self.kind, text)
        return list(content)


EXPORTS.register(PobsExport())
