"""The benchmarks of quarks: the hopping term, a Dirac operator, and the sign function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc.benchmarks import BenchKind
from gauge_mc.benchmarks.timing import Bench, BenchResult
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.matrices.hopping import EVEN, ODD
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator
from gauge_mc.extensions.quarks.modes.low_modes import random_vector
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.overlap.solver import TOGETHER
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field

if TYPE_CHECKING:
    from rich.table import Table

    from gauge_mc.extensions.quarks.benchmarks.operators import OperatorTime, QuarksTime


HERE = __name__.rpartition(".")[0]


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
    results = (f"{HERE}.operators:QuarksTime", f"{HERE}.operators:OperatorTime")

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse an operator that does not exist; see `BenchKind.check`."""
        super().check(values)
        if values.get("operator"):
            from gauge_mc.extensions.quarks.benchmarks.operators import TimedOperator

            TimedOperator.parse(values["operator"])

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the operator, or the hopping term."""
        from gauge_mc.extensions.quarks.benchmarks.operators import (
            TimedOperator,
            operator_time,
            quarks_time,
        )

        if values.get("operator"):
            return operator_time(bench, TimedOperator.parse(values["operator"]))
        return quarks_time(bench)

    def report(self, found: Any) -> list[Any]:
        """Return lines and a table that show the times."""
        return operator_report(found) if hasattr(found, "parts") else hopping_report(found)


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
    results = (f"{HERE}.kinds:ChiralTime",)

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the sign function."""
        return chiral_time(bench)

    def report(self, found: Any) -> list[Any]:
        """Return lines and tables that show the times."""
        return chiral_report(found)


QUARKS, CHIRAL = QuarkBench(), ChiralBench()


def _table(first: str, headings: Iterable[str]) -> Table:
    """Return a table without rows, of a column that is not wrapped and some with numbers."""
    from rich.table import Table

    table = Table()
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def chiral_report(timing: ChiralTime) -> list[Any]:
    """Return the tables of the sign function."""
    kernels = _table("lattice", ("vectors", "hop\nns/site", "H\nns/site", "ratio"))
    for kernel in timing.kernels:
        times = (kernel.hop_ns, kernel.kernel_ns, kernel.ratio)
        kernels.add_row(kernel.lattice, f"{kernel.vectors}", *(f"{value:.4g}" for value in times))
    headings = "error", "size", "modes", "steps", "ns per\nstep", "part\nof H", "time", "model"
    signs = _table("sign\nfunction", headings)
    for sign in timing.signs:
        row = (f"{sign.accuracy:g}", str(sign.size), str(sign.modes), str(sign.steps))
        values = (f"{sign.ns_per_step:.4g}", f"{sign.share:.0%}")
        ratios = (f"{sign.measured:.3g}", f"{sign.model:.3g}")
        several = f" ×{sign.vectors}" if sign.vectors > 1 else ""
        signs.add_row(sign.approximation + several, *row, *values, *ratios)
    title = f"sign function of overlap quarks, {timing.group.upper()} {timing.lattice}"
    modes = (
        f"a projected mode takes {timing.ns_per_mode:.3g} ns per site; times are those per site "
        f"and vector, and ×n says that n are computed at once"
    )
    return [f"{title} on {timing.device}, double precision", kernels, signs, modes]


def hopping_report(timing: QuarksTime) -> list[Any]:
    """Return the table of hopping terms."""
    registers = any(hop.registers is not None for hop in timing.hops)
    headings = ["reals\nper link", "vectors", "TFLOP/s", "GB/s", "of a copy"]
    table = _table("spinors and links", headings + ["regs", "spill"] * registers)
    for hop in timing.hops:
        row = [hop.storage, str(hop.reals), str(hop.vectors), f"{hop.tflops:.3g}"]
        row += [f"{hop.gb_per_s:.4g}", f"{hop.share:.0%}"]
        row += ["–" if n is None else str(n) for n in (hop.registers, hop.spilled)] * registers
        table.add_row(*row)
    title = (
        f"hopping term on one parity, {timing.group.upper()} {timing.lattice} on {timing.device}"
    )
    return [f"{title}; copy {timing.copy_gb_per_s:.4g} GB/s", table]


def operator_report(timing: OperatorTime) -> list[Any]:
    """Return the table of an operator and its solvers."""
    parts = timing.parts
    table = _table("", [part.storage for part in parts])
    rows = {
        "hopping term, TFLOP/s": [f"{part.hop_tflops:.3g}" for part in parts],
        "in units of Wilson's": [f"{part.hop_tflops / part.wilson_tflops:.3g}" for part in parts],
        "bytes per site": [f"{part.bytes_per_site:g}" for part in parts],
        "GB/s": [f"{part.gb_per_s:.4g}" for part in parts],
        "of a copy": [f"{part.share:.0%}" for part in parts],
        "operator, ms": [f"{1e3 * part.operator_s:.4g}" for part in parts],
        "besides hopping terms": [f"{part.rest:.0%}" for part in parts],
        "operator, TFLOP/s": [f"{part.operator_tflops:.3g}" for part in parts],
    }
    for number, first in enumerate(parts[0].solvers):
        solvers = [part.solvers[number] for part in parts]
        rows |= {
            f"iteration of {first.solver}, ms": [f"{1e3 * x.iteration_s:.4g}" for x in solvers],
            f"{first.solver}: operators in it": [f"{x.operators:.0%}" for x in solvers],
            f"{first.solver}: launches": [str(x.launches or "–") for x in solvers],
            f"{first.solver}: MB moved": [f"{x.iteration_bytes / 1e6:.4g}" for x in solvers],
            f"{first.solver}: GB/s": [f"{x.gb_per_s:.4g}" for x in solvers],
            f"{first.solver}: TFLOP/s": [f"{x.tflops:.3g}" for x in solvers],
        }
        if all(x.together_tflops for x in solvers):
            name = f"{first.solver}: TFLOP/s of {timing.columns} vectors"
            rows[name] = [f"{x.together_tflops:.3g}" for x in solvers]
    for name, values in rows.items():
        table.add_row(name, *values)
    where = f"{timing.group.upper()} {timing.lattice} on {timing.device}"
    return [f"{timing.operator}: {where}; copy {timing.copy_gb_per_s:.4g} GB/s", table]


