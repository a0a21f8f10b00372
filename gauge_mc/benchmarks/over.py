"""A benchmark over the values of one option, such as the number of devices."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from gauge_mc import defaults
from gauge_mc.benchmarks.timing import BenchResult, Timing, table_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import json_with, parse_json
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.parameters import Parameters

MAX_SAVED = 2**20
SAVED = FileKind("a result of bench", json_with(("device", "group", "lattice"), MAX_SAVED))
"""Maximum size in bytes and kind of the files that ``gauge-mc bench --save`` writes."""

NAMES = ("device", "group", "lattice", "precision", "random")
"""Keys of the file that are words."""


@dataclass(frozen=True)
class SavedBenchmark:
    """Times of kernels that were measured before."""

    words: Mapping[str, str]
    """Where and how they were measured, by key; see `NAMES`."""
    times: Mapping[str, float]
    """Times in ns per link, by kernel."""

    @classmethod
    def read(cls, path: Path) -> SavedBenchmark:
        """Read a file that ``gauge-mc bench --save`` has written."""
        try:
            json = parse_json(read_text(path, MAX_SAVED))
            times = {str(x["name"]): float(x["ns_per_link"]) for x in json["kernels"]}
            if not all(0 < time < math.inf for time in times.values()):
                raise ValueError
            return cls({name: str(json[name]) for name in NAMES}, times)
        except (GaugeError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise UsageError(
                f"{path} is not a result of gauge-mc bench; write one with --save."
            ) from error

    def ns_per_link(self, parameters: Parameters, device: str) -> float | None:
        """Return the time of a link update in ns if a run did nothing but its sweeps.

        It is None if the benchmark has another group, precision, generator or device, or the time
        of an update does not follow from those of sweeps.
        """
        p = parameters
        words = {"group": p.group, "precision": p.precision, "random": p.rng, "device": device}
        action = f", {p.action.said}" if p.action.tags(defaults.ACTION) else ""
        counts = {f"{name}{action}": n for name, n in p.algorithm.timed_sweeps.items() if n}
        if not (words.items() <= self.words.items() and counts and counts.keys() <= {*self.times}):
            return None
        return sum(n * self.times[name] for name, n in counts.items()) / p.algorithm.sweeps


AXES: Mapping[str, str] = {
    "lattice": "number of sites",
    "devices": "number of devices",
    "threads": "number of threads",
    "precision": "precision",
}
"""Options over whose values a benchmark goes, with the label of the abscissa."""

SHARED, MOST = ("devices", "threads"), 32
"""Those that divide the work, and the largest number of values."""


class BenchAxis(NamedTuple):
    """An option with the values that it has one after the other."""

    name: str
    """One of `AXES`."""
    values: Mapping[str, float]
    """The abscissa of each value, as it is given to the command."""
    weak: bool = False
    """Whether the lattice extends along t with the number of devices or threads."""

    @classmethod
    def parse(cls, text: str, weak: bool = False) -> Self:
        """Read an axis, such as ``devices=1,2,4``."""
        name, _, rest = text.partition("=")
        name, values = name.strip(), [x for word in rest.split(",") if (x := word.strip())]
        if name not in AXES or not values:
            raise UsageError(
                f"--over must be {in_words(AXES, 'or')} with values, as in devices=1,2,4."
            )
        if len({*values}) < len(values) or len(values) > MOST:
            raise UsageError(f"--over must have different values, {MOST} at most.")
        if weak and name not in SHARED:
            raise UsageError(f"--weak is for --over {in_words(SHARED, 'or')}; leave it out.")
        counts = [value.removeprefix("cpu:") for value in values]
        if name == "precision":
            counts = [str(n) for n in range(len(values))]
        elif name == "lattice":
            counts = [str(Lattice.parse(value).sites) for value in values]
        elif not all(count.isdigit() and int(count) for count in counts):
            raise UsageError(f"--over {name} takes numbers, as in {name}=1,2,4.")
        return cls(name, dict(zip(values, map(float, counts), strict=True)), weak)

    def changes(self, lattice: Lattice) -> Iterator[dict[str, Any]]:
        """Yield the options of each benchmark, given the lattice without this axis."""
        readers: dict[str, Callable[[str], Any]] = {"threads": int, "lattice": Lattice.parse}
        read = readers.get(self.name, str)
        for value, number in self.values.items():
            longer = {"lattice": replace(lattice, t=lattice.t * int(number))} if self.weak else {}
            yield {self.name: read(value), **longer}


@documented
@dataclass(frozen=True)
class RateSeries:
    """The rates of one thing along the axis of a benchmark."""

    name: str = result_field("Name of the thing.")
    storage: str = result_field("Precision of spinors in it; empty if there is one for all things.")
    rates: list[float | None] = result_field("Its rates; None where it was not timed.")
    limits: list[float | None] = result_field("Rates with which a copy would move its bytes.")
    efficiencies: list[float | None] = result_field("Rates for each device, relative to the first.")


@documented
@dataclass(frozen=True)
class BenchSeries:
    """Benchmarks along an axis, made one after the other."""

    axis: str = result_field("Name of the option.")
    values: list[str] = result_field("Its values.")
    numbers: list[float] = result_field("Numbers of devices, threads or sites, or positions.")
    unit: str = result_field("Unit of the rates.")
    series: list[RateSeries] = result_field("Rates by thing.")
    title: str = result_field("What is compared.")
    results: list[BenchResult] = result_field("The benchmarks.")

    def report(self) -> list[Any]:
        """Return lines and a table of the rates."""

        def text(rate: float | None, part: float | None) -> str:
            share = f" ({part:.0%})" if part else ""
            return "–" if rate is None else f"{rate:.4g}{share}"

        rows = [(x.name, *map(text, x.rates, x.efficiencies)) for x in self.series]
        columns = {value: f"{{{n}}}" for n, value in enumerate(self.values, 1)}
        table = table_of({f"{self.unit}, by {self.axis}": "{0}"} | columns, rows)
        note = f"in brackets: for each of the {self.axis}, relative to the first column"
        return [self.title, table, *[note] * self._divided]

    def draw(self, file: Path) -> None:
        """Draw the rates along the axis."""
        from gauge_mc.plots.figures.curves import RateCurve, draw_rates

        def points(rates: Sequence[float | None]) -> list[tuple[float, float]]:
            return [(x, rate) for x, rate in zip(self.numbers, rates, strict=True) if rate]

        curves = []
        for x in self.series:
            label = ", ".join(word for word in x.name.split(", ") if word != x.storage)
            curves.append(RateCurve(label, points(x.rates), points(x.limits), x.storage))
        ticks = [*zip(self.numbers, self.values, strict=True)]
        draw_rates(curves, AXES[self.axis], self.unit, ticks, file, self.title, self._divided)

    @property
    def _divided(self) -> bool:
        """Whether the devices or threads have rates of their own."""
        return any(part for curve in self.series for part in curve.efficiencies)


def bench_over(
    axis: BenchAxis, lattice: Lattice, once: Callable[[Mapping[str, Any]], BenchResult]
) -> BenchSeries:
    """Carry out a benchmark for every value of an axis."""
    results = [once(changes) for changes in axis.changes(lattice)]
    rows = [{timing.name: timing for timing in result.rates} for result in results]
    if not all(rows):
        raise UsageError(
            "--over compares rates, which --end-to-end and others do not have; leave it out."
        )
    names = dict.fromkeys(name for timings in rows for name in timings)
    series = [_series([timings.get(name) for timings in rows], axis) for name in names]
    first = results[0]
    extents = f" {first.lattice}{f' for each of the {axis.name}' * axis.weak}"
    devices = Counter(re.sub(r" \(GPU \d+\)$", "", x) for x in results[-1].device.split(" + "))
    counted = " + ".join(f"{n} × {name}" if n > 1 else name for name, n in devices.items())
    title = f"{first.group.upper()}{extents * (axis.name != 'lattice')} on {counted}"
    along = axis.name, [*axis.values], [*axis.values.values()]
    return BenchSeries(*along, first.unit, series, title, results)


def _series(timings: Sequence[Timing | None], axis: BenchAxis) -> RateSeries:
    """Return the rates of one thing, which was timed at least once."""
    timing = next(x for x in timings if x)
    pairs = zip(timings, axis.values.values(), strict=True)
    each = [x.rate / n if x and axis.name in SHARED else None for x, n in pairs]
    first = next((x for x in each if x), None)
    return RateSeries(
        timing.name,
        timing.storage,
        [x.rate if x else None for x in timings],
        [x.bound if x else None for x in timings],
        [x / first if x and first else None for x in each],
    )
