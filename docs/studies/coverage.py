"""How often errors contain the truth, on synthetic series; `lattice_coverage` takes real chains.

    python -m docs.studies.coverage [--chains 1000]

It prints how often the true value is within one and two errors, for series with N = 10, 20, 50 and
200 independent measurements (2 tau_int N samples), and how often a caution is shown. What is tested
are the program's functions.

Each line is a kind of series and a quantity:

- mean: the average of a series;
- ratio: that of two averages that fluctuate together, of the extension with quarks;
- mass: an effective mass, from the logarithm of two correlators;
- chi: a susceptibility;
- V(2), V(4), √σ, r₀: energies of Wilson loops with one state, and the scales of the potential, with
  total errors. `potential_coverage` has excited states.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from gauge_mc.analysis.timeseries import caution_slow, estimate, susceptibility
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.loop_tables import PathLoops, log_loops
from tests.analysis.synthetic_loops import SIGMA, B, potential, static_potential
from tests.samples import all_of

NUMBERS = (10, 20, 50, 200)
"""Numbers of independent measurements."""

WANTED = {1: (68.3, 3.0), 2: (95.4, 2.0)}
"""Percentages of normally distributed deviations within so many errors, and how far from them a
coverage may be, from 20 measurements on."""

Noise = Callable[[np.random.Generator, int, int], np.ndarray]
"""A function of random numbers, samples and series that returns series of variance 1, of shape
(samples, series)."""


def autoregressive(tau: float) -> Noise:
    """Series with one time scale."""
    rho = (2 * tau - 1) / (2 * tau + 1)

    def noise(rng: np.random.Generator, samples: int, series: int) -> np.ndarray:
        x = rng.normal(size=(samples, series))
        x[1:] *= math.sqrt(1 - rho**2)
        for n in range(1, samples if rho else 0):
            x[n] += rho * x[n - 1]
        return x

    return noise


def two_scales(fast: float, slow: float, weight: float) -> Noise:
    """Series with two time scales; the slow one has the given part of the variance."""

    def noise(rng: np.random.Generator, samples: int, series: int) -> np.ndarray:
        quick = autoregressive(fast)(rng, samples, series)
        return math.sqrt(1 - weight) * quick + math.sqrt(weight) * autoregressive(slow)(
            rng, samples, series
        )

    return noise


def jumps(tau: float) -> Noise:
    """Series that stay where they are, and now and then take a new value, as a frozen topology."""
    rho = (2 * tau - 1) / (2 * tau + 1)

    def noise(rng: np.random.Generator, samples: int, series: int) -> np.ndarray:
        x = rng.normal(size=(samples, series))
        stays = rng.random((samples, series)) < rho
        for n in range(1, samples):
            x[n] = np.where(stays[n], x[n - 1], x[n])
        return x

    return noise


KINDS: dict[str, tuple[Noise, float]] = {
    "independent": (autoregressive(0.5), 0.5),
    "one time scale, τ = 1": (autoregressive(1.0), 1.0),
    "one time scale, τ = 5": (autoregressive(5.0), 5.0),
    "two time scales, 0.7 and 5": (two_scales(0.7, 5.0, 0.2), 0.8 * 0.7 + 0.2 * 5.0),
    "rare jumps, τ = 20": (jumps(20.0), 20.0),
}
"""The kinds of series, with their τ_int."""

Deviation = tuple[float, bool]
"""A deviation in units of its error, and whether a caution is shown."""

MASS, TIME = 0.4, 4
"""True mass, and the time of the correlators from which it follows."""


def averages(
    rng: np.random.Generator, noise: Noise, samples: int
) -> Iterator[tuple[str, Deviation]]:
    """Yield the deviations of quantities that need one estimate, from one chain."""
    x, y, z = noise(rng, samples, 3).T
    found = estimate(x)
    caution = bool(found.cautions or caution_slow(x))
    yield "mean", (found.value / found.error, caution)
    for further in all_of("averages", "coverage"):
        yield from ((name, (pull, caution)) for name, pull in further(x, y, z))
    times = np.array([TIME, TIME + 1])
    shape = np.exp(-MASS * times)[:, None] * (1 + 0.15 * np.stack([x, 0.8 * x + 0.6 * y]))
    logs = log_loops(_loops(shape.T[:, None, :], np.array([1]), times))
    found = estimate(logs[:, 0, 0] - logs[:, 0, 1])
    yield "mass", ((found.value - MASS) / found.error, caution)
    value, error = susceptibility(x, volume=1)
    yield "chi", ((value - 1.0) / error, caution)


def fits(rng: np.random.Generator, noise: Noise, samples: int) -> Iterator[tuple[str, Deviation]]:
    """Yield the deviations of results of fits, from one chain; none if a fit is refused."""
    r, t = np.arange(1, 9), np.arange(1, 9)
    v = potential(r)[:, None]
    near = [np.linalg.cholesky(np.exp(-np.abs(one[:, None] - one) / 4)) for one in (r, t)]
    unit = (noise(rng, samples, r.size * t.size) @ np.kron(*near).T).reshape(-1, r.size, t.size)
    spread = 0.003 * np.sqrt(r)[:, None] * np.exp(0.3 * v * t)
    try:
        found = static_potential([_loops(np.exp(-v * t) * (1 + spread * unit), r, t)])
    except GaugeError:
        return
    caution = bool(found.points[0].potential.cautions)
    for point in found.points:
        if point.steps in (2, 4):
            pull = (point.potential.value - potential(point.steps)) / point.error
            yield f"V({point.steps})", (pull, caution)
    truth = {"root_sigma": math.sqrt(SIGMA), "r0": math.sqrt((1.65 + B) / SIGMA)}
    for name in truth.keys() & found.scales.keys():
        scale = found.scales[name]
        yield FITTED[name], ((scale.value.value - truth[name]) / scale.error, caution)


FITTED = {"root_sigma": "√σ", "r0": "r₀"}
"""Symbols of the scales of a potential, by their names."""


def _loops(values: np.ndarray, r: np.ndarray, t: np.ndarray) -> PathLoops:
    return PathLoops("100", 0, np.arange(1, len(values) + 1), r, t, values)


Table = dict[tuple[str, str, int], list[Deviation]]
"""Deviations by kind of series, quantity and number of independent measurements."""


def synthetic(
    chains: int, fitted: int, kinds: list[str], numbers: tuple[int, ...], processes: int = 1
) -> Table:
    """Return the deviations of synthetic chains, `fitted` of which are fitted as well."""
    tasks = [(kind, number, chains, fitted) for number in sorted(numbers)[::-1] for kind in kinds]
    if processes == 1:
        parts = [of_series(*one) for one in tasks]
    else:
        with ProcessPoolExecutor(processes) as pool:
            parts = [one.result() for one in [pool.submit(of_series, *each) for each in tasks]]
    table: Table = {}
    for one in parts:
        table |= one
    return table


def of_series(kind: str, number: int, chains: int, fitted: int) -> Table:
    """Return the deviations of chains of one kind with a number of independent measurements."""
    table: Table = defaultdict(list)
    noise, tau = KINDS[kind]
    rng = np.random.default_rng([number, *kind.encode()])
    samples = round(2 * tau * number)
    for count, function in ((chains, averages), (fitted, fits)):
        for _ in range(count):
            for name, found in function(rng, noise, samples):
                table[kind, name, number].append(found)
    return dict(table)


def percentages(deviations: list[Deviation]) -> tuple[float, float, float]:
    """Return the percentages within one and two errors, and of cautions."""
    size = np.abs([one for one, _ in deviations])
    cautions = np.mean([caution for _, caution in deviations])
    return 100 * float((size < 1).mean()), 100 * float((size < 2).mean()), 100 * float(cautions)


def missed(table: Table) -> list[str]:
    """Return what is not covered as it should be, beyond what chance explains, in words.

    Below 20 measurements a caution must be shown instead.
    """
    found = []
    for (kind, name, number), deviations in table.items():
        count = len(deviations)
        one, two, cautions = percentages(deviations)
        if number < 20:
            if cautions < 90:
                found.append(f"{kind}, {name}, N = {number}: {cautions:.0f} % have a caution")
            continue
        for sigma, value in ((1, one), (2, two)):
            wanted, tolerance = WANTED[sigma]
            chance = 3 * 100 * math.sqrt(wanted / 100 * (1 - wanted / 100) / count)
            if abs(value - wanted) > tolerance + chance:
                found.append(f"{kind}, {name}, N = {number}: {value:.0f} % within {sigma}")
    return found


def show(table: Table, numbers: tuple[int, ...], ensembles: int = 0) -> None:
    """Print the table in Markdown: percentages within one and two errors, and of cautions.

    Where fewer ensembles than there are have a result, their number is added.
    """
    print("| series | quantity | " + " | ".join(f"N = {number}" for number in numbers) + " |")
    print("|---|---|" + "---|" * len(numbers))
    order = [*KINDS]
    named = dict.fromkeys(key[:2] for key in table)
    for kind, name in sorted(named, key=lambda one: order.index(one[0]) if one[0] in order else 0):
        cells = []
        for number in numbers:
            deviations = table.get((kind, name, number), [])
            if not deviations:
                cells.append("—")
                continue
            one, two, cautions = percentages(deviations)
            few = f"; {len(deviations)}" if len(deviations) < ensembles else ""
            cells.append(f"{one:.0f}, {two:.0f} ({cautions:.0f}{few})")
        print(f"| {kind} | {name} | {' | '.join(cells)} |")


def main() -> None:
    """Print the table that is asked for, and what misses."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--fits", type=int, default=200, help="synthetic chains that are fitted")
    parser.add_argument("--processes", type=int, default=1, help="processes for synthetic chains")
    arguments = parser.parse_args()
    table = synthetic(arguments.chains, arguments.fits, [*KINDS], NUMBERS, arguments.processes)
    show(table, NUMBERS)
    print(*missed(table), sep="\n")


if __name__ == "__main__":
    main()
