"""Correlators of mesons and baryons, and sums for the residual mass of domain-wall quarks."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar, Self

import numpy as np

from gauge_mc import observables
from gauge_mc.analysis.table_series import series_of
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.hopping import DEFLATE
from gauge_mc.extensions.quarks.operators import INVERSE, domain_wall
from gauge_mc.extensions.quarks.overlap import SIGN_COLUMNS
from gauge_mc.extensions.quarks.spectroscopy.contractions import (
    AT_REST,
    BARYONS,
    QUARK_PAIRS,
    Momentum,
    Propagator,
    delta,
    diquark,
    meson,
    nucleon,
    of_parity,
    spin_tensor,
)
from gauge_mc.extensions.quarks.spectroscopy.correlators import BARYONS as BARYON_COLUMNS
from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    BOSONS,
    CORRELATORS,
    MESONS,
    Quark,
    correlators_of,
)
from gauge_mc.extensions.quarks.spectroscopy.propagators import SolveRecords, propagators, solutions
from gauge_mc.extensions.quarks.spectroscopy.quarks import (
    EXAMPLE,
    MOMENTA,
    QUARK,
    SMEAR_SINK,
    Quarks,
    quark_options,
    quark_owners,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import COLUMNS as RESIDUAL_MASS_COLUMNS
from gauge_mc.extensions.quarks.vectors import Complex
from gauge_mc.extensions.quarks.vectors.basis import GAMMA, GAMMA_5, SIXTEEN, adjoint
from gauge_mc.extensions.quarks.vectors.transport import reals_of
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.foreign import FOREIGN_SERIES, ForeignSeries, ForeignTable
from gauge_mc.files.table import TableData, Value
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.libraries import load
from gauge_mc.options import Option

SOLVES = observables.SecondaryTable(
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

OPERATOR = observables.SecondaryTable(
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


HadronCorrelator = tuple[Pair, tuple[Value, ...], Momentum, Complex]
"""The quarks, the names of a hadron, its momentum, and the correlator at every time."""

WARM_UP_TOLERANCE = 0.1
"""Tolerance of the measurement with which a run compiles the kernels."""

WARM_UP_MASS = 1.0
"""Mass of that measurement for operators that have one."""

WARM_UP_KAPPAS = (0.05,)
"""Hopping parameter of that measurement. On the cold links with which a run may begin, the usual
ones are above the critical one, and a solver would need very many iterations."""


@dataclass(frozen=True)
class QuarkObservable(observables.Observable):
    """Sums over solutions of the Dirac equation, with one record for each time slice.

    A subclass declares its columns and defines `records` and `_records`.
    """

    quarks: Quarks
    """The quarks, their sources and momenta."""

    units: ClassVar[str] = "lattice units"
    smears: ClassVar[bool] = True
    takes_memory: ClassVar[bool] = True
    secondary_tables: ClassVar[tuple[observables.SecondaryTable, ...]] = (SOLVES, OPERATOR)
    options: ClassVar[tuple[Option, ...]] = quark_options()
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12"}

    def __post_init__(self) -> None:
        if self.quarks.massive:
            object.__setattr__(self, "columns", type(self).columns.complete())
        self._choose_tables()

    def _choose_tables(self) -> None:
        """Leave out the table of operators if nothing is known of the operator."""
        if not self.quarks.family:
            tables = tuple(table for table in type(self).secondary_tables if table is not OPERATOR)
            object.__setattr__(self, "secondary_tables", tables)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Self:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        return cls(Quarks.of_options(lattice, cls.name, options))

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options; see `Observable.owners`."""
        shared = quark_options()
        options = tuple(option for option in cls.options if option not in shared)
        return [*quark_owners(), (cls.name, options)]

    def for_group(self, group: str) -> QuarkObservable:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        reals_of(self.quarks.request.reals, GROUPS[group])
        return self

    def for_ensemble(self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
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
        metadata, massive = super().header, self.quarks.massive
        if massive:
            formula = metadata["normalisation"].replace(INVERSE, massive.operator_class.propagator)
            metadata = {**metadata, "normalisation": formula}
        return {**metadata, **self.quarks.header}

    @property
    def warm_up(self) -> Self:
        """The same for a heavy quark and a large tolerance; see `Observable.warm_up`."""
        request = replace(self.quarks.request, tolerance=WARM_UP_TOLERANCE)
        quarks = replace(self.quarks, request=request, folder="", deflate=0, stored_modes="")
        if quarks.massive:
            quarks = replace(quarks, massive=quarks.massive.warm_up(WARM_UP_MASS))
        else:
            quarks = replace(quarks, kappas=WARM_UP_KAPPAS)
        return replace(self, quarks=quarks)

    @property
    def rehearsed(self) -> Self | None:
        """The same with all quarks, for which memory of propagators is needed.

        None for operators that look for eigenvalues, since all of them would be zero.
        """
        massive = self.quarks.massive
        if self.quarks.family or self.quarks.deflate:
            return None
        quarks = replace(self.quarks, folder="", massive=massive.rehearsed if massive else None)
        return replace(self, quarks=quarks)

    def measurer(self, like: Field) -> observables.Measurer:
        """Return a function that measures fields of the same kind."""
        self.quarks.check()
        prepared = self.for_group(like.group.name)

        def measure(field: Field) -> list[observables.Record]:
            solves = SolveRecords()
            records = prepared._records(field, solves)
            return observables.RecordsOfTables(
                records, {SOLVES.name: solves, OPERATOR.name: solves.operators}
            )

        return measure

    @abstractmethod
    def _records(self, field: Field, solves: SolveRecords) -> Iterator[observables.Record]:
        """Yield the records of a field, and append those of all solutions to `solves`."""


@dataclass(frozen=True)
class Hadrons(QuarkObservable):
    """Correlators of hadrons, with one record for each time slice.

    A subclass declares the columns that name its hadrons and defines `correlators` and `records`.
    """

    @abstractmethod
    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield all correlators, given the propagators of all quarks."""

    def _records(self, field: Field, solves: SolveRecords) -> Iterator[observables.Record]:
        for source, quarks in propagators(self.quarks, field, solves):
            label = self.quarks.label(source)
            for pair, names, momentum, values in self.correlators(quarks):
                numbers = pair if self.quarks.massive else [x[:-1] for x in pair]
                parameters = [value for both in zip(*numbers, strict=True) for value in both]
                for t, value in enumerate(values.tolist()):
                    yield (*parameters, label, *names, *momentum, t, value.real, value.imag)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, observables.TimeSeries]:
        """Return the real and imaginary part of every correlator; see `Observable.series`."""
        content = series_of(table, source, cls.columns, CORRELATORS)
        labels, values = correlators_of(content)
        return {
            ",".join([*(f"{key}={x}" for key, x in label.items()), part]): observables.TimeSeries(
                content.sweeps, values[part][n], 0
            )
            for n, label in enumerate(labels)
            for part in values
        }


PARITIES = (1, -1)


@observables.OBSERVABLES.register
@dataclass(frozen=True)
class Baryons(Hadrons):
    """Correlators of baryons, with one record for each time slice.

    They are nucleons and, at rest, Delta baryons for three colours, and diquarks for two.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta.
    group : str
        Name of the gauge group; empty if it is not known yet.
    """

    group: str = ""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "correlators of baryons"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = BARYON_COLUMNS
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) parity Tr [(1 + parity gamma_t)/2 < B(x) B-bar(x0) >] "
        "with B = epsilon (u^T C gamma_5 d) u, or (u^T C gamma_i u) u with spin 3/2; "
        "< D(x) D(x0)^dagger > with D = epsilon q1^T C Gamma q2; "
        f"{INVERSE}, DeGrand-Rossi gamma matrices, C = gamma_t gamma_y"
    )
    main_kernel: ClassVar[Kernel | None] = BARYONS

    @property
    def records(self) -> int:
        """Number of records per field; 0 if the group is not known yet."""
        q = self.quarks
        q.check()
        if not self.group:
            return 0
        momenta, pairs = len(q.momenta), len(pairs_of(q.kinds))
        each = len(SIXTEEN) * momenta * pairs
        if self._has_three_colours:
            each = len(PARITIES) * (momenta * len(q.kinds) ** 2 + len(q.kinds))
        return each * len(q.sources) * q.lattice.t

    @property
    def _has_three_colours(self) -> bool:
        two, three = map(special_unitary, (2, 3))
        if self.group not in (two, three):
            raise UsageError(
                f"The baryons of {GROUPS[self.group].label} are not known; measure mesons."
            )
        return self.group == three

    def for_group(self, group: str) -> Baryons:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        super().for_group(group)
        return replace(self, group=group)

    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield the correlators of all baryons of the group; see `Hadrons.correlators`."""
        if not self._has_three_colours:
            for pair, partner in pairs_of(self.quarks.kinds):
                yield from self._diquarks((pair, partner), quarks[pair], quarks[partner])
            return
        for pair, partner in product(self.quarks.kinds, repeat=2):
            yield from self._baryons((pair, partner), quarks[pair], quarks[partner])

    def _baryons(self, pair: Pair, up: Propagator, down: Propagator) -> Iterator[HadronCorrelator]:
        """Yield the correlators of the nucleon, and of the Delta of equal quarks."""
        strict = up.field.devices.strict
        for momentum in self.quarks.momenta:
            correlator = nucleon(up, down, momentum)
            for parity in PARITIES:
                yield pair, ("nucleon", parity), momentum, of_parity(correlator, parity, strict)
        if up is down:
            correlator = delta(up)
            for parity in PARITIES:
                yield pair, ("delta", parity), AT_REST, of_parity(correlator, parity, strict)

    def _diquarks(
        self, pair: Pair, first: Propagator, second: Propagator
    ) -> Iterator[HadronCorrelator]:
        for (name, gamma), momentum in product(SIXTEEN.items(), self.quarks.momenta):
            # A diquark and the meson with the same matrix have opposite parities.
            parity = -1 if (GAMMA[3] @ gamma @ GAMMA[3] == gamma).all() else 1
            correlator = diquark(first, second, gamma, momentum)
            yield pair, (f"{BOSONS}-{name}", parity), momentum, correlator


ALL_GAMMAS = Option("all_gammas", bool, "Also measure all pairs of different matrices.")

USUAL_PAIRS = (*((name, name) for name in SIXTEEN), ("g5", "gtg5"), ("gtg5", "g5"))
"""Matrices at source and sink that are measured by default: equal ones, and the pair of the PCAC
relation."""


@observables.OBSERVABLES.register
@dataclass(frozen=True)
class Mesons(Hadrons):
    """Correlators of mesons q̄1 Gamma q2, with one record for each time slice.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta. All pairs of them are measured.
    gammas : tuple of (str, str)
        Matrices at source and sink, by their names in `SIXTEEN`.
    """

    gammas: tuple[tuple[str, str], ...] = USUAL_PAIRS

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "correlators of mesons"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = MESONS
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) < q̄1 sink q2 (x) [q̄1 source q2 (x0)]^dagger >, "
        f"{INVERSE}, DeGrand-Rossi gamma matrices"
    )
    main_kernel: ClassVar[Kernel | None] = QUARK_PAIRS
    options: ClassVar[tuple[Option, ...]] = (*Hadrons.options, ALL_GAMMAS)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Mesons:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        all_gammas = options.pop(ALL_GAMMAS.name, None)
        mesons = super().for_lattice(lattice, **options)
        return replace(mesons, gammas=tuple(product(SIXTEEN, SIXTEEN))) if all_gammas else mesons

    @property
    def records(self) -> int:
        """Number of records per field."""
        q = self.quarks
        q.check()
        each = len(q.sources) * len(q.momenta) * len(self.gammas) * q.lattice.t
        return len(pairs_of(q.kinds)) * each

    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield the correlators of all pairs of quarks; see `Hadrons.correlators`."""
        strict = next(iter(quarks.values())).field.devices.strict
        for pair, momentum in product(pairs_of(self.quarks.kinds), self.quarks.momenta):
            tensor = spin_tensor(quarks[pair[1]], quarks[pair[0]], momentum)
            for names in self.gammas:
                begin, end = (SIXTEEN[name] for name in names)
                yield pair, names, momentum, meson(tensor, end, begin, strict)


@observables.OBSERVABLES.register
@dataclass(frozen=True)
class ResidualMassSums(QuarkObservable):
    """Sums for the residual mass and Z_A of domain-wall quarks, one record for each time slice.

    Attributes
    ----------
    quarks : Quarks
        The quarks and their sources.
    """

    name: ClassVar[str] = "residual-mass"
    summary: ClassVar[str] = "residual mass and conserved currents of domain-wall quarks"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = RESIDUAL_MASS_COLUMNS
    normalisation: ClassVar[str] = (
        "sums over x, spins and colours, S = (D_c + m)^-1: pion = |S|^2, midpoint = |S_mid|^2; "
        "axial(t) - axial(t - 1) = 2 m pion + 2 midpoint off the source"
    )
    main_kernel: ClassVar[Kernel | None] = QUARK_PAIRS
    bench_options: ClassVar[Mapping[str, object]] = {"quark": EXAMPLE}

    def __post_init__(self) -> None:
        """Choose the columns, which depend on whether there is a midpoint."""
        if self.quarks.smear_sink or len(self.quarks.momenta) > 1:
            raise UsageError(
                f"{self.name} is for local sinks at rest; leave out {SMEAR_SINK.flag} and "
                f"{MOMENTA.flag}."
            )
        if self.quarks.massive and self._has_midpoint:
            object.__setattr__(self, "columns", RESIDUAL_MASS_COLUMNS.complete())
        self._choose_tables()

    @property
    def _has_midpoint(self) -> bool:
        massive = self.quarks.massive
        if not massive or not issubclass(massive.operator_class, domain_wall.DomainWall):
            raise UsageError(
                f"Only quarks with a fifth direction have a residual mass; give some by "
                f"{QUARK.flag}."
            )
        return massive.operator_class.has_midpoint(**massive.parameters)

    @property
    def records(self) -> int:
        """Number of records per field."""
        q = self.quarks
        if not q.massive:
            raise UsageError(f"{QUARK.flag} is missing; give domain-wall quarks.")
        q.check()
        return len(q.kinds) * len(q.sources) * q.lattice.t

    def _records(self, field: Field, solves: SolveRecords) -> Iterator[observables.Record]:
        for source, solution in solutions(self.quarks, field, solves):
            label = self.quarks.label(source)
            for quark, solved in solution.items():
                if solved.effective:
                    sums = _sums(solved.effective)
                    for t, values in enumerate(zip(*sums, strict=True)):
                        yield (quark.m, label, t, *values)


def _sums(propagator: domain_wall.EffectivePropagator) -> list[list[float]]:
    """Return the sums by column and t."""
    quark = propagator.quark
    tensor, strict = spin_tensor(quark, quark), quark.field.devices.strict
    pion = meson(tensor, GAMMA_5, GAMMA_5, strict).real
    sums = [pion, domain_wall.contact_correlator(propagator)]
    if propagator.midpoint and propagator.axial is not None and propagator.vector is not None:
        between = spin_tensor(propagator.midpoint, propagator.midpoint)
        middle = meson(between, GAMMA_5, GAMMA_5, strict).real
        local = meson(tensor, GAMMA[3] @ GAMMA_5, GAMMA_5, strict).real
        with np.errstate(invalid="ignore"):  # a forecast of memory counts, and has zeros
            ratio = middle / pion
        sums += [middle, ratio, propagator.axial, local, propagator.vector]
    return [s.tolist() for s in sums]


HDF5 = b"\x89HDF\r\n\x1a\n"
"""First bytes of HDF5 files."""


def name_of(matrix: str) -> str:
    """Return our name of one of Grid's matrices, such as ``gxg5`` for ``GammaXGamma5``."""
    short = matrix.replace("Gamma", "g").replace("Sigma", "").replace("Identity", "unit").lower()
    name = "g" + "g".join(short) if matrix.startswith("Sigma") else short
    return {name: name for name in SIXTEEN}[name]


