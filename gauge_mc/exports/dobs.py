"""Export to the XML of derived observables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.exports import EXPORTS, Export
from gauge_mc.exports.pyerrors_files.observables import (
    LEAST_RECORDS,
    elements_of,
    observables_of,
)
from gauge_mc.exports.pyerrors_files.xml import is_xml_of, titles, write_xml
from gauge_mc.files.table import TableData
from gauge_mc.run.parameters import Parameters


class DobsExport(Export):
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
    least_records: ClassVar[int] = LEAST_RECORDS

    def recognises(self, path: Path) -> bool:
        """Return whether a file is such compressed XML."""
        return is_xml_of(path, b"<dobs>")

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables; see `Export.write`."""
        content = observables_of(parameters, tables)
        from pyerrors.input.dobs import create_dobs_string

        found = dict(elements_of(content))
        text = create_dobs_string(
            [_present(one) for one in found.values()],
            **titles(parameters, tables, content, [*found]),
        )
        write_xml(out, self.kind, text)
        return list(content)


EXPORTS.register(DobsExport())


def _present(observable: Any) -> Any:
    """Return an observable none of whose configurations seems to be absent.

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
