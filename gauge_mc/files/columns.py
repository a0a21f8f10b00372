"""Declarations of the columns of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import DamagedError, GaugeError
from gauge_mc.files.foreign import PROGRAM
from gauge_mc.files.table import TableData
from gauge_mc.options import Number
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class Averages:
    """Lattice averages of Re Tr / N, each in [-1, 1]."""

    mean: float = result_field("Average over all plaquettes.")
    spatial: float = result_field("Average over the plaquettes in spatial planes.")
    temporal: float = result_field(
        "Average over the plaquettes in planes that contain the time direction."
    )
    link_trace: float = result_field("Average over all links.")


SWEEP = "sweep"
"""Name of the first column of every table, which counts updates."""

INDICES = "ijklmn"
"""Names of the columns with the indices of an array that a function of the user returns."""


@dataclass(frozen=True)
class Column(Number):
    """A column of a table.

    One of type str contains words.
    """

    average: str = field(default="", kw_only=True)
    """Name of its average in summaries, results and plots, such as ``Polyakov loop, modulus``;
    empty if the average is not shown.
    """
    main: bool = field(default=False, kw_only=True)
    """Whether this is the average that stands for the observable where there is room for only one.
    Without any such column it is the first one whose average is shown.
    """
    index: bool = field(default=False, kw_only=True)
    """Whether it says which element of an array a row is."""
    optional: bool = field(default=False, kw_only=True)
    """Whether only some tables of the observable have it."""

    rounding: bool = field(default=False, kw_only=True)
    """Whether it may be 0 apart from rounding, so that it does not tell how a chain behaves."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", self.axis or self.average)

    def fits(self, values: NDArray[Any]) -> bool:
        """Return whether values that were read from a table can be those of the column.

        Whole numbers may be written as decimal numbers.
        """
        if self.kind is int and values.dtype.kind == "f":
            return bool((values == np.rint(values)).all())
        return values.dtype.kind in NUMPY_KINDS[self.kind]

    @property
    def label_of_average(self) -> str:
        """Label of an axis with the average over an ensemble."""
        if self.label.startswith("$"):
            return rf"$\langle{self.label.strip('$')}\rangle$"
        return rf"$\langle${self.label}$\rangle$"

    @property
    def heading(self) -> str:
        """Heading of the average in narrow tables."""
        return self.symbol or self.average

    @property
    def meaning(self) -> str:
        """Description for the reference documentation; by default the name of the average."""
        return self.help or self.average


class TableColumns(tuple[Column, ...]):
    """The columns of a table, without the first one, which counts updates."""

    __slots__ = ()

    def __new__(cls, *columns: Column | str) -> TableColumns:
        """Take columns, or their names."""
        declared = (
            Column(column, float) if isinstance(column, str) else column for column in columns
        )
        return super().__new__(cls, declared)

    @classmethod
    def of_function(cls, function: str, names: Iterable[str]) -> TableColumns:
        """Return the columns of a table that a function of the user makes.

        Parameters
        ----------
        function : str
            Name of the function, after which averages are named.
        names : iterable of str
            Names of the columns, also of the first one.
        """
        measured = (name for name in names if name != SWEEP)
        columns = (Column(x, int, index=True) if x in INDICES else x for x in measured)
        return cls(*columns).averaging(function)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that every table has."""
        return tuple(x.name for x in self if not x.optional)

    @property
    def averaged(self) -> tuple[Column, ...]:
        """Columns whose averages are shown, the main one first."""
        return tuple(sorted((x for x in self if x.average), key=lambda x: not x.main))

    @property
    def indices(self) -> tuple[str, ...]:
        """Names of the columns that say which element of an array a row is."""
        return tuple(x.name for x in self if x.index)

    @property
    def words(self) -> tuple[str, ...]:
        """Names of the columns that contain words."""
        return tuple(x.name for x in self if x.kind is str)

    def averaging(self, name: str, only: int | None = None) -> TableColumns:
        """Return the columns with averages named after their table.

        Parameters
        ----------
        name : str
            Name of the observable or of the function.
        only : int, optional
            Number of columns whose averages are shown; by default all but indices.
        """
        shown = [x.name for x in self if not x.index][:only]
        return TableColumns(
            *(replace(x, average=_average(name, x)) if x.name in shown else x for x in self)
        )

    def complete(self) -> TableColumns:
        """Return the columns of a table that has the optional ones as well."""
        return TableColumns(*(replace(x, optional=False) for x in self))

    def check(self, table: TableData, source: str, subject: str) -> None:
        """Refuse a table that lacks a column, or has words where there should be numbers.

        Series of other programs may lack any column that is not an index.

        Parameters
        ----------
        table : TableData
            The table to check.
        source : str
            Name of the table for error messages.
        subject : str
            Content of the table for error messages, such as ``Wilson loops``.

        Raises
        ------
        GaugeError
            If one of them depends on other links than it may.
        """
        for column in (Column(SWEEP, int), *self):
            if column.name not in table.columns:
                if column.optional or (PROGRAM in table.header and not column.index):
                    continue
                raise GaugeError(
                    f"{source} has no column '{column.name}': it is not a table of {subject}."
                )
            if len(table) and not column.fits(table[column.name]):
                raise DamagedError(
                    f"{source} is damaged: its column '{column.name}' contains a value that is not "
                    "a number."
                )


def _average(name: str, column: Column) -> str:
    """Return the name of the average of a column, given that of its table."""
    return name if column.name in (name, "value") else f"{name}, {column.name}"


NUMPY_KINDS = {int: "i", float: "if", str: "U"}
"""Kinds of NumPy types that the values read for a column may have, by the type of the column."""
