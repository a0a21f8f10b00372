"""Benchmarks of the hopping term of Wilson fermions, and of a Dirac operator with its solvers."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Self, cast

from gauge_mc.benchmarks.timing import Bench, BenchResult, Rate
from gauge_mc.devices import Device
from gauge_mc.devices.rehearsal import RehearsalDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.diagonal import LARGEST
from gauge_mc.extensions.quarks.matrices.hopping import EVEN, ODD
from gauge_mc.extensions.quarks.matrices.preconditioned import System
from gauge_mc.extensions.quarks.operators import (
    OPERATORS,
    QUARK_MASS,
    DiracOperator,
    Wilson,
    dirac_operators,
)
from gauge_mc.extensions.quarks.solvers import SOLVERS, Residual, Solver, SolverParameters
from gauge_mc.extensions.quarks.vectors.spinors import (
    SPINS,
    STORAGES,
    SpinorField,
    Storage,
    storage_of,
)
from gauge_mc.extensions.quarks.vectors.transport import forms_of
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option, merged
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field

COUNTS = (1, 12)
"""Numbers of vectors: one, and the spins and colours of the source of a propagator for SU(3)."""

KAPPA = 0.13
"""Hopping parameter, on which the time does not depend."""


@documented
@dataclass(frozen=True)
class HopTime:
    """The time of the hopping term on one parity, for one type of storage."""

    storage: str = result_field("Precision of spinors and links.")
    reals: int = result_field("Stored reals per link.")
    vectors: int = result_field("Number of vectors that the kernel treats together.")
    tflops: float = result_field(
        "10^12 operations per second, with `flops_per_site` for every vector."
    )
    gb_per_s: float = result_field(
        "Bytes that must be moved if every number is read or written once, in GB/s."
    )
    share: float = result_field("The same in units of the bandwidth of a copy.")
    registers: int | None = result_field(
        "Registers per thread of a CUDA kernel; None for other kernels."
    )
    spilled: int | None = result_field(
        "Spilled bytes per thread of a CUDA kernel; None for other kernels."
    )


@documented
@dataclass(frozen=True)
class QuarksTime(BenchResult):
    """Times of the hopping term."""

    unit = "TFLOP/s"
    copy_gb_per_s: float = result_field(
        "Bandwidth of a large copy on all devices together in GB/s, read and written."
    )
    flops_per_site: int = result_field("Operations of the hopping term per site and vector.")
    hops: list[HopTime] = result_field(
        "Times of the hopping term, by type of storage and number of vectors."
    )

    @property
    def rates(self) -> dict[str, Rate]:
        """The operations per second; see `BenchResult`."""
        kinds = [(hop.storage, f"{hop.reals} reals", f"vectors {hop.vectors}") for hop in self.hops]
        rates = [Rate(hop.tflops, hop.tflops / hop.share, hop.storage) for hop in self.hops]
        return {", ".join(kind): rate for kind, rate in zip(kinds, rates, strict=True)}


def flops_per_site(colours: int) -> int:
    """Return the real additions and multiplications of the hopping term per site.

    There are eight projections, 16 products of a matrix and a colour vector, and seven sums of
    spinors: 1320 for SU(3).
    """
    projection, product_of_matrix = 4 * colours, 8 * colours**2 - 2 * colours
    return 8 * projection + 16 * product_of_matrix + 7 * 2 * SPINS * colours


def quarks_time(bench: Bench) -> QuarksTime:
    """Time the hopping term with all types of storage; see `QuarksTime`."""
    forms = forms_of(GROUPS[bench.group])
    bench = bench.of(1 + len(STORAGES) * len(forms) * len(COUNTS))
    copy = bench.copy()
    field = Field.hot(bench.lattice, bench.group, "double", bench.devices)
    flops = flops_per_site(field.group.colours)
    hops = []
    for storage, count in product(STORAGES.values(), COUNTS):
        source = SpinorField.empty(field, storage.name, count, 1)
        target = source.like(parity=0)
        spinor_bytes = storage.bytes(2 * SPINS * field.group.colours)
        for numbers in forms:
            bench.begin(f"{storage.name}, {numbers} reals, {count} vectors")
            prepared = Wilson(field, KAPPA).prepared(storage.name, numbers)
            hop = prepared.prepare(target, source, 0)
            rate = bench.lattice.sites / 2 * count / bench.time(hop)
            moved = rate * (8 * storage.unit_bytes(numbers) / count + 2 * spinor_bytes)
            speed = rate * flops / 1e12, moved / 1e9, moved / copy
            used = (hop.registers.count, hop.registers.spilled) if hop.registers else (None, None)
            hops.append(HopTime(storage.name, numbers, count, *speed, *used))
    return QuarksTime(*bench.heading, copy / 1e9, flops, hops)


OPERATOR = Option("operator", str, "Dirac operator.", choices=tuple(dirac_operators()))

NUMBERS = (
    Option("kappa", float, "Hopping parameter.", usual=KAPPA, least=0, most=LARGEST),
    Option("m", float, "Mass of the quark.", usual=0.04, least=0, most=LARGEST),
)
"""The numbers that make quarks lighter or heavier, for operators with either."""

FEW, MANY = 5, 15
"""Iterations of a solver that are timed together, from a new start. The difference of both is that
of iterations alone, without what solvers do when they begin and halt. Links are random, so that
after 20 squares of the residual would be too small for single precision."""

LEAST_TIMES = 3
"""Least number of times of which the median is taken."""

SOLVER_FIELDS = 20
"""Fields in double precision on half of the sites for which there must be memory, to time a solver
for several vectors: the source, its correction and residual, and the vectors of an iteration."""


class TimedOperator(OptionItem):
    """A Dirac operator with its parameters, as in ``domain-wall:LS=16,M5=1.8,m=0.04``."""

    kind = "Dirac operator"
    flag = "--operator"
    leading = ("operator",)
    within = r":|[,;](?=\s*\w+=)"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the operator, the parameters of all operators, and the numbers of quarks."""
        kinds = dirac_operators().items()
        owners = ((f"the Dirac operator {name}", x.parameters) for name, x in kinds)
        return (OPERATOR, *merged(owners), *NUMBERS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an operator from text, in which names of parameters may have capital letters."""
        return super().parse(re.sub(r"\w+(?==)", lambda name: name[0].lower(), text))

    def check(self) -> None:
        """Refuse parameters of other operators."""
        OPERATORS.check(self.values.get(OPERATOR.name, ""), "--operator")
        if self.operator not in dirac_operators():
            raise UsageError(
                f"The operator {self.operator} is not one hopping term; choose "
                f"{in_words(dirac_operators(), 'or')}."
            )
        usual = {option.name: option.usual for option in self.options()}
        names = {OPERATOR.name, self._number, *(p.name for p in self.operator_class.parameters)}
        for name, value in self.values.items():
            if name not in names and value != usual[name]:
                raise UsageError(
                    f"The operator {self.operator} has no parameter {name}; leave it out."
                )
        self.operator_class.check_parameters(**self.parameters)

    @property
    def operator_class(self) -> type[DiracOperator]:
        """The class of the operator."""
        return dirac_operators()[self.operator]

    @property
    def _number(self) -> str:
        kappa, mass = (x.name for x in NUMBERS)
        return mass if self.operator_class.quark == QUARK_MASS else kappa

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the operator has, by name."""
        names = [p.name for p in self.operator_class.parameters]
        return {name: self.values[name] for name in names if name in self.values}

    @property
    def description(self) -> str:
        """The operator with all of its parameters."""
        values = {**self.parameters, self._number: self.values[self._number]}
        return ", ".join([self.operator, *(f"{name} = {value}" for name, value in values.items())])

    def made(self, field: Field) -> DiracOperator:
        """Return the operator on some links."""
        number = self.values[self._number]
        operator: DiracOperator = self.operator_class(field, number, **self.parameters)
        return operator


@documented
@dataclass(frozen=True)
class IterationTime:
    """The time of an iteration of a solver, in which the operator is applied twice."""

    solver: str = result_field("Name of the solver.")
    iteration_s: float = result_field("Time of an iteration for one vector, in seconds.")
    operators: float = result_field("Time of both operators, divided by that of the iteration.")
    launches: int = result_field("Kernels that an iteration launches on each device.")
    iteration_bytes: float = result_field(
        "Bytes that the kernels of an iteration move if each reads and writes every number once."
    )
    gb_per_s: float = result_field("The same in GB/s.")
    tflops: float = result_field(
        "10^12 operations per second of an iteration, of which those of hopping terms are counted."
    )
    together_s: float | None = result_field(
        "Time of an iteration for all columns of a propagator together, in seconds; None for "
        "operators with a fifth direction, and without the memory."
    )
    together_tflops: float | None = result_field("Its operations per second, counted as above.")


@documented
@dataclass(frozen=True)
class OperatorParts:
    """Times of an operator and of iterations of solvers, in one type of storage.

    Rates are those per site of the lattice, with all sites of a fifth direction.
    """

    storage: str = result_field("Precision of spinors and links.")
    hop_tflops: float = result_field(
        "10^12 operations per second of the hopping term on one parity, with `flops_per_site` per "
        "site of its result."
    )
    gb_per_s: float = result_field(
        "Bytes of the hopping term that must be moved if every number is read or written once, in "
        "GB/s."
    )
    bytes_per_site: float = result_field("These bytes, for a site of the result.")
    share: float = result_field("Those bytes in units of the bandwidth of a copy.")
    wilson_tflops: float = result_field(
        "10^12 operations per second of the hopping term for one vector in four dimensions."
    )
    hop_s: float = result_field("Time of the hopping term on one parity, in seconds.")
    operator_s: float = result_field("Time of the operator on the even sites, in seconds.")
    rest: float = result_field(
        "Part of the time of the operator that is not that of its two hopping terms, such as that "
        "of a fifth direction."
    )
    operator_tflops: float = result_field(
        "10^12 operations per second of the operator, of which those of hopping terms are counted."
    )
    solvers: list[IterationTime] = result_field("Times of an iteration, by solver.")


@documented
@dataclass(frozen=True)
class OperatorTime(BenchResult):
    """Times of a Dirac operator and of solvers."""

    unit = "TFLOP/s"
    operator: str = result_field("The operator with its parameters.")
    fifth: int = result_field("Extent of the fifth direction; 1 if there is none.")
    reals: int = result_field("Stored reals per link.")
    copy_gb_per_s: float = result_field(
        "Bandwidth of a large copy on all devices together in GB/s, read and written."
    )
    flops_per_site: int = result_field("Operations of the hopping term per site and vector.")
    columns: int = result_field("Columns of a propagator, one for each spin and colour.")
    parts: list[OperatorParts] = result_field("Times by type of storage.")

    @property
    def rates(self) -> dict[str, Rate]:
        """The operations per second of hopping terms; see `BenchResult`."""
        measured = {}
        for part in self.parts:
            speeds: dict[str, tuple[float | None, float | None]] = {
                "hopping term": (part.hop_tflops, part.hop_tflops / part.share),
                "operator": (part.operator_tflops, None),
            }
            for solver in part.solvers:
                speeds[solver.solver] = solver.tflops, None
                speeds[f"{solver.solver} of {self.columns} vectors"] = solver.together_tflops, None
            for name, (value, limit) in speeds.items():
                if value:
                    measured[f"{name}, {part.storage}"] = Rate(value, limit, part.storage)
        return measured


def operator_time(bench: Bench, operator: TimedOperator) -> OperatorTime:
    """Time a Dirac operator and solvers with all types of storage.

    Links are random, since times do not depend on them.
    """
    bench = bench.of(1 + len(STORAGES))
    copy = bench.copy()
    field = Field.hot(bench.lattice, bench.group, "double", bench.devices)
    dirac = operator.made(field)
    sources = _source(dirac, 1), _columns(dirac)
    parts = []
    for storage in STORAGES.values():
        bench.begin(f"{operator.operator}, {storage.name} precision")
        parts.append(_parts(bench, dirac, operator, storage, copy, sources))
    group, form = field.group, (operator.description, dirac.fifth or 1, field.group.components)
    flops, columns = flops_per_site(group.colours), SPINS * group.colours
    return OperatorTime(*bench.heading, *form, copy / 1e9, flops, columns, parts)


def _parts(
    bench: Bench,
    operator: DiracOperator,
    timed: TimedOperator,
    storage: Storage,
    copy: float,
    sources: tuple[SpinorField, SpinorField | None],
) -> OperatorParts:
    """Return the times in one type of storage."""
    field, extent = operator.field, operator.fifth or 1
    flops, sites = flops_per_site(field.group.colours), field.lattice.sites / 2
    spinor = storage.bytes(2 * SPINS * field.group.colours)
    links = 8 * storage.unit_bytes(field.group.components)

    def hop_seconds(dirac: DiracOperator) -> float:
        source = SpinorField.empty(field, storage.name, 1, ODD, dirac.fifth)
        return bench.time(
            dirac.prepared(storage.name).prepare_term(source.like(parity=0), source, 0)
        )

    hop_s, plain = hop_seconds(operator), DiracOperator(field, KAPPA)
    wilson_s = hop_seconds(plain)
    plain.release()
    seconds = _applications(bench, operator, storage)
    operator_s = seconds[True, False]
    moved = links / extent + 2 * spinor
    rate = sites * extent / hop_s
    hop = rate * flops / 1e12, rate * moved / 1e9, moved, rate * moved / copy
    wilson, rest = sites * flops / wilson_s / 1e12, max(0.0, 1 - 2 * hop_s / operator_s)
    tflops = 2 * sites * extent * flops / operator_s / 1e12
    timing = storage, sources, seconds
    solvers = [_iteration(bench, operator, timed, kind, *timing) for kind in SOLVERS.values()]
    return OperatorParts(storage.name, *hop, wilson, hop_s, operator_s, rest, tflops, solvers)


def _applications(
    bench: Bench, operator: DiracOperator, storage: Storage
) -> dict[tuple[bool, bool], float]:
    """Return the times of the operators on the even sites that solvers apply, in seconds.

    They are those for solvers that use the adjoint and for others, and whether it is the adjoint.
    """
    source = SpinorField.empty(operator.field, storage.name, 1, EVEN, operator.fifth)
    target, adjoint = source.like(), {kind.uses_adjoint for kind in SOLVERS.values()}
    applications = {}
    for uses, dagger in [(True, False), *((x, x) for x in sorted(adjoint))]:
        reduced = operator.reduced(uses, storage.name)
        applications[uses, dagger] = bench.time(reduced.apply(target, source, dagger))
    return applications


def _iteration(
    bench: Bench,
    operator: DiracOperator,
    timed: TimedOperator,
    kind: type[Solver],
    storage: Storage,
    sources: tuple[SpinorField, SpinorField | None],
    applications: Mapping[tuple[bool, bool], float],
) -> IterationTime:
    """Return the time of an iteration of a solver in one type of storage.

    `applications` are the times of the operators; see `_applications`.
    """
    field, (source, columns) = operator.field, sources
    flops = 4 * field.lattice.sites / 2 * flops_per_site(field.group.colours)
    reduced = operator.reduced(kind.uses_adjoint, storage.name)
    both_s = sum(applications[kind.uses_adjoint, x] for x in (False, kind.uses_adjoint))
    iteration_s = _iteration_seconds(kind, operator, storage.name, source, bench.seconds)
    together_s = together = None
    if columns is not None:
        together_s = _iteration_seconds(kind, operator, storage.name, columns, bench.seconds)
        together = columns.count * flops / together_s / 1e12
    extent, spinor = operator.fifth or 1, storage.bytes(2 * SPINS * field.group.colours)
    vectors = 2 * reduced.vectors_moved + kind.vectors_moved
    links = 4 * 8 * storage.unit_bytes(field.group.components)
    moved = field.lattice.sites / 2 * (extent * vectors * spinor + links)
    launches = launches_per_iteration(kind, timed, field, storage.name)
    times = kind.name, iteration_s, both_s / iteration_s, launches
    rates = moved, moved / iteration_s / 1e9, extent * flops / iteration_s / 1e12
    return IterationTime(*times, *rates, together_s, together)


def _solver(
    kind: type[Solver], operator: DiracOperator, precision: str, source: SpinorField
) -> Solver:
    """Return a solver for a right-hand side, ready to begin."""
    system = System(operator, source, kind.uses_adjoint)
    request = SolverParameters(inner=precision)
    return kind(Residual(system), system.reduced_operator(precision), request)


def _columns(operator: DiracOperator) -> SpinorField | None:
    """Return the sources of all columns of a propagator, if there is memory to solve for them."""
    field, devices = operator.field, operator.field.devices
    vectors = SPINS * field.group.colours
    spinors = SOLVER_FIELDS * vectors * field.lattice.sites // 2
    required = spinors * storage_of("double").bytes(2 * vectors)
    free = [device.free_bytes() for device in devices.devices]
    shared = devices.devices[0].in_host_memory
    available = free[0] if shared else sum(free) * devices.processes.size
    return None if operator.fifth or required > available else _source(operator, vectors)


def _source(operator: DiracOperator, vectors: int) -> SpinorField:
    """Return random vectors; see `SpinorField.put_equal_slices`."""
    source = SpinorField.empty(operator.field, count=vectors, fifth=operator.fifth)
    source.put_equal_slices()
    return source


def _iteration_seconds(
    kind: type[Solver], operator: DiracOperator, precision: str, source: SpinorField, seconds: float
) -> float:
    """Return the median time of an iteration, in seconds, from those of `FEW` and `MANY`."""
    devices = operator.field.devices
    solver = _solver(kind, operator, precision, source)

    def timed(times: int) -> float:
        solver.restart()
        devices.synchronize()
        began = time.perf_counter()
        solver.repeat(times)
        devices.synchronize()
        return time.perf_counter() - began

    timed(FEW), timed(MANY)  # which loads kernels and records launches
    samples: list[float] = []
    ended = time.perf_counter() + seconds
    while len(samples) < LEAST_TIMES or devices.processes.broadcast(time.perf_counter() < ended):
        few, many = timed(FEW), timed(MANY)
        samples.append((many - few) / (MANY - FEW))
    return statistics.median(samples)


def launches_per_iteration(
    kind: type[Solver], timed: TimedOperator, like: Field, precision: str
) -> int:
    """Return the number of kernels that an iteration launches on the first device.

    They are counted by a rehearsal; see `RehearsalDevice`. If several processes share the lattice,
    the number is 0.
    """
    devices = like.devices
    if devices.processes.size > 1:
        return 0
    actors = [RehearsalDevice(device) for device in devices.devices]
    stage = DeviceGroup(tuple(cast(Device, actor) for actor in actors), slices=devices.slices)
    field = Field.cold(like.lattice, like.group.name, like.precision, stage)
    rehearsed = timed.operator_class.rehearsed(**timed.parameters)
    operator = TimedOperator(**{**timed.values, **rehearsed}).made(field)
    source = SpinorField.empty(field, fifth=operator.fifth)
    solver = _solver(kind, operator, precision, source)
    solver.done[:] = True  # the residual is 0, by which nothing is divided then
    iterate = solver.ahead.iterate if solver.ahead else partial(solver.repeat, 1)
    assert iterate
    before = actors[0].launches
    iterate()
    return actors[0].launches - before
