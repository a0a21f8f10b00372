"""Benchmarks of quarks: hopping terms, Dirac operators with their solvers, and sign functions."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Self, cast

import numpy as np

from gauge_mc.benchmarks import BenchKind
from gauge_mc.benchmarks.timing import Bench, BenchResult, Timing, elapsed, table_of, used
from gauge_mc.devices import Device
from gauge_mc.devices.rehearsal import RehearsalDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.diagonal import LARGEST
from gauge_mc.extensions.quarks.hopping import EVEN, ODD, System
from gauge_mc.extensions.quarks.modes import random_vector
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator
from gauge_mc.extensions.quarks.operators import (
    OPERATORS,
    QUARK_MASS,
    DiracOperator,
    Wilson,
    dirac_operators,
    parameters_by_owner,
)
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.solvers import SOLVERS, Solver, SolverParameters
from gauge_mc.extensions.quarks.solvers.iterations import Residual
from gauge_mc.extensions.quarks.solvers.overlap import TOGETHER
from gauge_mc.extensions.quarks.vectors import SPINS, STORAGES, SpinorField, Storage, storage_of
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
    tflops: float = result_field("10^12 operations per second, for all vectors.")
    gb_per_s: float = result_field("Bytes if every number is read or written once, in GB/s.")
    share: float = result_field("The same in units of the bandwidth of a copy.")
    registers: int | None = result_field("Registers per thread; None without CUDA.")
    spilled: int | None = result_field("Spilled bytes per thread; None without CUDA.")


@documented
@dataclass(frozen=True)
class QuarksResult(BenchResult):
    """Times of what consists of hopping terms."""

    unit = "TFLOP/s"
    copy_gb_per_s: float = result_field("Bandwidth of a copy, read and written, in GB/s.")
    flops_per_site: int = result_field("Operations of the hopping term per site and vector.")


@documented
@dataclass(frozen=True)
class QuarksTime(QuarksResult):
    """Times of the hopping term."""

    hops: list[HopTime] = result_field("Times by type of storage and number of vectors.")

    @property
    def rates(self) -> list[Timing]:
        """The operations per second; see `BenchResult`."""
        name = "{0.storage}, {0.reals} reals, vectors {0.vectors}".format
        return [Timing(name(hop), hop.tflops, hop.share, hop.storage) for hop in self.hops]

    def report(self) -> list[Any]:
        """Return a line and a table."""
        columns = {"spinors and links": "{0.storage}", "reals\nper link": "{0.reals}"}
        columns |= {"vectors": "{0.vectors}", "TFLOP/s": "{0.tflops:.3g}"}
        columns |= {"GB/s": "{0.gb_per_s:.4g}", "of a copy": "{0.share:.0%}"}
        columns |= {"regs": "{0.registers:d}", "spill": "{0.spilled:d}"}
        title = f"hopping term on one parity, {self.subject}; copy {self.copy_gb_per_s:.4g} GB/s"
        return [title, table_of(columns, zip(self.hops), ("regs", "spill"))]


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
            hops.append(HopTime(storage.name, numbers, count, *speed, *used(hop.registers)))
    return QuarksTime(*bench.heading, copy / 1e9, flops, hops)


OPERATOR = Option("operator", str, "Dirac operator.", choices=tuple(dirac_operators()))

NUMBERS = (
    Option("kappa", float, "Hopping parameter.", usual=KAPPA, least=0, most=LARGEST),
    Option("m", float, "Mass of the quark.", usual=0.04, least=0, most=LARGEST),
)
"""The numbers that make quarks lighter or heavier, for operators with either."""

FEW, MANY, LEAST_TIMES = 5, 15, 3
"""Iterations of a solver that are timed together, from a new start, and the least number of such
pairs. Their difference is that of iterations alone, without what solvers do when they begin and
halt. Links are random: after 20, squares of the residual are too small for single precision."""

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
        return (
            OPERATOR,
            *merged(parameters_by_owner("Dirac operator", dirac_operators())),
            *NUMBERS,
        )

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
    iteration_bytes: float = result_field("Bytes if each kernel moves every number once.")
    gb_per_s: float = result_field("The same in GB/s.")
    tflops: float = result_field("10^12 operations of hopping terms per second.")
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
    gb_per_s: float = result_field("Its bytes if every number is moved once, in GB/s.")
    bytes_per_site: float = result_field("These bytes, for a site of the result.")
    share: float = result_field("Those bytes in units of the bandwidth of a copy.")
    wilson_tflops: float = result_field("10^12 operations per second for Wilson fermions.")
    hop_s: float = result_field("Time of the hopping term on one parity, in seconds.")
    operator_s: float = result_field("Time of the operator on the even sites, in seconds.")
    rest: float = result_field("Part of that time that is not that of its two hopping terms.")
    operator_tflops: float = result_field("10^12 operations of hopping terms in it per second.")
    solvers: list[IterationTime] = result_field("Times of an iteration, by solver.")


@documented
@dataclass(frozen=True)
class OperatorTime(QuarksResult):
    """Times of a Dirac operator and of solvers."""

    operator: str = result_field("The operator with its parameters.")
    fifth: int = result_field("Extent of the fifth direction; 1 if there is none.")
    reals: int = result_field("Stored reals per link.")
    columns: int = result_field("Columns of a propagator, one for each spin and colour.")
    parts: list[OperatorParts] = result_field("Times by type of storage.")

    @property
    def rates(self) -> list[Timing]:
        """The operations per second of hopping terms; see `BenchResult`."""
        rates = []
        for part in self.parts:
            speeds: list[tuple[str, float | None, float | None]] = [
                ("hopping term", part.hop_tflops, part.share),
                ("operator", part.operator_tflops, None),
            ]
            for x in part.solvers:
                together = f"{x.solver} of {self.columns} vectors"
                speeds += [(x.solver, x.tflops, None), (together, x.together_tflops, None)]
            rates += [
                Timing(f"{name}, {part.storage}", rate, share, part.storage)
                for name, rate, share in speeds
                if rate
            ]
        return rates

    def report(self) -> list[Any]:
        """Return a line and a table, with a column for each type of storage."""
        parts = self.parts
        rows = {
            "hopping term, TFLOP/s": [f"{x.hop_tflops:.3g}" for x in parts],
            "in units of Wilson's": [f"{x.hop_tflops / x.wilson_tflops:.3g}" for x in parts],
            "bytes per site": [f"{x.bytes_per_site:g}" for x in parts],
            "GB/s": [f"{x.gb_per_s:.4g}" for x in parts],
            "of a copy": [f"{x.share:.0%}" for x in parts],
            "operator, ms": [f"{1e3 * x.operator_s:.4g}" for x in parts],
            "besides hopping terms": [f"{x.rest:.0%}" for x in parts],
            "operator, TFLOP/s": [f"{x.operator_tflops:.3g}" for x in parts],
        }
        for solvers in zip(*(part.solvers for part in parts), strict=True):
            name, times = solvers[0].solver, [f"{1e3 * x.iteration_s:.4g}" for x in solvers]
            rows |= {
                f"iteration of {name}, ms": times,
                f"{name}: operators in it": [f"{x.operators:.0%}" for x in solvers],
                f"{name}: launches": [str(x.launches or "–") for x in solvers],
                f"{name}: MB moved": [f"{x.iteration_bytes / 1e6:.4g}" for x in solvers],
                f"{name}: GB/s": [f"{x.gb_per_s:.4g}" for x in solvers],
                f"{name}: TFLOP/s": [f"{x.tflops:.3g}" for x in solvers],
            }
            if all(x.together_tflops for x in solvers):
                together = [f"{x.together_tflops:.3g}" for x in solvers]
                rows[f"{name}: TFLOP/s of {self.columns} vectors"] = together
        columns = {part.storage: f"{{{n}}}" for n, part in enumerate(parts, 1)}
        table = table_of({"": "{0}"} | columns, [(name, *row) for name, row in rows.items()])
        return [f"{self.operator}: {self.subject}; copy {self.copy_gb_per_s:.4g} GB/s", table]


def operator_time(bench: Bench, timed: TimedOperator) -> OperatorTime:
    """Time a Dirac operator and solvers with all types of storage.

    Links are random, since times do not depend on them.
    """
    timer = OperatorTimer(bench.of(1 + len(STORAGES)), timed)
    parts = [timer.parts(storage) for storage in STORAGES.values()]
    group, fifth, copy = timer.field.group, timer.dirac.fifth or 1, timer.copy / 1e9
    flops, columns = flops_per_site(group.colours), SPINS * group.colours
    form = timed.description, fifth, group.components
    return OperatorTime(*bench.heading, copy, flops, *form, columns, parts)


class OperatorTimer:
    """What times an operator and solvers for it on random links."""

    def __init__(self, bench: Bench, timed: TimedOperator) -> None:
        self.bench, self.timed, self.copy = bench, timed, bench.copy()
        self.field = Field.hot(bench.lattice, bench.group, "double", bench.devices)
        self.dirac = timed.made(self.field)
        self._extent, self._sites = self.dirac.fifth or 1, self.field.lattice.sites / 2
        self._tera = self._sites * flops_per_site(self.field.group.colours) / 1e12
        self._single, self._columns = self.source(1), self.columns()

    def source(self, vectors: int) -> SpinorField:
        """Return random vectors; see `SpinorField.put_equal_slices`."""
        source = SpinorField.empty(self.field, count=vectors, fifth=self.dirac.fifth)
        source.put_equal_slices()
        return source

    def columns(self) -> SpinorField | None:
        """Return the sources of all columns of a propagator, if there is memory to solve them."""
        devices, vectors = self.field.devices, SPINS * self.field.group.colours
        spinors = SOLVER_FIELDS * vectors * self.field.lattice.sites // 2
        required = spinors * storage_of("double").bytes(2 * vectors)
        free = [device.free_bytes() for device in devices.devices]
        shared = devices.devices[0].in_host_memory
        available = free[0] if shared else sum(free) * devices.processes.size
        return None if self.dirac.fifth or required > available else self.source(vectors)

    def parts(self, storage: Storage) -> OperatorParts:
        """Return the times in one type of storage."""
        self.bench.begin(f"{self.timed.operator}, {storage.name} precision")
        hop_s, plain = self._hop_seconds(self.dirac, storage), DiracOperator(self.field, KAPPA)
        wilson_s = self._hop_seconds(plain, storage)
        plain.release()
        seconds = self._applications(storage)
        operator_s, tera = seconds[True, False], self._extent * self._tera
        bytes_per_site = self._links(storage) / self._extent + 2 * self._spinor(storage)
        speed = self._sites * self._extent * bytes_per_site / hop_s
        rates = tera / hop_s, speed / 1e9, bytes_per_site, speed / self.copy
        rest, tflops = max(0.0, 1 - 2 * hop_s / operator_s), 2 * tera / operator_s
        times = self._tera / wilson_s, hop_s, operator_s, rest, tflops
        solvers = [self._iteration(kind, storage, seconds) for kind in SOLVERS.values()]
        return OperatorParts(storage.name, *rates, *times, solvers)

    def _spinor(self, storage: Storage) -> float:
        """Return the bytes of a spinor."""
        return storage.bytes(2 * SPINS * self.field.group.colours)

    def _links(self, storage: Storage) -> float:
        """Return the bytes of the links of a site that a hopping term reads."""
        return 8 * storage.unit_bytes(self.field.group.components)

    def _hop_seconds(self, dirac: DiracOperator, storage: Storage) -> float:
        source = SpinorField.empty(self.field, storage.name, 1, ODD, dirac.fifth)
        term = dirac.prepared(storage.name).prepare_term(source.like(parity=0), source, 0)
        return self.bench.time(term)

    def _applications(self, storage: Storage) -> dict[tuple[bool, bool], float]:
        """Return the seconds of what solvers apply, by `uses_adjoint` and by `dagger`."""
        source = SpinorField.empty(self.field, storage.name, 1, EVEN, self.dirac.fifth)
        target, adjoint = source.like(), {kind.uses_adjoint for kind in SOLVERS.values()}
        applications = {}
        for uses, dagger in [(True, False), *((x, x) for x in sorted(adjoint))]:
            reduced = self.dirac.reduced(uses, storage.name)
            applications[uses, dagger] = self.bench.time(reduced.apply(target, source, dagger))
        return applications

    def _iteration(
        self, kind: type[Solver], storage: Storage, seconds: Mapping[tuple[bool, bool], float]
    ) -> IterationTime:
        """Return the time of an iteration, given those of the operators."""
        reduced = self.dirac.reduced(kind.uses_adjoint, storage.name)
        both_s = sum(seconds[kind.uses_adjoint, x] for x in (False, kind.uses_adjoint))
        alone_s = self._iteration_seconds(kind, storage, self._single)
        together_s = together = None
        if self._columns is not None:
            together_s = self._iteration_seconds(kind, storage, self._columns)
            together = 4 * self._columns.count * self._tera / together_s
        vectors = 2 * reduced.vectors_moved + kind.vectors_moved
        each = self._extent * vectors * self._spinor(storage) + 4 * self._links(storage)
        moved, tflops = self._sites * each, 4 * self._extent * self._tera / alone_s
        launches = launches_per_iteration(kind, self.timed, self.field, storage.name)
        alone = kind.name, alone_s, both_s / alone_s, launches, moved, moved / alone_s / 1e9, tflops
        return IterationTime(*alone, together_s, together)

    def _iteration_seconds(
        self, kind: type[Solver], storage: Storage, source: SpinorField
    ) -> float:
        """Return the median time of an iteration, in seconds, from those of `FEW` and `MANY`."""
        devices, solver = self.field.devices, _solver(kind, self.dirac, storage.name, source)

        def timed(times: int) -> float:
            solver.restart()
            return elapsed(devices, solver.repeat, times)

        timed(FEW), timed(MANY)  # which loads kernels and records launches
        samples: list[float] = []
        end, more = time.perf_counter() + self.bench.seconds, devices.processes.broadcast
        while len(samples) < LEAST_TIMES or more(time.perf_counter() < end):
            few, many = timed(FEW), timed(MANY)
            samples.append((many - few) / (MANY - FEW))
        return statistics.median(samples)


def _solver(
    kind: type[Solver], operator: DiracOperator, precision: str, source: SpinorField
) -> Solver:
    """Return a solver for a right-hand side, ready to begin."""
    system = System(operator, source, kind.uses_adjoint)
    outer = Residual(system.reduced, system.preconditioned)
    request = SolverParameters(inner=precision)
    return kind(outer, system.reduced_operator(precision), request)


def launches_per_iteration(
    kind: type[Solver], timed: TimedOperator, like: Field, precision: str
) -> int:
    """Return the number of kernels that an iteration launches on the first device in a rehearsal.

    It is 0 if several processes share the lattice.
    """
    if like.devices.processes.size > 1:
        return 0
    actors = [RehearsalDevice(device) for device in like.devices.devices]
    stage = DeviceGroup(tuple(cast(Device, x) for x in actors), slices=like.devices.slices)
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


class QuarkBench(BenchKind):
    """The hopping term, or a Dirac operator with its solvers."""

    name = "quarks"
    options = (
        Option(
            "quarks",
            bool,
            "Time the hopping term of Wilson fermions instead, with all types of storage, for one "
            "vector and for twelve.",
            usual=False,
        ),
        Option(
            "operator",
            str,
            "With --quarks: time this Dirac operator instead, its parts and an iteration of "
            "conjugate gradients.",
            default="parameters as in domain-wall:LS=16,M5=1.8,m=0.04",
            metavar="OPERATOR:PARAMETERS",
        ),
    )
    results = (f"{__name__}:QuarksTime", f"{__name__}:OperatorTime")

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse an operator that does not exist; see `BenchKind.check`."""
        super().check(values)
        if values.get("operator"):
            TimedOperator.parse(values["operator"])

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the operator, or the hopping term."""
        if values.get("operator"):
            return operator_time(bench, TimedOperator.parse(values["operator"]))
        return quarks_time(bench)


QUARKS = QuarkBench()


RHO = 1.4
"""rho of the kernel, on which the times of polynomials do not depend."""

EDGE, NORM = 0.1, 2.5
"""Ends of the interval of |eigenvalues| of gamma_5 M for which the sign is approximated."""

ACCURACIES, MODES = (1e-2, 1e-6), (0, 20)
"""Errors of the approximations, and numbers of projected modes."""

LEAST_EXTENT = 4
"""Smallest extent of lattices that are timed besides."""


@documented
@dataclass(frozen=True)
class HermitianTime:
    """The time of an application of H on a lattice."""

    lattice: str = result_field("Extents of the lattice.")
    vectors: int = result_field("Number of vectors at once, for each of which times are.")
    hop_ns: float = result_field("Time of the hopping term alone in ns per site.")
    kernel_ns: float = result_field("Time of an application of H in ns per site.")
    ratio: float = result_field("The second time divided by the first.")


@documented
@dataclass(frozen=True)
class SignTime:
    """The time of a sign function."""

    approximation: str = result_field("Name of the approximation.")
    accuracy: float = result_field("Its largest error.")
    size: int = result_field("Its degree, or its number of poles.")
    modes: int = result_field("Number of modes that are projected.")
    vectors: int = result_field("Number of vectors at once, for each of which times are.")
    steps: int = result_field("Number of applications of H^2.")
    ns: float = result_field("Time in ns per site and vector.")
    ns_per_step: float = result_field("Time in ns per site, vector and step.")
    share: float = result_field("Part of the time that its applications of H take alone.")
    model: float = result_field(
        "Vectors that it moves by the model, divided by those of the first."
    )
    measured: float = result_field("Its time, divided by that of the first one in the list.")


@documented
@dataclass(frozen=True)
class ChiralTime(BenchResult):
    """Times of the sign function of overlap quarks, in double precision."""

    kernels: list[HermitianTime] = result_field("Times of H, by lattice, and of several vectors.")
    signs: list[SignTime] = result_field("Times of sign functions.")
    ns_per_mode: float = result_field("Time of the projection in ns per site and mode.")

    def report(self) -> list[Any]:
        """Return lines and tables of the times."""
        columns = {"lattice": "{0.lattice}", "vectors": "{0.vectors}"}
        columns |= {"hop\nns/site": "{0.hop_ns:.4g}", "H\nns/site": "{0.kernel_ns:.4g}"}
        kernels = table_of(columns | {"ratio": "{0.ratio:.4g}"}, zip(self.kernels))
        columns = {"sign\nfunction": "{0.approximation}{1}", "error": "{0.accuracy:g}"}
        columns |= {name: f"{{0.{name}}}" for name in ("size", "modes", "steps")}
        columns |= {"ns per\nstep": "{0.ns_per_step:.4g}", "part\nof H": "{0.share:.0%}"}
        columns |= {"time": "{0.measured:.3g}", "model": "{0.model:.3g}"}
        several = [f" ×{sign.vectors}" if sign.vectors > 1 else "" for sign in self.signs]
        signs = table_of(columns, zip(self.signs, several, strict=True))
        title = f"sign function of overlap quarks, {self.subject}, double precision"
        modes = (
            f"a projected mode takes {self.ns_per_mode:.3g} ns per site; times are those per site "
            f"and vector, and ×n says that n are computed at once"
        )
        return [title, kernels, signs, modes]


def smaller_lattices(lattice: Lattice) -> list[Lattice]:
    """Return a lattice and those with half its extents, as long as they are even and not tiny."""
    lattices = [lattice]
    while all(n % 4 == 0 and n // 2 >= LEAST_EXTENT for n in lattices[-1].extents):
        lattices.append(Lattice(*(n // 2 for n in lattices[-1].extents)))
    return lattices


def chiral_time(bench: Bench) -> ChiralTime:
    """Time the sign function of overlap quarks and its parts; see `ChiralTime`."""
    lattice = bench.lattice
    kinds = [("polynomial", error, n, 1) for error in ACCURACIES for n in MODES]
    kinds += [("polynomial", ACCURACIES[-1], n, TOGETHER) for n in MODES]
    kinds += [(name, ACCURACIES[-1], 0, 1) for name in APPROXIMATIONS if name != kinds[0][0]]
    volumes = [(x, 1) for x in smaller_lattices(lattice)] + [(lattice, TOGETHER)]
    bench = bench.of(len(volumes) + len(kinds))
    kernels = [kernel_time(bench, volume, count) for volume, count in volumes]
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    signs: list[SignTime] = []
    for name, error, number, count in kinds:
        bench.begin(f"{name}, error {error:g}, {number} modes, vectors {count}")
        operator = HermitianOperator(Wilson(field, 1 / (8 - 2 * RHO)).prepared())
        source = _random_vectors(field, count)
        target, modes = source.like(), _modes(source, number)
        function = SignFunction(operator, modes, error, name)
        call = function.apply(target, source)
        call()
        steps, kernel_ns = function.approximation.steps, kernels[0 if count == 1 else -1].kernel_ns
        ns = 1e9 * bench.time(call) / lattice.sites / count
        form = name, error, function.approximation.size, number, count, steps
        times = ns, ns / steps, (2 * steps + 1) * kernel_ns / ns
        cost, unit = (APPROXIMATIONS[x].cost(modes, y) for x, y, *_ in ((name, error), kinds[0]))
        signs.append(SignTime(*form, *times, cost / unit, ns / signs[0].ns if signs else 1.0))
    per_mode = (signs[1].ns - signs[0].ns) / MODES[1]
    return ChiralTime(*bench.heading, kernels, signs, per_mode)


def kernel_time(bench: Bench, lattice: Lattice, count: int) -> HermitianTime:
    """Return the time of H, and that of the hopping term alone."""
    bench.begin(f"H on {lattice}, vectors {count}")
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    prepared = Wilson(field, 1 / (8 - 2 * RHO)).prepared()
    source = _random_vectors(field, count)
    target = source.like()
    hops = [prepared.prepare(target, source, parity) for parity in (EVEN, ODD)]
    hop, kernel = (
        1e9 * bench.time(*calls) / lattice.sites / count
        for calls in (hops, [HermitianOperator(prepared).apply(target, source)])
    )
    return HermitianTime(str(lattice), count, hop, kernel, kernel / hop)


def _random_vectors(field: Field, count: int) -> SpinorField:
    """Return equal random vectors."""
    vectors, vector = SpinorField.empty(field, count=count), random_vector(SpinorField.empty(field))
    for n in range(count):
        vectors.copy(vector, to=n)
    return vectors


def _modes(like: SpinorField, number: int) -> KernelModes:
    """Return so many vectors of the norm 0 as modes, and the interval of all others."""
    vectors = SpinorField.empty(like.field, like.storage.name, number) if number else None
    values = np.full(number, EDGE / 2)
    return KernelModes(values, np.zeros(number), vectors, EDGE, NORM, values, 1.0, EDGE, 0)


class ChiralBench(BenchKind):
    """The sign function of overlap quarks."""

    name = "chiral"
    options = (
        Option(
            "chiral",
            bool,
            "Time the sign function of overlap quarks instead: its kernel by volume, polynomials "
            "by degree, and low modes.",
            usual=False,
        ),
    )
    results = (f"{__name__}:ChiralTime",)

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the sign function."""
        return chiral_time(bench)


CHIRAL = ChiralBench()
