"""Parallelograms, the loops of six links through corners of a cube."""

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

PARALLELOGRAMS = Kernel("parallelograms")

KINDS = np.array([4, 12])
"""Numbers of parallelograms per site: in space, and with links along t."""

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row, far above their rounding errors."""


@OBSERVABLES.register
@dataclass(frozen=True)
class Parallelograms(Observable):
    """Averages of Re Tr U_q / N over the loops mu, nu, rho, -mu, -nu, -rho, in [-1, 1]."""

    name: ClassVar[str] = "parallelograms"
    summary: ClassVar[str] = "parallelograms of 6 links on a cube: all, spatial, with links along t"
    columns: ClassVar[tuple[str, ...]] = ("parallelogram", "spatial", "temporal")
    descriptions: ClassVar[Mapping[str, str]] = {
        "parallelogram": "average over the sixteen parallelograms of a site",
        "spatial": "average over the four parallelograms without links along t",
        "temporal": "average over the twelve parallelograms with links along t",
    }
    normalisation: ClassVar[str] = "Re Tr / N averaged over the lattice"
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("parallelogram", "parallelogram", "parallelogram"),
        Quantity("spatial", "spatial parallelogram", "spatial parallelogram"),
        Quantity("temporal", "temporal parallelogram", "temporal parallelogram"),
    )
    main_kernel: ClassVar[Kernel | None] = PARALLELOGRAMS

    def measure(self, field: Field) -> Record:
        """Return the averages over all parallelograms and those of each kind of a field."""
        sums = lattice_sums(field, PARALLELOGRAMS, values=len(KINDS))
        return tuple(_records(field.group, field.lattice, sums).tolist())

    def recorder(self, field: Field) -> Recorder:
        """Return a recorder for a field; see `Observable.recorder`."""
        links = [{"links": slab.buffer.address} for slab in field.slabs]
        over = [slab.whole() for slab in field.slabs]
        sums = DeferredSums(field, PARALLELOGRAMS, len(KINDS), links, over)
        return SumRecorder(sums, partial(_records, field.group, field.lattice))

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the first value is not the mean of the others."""
        kinds = (columns[name] for name in cls.columns[1:])
        mean = sum(n * one for n, one in zip(KINDS, kinds, strict=True)) / KINDS.sum()
        return np.asarray(np.abs(columns["parallelogram"] - mean) > ROUNDING)


def _records(group: Group, lattice: Lattice, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the averages, given the sums over the parallelograms of each kind."""
    kinds = sums / (KINDS * group.colours * lattice.sites)
    mean = kinds @ KINDS / KINDS.sum()
    return np.concatenate([mean[..., None], kinds], axis=-1)