RHO = 1.4
"""rho of the kernel, on which the times of polynomials do not depend."""

EDGE, NORM = 0.1, 2.5
"""Ends of the interval of |eigenvalues| of gamma_5 M for which the sign is approximated."""

ACCURACIES = (1e-2, 1e-6)
"""Errors of the approximations."""

MODES = (0, 20)
"""Numbers of projected modes."""

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
        "Vectors that it reads or writes by the model of the cost, divided by those of the first "
        "sign function in the list."
    )
    measured: float = result_field("Its time, divided by that of the first one in the list.")


@documented
@dataclass(frozen=True)
class ChiralTime(BenchResult):
    """Times of the sign function of overlap quarks, in double precision."""

    kernels: list[HermitianTime] = result_field(
        "Times of H, the largest lattice first, and then those of several vectors on it."
    )
    signs: list[SignTime] = result_field("Times of sign functions.")
    ns_per_mode: float = result_field("Time of the projection in ns per site and mode.")


def smaller_lattices(lattice: Lattice) -> list[Lattice]:
    """Return a lattice and those with half its extents, as long as they are even and not tiny."""
    lattices = [lattice]
    while all(n % 4 == 0 and n // 2 >= LEAST_EXTENT for n in lattices[-1].extents):
        lattices.append(Lattice(*(n // 2 for n in lattices[-1].extents)))
    return lattices


def chiral_time(bench: Bench) -> ChiralTime:
    """Time the sign function of overlap quarks and its parts; see `ChiralTime`."""
    lattice = bench.lattice
    signs = [("polynomial", error, n, 1) for error in ACCURACIES for n in MODES]
    signs += [("polynomial", ACCURACIES[-1], n, TOGETHER) for n in MODES]
    signs += [(name, ACCURACIES[-1], 0, 1) for name in APPROXIMATIONS if name != signs[0][0]]
    volumes = [(x, 1) for x in smaller_lattices(lattice)] + [(lattice, TOGETHER)]
    bench = bench.of(len(volumes) + len(signs))
    kernels = []
    for volume, count in volumes:
        bench.begin(f"H on {volume}, vectors {count}")
        kernels.append(_kernel_time(bench, volume, count))
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    times: list[SignTime] = []
    for name, error, number, count in signs:
        bench.begin(f"{name}, error {error:g}, {number} modes, vectors {count}")
        kernel = kernels[0 if count == 1 else -1]
        times.append(_sign_time(bench, field, name, error, number, kernel, times[:1]))
    without, with_modes = times[:2]
    per_mode = (with_modes.ns - without.ns) / MODES[1]
    return ChiralTime(*bench.heading, kernels, times, per_mode)


def _kernel_time(bench: Bench, lattice: Lattice, count: int) -> HermitianTime:
    """Return the time of H, and that of the hopping term alone."""
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


def _sign_time(
    bench: Bench,
    field: Field,
    name: str,
    error: float,
    number: int,
    kernel: HermitianTime,
    first: list[SignTime],
) -> SignTime:
    """Return the time of a sign function with modes that only take the time of modes."""
    operator = HermitianOperator(Wilson(field, 1 / (8 - 2 * RHO)).prepared())
    source = _random_vectors(field, kernel.vectors)
    modes = _modes(source, number)
    sign = SignFunction(operator, modes, error, name)
    target = source.like()
    call = sign.apply(target, source)
    call()
    steps = sign.approximation.steps
    ns = 1e9 * bench.time(call) / field.lattice.sites / kernel.vectors
    begin = (first[0].approximation, first[0].accuracy) if first else (name, error)
    cost, unit = (APPROXIMATIONS[kind].cost(modes, x) for kind, x in ((name, error), begin))
    form = name, error, sign.approximation.size, number, kernel.vectors, steps
    times = ns, ns / steps, (2 * steps + 1) * kernel.kernel_ns / ns
    return SignTime(*form, *times, cost / unit, ns / first[0].ns if first else 1.0)


def _random_vectors(field: Field, count: int) -> SpinorField:
    """Return so many equal random vectors."""
    vectors, vector = SpinorField.empty(field, count=count), random_vector(SpinorField.empty(field))
    for n in range(count):
        vectors.copy(vector, to=n)
    return vectors


def _modes(like: SpinorField, number: int) -> KernelModes:
    """Return so many vectors of the norm 0 as modes, and the interval of all others."""
    vectors = SpinorField.empty(like.field, like.storage.name, number) if number else None
    values = np.full(number, EDGE / 2)
    return KernelModes(values, np.zeros(number), vectors, EDGE, NORM, values, 1.0, EDGE, 0)
