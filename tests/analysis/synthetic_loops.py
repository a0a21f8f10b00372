"""Wilson loops of a known potential, with the noise of a Markov chain."""

import math

import numpy as np

from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.files.table import Table
from gauge_mc.quantities.potential.forms import StaticGluons
from gauge_mc.quantities.potential.loop_tables import LoopMatrices, PathLoops, effective_energies
from gauge_mc.quantities.potential.static_potential import potential_of

A, B, SIGMA = 0.55, -0.25, 0.036
"""Parameters of the potential of all synthetic loops, near that of SU(2) at beta = 2.5."""


def potential(r, a=A, b=B, sigma=SIGMA):
    return a + b / r + sigma * r


def autoregressive(rng, samples, series, rho):
    """Return AR(1) chains of unit variance, with tau_int = (1 + rho) / (1 - rho) / 2."""
    x = rng.normal(size=(samples, series))
    x[1:] *= math.sqrt(1 - rho**2)
    for n in range(1, samples if rho else 0):
        x[n] += rho * x[n - 1]
    return x


def synthetic_loops(
    rng,
    samples,
    size=8,
    path="100",
    rho=0.4,
    noise=0.003,
    excited=0.0,
    sigma=SIGMA,
    times=None,
    growth=0.3,
    further=(),
):
    """Return W(r, t) = sum of exponentials, times 1 + noise correlated in r, t and the chain.

    The noise grows with r and t, by `growth` times V(r) a step; `excited` is the weight of a state
    0.8 above the lowest one, and `further` are weights and gaps of other ones.
    """
    r, t = np.arange(1, size + 1), np.arange(1, (times or size) + 1)
    distance = r * math.sqrt(sum(int(digit) ** 2 for digit in path))
    v = potential(distance, sigma=sigma)[:, None]
    states = [(excited, 0.8), *further]
    decays = sum(weight * np.exp(-gap * t) for weight, gap in states)
    mean = np.exp(-v * t) * (1 - sum(weight for weight, _ in states) + decays)
    near = [np.linalg.cholesky(np.exp(-np.abs(one[:, None] - one) / 4)) for one in (r, t)]
    unit = autoregressive(rng, samples, r.size * t.size, rho) @ np.kron(*near).T
    unit = unit.reshape(-1, r.size, t.size)
    spread = noise * np.sqrt(distance)[:, None] * np.exp(growth * v * t)
    return PathLoops(path, 25, 10 * np.arange(1, samples + 1), r, t, mean * (1 + spread * unit))


