"""The Polyakov loop in representations other than the fundamental one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums
from gauge_mc.fields.time_lines import TIME_LINE
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.groups import Group
from gauge_mc.observables import OBSERVABLES, SummedObservable
from gauge_mc.quantities.polyakov.observables.polyakov import sums_of_lines

REPRESENTATIONS = Kernel("polyakov_representations")


def dimensions(colours: int) -> tuple[int, int, int, int]:
    """Return the dimensions of the representations, in the order of the columns.

    They are those of the adjoint representation, of antisymmetric and symmetric tensors of rank
    two, and of symmetric tensors of rank three: 8, 3, 6 and 10 for SU(3).
    """
    n = colours
    return n * n - 1, n * (n - 1) // 2, n * (n + 1) // 2, n * (n + 1) * (n + 2) // 6


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovRepresentations(SummedObservable):
    """Averages of chi(W) / dim over space, where W is the product of the links of a line along t.

    The characters follow from p_k = Tr W^k: |p_1|^2 - 1 for the adjoint representation,
    (p_1^2 - p_2) / 2 and (p_1^2 + p_2) / 2 for tensors of rank two, and
    (p_1^3 + 3 p_1 p_2 + 2 p_3) / 6 for symmetric ones of rank three.
    """

    name: ClassVar[str] = "polyakov-representations"
    summary: ClassVar[str] = "the Polyakov loop in higher representations"
    columns: ClassVar[TableColumns] = TableColumns(
        Column("adjoint", help="adjoint representation, real", average="adjoint Polyakov loop"),
        Column("antisymmetric_re", help="antisymmetric tensors of rank two, real part"),
        Column("antisymmetric_im", help="antisymmetric tensors of rank two, imaginary part"),
        Column("symmetric_re", help="symmetric tensors of rank two, real part; 6 of SU(3)"),
        Column("symmetric_im", help="symmetric tensors of rank two, imaginary part"),
        Column("symmetric3_re", help="symmetric tensors of rank three, real part; 10 of SU(3)"),
        Column("symmetric3_im", help="symmetric tensors of rank three, imaginary part"),
    )
    normalisation: ClassVar[str] = "traces divided by the dimension of the representation"
    strict: ClassVar[bool] = True
    links_moved: ClassVar[float | None] = 0.25
    main_kernel: ClassVar[Kernel | None] = REPRESENTATIONS

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of their traces."""
        return (TIME_LINE, REPRESENTATIONS)

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, Callable[[], object] | None]:
        """Return the sums over the lines; see `SummedObservable.sums`."""
        return sums_of_lines(field, REPRESENTATIONS, len(self.columns), block)

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the averages, given the sums of the traces."""
        adjoint, *complex_ones = dimensions(group.colours)
        of_columns = np.array([adjoint, *np.repeat(complex_ones, 2)])
        return np.asarray(sums / (of_columns * lattice.slice_sites))
