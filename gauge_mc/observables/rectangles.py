"""Rectangles of 2x1 links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums, lattice_sums
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

RECTANGLES = Kernel("rectangles")

KINDS = np.array([6, 3, 3])
"""Numbers of rectangles per site: in space, with a short and with a long side along t."""

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row, far above their rounding errors."""


@OBSERVABLES.register
@dataclass(frozen=True)
class Rectangles(Observable):
    """Averages of Re Tr U_r / N over the rectangles of 2x1 links, in [-1, 1]."""

    name: ClassVar[str] = "rectangles"
    summary: ClassVar[str] = "rectangles of 2x1 links: all, spatial, 1 and 2 links along t"
    columns: ClassVar[tuple[str, ...]] = ("rectangle", "spatial", "short", "long")
    descriptions: ClassVar[Mapping[str, str]] = {
        "rectangle": "average over the twelve rectangles of a site",
        "spatial": "average over the six rectangles without links along t",
        "short": "average over the three rectangles whose short side is along t",
        "long": "average over the three rectangles whose long side is along t",
    }
    normalisation: ClassVar[str] = "Re Tr / N averaged over the lattice"
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("rectangle", "rectangle", "rectangle"),
        Quantity("spatial", "spatial rectangle", "spatial rectangle"),
        Quantity("short", "rectangle, short side along t", "rectangle, short side along t"),
        Quantity("long", "rectangle, long side along t", "rectangle, long side along t"),
    )
    main_kernel: ClassVar[Kernel | None] = RECTANGLES

    def measure(self, field: Field) -> Record:
        """Return the averages over all rectangles and those of each kind of a field."""
        sums = lattice_sums(field, RECTANGLES, values=len(KINDS))
        return tuple(_records(field.group, field.lattice, sums).tolist())

    def recorder(self, field: Field) -> Recorder:
        """Return a recorder for a field; see `Observable.recorder`."""
        links = [{"links": slab.buffer.address} for slab in field.slabs]
        over = [slab.whole() for slab in field.slabs]
        sums = DeferredSums(field, RECTANGLES, len(KINDS), links, over)
        return SumRecorder(sums, partial(_records, field.group, field.lattice))

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the first value is not the mean of the others."""
        kinds = (columns[name] for name in cls.columns[1:])
        mean = sum(n * one for n, one in zip(KINDS, kinds, strict=True)) / KINDS.sum()
        return np.asarray(np.abs(columns["rectangle"] - mean) > ROUNDING)


def _records(group: Group, lattice: Lattice, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the averages, given the sums over the rectangles of each kind."""
    kinds = sums / (KINDS * group.colours * lattice.sites)
    mean = kinds @ KINDS / KINDS.sum()
    return np.concatenate([mean[..., None], kinds], axis=-1)