def sign_of(source: str) -> int:
    """Return the sign of our correlator relative to Hadrons'.

    Ours is - tr [sink S (gamma_t source^dagger gamma_t) gamma_5 S^dagger gamma_5], and Hadrons' is
    tr [gamma_5 sink S source^dagger gamma_5 S^dagger] (``MContraction/Meson.hpp``).
    """
    matrix = SIXTEEN[source]
    return -int(np.sign(np.vdot(matrix.conj().T, adjoint(matrix)).real))


class HadronsMesons(ForeignSeries):
    """HDF5 files of the module MContraction::Meson, one for each configuration.

    They state neither the quarks nor the source and the momentum, which are taken to be at t = 0
    and zero.
    """

    name: ClassVar[str] = "hadrons-mesons"
    program: ClassVar[str] = "Hadrons"
    separate: ClassVar[bool] = True

    def recognises(self, data: bytes) -> bool:
        """Return whether it is an HDF5 file with names of Hadrons; see `ForeignSeries`."""
        return data.startswith(HDF5) and b"gamma_snk" in data and b"meson_0" in data

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the correlators of all files; see `ForeignSeries.read`."""
        h5py = load("h5py", "Files of Hadrons need")
        labels, values = [], []
        for number, data in files.items():
            with h5py.File(io.BytesIO(data)) as file:
                for entry in file["meson"].values():
                    stated = (entry.attrs[key] for key in ("gamma_src", "gamma_snk"))
                    names = [name_of(np.ravel(x).astype("S")[0].decode()) for x in stated]
                    labels.append((number, *names))
                    correlator = entry["corr"][:].view(np.complex128).ravel()
                    values.append(sign_of(names[0]) * correlator)
        flat, extent = np.concatenate(values), len(values[0])
        columns = dict.fromkeys((SWEEP, *MESONS.names), np.zeros(flat.size, np.int64))
        columns |= dict.fromkeys(("kappa1", "kappa2"), np.full(flat.size, np.inf))  # not stated
        label_columns = (SWEEP, "gamma_source", "gamma_sink")
        columns |= {
            name: np.repeat(column, extent)
            for name, column in zip(label_columns, zip(*labels, strict=True), strict=True)
        }
        columns |= {"source": np.full(flat.size, "hadrons"), "re": flat.real, "im": flat.imag}
        columns["t"] = np.tile(np.arange(extent), len(values))
        return ForeignTable({"observable": Mesons.name}, columns)


FOREIGN_SERIES.register(HadronsMesons())
