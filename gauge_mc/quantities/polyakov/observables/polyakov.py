"""The Polyakov loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.bins import kurtosis, phase_of_mean, susceptibility
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import nowhere
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums
from gauge_mc.fields.time_lines import TIME_LINE, time_lines
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.groups import Group
from gauge_mc.observables import OBSERVABLES, Columns, DerivedQuantity, Record, SummedObservable
from gauge_mc.rounded import modulus

POLYAKOV = Kernel("polyakov")

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row. Their rounding errors are 1e-16, so that
larger differences are damage."""


def _susceptibility(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return V (<|L|^2> - <|L|>^2) and its error, with the number V of spatial sites."""
    return susceptibility(*(columns["abs"] for columns in chains), volume=lattice.slice_sites)


def _kurtosis(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return <|L|^4> / <|L|^2>^2 and its error."""
    return kurtosis(*(columns["abs"] for columns in chains))


def _binder(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return 1 - <|L|^4> / (3 <|L|^2>^2) and its error."""
    value, error = _kurtosis(chains, lattice)
    return 1 - value / 3, error / 3


def _phase(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return the phase of <L> in units of pi, and its error."""
    return phase_of_mean(*(columns["re"] + 1j * columns["im"] for columns in chains))


@OBSERVABLES.register
@dataclass(frozen=True)
class Polyakov(SummedObservable):
    """Average L of Tr prod_t U_t(x, t) / N over the spatial lattice, which is real for SU(2)."""

    name: ClassVar[str] = "polyakov"
    summary: ClassVar[str] = "the Polyakov loop"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "re",
            help="real part of the average over space",
            axis=r"$\mathrm{Re}\,L$",
            average="Polyakov loop, real part",
        ),
        Column("im", help="imaginary part of the average over space; 0 for SU(2)"),
        Column(
            "abs",
            help="modulus of the average over space",
            symbol="|L|",
            axis=r"$|L|$",
            average="Polyakov loop, modulus",
            main=True,
        ),
    )
    normalisation: ClassVar[str] = (
        "Tr / N averaged over space: real part, imaginary part, modulus of the average"
    )
    derived: ClassVar[tuple[DerivedQuantity, ...]] = (
        DerivedQuantity(
            "susceptibility",
            help="V (<|L|^2> - <|L|>^2) of the average L over the V sites of space; jackknife",
            symbol="χ",
            axis=r"$V\,(\langle|L|^2\rangle-\langle|L|\rangle^2)$",
            estimate=_susceptibility,
        ),
        DerivedQuantity(
            "binder",
            help="1 - <|L|^4> / (3 <|L|^2>^2), the Binder cumulant of the average L; jackknife",
            symbol="U",
            axis=r"$1-\langle|L|^4\rangle/(3\,\langle|L|^2\rangle^2)$",
            estimate=_binder,
            shown=False,
        ),
        DerivedQuantity(
            "kurtosis",
            help="<|L|^4> / <|L|^2>^2 of the average L; jackknife",
            axis=r"$\langle|L|^4\rangle/\langle|L|^2\rangle^2$",
            estimate=_kurtosis,
            shown=False,
        ),
        DerivedQuantity(
            "phase",
            help="phase of <L> in units of pi, from -1 to 1; jackknife",
            axis=r"$\arg\langle L\rangle/\pi$",
            estimate=_phase,
            shown=False,
        ),
    )
    strict: ClassVar[bool] = True
    links_moved: ClassVar[float | None] = 0.25
    main_kernel: ClassVar[Kernel | None] = POLYAKOV

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of their traces."""
        return (TIME_LINE, POLYAKOV)

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, Callable[[], object] | None]:
        """Return the sums over the lines; see `SummedObservable.sums`."""
        return sums_of_lines(field, POLYAKOV, 2, block)

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return L and its modulus, given the sums of the real and imaginary parts of traces."""
        re, im = np.moveaxis(sums, -1, 0) / (group.colours * lattice.slice_sites)
        return np.stack([re, im, np.vectorize(modulus, otypes=[float])(re, im)], axis=-1)

    @classmethod
    def live(cls, record: Record) -> str:
        """Return L in words, without the imaginary part if it is zero."""
        real, imaginary = float(record[0]), float(record[1])
        return f"Polyakov loop {real:+.4f}" + (f"{imaginary:+.4f}i" if imaginary else "")

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the modulus does not match the complex number."""
        modulus = np.hypot(columns["re"], columns["im"])
        return np.asarray(np.abs(columns["abs"] - modulus) > ROUNDING)


def sums_of_lines(
    field: Field, kernel: Kernel, values: int, block: int
) -> tuple[DeferredSums, Callable[[], object] | None]:
    """Return sums over all lines along t, which end in the last slab; see `SummedObservable.sums`.

    On the side stream, the few threads of the lines do not keep other measurements waiting.

    Parameters
    ----------
    field : Field
        The field to which the lines belong.
    kernel : Kernel
        The kernel, which is called for every line.
    values : int
        Number of values per line.
    block : int
        Number of measurements that are fetched together.
    """
    complete = [slab.layout.times.stop == field.lattice.t for slab in field.slabs]
    ends = zip(field.slabs, complete, strict=True)
    over = [slab.first_slices() if has else nowhere() for slab, has in ends]
    arguments = [
        {
            "links": lines.slab.buffer.address,
            "before": lines.before.address if lines.before else None,
            "slices": lines.slab.layout.slices,
        }
        for lines in time_lines(field)
    ]
    alone = len(field.layouts) == 1
    sums = DeferredSums(field, kernel, values, arguments, over, block, side=alone)
    return sums, None if alone else partial(time_lines, field)


def polyakov_loop(field: Field) -> complex:
    """Return the average L of Tr prod_t U_t(x, t) / N over the spatial lattice; |L| <= 1."""
    re, im, _ = map(float, Polyakov().measure(field))
    return complex(re, im)
