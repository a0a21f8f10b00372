"""Observables of hadrons: their quarks, sources, propagators and tables."""

from __future__ import annotations

import cmath
import math
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.analysis.hadrons.correlators import Quark, arranged, check_columns, describe_quarks
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.folders import may_be_made
from gauge_mc.files.table import TableData, Value
from gauge_mc.groups import GROUPS
from gauge_mc.numbers import number
from gauge_mc.observables import (
    Measurer,
    Observable,
    Record,
    RecordsOfTables,
    SecondaryTable,
    TimeSeries,
)
from gauge_mc.options import Option, check_options, merged
from gauge_mc.quarks.contractions import AT_REST, Momentum
from gauge_mc.quarks.links import in_precision
from gauge_mc.quarks.operators import LARGEST, MU, OPERATORS, DiracOperator, operator_with
from gauge_mc.quarks.propagators import Propagator
from gauge_mc.quarks.solvers import (
    ITERATIONS,
    LEAST_TOLERANCE,
    METHODS,
    RELIABLE,
    SOLVERS,
    SolverParameters,
    solve,
)
from gauge_mc.quarks.sources import SOURCES, Source, parse_source
from gauge_mc.quarks.spinors import SPINS, SpinorField
from gauge_mc.quarks.storage import STORAGES
from gauge_mc.quarks.transport import Boundary, reals_of

if TYPE_CHECKING:
    from gauge_mc.quarks.propagator_path import PropagatorPath
from gauge_mc.quoting import quoted
from gauge_mc.smearing import (
    NO_SMEARING,
    Smearing,
    make_smearing,
    smear_option,
    smearing_options,
)

KAPPA = Option(
    "kappa",
    str,
    "Hopping parameters of the quarks, such as 0.1530,0.1550.",
    metavar="K[,K...]",
    least=1 / LARGEST,
    most=LARGEST,
    each=float,
)
MUS = Option(
    MU.name,
    str,
    "Twisted masses, in lattice units, each with each kappa.",
    MU.default,
    "M[,M...]",
    least=-LARGEST,
    most=LARGEST,
    each=float,
)
SOURCE = Option(
    "source",
    str,
    "Source: "
    + ", or ".join(f"{name}:{one.parameters} for {one.summary}" for name, one in SOURCES.items())
    + ". Several are measured one after the other.",
    f"{defaults.SOURCE} at the origin",
    "NAME:PARAMETERS",
    choices=tuple(SOURCES),
    repeated=True,
)
SMEAR_SINK = Option("smear_sink", bool, "Smear the sink in the same way as the source.")
MOST_MOMENTUM = 100
"""Largest squared momentum, to catch typing errors."""

MOMENTA = Option(
    "p2_max",
    int,
    "Largest n² of the momenta 2πn/L, with n for x, y and z.",
    "0",
    least=0,
    most=MOST_MOMENTUM,
)
BOUNDARY = Option(
    "boundary",
    str,
    "Antiperiodic or periodic in time, or four angles along x, y, z and t in units of pi, such as "
    "0.2,0.4,0,1.",
    "antiperiodic",
    "NAME|ANGLES",
    least=-LARGEST,
    most=LARGEST,
    each=float,
)

SOLVER = Option(
    "solver", str, "Solver of the Dirac equation.", defaults.SOLVER, choices=tuple(SOLVERS)
)
INNER = Option(
    "inner", str, "Precision of the solver's iterations.", defaults.INNER, choices=tuple(STORAGES)
)
METHOD = Option(
    "method", str, "How lower precision is combined with double.", RELIABLE, choices=tuple(METHODS)
)
LINKS = Option("links", int, "Stored reals per link: 8, 12 or 18 for SU(3).", "12, or 4 for SU(2)")
TOLERANCE = Option(
    "tolerance",
    float,
    "Largest norm of the true residual relative to the source.",
    f"{defaults.TOLERANCE:g}",
    least=LEAST_TOLERANCE,
    most=1,
)
ITERATION_LIMIT = Option("limit", int, "Largest number of iterations.", f"{ITERATIONS}", least=1)
PROPAGATORS = Option(
    "propagators",
    str,
    "Folder of propagators, before the sink is smeared: those that it has are read, and the others "
    "are written there.",
    metavar="FOLDER",
)

