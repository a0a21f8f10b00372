"""Benchmarks of the kernels, compared with the limit set by the memory bandwidth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gauge_mc.errors import UsageError
from gauge_mc.options import Option, check_named, merged
from gauge_mc.registry import Registry

if TYPE_CHECKING:
    from gauge_mc.benchmarks.timing import Bench, BenchResult


class BenchKind(ABC):
    """A kind of benchmark that an extension or another package declares."""

    name: str
    """Name of the option that chooses it."""
    options: tuple[Option, ...]
    """Its options; the first one chooses it."""
    results: tuple[str, ...]
    """Modules and names of the classes of its results, which derive from `BenchResult`."""

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse values of its options, or options without the one that chooses it.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        for option in self.options[1:]:
            if values.get(option.name) and not values.get(self.name):
                raise UsageError(
                    f"{option.flag} is for {self.options[0].flag}; add it, or leave out "
                    f"{option.flag}."
                )

    @abstractmethod
    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Return the times."""


BENCH_KINDS: Registry[BenchKind] = Registry(
    "kind of benchmark", __name__, BenchKind, lambda x: check_named(x.name, x.options[0])
)


def kind_options() -> tuple[Option, ...]:
    """Return the options of the kinds of benchmarks of extensions."""
    return merged((f"the benchmark {name}", x.options) for name, x in BENCH_KINDS.items())
