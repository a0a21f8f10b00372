"""An observable: the link trace."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import lattice_sums
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.observables import Observable, Record

LINK_TRACE = Kernel("link_trace", Path(__file__).parent)


@dataclass(frozen=True)
class LinkTrace(Observable):
    """Re Tr U / N averaged over all links."""

    name: ClassVar[str] = "link-trace"
    summary: ClassVar[str] = "the average link trace"
    columns: ClassVar[TableColumns] = TableColumns(Column("trace", help="average over all links"))
    normalisation: ClassVar[str] = "Re Tr / N averaged over all links"
    main_kernel: ClassVar[Kernel | None] = LINK_TRACE

    def measure(self, field: Field) -> Record:
        """Return the average over all links of a field."""
        total = lattice_sums(field, LINK_TRACE, values=1)[0]
        return (float(total) / (field.group.colours * field.lattice.links),)
