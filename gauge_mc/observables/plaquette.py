"""The plaquette."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.averages import PLANES, PLAQUETTE
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums, lattice_sums
from gauge_mc.files.averages import Averages
from gauge_mc.groups import Group
from gauge_mc.observables import (
    OBSERVABLES,
    Columns,
    Observable,
    Quantity,
    Record,
    Recorder,
    SumRecorder,
)

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row. Their rounding errors are 1e-16, so that
larger differences are damage."""


@OBSERVABLES.register
@dataclass(frozen=True)
class Plaquette(Observable):
    """Averages of Re Tr U_p / N over all, the spatial and the temporal plaquettes, in [-1, 1]."""

    name: ClassVar[str] = "plaquette"
    summary: ClassVar[str] = "plaquettes: all, spatial and temporal"
    columns: ClassVar[tuple[str, ...]] = ("plaquette", "spatial", "temporal")
    descriptions: ClassVar[Mapping[str, str]] = {
        "plaquette": "average over all six planes",
        "spatial": "average over the three planes without t",
        "temporal": "average over the three planes with t",
    }
    normalisation: ClassVar[str] = (
        "Re Tr / N averaged over the lattice: all, space-space and space-time planes"
    )
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("plaquette", "plaquette", "plaquette"),
        Quantity("spatial", "spatial plaquette", "spatial plaquette"),
        Quantity("temporal", "temporal plaquette", "temporal plaquette"),
    )
    links_moved: ClassVar[float | None] = 1.0
    main_kernel: ClassVar[Kernel | None] = PLAQUETTE

    def measure(self, field: Field) -> Record:
        """Return the averages over all, the spatial and the temporal plaquettes of a field."""
        sums = lattice_sums(field, PLAQUETTE, values=2)
        return tuple(_records(field.group, field.lattice, sums).tolist())

    def recorder(self, field: Field) -> Recorder:
        """Return a recorder for a field; see `Observable.recorder`."""
        links = [{"links": slab.buffer.address} for slab in field.slabs]
        over = [slab.whole() for slab in field.slabs]
        sums = DeferredSums(field, PLAQUETTE, 2, links, over)
        return SumRecorder(sums, partial(_records, field.group, field.lattice))

    @classmethod
    def live(cls, record: Record) -> str:
        """Return the average over all plaquettes in words."""
        return f"plaquette {record[0]:.5f}"

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the first value is not the mean of the others."""
        mean = (columns["spatial"] + columns["temporal"]) / 2
        return np.asarray(np.abs(columns["plaquette"] - mean) > ROUNDING)

    @classmethod
    def of_averages(cls, averages: Averages) -> dict[str, float]:
        """Return the plaquettes of a stored configuration."""
        found = (averages.mean, averages.spatial, averages.temporal)
        return dict(zip(cls.columns, found, strict=True))


def _records(group: Group, lattice: Lattice, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the averages, given the sums over spatial and over temporal plaquettes."""
    spatial, temporal = np.moveaxis(sums, -1, 0) / (PLANES * group.colours * lattice.sites)
    return np.stack([(spatial + temporal) / 2, spatial, temporal], axis=-1)


def plaquette(field: Field) -> float:
    """Return the average of Re Tr U_p / N over all plaquettes of a field."""
    return float(Plaquette().measure(field)[0])
