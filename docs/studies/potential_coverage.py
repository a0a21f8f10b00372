"""How often errors of the static potential contain the truth, for Wilson loops of a string.

    python -m docs.studies.potential_coverage [--ensembles 60] [--numbers 100,400] [--processes 2]

Each row of the table is a kind of fit, of a single smearing level or variational, and a tau_int. It
says how many percent of V(R), sqrt(sigma) and r0 are within one and two total errors of the truth,
and in brackets the mean total error in units of the root mean square of the deviations.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations_with_replacement, product

import numpy as np

from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.quantities.potential.forms import StaticGluons
from gauge_mc.quantities.potential.loop_tables import LoopMatrices, PathLoops, effective_energies
from gauge_mc.quantities.potential.static_potential import potential_of, variational
from tests.analysis.synthetic_loops import autoregressive

GLUONS = StaticGluons()

B, R0 = math.pi / 12, 5.0
SIGMA = (1.65 - B) / R0**2
"""Parameters of the potential."""

TRUTH = {"root_sigma": math.sqrt(SIGMA), "r0": R0}
"""The scales."""

R, T = np.arange(1, 11), np.arange(1, 11)
"""Extents of the loops."""

SMOOTH = np.array([0.0, 0.5, 0.8, 1.0])
"""How smooth the lines are at each smearing level, the last of which is that of a single one."""

WEIGHTS = np.array([0.08, 0.05, 0.02, 0.01])
"""Weights of the excited states at R = r0 and the smoothest level. They grow with R."""

STRONGER = 5.0
"""Weights of the excited states without smearing, in units of those."""

WALK, WHITE, GROWTH = 0.006, 0.0024, 0.35
"""Noise of the loops of a configuration, relative to their averages: what every cell of a loop adds
to all levels alike, and that of the correlators between states, which grows with both extents."""


def energy(steps: int | np.ndarray) -> np.ndarray:
    """Return V(R) after steps along the axis, with the artefacts of the Wilson action."""
    r = np.atleast_1d(steps)
    coulomb = [1 / GLUONS.potential_distance("100", int(n)) for n in r]
    return 0.5 - B * np.array(coulomb) + SIGMA * r


def spectrum() -> tuple[np.ndarray, np.ndarray]:
    """Return the couplings to the states, (R, levels, states), and exp(-E T), (R, T, states)."""
    string = 2 * math.pi / R
    gap = string / np.sqrt(1 + (string / 0.9) ** 2)
    energies = energy(R)[:, None] + np.outer(gap, np.arange(WEIGHTS.size + 1))
    weights = R[:, None, None] / R0 * STRONGER ** (1 - SMOOTH[:, None]) * WEIGHTS
    rough = np.outer(SMOOTH[::-1], np.arange(1, WEIGHTS.size + 1))
    excited = np.sqrt(weights) * np.cos(1.17 * rough)
    couplings = np.concatenate([np.ones((R.size, SMOOTH.size, 1)), excited], axis=2)
    couplings /= np.sqrt((couplings**2).sum(axis=2, keepdims=True))
    return couplings, np.exp(-energies[:, None] * T[:, None])


def ensemble(rng: np.random.Generator, samples: int, tau_int: float) -> LoopMatrices:
    """Return loops of a Markov chain between all levels."""
    rho, shape = (2 * tau_int - 1) / (2 * tau_int + 1), (R.size, T.size)

    def noise() -> np.ndarray:
        return autoregressive(rng, samples, R.size * T.size, rho).reshape(samples, *shape)

    couplings, decay = spectrum()
    walk = 1 + WALK * noise().cumsum(axis=1).cumsum(axis=2)
    white = WHITE * np.exp(GROWTH / 2 * np.outer(np.sqrt(R), T))
    states = np.empty((samples, *shape, *2 * decay.shape[2:]))
    for n, m in combinations_with_replacement(range(decay.shape[2]), 2):
        between = np.sqrt(decay[..., n] * decay[..., m])
        states[..., n, m] = states[..., m, n] = between * ((n == m) * walk + white * noise())
    turned = couplings[:, None]
    values = turned @ states @ turned.swapaxes(-1, -2)
    sweeps, levels = np.arange(1, samples + 1), tuple(range(SMOOTH.size))
    return LoopMatrices("100", levels, sweeps, R, T, values, Replicas.alone(samples))


Deviation = tuple[float, float]
"""A deviation from the truth, and its total error."""


def deviations(loops: LoopMatrices, single: bool) -> Iterator[tuple[str, Deviation]]:
    """Yield the deviations of V(R) and its scales, of which some may not be known."""
    last = PathLoops("100", 0, loops.sweeps, R, T, loops.values[..., -1, -1])
    path = last if single else variational(loops)[0]
    series = potential_of([effective_energies(path)], loops.replicas, single=single)
    result, _ = series.potential(None, None, GLUONS, ensemble={}, levels=(0,))
    for point in result.points:
        yield "V", (point.potential.value - float(energy(point.steps)[0]), point.error)
    for name in TRUTH.keys() & result.scales.keys():
        scale = result.scales[name]
        yield name, (scale.value.value - TRUTH[name], scale.error)


def study(
    ensembles: int, samples: int, tau_int: float, single: bool, seed: int = 1
) -> dict[str, np.ndarray]:
    """Return deviations and errors of many ensembles by quantity, of shape (results, 2)."""
    rng, table = np.random.default_rng([seed, samples]), defaultdict(list)
    for _ in range(ensembles):
        for name, deviation in deviations(ensemble(rng, samples, tau_int), single):
            table[name].append(deviation)
    return {name: np.array(table[name]) for name in ("V", *TRUTH)}


def cover(results: np.ndarray) -> tuple[float, float, float]:
    """Return the fractions within 1 and 2 errors, and the mean error per rms deviation.

    Where these differ much among the results, as those of V(R), they are compared in units of
    each error.
    """
    size = np.abs(results[:, 0] / results[:, 1])
    return float((size < 1).mean()), float((size < 2).mean()), 1 / math.sqrt(np.mean(size**2))


def cell(results: np.ndarray, ensembles: int) -> str:
    """Return what the table says of a quantity; the last number is how many have it, if not all."""
    one, two, size = cover(results)
    few = f"; {len(results)}" if len(results) < ensembles else ""
    return f"{100 * one:.0f}, {100 * two:.0f} ({size:.2f}{few})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ensembles", type=int, default=60)
    parser.add_argument("--numbers", default="100,400,2000,10000")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    print("| fit | τ_int | N | V(R) | √σ a | r₀/a |\n|---|---|---|---|---|---|")
    cases = list(product((True, False), (0.5, 2.0), map(int, given.numbers.split(","))))
    with ProcessPoolExecutor(given.processes) as pool:
        tasks = [pool.submit(study, given.ensembles, n, tau, single) for single, tau, n in cases]
        for (single, tau, number), task in zip(cases, tasks, strict=True):
            cells = [cell(results, given.ensembles) for results in task.result().values()]
            kind = "a single level" if single else "variational"
            print(f"| {kind} | {tau:g} | {number} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
