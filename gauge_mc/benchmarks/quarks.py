"""Benchmark of the hopping term of Wilson fermions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from gauge_mc.benchmarks.timing import Bench, BenchResult, Rate
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.quarks.operators import Wilson
from gauge_mc.quarks.vectors.spinors import SPINS, SpinorField
from gauge_mc.quarks.vectors.storage import STORAGES
from gauge_mc.quarks.vectors.transport import forms_of
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
        """The operations per second; see `RatedResult`."""
        kinds = [(one.storage, f"{one.reals} reals", f"vectors {one.vectors}") for one in self.hops]
        rates = [Rate(one.tflops, one.tflops / one.share, one.storage) for one in self.hops]
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
            used = hop.registers
            hops.append(
                HopTime(
                    storage.name,
                    numbers,
                    count,
                    rate * flops / 1e12,
                    moved / 1e9,
                    moved / copy,
                    used.count if used else None,
                    used.spilled if used else None,
                )
            )
    return QuarksTime(*bench.heading, copy / 1e9, flops, hops)
