"""Quantities of observables that summaries, scans and progress displays show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.table import TableData
from gauge_mc.observables.parts.recording import Record
from gauge_mc.observables.parts.tables import Columns
from gauge_mc.options import Number


@dataclass(frozen=True)
class DerivedQuantity(Number):
    """A quantity of an ensemble that is not a plain average, such as a susceptibility.

    In the table of a scan, the name of the observable precedes the names of its columns; `help` is
    its definition there.
    """

    estimate: Callable[[Sequence[Columns], Lattice], tuple[float, float]] = field(kw_only=True)
    """Function of the columns of one table per chain, and of the lattice. It returns value and
    error.
    """
    shown: bool = field(default=True, kw_only=True)
    """Whether it is shown in the terminal and in the figure of a scan, or stands in its table only.
    """


class SummaryParts:
    """Quantities of an observable that are shown beside averages of its columns."""

    derived: ClassVar[tuple[DerivedQuantity, ...]] = ()
    """Further quantities in the tables of scans."""

    @classmethod
    def slow_modes(cls, table: TableData) -> Mapping[str, NDArray[np.float64]]:
        """Return series of quantities that change slowly, one number per measurement, by name.

        Summaries of runs warn if their autocorrelation is longer than that of the averages.
        """
        return {}

    @classmethod
    def live(cls, record: Record) -> str:
        """Return a record in words for progress displays, or an empty string to show nothing."""
        return ""

    @classmethod
    def is_live(cls) -> bool:
        """Return whether progress displays show the observable even if it is not measured."""
        return cls.live.__func__ is not SummaryParts.live.__func__  # type: ignore[attr-defined]
