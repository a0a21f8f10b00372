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

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row, far above their rounding errors."""


class LoopAverages(Observable):
    """Averages of Re Tr U / N over loops of one shape: over all, and over those of each kind.

    A subclass declares the columns, of which the first one is the average over all.

    Attributes
    ----------
    loops : Kernel
        Sum kernel of Re Tr of the loops of each kind.
    kinds : tuple of int
        Number of loops of each kind per site.
    """

    loops: ClassVar[Kernel]
    kinds: ClassVar[tuple[int, ...]]
    normalisation: ClassVar[str] = "Re Tr / N averaged over the lattice"

    def measure(self, field: Field) -> Record:
        """Return the averages over all loops and those of each kind of a field."""
        sums = lattice_sums(field, self.loops, values=len(self.kinds))
        return tuple(self._records(field.group, field.lattice, sums).tolist())

    def recorder(self, field: Field) -> Recorder:
        """Return a recorder for a field; see `Observable.recorder`."""
        links = [{"links": slab.buffer.address} for slab in field.slabs]
        over = [slab.whole() for slab in field.slabs]
        sums = DeferredSums(field, self.loops, len(self.kinds), links, over)
        return SumRecorder(sums, partial(self._records, field.group, field.lattice))

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the first value is not the mean of the others."""
        first, *kinds = (columns[name] for name in cls.columns)
        return np.asarray(np.abs(first - cls._mean(np.stack(kinds, axis=-1))) > ROUNDING)

    @classmethod
    def _mean(cls, kinds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the average over all loops, given those of each kind along the last axis."""
        return np.asarray(kinds @ np.array(cls.kinds) / sum(cls.kinds))

    @classmethod
    def _records(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the averages, given the sums over the loops of each kind."""
        kinds = sums / (np.array(cls.kinds) * group.colours * lattice.sites)
        return np.concatenate([cls._mean(kinds)[..., None], kinds], axis=-1)


@OBSERVABLES.register
@dataclass(frozen=True)
class Rectangles(LoopAverages):
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
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("rectangle", "rectangle", "rectangle"),
        Quantity("spatial", "spatial rectangle", "spatial rectangle"),
        Quantity("short", "rectangle, short side along t", "rectangle, short side along t"),
        Quantity("long", "rectangle, long side along t", "rectangle, long side along t"),
    )
    loops: ClassVar[Kernel] = RECTANGLES
    kinds: ClassVar[tuple[int, ...]] = (6, 3, 3)
    main_kernel: ClassVar[Kernel | None] = RECTANGLES
