"""Correlators of planes of Polyakov loops, from which screening masses follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import work
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, add_slices
from gauge_mc.fields.time_lines import TIME_LINE, complete_lines
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record
from gauge_mc.options import check_options
from gauge_mc.quantities.polyakov.analysis.screening import AXES, COLUMNS
from gauge_mc.rounded import root_of_unity

POLYAKOV_PLANES = Kernel("polyakov_planes")


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovPlanes(Observable):
    """Correlators of the averages of Polyakov loops over planes, a record per axis and distance.

    p(i) is the average of Tr / N of the product of the links along t over the plane with number i
    perpendicular to an axis of space. All loops of a configuration are multiplied by the element of
    the centre that turns their average to the sector of 1. The correlators are those of the real
    and of the imaginary parts, averaged over i: Re p(i) Re p(i + r) and Im p(i) Im p(i + r).
    """

    lattice: Lattice
    """Lattice of the fields."""

    name: ClassVar[str] = "polyakov-planes"
    summary: ClassVar[str] = "correlators of planes of Polyakov loops, for screening"
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "p = Tr / N averaged over a plane and turned to the sector of 1; products averaged over "
        "the planes"
    )
    units: ClassVar[str] = "r in lattice units"
    strict: ClassVar[bool] = True
    main_kernel: ClassVar[Kernel | None] = POLYAKOV_PLANES

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PolyakovPlanes:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        check_options(cls.options, options, cls.name)
        return cls(lattice)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the sums of their traces."""
        return (TIME_LINE, POLYAKOV_PLANES)

    @property
    def records(self) -> int:
        """Number of records per field."""
        return sum(extent // 2 + 1 for extent in self.lattice.extents[:3])

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures a field; see `Observable.measurer`."""
        return lambda field: [*_records(field)]


def _records(field: Field) -> Iterator[Record]:
    """Yield axis, distance and both correlators of a field."""
    planes = polyakov_planes(field)
    c, s = _sector(planes[0], field.group.colours)
    for axis, own in zip(AXES, planes, strict=True):
        # Products of complex numbers are fused differently by different builds of NumPy.
        turned = (own.real * c + own.imag * s, own.imag * c - own.real * s)
        for r in range(own.size // 2 + 1):
            yield axis, r, *(_correlator(part, r) for part in turned)


def _sector(loops: NDArray[np.complex128], colours: int) -> tuple[float, float]:
    """Return the element of the centre, cos + i sin, to which the mean of loops is closest."""
    re, im = float(loops.real.mean()), float(loops.imag.mean())
    centre = [root_of_unity(number, colours) for number in range(colours)]
    return max(centre, key=lambda one: re * one[0] + im * one[1])


def _correlator(values: Array, r: int) -> float:
    return float((values * np.roll(values, -r)).mean())


def polyakov_planes(field: Field) -> list[NDArray[np.complex128]]:
    """Return the averages of Tr / N of the Polyakov loops over all planes, for each axis of space.

    The order of additions depends only on the lattice, not on its division.
    """
    at_a_time = POLYAKOV_PLANES.constant("PLANES_AT_A_TIME")
    extents = field.lattice.extents[:3]
    launches = [(d, first) for d in range(3) for first in range(0, extents[d], at_a_time)]
    local = []
    for slab, lines in complete_lines(field):
        # On a slice of even t, the sites have the parity of the lines wherever the slab begins.
        over = work(slab.layout.first % 2, 1, 1, BOTH_PARITIES)
        sums = SlabSums(slab, 2 * at_a_time, len(launches), over)
        steps = ({"lines": lines.address, "axis": d, "first": first} for d, first in launches)
        sums.launch(POLYAKOV_PLANES, *steps)
        local.append(sums.by_slice())
    rows = add_slices(field.devices, local).view(np.complex128)
    found, begin = [], 0
    for extent in extents:
        count = -(-extent // at_a_time)
        sites = field.lattice.slice_sites // extent
        values = rows[begin : begin + count].reshape(-1)[:extent]
        found.append(np.asarray(values / (field.group.colours * sites)))
        begin += count
    return found
