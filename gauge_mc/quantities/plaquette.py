"""Averages over small loops: plaquettes, rectangles and parallelograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import kurtosis
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Lattice, Loops
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums, normalised_loops
from gauge_mc.files.columns import Averages, Column, TableColumns
from gauge_mc.groups import Group
from gauge_mc.observables import OBSERVABLES, Columns, DerivedQuantity, Record, SummedObservable

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row. Their rounding errors are 1e-16, so that
larger differences are damage."""


class LoopAverages(SummedObservable):
    """Averages of Re Tr U / N over loops of one shape: over all, and over those of each kind.

    A subclass declares the columns, of which the first one is the average over all.
    """

    strict: ClassVar[bool] = True
    on_copies: ClassVar[bool] = True
    loops: ClassVar[Loops]
    """The loops, with their kinds."""
    normalisation: ClassVar[str] = "Re Tr / N averaged over the lattice"

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, None]:
        """Return the sums over the loops of each kind; see `SummedObservable.sums`."""
        links = [{"links": slab.buffer.address} for slab in field.slabs]
        over = [slab.whole() for slab in field.slabs]
        return DeferredSums(
            field, self.loops.kernel, len(self.loops.kinds), links, over, block
        ), None

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the first value is not the mean of the others."""
        first, *kinds = (columns[name] for name in cls.columns.names)
        return np.asarray(np.abs(first - cls._mean(np.stack(kinds, axis=-1))) > ROUNDING)

    @classmethod
    def _mean(cls, kinds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the average over all loops, given those of each kind along the last axis."""
        weighted = kinds * np.array(cls.loops.kinds)
        return np.asarray(sum(np.moveaxis(weighted, -1, 0)) / sum(cls.loops.kinds))

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the averages, given the sums over the loops of each kind."""
        kinds = normalised_loops(sums, cls.loops, group.colours, lattice.sites)
        return np.concatenate([cls._mean(kinds)[..., None], kinds], axis=-1)


def _cumulant(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return 1 - <P^4> / (3 <P^2>^2) and its error.

    Where P has one narrow peak, it is 2/3 less 4/3 of the relative variance of P. Two peaks, as at
    a transition of first order, make it smaller in any volume.
    """
    value, error = kurtosis(*(columns["plaquette"] for columns in chains))
    return 1 - value / 3, error / 3


@OBSERVABLES.register
@dataclass(frozen=True)
class Plaquette(LoopAverages):
    """Averages of Re Tr U_p / N over all, the spatial and the temporal plaquettes, in [-1, 1]."""

    name: ClassVar[str] = "plaquette"
    summary: ClassVar[str] = "plaquettes: all, spatial and temporal"
    columns: ClassVar[TableColumns] = TableColumns(
        Column("plaquette", help="average over all six planes", average="plaquette"),
        Column(
            "spatial", help="average over the three planes without t", average="spatial plaquette"
        ),
        Column(
            "temporal", help="average over the three planes with t", average="temporal plaquette"
        ),
    )
    normalisation: ClassVar[str] = (
        "Re Tr / N averaged over the lattice: all, space-space and space-time planes"
    )
    derived: ClassVar[tuple[DerivedQuantity, ...]] = (
        DerivedQuantity(
            "cumulant",
            help="1 - <P^4> / (3 <P^2>^2) of the average plaquette P; jackknife",
            axis=r"$1-\langle P^4\rangle/(3\,\langle P^2\rangle^2)$",
            estimate=_cumulant,
            shown=False,
        ),
    )
    loops: ClassVar[Loops] = PLAQUETTES
    links_moved: ClassVar[float | None] = 1.0
    main_kernel: ClassVar[Kernel | None] = PLAQUETTES.kernel

    @classmethod
    def live(cls, record: Record) -> str:
        """Return the average over all plaquettes in words."""
        return f"plaquette {record[0]:.5f}"

    @classmethod
    def of_averages(cls, averages: Averages) -> dict[str, float]:
        """Return the plaquettes of a stored configuration."""
        means = averages.mean, averages.spatial, averages.temporal
        return dict(zip(cls.columns.names, means, strict=True))

    @classmethod
    def _mean(cls, kinds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the average; weights that are equal are left out, to round as earlier versions."""
        return np.asarray((kinds[..., 0] + kinds[..., 1]) / 2)


def plaquette(field: Field) -> float:
    """Return the average of Re Tr U_p / N over all plaquettes of a field."""
    return float(Plaquette().measure(field)[0])


@OBSERVABLES.register
@dataclass(frozen=True)
class Rectangles(LoopAverages):
    """Averages of Re Tr U_r / N over the rectangles of 2x1 links, in [-1, 1]."""

    name: ClassVar[str] = "rectangles"
    summary: ClassVar[str] = "rectangles of 2x1 links: all, spatial, 1 and 2 links along t"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "rectangle", help="average over the twelve rectangles of a site", average="rectangle"
        ),
        Column(
            "spatial",
            help="average over the six rectangles without links along t",
            average="spatial rectangle",
        ),
        Column(
            "short",
            help="average over the three rectangles whose short side is along t",
            average="rectangle, short side along t",
        ),
        Column(
            "long",
            help="average over the three rectangles whose long side is along t",
            average="rectangle, long side along t",
        ),
    )
    loops: ClassVar[Loops] = RECTANGLES
    main_kernel: ClassVar[Kernel | None] = RECTANGLES.kernel


@OBSERVABLES.register
@dataclass(frozen=True)
class Parallelograms(LoopAverages):
    """Averages of Re Tr U_q / N over the loops mu, nu, rho, -mu, -nu, -rho, in [-1, 1]."""

    name: ClassVar[str] = "parallelograms"
    summary: ClassVar[str] = "parallelograms of 6 links on a cube: all, spatial, with links along t"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "parallelogram",
            help="average over the sixteen parallelograms of a site",
            average="parallelogram",
        ),
        Column(
            "spatial",
            help="average over the four parallelograms without links along t",
            average="spatial parallelogram",
        ),
        Column(
            "temporal",
            help="average over the twelve parallelograms with links along t",
            average="temporal parallelogram",
        ),
    )
    loops: ClassVar[Loops] = PARALLELOGRAMS
    main_kernel: ClassVar[Kernel | None] = PARALLELOGRAMS.kernel
