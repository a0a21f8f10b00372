"""A benchmark: the time of a hot start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gauge_mc.benchmarks import BenchKind
from gauge_mc.benchmarks.timing import Bench, BenchResult
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class StartsTime(BenchResult):
    """The time of a start."""

    start_s: float = result_field("Time of a hot start in seconds.")

    def report(self) -> list[Any]:
        """Return the time in words."""
        return [f"hot start on {self.device}: {1e3 * self.start_s:.4g} ms"]


class StartsBench(BenchKind):
    """Hot starts in single precision."""

    name = "starts"
    options = (Option("starts", bool, "Time hot starts instead.", usual=False),)
    results = (f"{__name__}:StartsTime",)

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> StartsTime:
        """Return the time."""
        links = bench.lattice, bench.group, "single", bench.devices
        return StartsTime(*bench.heading, bench.time(lambda: Field.hot(*links)))


STARTS = StartsBench()
