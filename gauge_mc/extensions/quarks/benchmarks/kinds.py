"""The benchmarks of quarks: the hopping term, a Dirac operator, and the sign function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gauge_mc.benchmarks import BenchKind
from gauge_mc.options import Option

if TYPE_CHECKING:
    from rich.table import Table

    from gauge_mc.benchmarks.timing import Bench, BenchResult
    from gauge_mc.extensions.quarks.benchmarks.chiral import ChiralTime
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
    results = (f"{HERE}.chiral:ChiralTime",)

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the sign function."""
        from gauge_mc.extensions.quarks.benchmarks.chiral import chiral_time

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


def chiral_report(found: ChiralTime) -> list[Any]:
    """Return the tables of the sign function."""
    kernels = _table("lattice", ("vectors", "hop\nns/site", "H\nns/site", "ratio"))
    for one in found.kernels:
        times = (one.hop_ns, one.kernel_ns, one.ratio)
        kernels.add_row(one.lattice, f"{one.vectors}", *(f"{value:.4g}" for value in times))
    headings = "error", "size", "modes", "steps", "ns per\nstep", "part\nof H", "time", "model"
    signs = _table("sign\nfunction", headings)
    for sign in found.signs:
        row = (f"{sign.accuracy:g}", str(sign.size), str(sign.modes), str(sign.steps))
        values = (f"{sign.ns_per_step:.4g}", f"{sign.share:.0%}")
        ratios = (f"{sign.measured:.3g}", f"{sign.model:.3g}")
        several = f" ×{sign.vectors}" if sign.vectors > 1 else ""
        signs.add_row(sign.approximation + several, *row, *values, *ratios)
    what = f"sign function of overlap quarks, {found.group.upper()} {found.lattice}"
    modes = (
        f"a projected mode takes {found.ns_per_mode:.3g} ns per site; times are those per site "
        f"and vector, and ×n says that n are computed at once"
    )
    return [f"{what} on {found.device}, double precision", kernels, signs, modes]


def hopping_report(found: QuarksTime) -> list[Any]:
    """Return the table of hopping terms."""
    registers = any(hop.registers is not None for hop in found.hops)
    headings = ["reals\nper link", "vectors", "TFLOP/s", "GB/s", "of a copy"]
    table = _table("spinors and links", headings + ["regs", "spill"] * registers)
    for hop in found.hops:
        row = [hop.storage, str(hop.reals), str(hop.vectors), f"{hop.tflops:.3g}"]
        row += [f"{hop.gb_per_s:.4g}", f"{hop.share:.0%}"]
        row += ["–" if n is None else str(n) for n in (hop.registers, hop.spilled)] * registers
        table.add_row(*row)
    what = f"hopping term on one parity, {found.group.upper()} {found.lattice} on {found.device}"
    return [f"{what}; copy {found.copy_gb_per_s:.4g} GB/s", table]


def operator_report(found: OperatorTime) -> list[Any]:
    """Return the table of an operator and its solvers."""
    parts = found.parts
    table = _table("", [one.storage for one in parts])
    rows = {
        "hopping term, TFLOP/s": [f"{one.hop_tflops:.3g}" for one in parts],
        "in units of Wilson's": [f"{one.hop_tflops / one.wilson_tflops:.3g}" for one in parts],
        "bytes per site": [f"{one.bytes_per_site:g}" for one in parts],
        "GB/s": [f"{one.gb_per_s:.4g}" for one in parts],
        "of a copy": [f"{one.share:.0%}" for one in parts],
        "operator, ms": [f"{1e3 * one.operator_s:.4g}" for one in parts],
        "besides hopping terms": [f"{one.rest:.0%}" for one in parts],
        "operator, TFLOP/s": [f"{one.operator_tflops:.3g}" for one in parts],
    }
    for number, first in enumerate(parts[0].solvers):
        own = [one.solvers[number] for one in parts]
        rows |= {
            f"iteration of {first.solver}, ms": [f"{1e3 * one.iteration_s:.4g}" for one in own],
            f"{first.solver}: operators in it": [f"{one.operators:.0%}" for one in own],
            f"{first.solver}: launches": [str(one.launches or "–") for one in own],
            f"{first.solver}: MB moved": [f"{one.iteration_bytes / 1e6:.4g}" for one in own],
            f"{first.solver}: GB/s": [f"{one.gb_per_s:.4g}" for one in own],
            f"{first.solver}: TFLOP/s": [f"{one.tflops:.3g}" for one in own],
        }
        if all(one.together_tflops for one in own):
            name = f"{first.solver}: TFLOP/s of {found.columns} vectors"
            rows[name] = [f"{one.together_tflops:.3g}" for one in own]
    for name, values in rows.items():
        table.add_row(name, *values)
    where = f"{found.group.upper()} {found.lattice} on {found.device}"
    return [f"{found.operator}: {where}; copy {found.copy_gb_per_s:.4g} GB/s", table]
