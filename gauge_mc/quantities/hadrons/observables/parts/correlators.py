"""Correlators of hadrons, with the table of the solutions of the Dirac equation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.table_series import series_of
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import TableData, Value
from gauge_mc.groups import GROUPS
from gauge_mc.observables import (
    Measurer,
    Observable,
    Record,
    RecordsOfTables,
    SecondaryTable,
    TimeSeries,
)
from gauge_mc.options import Option
from gauge_mc.quantities.hadrons.analysis.correlators import (
    CORRELATORS,
    Quark,
    correlators_of,
)
from gauge_mc.quantities.hadrons.observables.parts.options import QUARK, quark_options, quark_owners
from gauge_mc.quantities.hadrons.observables.parts.propagators import SolveRecords, propagators
from gauge_mc.quantities.hadrons.observables.parts.quarks import Quarks
from gauge_mc.quarks.hadrons.contractions import Momentum
from gauge_mc.quarks.hadrons.propagators import Propagator
from gauge_mc.quarks.matrices.deflation import DEFLATE
from gauge_mc.quarks.operators import INVERSE
from gauge_mc.quarks.overlap.sign_report import SIGN_COLUMNS
from gauge_mc.quarks.vectors.transport import reals_of

SOLVES = SecondaryTable(
    "solves",
    "a row for every source, hopping parameter and twisted mass, or mass",
    TableColumns(
        Column("kappa", float, "hopping parameter"),
        Column("mu", float, "twisted mass"),
        Column("m", float, "mass, for operators that have one; else 0"),
        Column("source", str, "kind of the source, and its place"),
        Column("solver", str, "solver that found the solution, or file if it was read"),
        Column("inner", str, "precision of the last iterations"),
        Column("iterations", int, "number of iterations"),
        Column("updates", int, "number of true residuals that replaced iterated ones"),
        Column(
            "iterated",
            float,
            "iterated residual of the preconditioned system, divided by the norm of the source; "
            "the largest of all spins and colours",
        ),
        Column("residual", float, "true residual of the full system, in the same way"),
        Column("seconds", float, "time in seconds", unit="s"),
    ),
    lambda hadrons: len(hadrons.quarks.kinds) * len(hadrons.quarks.sources),
)
"""The table of all solutions of the Dirac equation, with a row for a source of all its spins and
colours. The residuals are the largest ones of these: that of the iteration, of the preconditioned
system, and the true one, of the full system."""

OPERATOR = SecondaryTable(
    "operator",
    "a row for every configuration if the quarks are overlap quarks",
    SIGN_COLUMNS,
    lambda hadrons: 1,
)
"""The table of the accuracy of the sign function of overlap quarks."""

Pair = tuple[Quark, Quark]


def pairs_of(quarks: Sequence[Quark]) -> list[Pair]:
    """Return all pairs of quarks, the first one first."""
    return list(combinations_with_replacement(quarks, 2))


HadronCorrelator = tuple[Pair, tuple[Value, ...], Momentum, NDArray[np.complex128]]
"""The quarks, the names of a hadron, its momentum, and the correlator at every time."""

WARM_UP_TOLERANCE = 0.1
"""Tolerance of the measurement with which a run compiles the kernels."""

WARM_UP_MASS = 1.0
"""Mass of that measurement for operators that have one."""

WARM_UP_KAPPAS = (0.05,)
"""Hopping parameter of that measurement. On the cold links with which a run may begin, the usual
ones are above the critical one, and a solver would need very many iterations."""

Self = TypeVar("Self", bound="QuarkObservable")


@dataclass(frozen=True)
class QuarkObservable(Observable):
    """Sums over solutions of the Dirac equation, with one record for each time slice.

    A subclass declares its columns and defines `records` and `_records`.
    """

    quarks: Quarks
    """The quarks, their sources and momenta."""

    units: ClassVar[str] = "lattice units"
    smears: ClassVar[bool] = True
    takes_memory: ClassVar[bool] = True
    secondary_tables: ClassVar[tuple[SecondaryTable, ...]] = (SOLVES, OPERATOR)
    options: ClassVar[tuple[Option, ...]] = quark_options()
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12"}

    def __post_init__(self) -> None:
        if self.quarks.massive:
            object.__setattr__(self, "columns", type(self).columns.complete())
        self._choose_tables()

    def _choose_tables(self) -> None:
        """Leave out the table of operators if nothing is known of the operator."""
        if not self.quarks.family:
            known = tuple(one for one in type(self).secondary_tables if one is not OPERATOR)
            object.__setattr__(self, "secondary_tables", known)

    @classmethod
    def for_lattice(cls: type[Self], lattice: Lattice, **options: Any) -> Self:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        return cls(Quarks.of_options(lattice, cls.name, options))

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options; see `Observable.owners`."""
        shared = quark_options()
        own = tuple(option for option in cls.options if option not in shared)
        return [*quark_owners(), (cls.name, own)]

    def for_group(self, group: str) -> QuarkObservable:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        reals_of(self.quarks.request.reals, GROUPS[group])
        return self

    def for_ensemble(self: Self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the observable for the dynamical quarks; see `Observable.for_ensemble`."""
        quarks = self.quarks.of_ensemble(metadata.get("quarks", ""))
        return self if quarks is self.quarks else replace(self, quarks=quarks)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """No kernels, because those of quarks depend on more than the group."""
        return ()

    @property
    def loose(self) -> str:
        """Quarks whose solutions need eigenvectors; see `Observable.loose`."""
        if self.quarks.deflate:
            return DEFLATE.flag
        return f"{QUARK.flag} {self.quarks.family.name}" if self.quarks.family else ""

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        own, massive = super().header, self.quarks.massive
        if massive:
            formula = own["normalisation"].replace(INVERSE, massive.operator_class.propagator)
            own = {**own, "normalisation": formula}
        return {**own, **self.quarks.header}

    @property
    def warm_up(self: Self) -> Self:
        """The same for a heavy quark and a large tolerance; see `Observable.warm_up`."""
        request = replace(self.quarks.request, tolerance=WARM_UP_TOLERANCE)
        quarks = replace(self.quarks, request=request, folder="", deflate=0, stored_modes="")
        if quarks.massive:
            quarks = replace(quarks, massive=quarks.massive.warm_up(WARM_UP_MASS))
        else:
            quarks = replace(quarks, kappas=WARM_UP_KAPPAS)
        return replace(self, quarks=quarks)

    @property
    def rehearsed(self: Self) -> Self | None:
        """The same with all quarks, for which memory of propagators is needed.

        None for operators that look for eigenvalues, since all of them would be zero.
        """
        massive = self.quarks.massive
        if self.quarks.family or self.quarks.deflate:
            return None
        quarks = replace(self.quarks, folder="", massive=massive.rehearsed if massive else None)
        return replace(self, quarks=quarks)

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind."""
        self.quarks.check()
        prepared = self.for_group(like.group.name)

        def measure(field: Field) -> list[Record]:
            solves = SolveRecords()
            found = prepared._records(field, solves)
            return RecordsOfTables(found, {SOLVES.name: solves, OPERATOR.name: solves.operators})

        return measure

    @abstractmethod
    def _records(self, field: Field, solves: SolveRecords) -> Iterator[Record]:
        """Yield the records of a field, and append those of all solutions to `solves`."""


@dataclass(frozen=True)
class Hadrons(QuarkObservable):
    """Correlators of hadrons, with one record for each time slice.

    A subclass declares the columns that name its hadrons and defines `correlators` and `records`.
    """

    @abstractmethod
    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield all correlators, given the propagators of all quarks."""

    def _records(self, field: Field, solves: SolveRecords) -> Iterator[Record]:
        for source, quarks in propagators(self.quarks, field, solves):
            label = self.quarks.label(source)
            for pair, names, momentum, values in self.correlators(quarks):
                numbers = pair if self.quarks.massive else [one[:-1] for one in pair]
                parameters = [value for both in zip(*numbers, strict=True) for value in both]
                for t, value in enumerate(values.tolist()):
                    yield (*parameters, label, *names, *momentum, t, value.real, value.imag)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return the real and imaginary part of every correlator; see `Observable.series`."""
        found = series_of(table, source, cls.columns, CORRELATORS)
        labels, values = correlators_of(found)
        return {
            ",".join([*(f"{key}={x}" for key, x in one.items()), part]): TimeSeries(
                found.sweeps, values[part][n], 0
            )
            for n, one in enumerate(labels)
            for part in values
        }
