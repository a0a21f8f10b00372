"""Correlators of Polyakov loops, from which the potential of static charges follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.arrays import Array
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.paths import PATHS, Step, equivalent_steps, steps_along
from gauge_mc.domain.slab import Slab, work
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, add_slices
from gauge_mc.fields.time_lines import TIME_LINE, complete_lines
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import OBSERVABLES, Measurer, Record
from gauge_mc.observables.noise.noise_reduction import (
    NOISE_OPTIONS,
    NoiseReduction,
    ReducedNoise,
    digest_of,
)
from gauge_mc.options import Option, check_options
from gauge_mc.quantities.polyakov.analysis.polyakov_correlators import COLUMNS

POLYAKOV_CORRELATORS = Kernel("polyakov_correlators")

WITHOUT_UPDATES = 2
"""Thickness of slabs that are not updated. Such slabs fit nearly every division among devices."""


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovCorrelators(ReducedNoise):
    """Correlators of two Polyakov loops on and off axis, with one record per distance.

    C(R) is the real part of P(x) P(x + R)^*, averaged over all sites of space and all equivalent
    directions, where P(x) is Tr / N of the product of the links along t.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Lattice of the fields."""
    r_max: int
    """Largest component of the distance in lattice units, at most half the lattice."""
    paths: tuple[str, ...] = PATHS[:1]
    """Directions of the distance, from `PATHS`."""
    noise: NoiseReduction | None = None
    """Multilevel averages and multihit; None for the product of the loops of the links as they are.
    With multihit the loops must be further apart than one lattice unit.
    """

    name: ClassVar[str] = "polyakov-correlators"
    summary: ClassVar[str] = "correlators of two Polyakov loops, on and off axis"
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "Re P(x) P(x + R)^*, P = Tr / N, averaged over space and equivalent directions"
    )
    units: ClassVar[str] = "r in steps along path, such as (1,1,0)"
    strict: ClassVar[bool] = True
    main_kernel: ClassVar[Kernel | None] = POLYAKOV_CORRELATORS
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", "half the lattice"),
        Option("off_axis", bool, "Also measure along (1,1,0), (2,1,0) and (1,1,1)."),
        *NOISE_OPTIONS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        half = min(self.lattice.extents[:3]) // 2
        if not 1 <= self.r_max <= half:
            raise UsageError(
                f"r_max is {self.r_max}; on {self.lattice} choose it between 1 and {half}, half "
                "the lattice."
            )
        for path in self.paths:
            if path not in PATHS:
                raise UsageError(f"There is no path '{path}'; choose from {', '.join(PATHS)}.")
        self.check_distances()

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PolyakovCorrelators:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        given = check_options(cls.options, options, cls.name)
        r_max = given.pop("r_max", min(lattice.extents[:3]) // 2)
        paths = PATHS if given.pop("off_axis", False) else PATHS[:1]
        noise = NoiseReduction.from_options(lattice, given, WITHOUT_UPDATES)
        return cls(lattice, r_max, tuple(p for p in paths if steps_along(p, r_max)), noise)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the products of their traces."""
        return (TIME_LINE, POLYAKOV_CORRELATORS)

    @property
    def records(self) -> int:
        """Number of records per field."""
        return len(self.distances)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        reach = {"paths": ",".join(self.paths), "r_max": str(self.r_max)}
        noise = self.noise.header if self.noise else {"multilevel": "none"}
        return {**super().header, **reach, **noise}

    def plain_measurer(self, like: Field) -> Measurer:
        """Return a function that measures products of loops of the links as they are."""
        return lambda field: self._records(polyakov_correlators(self, field))

    def reduced_measurer(self, like: Field) -> Callable[[Coupling, Field], list[Record]]:
        """Return a function that measures multilevel averages; see `ReducedNoise`."""
        multilevel = _Multilevel(self, like)
        return lambda coupling, field: self._records(multilevel(coupling, field))

    def _records(self, values: Array) -> list[Record]:
        """Return the records of a field, given C(R) for all distances."""
        pairs = zip(self.distances, values.tolist(), strict=True)
        return [(path, r, value) for (path, r), value in pairs]


class _Multilevel:
    """Measurement of multilevel averages, which owns the memory for them."""

    def __init__(self, observable: PolyakovCorrelators, like: Field) -> None:
        o = self._observable = observable
        self._counts = [len(equivalent_steps(path)) for path, _ in o.distances]
        vectors = [
            (r * step[0], r * step[1], r * step[2])
            for path, r in o.distances
            for step in equivalent_steps(path)
        ]
        assert o.noise
        self._averages = o.noise.averages(like, vectors)

    def __call__(self, coupling: Coupling, field: Field) -> Array:
        """Return C(R) for all distances."""
        plain = polyakov_correlators(self._observable, field)
        sums = self._averages(field, coupling, digest_of(plain))
        ends = np.cumsum([0, *self._counts])
        means = [sums[begin:end].mean() for begin, end in pairwise(ends)]
        return np.array(means) / (field.group.colours**2 * field.lattice.slice_sites)


def polyakov_correlators(observable: PolyakovCorrelators, field: Field) -> Array:
    """Return C(R) of a field for all distances of an observable, in their order."""
    launches = [*_launches(observable)]
    sums = [_sums(slab, lines.address, launches) for slab, lines in complete_lines(field)]
    rows = add_slices(field.devices, [one.by_slice() for one in sums])
    found: dict[tuple[str, int], list[float]] = {}
    # All distances are summed, also those that are not asked for.
    for (path, _, first, count), row in zip(launches, rows, strict=True):
        for n in range(count):
            found.setdefault((path, first + n), []).append(row[n])
    norm = field.group.colours**2 * field.lattice.slice_sites
    return np.array([np.mean(found[one]) for one in observable.distances]) / norm


def _launches(observable: PolyakovCorrelators) -> Iterable[tuple[str, Step, int, int]]:
    """Yield path, step, first r and number of values of r of every launch."""
    at_a_time = POLYAKOV_CORRELATORS.constant("DISTANCES_AT_A_TIME")
    for path in observable.paths:
        longest = steps_along(path, observable.r_max)
        for step, first in product(equivalent_steps(path), range(1, longest + 1, at_a_time)):
            yield path, step, first, min(at_a_time, longest + 1 - first)


def _sums(slab: Slab, lines: int, launches: list[tuple[str, Step, int, int]]) -> SlabSums:
    """Launch the sums over the lines, which end in a slab."""
    # On a slice of even t, the sites have the parity of the lines wherever the slab begins.
    over = work(slab.layout.first % 2, 1, 1, BOTH_PARITIES)
    sums = SlabSums(slab, POLYAKOV_CORRELATORS.constant("DISTANCES_AT_A_TIME"), len(launches), over)
    sums.launch(
        POLYAKOV_CORRELATORS,
        *(
            {"lines": lines, "step": step, "first": first, "count": count}
            for _, step, first, count in launches
        ),
    )
    return sums