SOLVES = SecondaryTable(
    "solves",
    "a row for every source, hopping parameter and twisted mass",
    TableColumns(
        Column("kappa", float, "hopping parameter"),
        Column("mu", float, "twisted mass"),
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


def operator_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return all Dirac operators, as named in messages, with their parameters apart from mu."""
    return [
        (f"the Dirac operator {name}", tuple(p for p in one.parameters if p.name != MU.name))
        for name, one in OPERATORS.items()
    ]


def quark_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return what declares options of measurements with quarks, with the options of each."""
    before = (KAPPA, MUS)
    after = (BOUNDARY, SOURCE, SMEAR_SINK, MOMENTA)
    solving = (SOLVER, INNER, METHOD, LINKS, TOLERANCE, ITERATION_LIMIT)
    hadrons = "all hadrons"
    return [(hadrons, before), *operator_owners(), (hadrons, (*after, *solving, PROPAGATORS))]


def quark_options() -> tuple[Option, ...]:
    """Return the options of all measurements with quarks."""
    return merged(quark_owners())


@dataclass(frozen=True)
class Quarks:
    """The quarks of a measurement.

    Attributes
    ----------
    lattice : Lattice
        Lattice of the fields.
    kappas : tuple of float
        Hopping parameters, ascending; empty if none has been chosen yet.
    mus : tuple of float
        Twisted masses, ascending; each is combined with each hopping parameter.
    parameters : tuple of (str, float)
        Further parameters of the Dirac operator that are not 0.
    angles : tuple of float
        Boundary conditions psi(x + L) = exp(i pi angle) psi(x) along x, y, z and t.
    sources : tuple of Source
        Sources, which are measured one after the other.
    smear_sink : bool
        Whether the sink is smeared as the source is.
    smearing : Smearing or None
        Smearing of the links with which sources and sinks are smeared.
    momenta : tuple of Momentum
        Momenta of the hadrons.
    solver : str
        Name of the solver.
    request : SolverParameters
        How to solve.
    folder : str
        Folder in which propagators are kept; if it is empty, they are not.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    kappas: tuple[float, ...] = ()
    mus: tuple[float, ...] = (0.0,)
    parameters: tuple[tuple[str, float], ...] = ()
    angles: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    sources: tuple[Source, ...] = ()
    smear_sink: bool = False
    smearing: Smearing | None = None
    momenta: tuple[Momentum, ...] = (AT_REST,)
    solver: str = defaults.SOLVER
    request: SolverParameters = field(default_factory=SolverParameters)
    folder: str = ""

    def __post_init__(self) -> None:
        SOLVERS.check(self.solver, SOLVER.flag)
        smeared = [one for one in self.sources if one.smears]
        if self.smear_sink and len(smeared) < len(self.sources):
            raise UsageError(f"{SMEAR_SINK.flag} needs a source that is smeared; choose one.")
        if self.smearing and not smeared:
            raise UsageError("--smear is for sources that are smeared; choose one.")
        if smeared and any(angle % 2 for angle in self.angles[:3]):
            raise UsageError(
                "Smeared sources need quarks that are periodic in space; choose another --boundary "
                "or another --source."
            )

    @classmethod
    def of_options(cls, lattice: Lattice, whose: str, options: Mapping[str, Any]) -> Quarks:
        """Return the quarks that options choose, by name.

        Raises
        ------
        UsageError
            If an option is unknown or its value is invalid.
        """
        known = (*quark_options(), smear_option())
        given = check_options((*known, *smearing_options()), options, whose)
        own = {option.name for option in known}
        others = {name: value for name, value in given.items() if name not in own}
        names = [one.name for one in merged(operator_owners())]
        sources = given.get(SOURCE.name, (defaults.SOURCE,))
        return cls(
            lattice,
            numbers_of(given, KAPPA),
            numbers_of(given, MUS) or (0.0,),
            tuple((name, given[name]) for name in names if given.get(name)),
            angles_of(given.get(BOUNDARY.name, "antiperiodic")),
            tuple(parse_source(one, lattice) for one in sources),
            given.get(SMEAR_SINK.name, False),
            make_smearing(given.get("smear", NO_SMEARING), others),
            momenta_up_to(given.get(MOMENTA.name, 0)),
            given.get(SOLVER.name, defaults.SOLVER),
            SolverParameters(
                given.get(TOLERANCE.name, defaults.TOLERANCE),
                given.get(ITERATION_LIMIT.name, ITERATIONS),
                given.get(METHOD.name, RELIABLE),
                given.get(INNER.name, defaults.INNER),
                given.get(LINKS.name),
            ),
            given.get(PROPAGATORS.name, ""),
        )

    @property
    def boundary(self) -> Boundary:
        """The phases of the boundary conditions."""
        return Boundary.of([_phase(angle) for angle in self.angles])

    @property
    def header(self) -> dict[str, str]:
        """What the header of a table states."""
        smearing = {"smearing": str(self.smearing)} if self.smearing else {}
        twisted = {MUS.name: _listed(self.mus)} if any(self.mus) else {}
        return {
            "kappa": _listed(self.kappas),
            **twisted,
            **{name: f"{value:g}" for name, value in self.parameters},
            "boundary": f"{','.join(f'{one:g}' for one in self.angles)} (angles in units of pi)",
            "sources": " ".join(self.label(one) for one in self.sources),
            **smearing,
            "tolerance": f"{self.request.tolerance:g}",
        }

    def label(self, source: Source) -> str:
        """Return the text that identifies a source, and its sink if that is smeared."""
        return source.label.replace("@", "-smeared@") if self.smear_sink else source.label

    def check(self) -> None:
        """Refuse to measure without a hopping parameter, or without a folder to write to."""
        if not self.kappas:
            raise UsageError(f"{KAPPA.flag} is missing; give the hopping parameters of the quarks.")
        if self.folder and not may_be_made(Path(self.folder)):
            raise UsageError(
                f"{PROPAGATORS.flag}: no files can be written in a folder {self.folder}; choose "
                "another one."
            )

    @property
    def kinds(self) -> tuple[Quark, ...]:
        """The quarks, with all hopping parameters and twisted masses."""
        return tuple(Quark(*one) for one in product(self.kappas, self.mus))

    def propagators(
        self, field: Field, solves: list[Record]
    ) -> Iterator[tuple[Source, dict[Quark, Propagator]]]:
        """Yield the propagators of all quarks, for one source after the other.

        Within `DeviceGroup.measuring`, hadrons with the same source share them. Those of several
        sources are not kept, because of the memory that they take.

        Parameters
        ----------
        field : Field
            The links.
        solves : list of Record
            Records of `SOLVES` are appended to it.

        Raises
        ------
        GaugeError
            If a solution cannot be found with the residual that was asked for.
        """
        links = self._smeared(field)
        operators = {quark: self._operator(field, quark) for quark in self.kinds}
        for source in self.sources:
            found = {}
            for quark, operator in operators.items():
                solve = partial(self._solve, quark, operator, source, links)
                alone = len(self.sources) == 1
                key = replace(self, kappas=(), mus=(), momenta=()), quark
                once = field.devices.shared.once
                found[quark], record = once(field, key, solve) if alone else solve()
                solves.append(record)
            yield source, found

    def _solve(
        self,
        quark: Quark,
        operator: DiracOperator,
        source: Source,
        links: Field,
    ) -> tuple[Propagator, Record]:
        """Return the propagator of a quark, and its record in `SOLVES`."""
        vectors = SpinorField.empty(operator.field, PRECISION, SPINS * links.group.colours)
        source.fill(vectors, links)
        kept = self._propagator_path(quark, source) if self.folder else None
        found = kept.read(operator, vectors, self.request.tolerance) if kept else None
        if not found:
            found = solve(operator, vectors, self.solver, self.request)
            if kept:
                kept.write(vectors, found.x)
        label = self.label(source)
        for note in found.notes:
            print(f"gauge-mc: {describe_quarks(quark, quark)}, {label}: {note}", file=sys.stderr)
        words = *quark, label, found.solver, found.inner, found.iterations, found.updates
        numbers = float(found.iterated.max()), float(found.residual.max()), found.seconds
        if self.smear_sink:
            source.smear_sink(found.x, links)
        propagator = Propagator(found.x, operator.kappa, operator.boundary, source.place)
        return propagator, (*words, *numbers)

    def _propagator_path(self, quark: Quark, source: Source) -> PropagatorPath:
        """Return the path of a propagator, which depends on all metadata but the tolerance."""
        from gauge_mc.quarks.propagator_path import PropagatorPath

        mass = {MUS.name: repr(quark.mu)} if quark.mu else {}
        own = {"kappa": repr(quark.kappa), **mass, "sources": source.label}
        left_out = ("tolerance", MUS.name)
        known = {name: value for name, value in self.header.items() if name not in left_out}
        return PropagatorPath(Path(self.folder), {**known, **own})

    def _operator(self, field: Field, quark: Quark) -> DiracOperator:
        parameters = {MU.name: quark.mu, **dict(self.parameters)}
        return operator_with(field, quark.kappa, self.boundary.phases, **parameters)

    def _smeared(self, field: Field) -> Field:
        """Return the links with which sources are smeared, in double precision."""
        if not any(one.smears for one in self.sources):
            return field
        field = in_precision(field, PRECISION)
        if self.smearing is None:
            return field
        kind = field.lattice, field.group.name, PRECISION, field.devices
        other, more = Field.empty(*kind), Field.empty(*kind)
        source = field
        for n in range(self.smearing.most or 1):
            target = other if source is not other else more
            self.smearing.iteration(n)(source, target)
            source = target
        return source


PRECISION = "double"
"""Precision of sources and solutions."""


def _phase(angle: float) -> complex:
    """Return exp(i pi angle), exactly for whole angles."""
    return (-1.0) ** int(angle) + 0j if angle == int(angle) else cmath.exp(1j * math.pi * angle)


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{one:g}" for one in numbers)


def numbers_of(given: Mapping[str, Any], option: Option) -> tuple[float, ...]:
    """Return the different numbers that an option gives, ascending; none if it is not given.

    Raises
    ------
    UsageError
        If something is not a number, or is outside of the bounds of the option.
    """
    return (
        tuple(sorted({*option.numbers(given[option.name], number)})) if option.name in given else ()
    )


def angles_of(text: str | tuple[float, ...]) -> tuple[float, ...]:
    """Return the angles of boundary conditions along x, y, z and t in units of pi.

    Raises
    ------
    UsageError
        If the text is neither a name nor four numbers.
    """
    names = {"antiperiodic": (0.0, 0.0, 0.0, 1.0), "periodic": (0.0, 0.0, 0.0, 0.0)}
    if isinstance(text, str) and text in names:
        return names[text]
    with suppress(UsageError):
        angles = BOUNDARY.numbers(text, number)
        if len(angles) == len(names["periodic"]):
            return angles
    raise UsageError(
        f"{BOUNDARY.flag} is {quoted(text)}; give {' or '.join(names)}, or four angles in "
        "units of pi, such as 0,0,0,1."
    )


def momenta_up_to(square: int) -> tuple[Momentum, ...]:
    """Return all momenta with at most this square, the smaller ones first."""
    largest = math.isqrt(square)
    found = product(range(-largest, largest + 1), repeat=3)
    inside = [(x, y, z) for x, y, z in found if x * x + y * y + z * z <= square]
    return tuple(sorted(inside, key=lambda p: (sum(n * n for n in p), p)))


Pair = tuple[Quark, Quark]


def pairs_of(quarks: Sequence[Quark]) -> list[Pair]:
    """Return all pairs of quarks, the first one first."""
    return list(combinations_with_replacement(quarks, 2))


HadronCorrelator = tuple[Pair, tuple[Value, ...], Momentum, NDArray[np.complex128]]
"""The quarks, the names of a hadron, its momentum, and the correlator at every time."""

WARM_UP_TOLERANCE = 0.1
"""Tolerance of the measurement with which a run compiles the kernels."""

WARM_UP_KAPPAS = (0.05,)
"""Hopping parameter of that measurement. On the cold links with which a run may begin, the usual
ones are above the critical one, and a solver would need very many iterations."""

Self = TypeVar("Self", bound="Hadrons")


@dataclass(frozen=True)
class Hadrons(Observable):
    """Correlators of hadrons, with one record for each time slice.

    A subclass declares the columns that name its hadrons and defines `correlators` and `records`.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta.
    """

    quarks: Quarks

    units: ClassVar[str] = "lattice units"
    smears: ClassVar[bool] = True
    secondary_tables: ClassVar[tuple[SecondaryTable, ...]] = (SOLVES,)
    options: ClassVar[tuple[Option, ...]] = quark_options()
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12"}

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

    @abstractmethod
    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield all correlators, given the propagators of all quarks."""

    def for_group(self, group: str) -> Hadrons:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        reals_of(self.quarks.request.reals, GROUPS[group])
        return self

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """No kernels, because those of quarks depend on more than the group."""
        return ()

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        return {**super().header, **self.quarks.header}

    @property
    def warm_up(self: Self) -> Self:
        """The same for a heavy quark and a large tolerance; see `Observable.warm_up`."""
        request = replace(self.quarks.request, tolerance=WARM_UP_TOLERANCE)
        quarks = replace(self.quarks, kappas=WARM_UP_KAPPAS, request=request, folder="")
        return replace(self, quarks=quarks)

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind."""
        self.quarks.check()
        prepared = self.for_group(like.group.name)

        def measure(field: Field) -> list[Record]:
            solves: list[Record] = []
            return RecordsOfTables(prepared._records(field, solves), {SOLVES.name: solves})

        return measure

    def _records(self, field: Field, solves: list[Record]) -> Iterator[Record]:
        for source, quarks in self.quarks.propagators(field, solves):
            label = self.quarks.label(source)
            for pair, names, momentum, values in self.correlators(quarks):
                parameters = [value for both in zip(*pair, strict=True) for value in both]
                for t, value in enumerate(values.tolist()):
                    yield (*parameters, label, *names, *momentum, t, value.real, value.imag)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return the real and imaginary part of every correlator; see `Observable.series`."""
        names = cls.columns.indices[:-1]
        check_columns(table, names, source)
        labels, sweeps, values = arranged(table, names, source)
        return {
            ",".join(
                [*(f"{key}={x}" for key, x in zip(names, one, strict=True)), part]
            ): TimeSeries(sweeps, values[part][n], 0)
            for n, one in enumerate(labels)
            for part in values
        }


def propagator(
    field: Field, kappa: float, source: str = defaults.SOURCE, mu: float = 0.0, **options: Any
) -> NDArray[np.complex128]:
    """Return a quark propagator, the solution of the Dirac equation for all spins and colours.

    Parameters
    ----------
    field : Field
        The links.
    kappa : float
        Hopping parameter.
    source : str
        The source as on the command line, such as ``point:0,0,0,0`` or ``wall:0``.
    mu : float
        Twisted mass.
    **options : object
        Further options of ``gauge-mc measure mesons``, such as `csw`, `boundary`,
        `smear_sink`, `solver`, `tolerance` or the folder `propagators`.

    Returns
    -------
    ndarray, shape (T, Z, Y, X, 4, N, 4, N), complex128
        ``S[t, z, y, x, spin, colour, source spin, source colour]``: the elements of M^-1 times the
        source, with gamma matrices in the DeGrand-Rossi basis.

    Raises
    ------
    UsageError
        If an option is unknown or its value is invalid.
    GaugeError
        If the residual cannot be reached.
    """
    given = {
        **options,
        KAPPA.name: repr(float(kappa)),
        MUS.name: repr(float(mu)),
        SOURCE.name: (source,),
    }
    quarks = Quarks.of_options(field.lattice, "propagator", given)
    ((_, found),) = quarks.propagators(field, [])
    (only,) = found.values()
    return only.to_numpy()