def write_loops(path, *loops, header=None):
    """Write loops of the same configurations to a table."""
    columns = ("sweep", "smearing", "path", "r", "t", "loop")
    known = {"observable": "wilson_loops", "group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}
    with Table(path, known if header is None else header, columns) as table:
        for i, sweep in enumerate(loops[0].sweeps):
            table.append(
                (int(sweep), one.smearing, one.path, int(r), int(t), float(one.values[i, j, k]))
                for one in loops
                for j, r in enumerate(one.r)
                for k, t in enumerate(one.t)
            )
    return path


LEVELS = (0, 5, 10, 25)
"""Smearing levels of the synthetic matrices."""

GAPS = (0.0, 0.5, 1.0, 1.6, 2.2)
"""Energies of the states of the synthetic matrices above the ground state: one more than levels."""


def synthetic_matrices(rng, samples, size=4, times=12, rho=0.0, noise=0.002, states=5, apart=0.0):
    """Return matrices of correlators between levels, sums of exponentials with known energies.

    The noise is a factor for each state, correlated among neighbouring t, so that the matrices stay
    positive as on a lattice, and grows with r and t. `apart` is the size of noise that is different
    for every pair of levels, relative to that of the ground state, as the self-averaging of a
    lattice leaves it: with it the matrices at large t are not positive.
    """
    r, t = np.arange(1, size + 1), np.arange(1, times + 1)
    energies = potential(r.astype(float))[:, None] + np.array(GAPS[:states])
    smear = np.linspace(0, 1, len(LEVELS))
    number = np.arange(states)[:, None]
    couplings = np.exp(-number * smear) * np.cos(1.3 * number * smear)
    decay = np.exp(-energies[:, None, :] * t[:, None])  # r, t, state
    near = np.linalg.cholesky(np.exp(-np.abs(t[:, None] - t) / 4))
    unit = autoregressive(rng, samples, size * times * states, rho)
    unit = np.einsum("ts,crsn->crtn", near, unit.reshape(samples, size, times, states))
    spread = noise * np.sqrt(r)[:, None, None] * np.exp(0.3 * energies[:, None] * t[:, None])
    weights = decay * (1 + spread * unit)
    values = np.einsum("na,nb,crtn->crtab", couplings, couplings, weights)
    if apart:
        unit = rng.normal(size=values.shape)
        size_of = apart * spread[..., :1, None] * values.mean(axis=0)
        values += size_of * (unit + unit.swapaxes(-1, -2)) / math.sqrt(2)
    sweeps = 10 * np.arange(1, samples + 1)
    return LoopMatrices("100", LEVELS, sweeps, r, t, values, Replicas.alone(samples))


FINE = {"a": 0.25, "b": -0.295, "sigma": (1.65 - 0.295) / 7.38**2}
"""Parameters of a potential with r0/a = 7.38, that of SU(3) at beta = 6.2, and HYP2 links."""


def fine_matrices(rng, samples, apart, size=12, times=12):
    """Return matrices like those of SU(3) at beta = 6.2 on 24^3 x 48 with 3000 measurements.

    Gaps fall from 0.6 to 0.4, the smoothest level is 99 % in the ground state, and the noise is
    nearly the same at all t, so that it grows by exp(0.92 V t) relative to the loops. It has the
    size that thin links had, and `apart` is the part of it that is different for every two levels.
    """
    r, t = np.arange(1, size + 1), np.arange(1, times + 1)
    v = potential(r.astype(float), **FINE)
    gaps = np.outer(1 / np.hypot(1 / 0.6, r / (2 * math.pi)), [0, 1, 1.8, 2.8, 4, 6])
    smear, number = np.array([0, 0.45, 0.75, 1.0]), np.arange(1, 6)[:, None]
    rest = (0.25 + 0.05 * r)[:, None] * (1 - 0.93 * smear) ** 1.5 + r[:, None] / 1200
    parts = np.exp(-0.6 * number) * np.cos(1.17 * number * smear) ** 2 + 1e-3
    excited = np.sqrt(rest[:, None] * parts / parts.sum(axis=0))
    excited *= np.where(np.cos(1.17 * number * smear) < 0, -1, 1)
    couplings = np.concatenate([np.sqrt(1 - rest)[:, None], excited], axis=1)
    decay = np.exp(-(v[:, None] + gaps)[:, None] * t[:, None])
    mean = np.einsum("rna,rnb,rtn->rtab", couplings, couplings, decay)
    spread = np.sqrt(samples / 3000) * 1e-3 * np.sqrt(r)[:, None] * np.exp(0.92 * v[:, None] * t)
    near = [np.linalg.cholesky(np.exp(-np.abs(one[:, None] - one) / 4)) for one in (r, t)]

    def unit():
        return np.einsum("rs,tu,csu->crt", *near, rng.normal(size=(samples, size, times)))

    common, values = unit(), np.empty((samples, *mean.shape))
    for a in range(len(smear)):
        for b in range(a + 1):
            factor = 1 + spread * (common + apart * unit())
            values[..., a, b] = values[..., b, a] = mean[..., a, b] * factor
    sweeps = 50 * np.arange(1, samples + 1)
    return LoopMatrices("100", (0, 8, 20, 40), sweeps, r, t, values, Replicas.alone(samples))


def write_matrices(path, matrices, header=None):
    """Write matrices of loops to a table, each pair of levels once."""
    columns = ("sweep", "smearing", "smearing2", "path", "r", "t", "loop")
    known = {"observable": "wilson_loops", "group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}
    one = matrices
    with Table(path, known if header is None else header, columns) as table:
        for c, sweep in enumerate(one.sweeps):
            table.append(
                (
                    int(sweep),
                    level,
                    other,
                    one.path,
                    int(r),
                    int(t),
                    float(one.values[c, j, k, a, b]),
                )
                for a, level in enumerate(one.levels)
                for b, other in enumerate(one.levels)
                if a <= b
                for j, r in enumerate(one.r)
                for k, t in enumerate(one.t)
            )
    return path


def fitted_series(loops, t_min=None, t_max=None, single=True):
    """V(R) of loops along paths."""
    energies = [effective_energies(path) for path in loops]
    return potential_of(energies, loops[0].replicas, t_min, t_max, single)


def static_potential(loops, r_min=None, r_max=None, **options):
    """V(R) of loops along paths, with its scales."""
    series, levels = fitted_series(loops, **options), (loops[0].smearing,)
    return series.potential(r_min, r_max, StaticGluons(), ensemble={}, levels=levels)[0]
