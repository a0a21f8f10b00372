"""Compare fits of the static potential of many small ensembles with a long run of the same kind.

    gauge-mc generate --group su2 --beta 2.4 --lattice 12x12x12x16 --configs 120 --separation 5 \
        --format none --measure wilson-loops:5 --chains 100 --output small
    gauge-mc generate --group su2 --beta 2.4 --lattice 12x12x12x16 --configs 32000 --separation 5 \
        --format none --measure wilson-loops:5 --seed 5001 --output long
    python tests/tools/fit_coverage.py long small/*

A pull is the deviation from the long run in units of the errors of both in quadrature. Those of the
small ensemble are the statistical one alone, that with the error of the range of t, and that with
the error of the window and the form of 1/R as well. The latter is the same for all ensembles and
for the long run, whose window and form are the same: pulls with it are too small, and it has to be
compared with other determinations. The plateaus of the long run all begin at --t-min.
"""

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.fit import fit_potential, potential_plateaus
from gauge_mc.quantities.potential.analysis.loop_tables import read_loops
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential

QUANTITIES = {"root_sigma": "√σ a", "r0": "r₀/a"}
"""The quantities of fits that are compared, and their symbols."""

FITS = {"free": "B free", "string": "B = −π/12", "nambu_goto": "Nambu–Goto"}
"""The fits that are compared, by the names of their attributes."""


@dataclass(frozen=True)
class Pull:
    """A deviation from the long run, and the errors of both."""

    deviation: float
    statistical: float
    ranges: float
    window: float
    long: float

    def by(self, errors: str) -> float:
        """Return the deviation in units of the error of the long run and of the named ones."""
        return self.deviation / math.hypot(
            self.long, *(getattr(self, one) for one in errors.split())
        )


COLUMNS = ("statistical", "statistical ranges", "statistical ranges window")
"""The errors of the small ensembles that are taken into account, as in `Pull.by`."""


def pulls(found: StaticPotential, truth: StaticPotential) -> Iterator[tuple[str, Pull]]:
    """Yield the pulls of V(R), of the fits that are trusted, and of the scales from the force."""
    known = {(one.path, one.steps): one.potential for one in truth.points}
    for point in found.points:
        if long := known.get((point.path, point.steps)):
            yield (
                "V(R)",
                Pull(
                    point.potential.value - long.value,
                    point.potential.error,
                    float(np.nan_to_num(point.systematic)),
                    0.0,
                    long.error,
                ),
            )
    for name, scan in found.fits.items():
        for quantity, symbol in QUANTITIES.items():
            value, other = getattr(scan.fit, quantity), getattr(truth.fits[name].fit, quantity)
            if math.isfinite(value.value):
                ranges = scan.fit.systematic.get(quantity, 0.0)
                window = scan.window.get(quantity, 0.0)
                yield (
                    f"{symbol}, {FITS[name]}",
                    Pull(value.value - other.value, value.error, ranges, window, other.error),
                )
    for quantity, symbol in QUANTITIES.items():
        if mean := found.averaged.get(quantity):
            other = getattr(truth.trusted().fit, quantity)
            change = mean.value.value - other.value
            yield (
                f"{symbol}, average",
                Pull(change, mean.value.error, 0.0, mean.systematic, other.error),
            )
    for name, scale in found.force_scales.items():
        if other := truth.force_scales.get(name):
            ranges, form = (float(np.nan_to_num(one)) for one in (scale.ranges, scale.systematic))
            change = scale.value.value - other.value.value
            yield (
                f"{name}/a, force",
                Pull(change, scale.value.error, ranges, form, other.value.error),
            )


def summary(found: Sequence[Pull]) -> str:
    """Return, for each kind of error, how many are within one and two of it, and the largest."""
    columns = []
    for errors in COLUMNS:
        size = np.abs([one.by(errors) for one in found])
        columns.append(f"{np.mean(size < 1):.0%}, {np.mean(size < 2):.0%}, {size.max():.1f}")
    return " | ".join(columns)


def compare(
    run: Path, truth: StaticPotential, average: bool
) -> tuple[list[tuple[str, Pull]], list[str]]:
    """Return the pulls of an ensemble, and why numbers were refused."""
    try:
        loops, _ = read_loops(run / "wilson_loops.csv")
        plateaus = potential_plateaus(loops, average=average)
        found = fit_potential(plateaus, loops, average=average)
    except GaugeError as error:
        return [], [str(error)]
    return [*pulls(found, truth)], [re.split(r"; | \(p", one)[0] for one in found.refused]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of the pulls of all ensembles, and why numbers were refused."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("long", type=Path, help="Run directory of the long run.")
    parser.add_argument("small", type=Path, nargs="+", help="Run directories of the ensembles.")
    parser.add_argument("--t-min", type=int, default=4, help="First t of the long run.")
    parser.add_argument("--r-min", type=float, default=2, help="Window of the long run.")
    parser.add_argument("--average", action="store_true", help="Average over ranges and windows.")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args(arguments)
    loops, _ = read_loops(given.long / "wilson_loops.csv")
    plateaus = potential_plateaus(loops, given.t_min, single=True)
    truth = fit_potential(plateaus, loops, given.r_min)
    collected: dict[str, list[Pull]] = defaultdict(list)
    refused: Counter[str] = Counter()
    compared = partial(compare, truth=truth, average=given.average)
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for found, reasons in pool.map(compared, given.small):
            refused.update(reasons)
            for name, pull in found:
                collected[name].append(pull)
    print(f"{truth.configurations} against {len(given.small)} ensembles; truth:")
    for name, scan in truth.fits.items():
        shown = (
            f"{QUANTITIES[one]} = {getattr(scan.fit, one)}({scan.systematic(one):.2g})"
            for one in QUANTITIES
        )
        print(f"    {FITS[name]}: {', '.join(shown)}")
    print(
        "| quantity | number | statistical | and range of t | and window |\n|---|---|---|---|---|"
    )
    for name, some in collected.items():
        print(f"| {name} | {len(some)} | {summary(some)} |")
    for reason, count in refused.most_common():
        print(f"{count} refused: {reason}")


if __name__ == "__main__":
    main()
