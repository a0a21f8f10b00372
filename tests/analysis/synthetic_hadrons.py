"""Correlators of hadrons of known masses, with the noise of a Markov chain."""

import math

import numpy as np

from gauge_mc.files.table import Table
from tests.analysis.synthetic_loops import autoregressive

HEADER = {
    "observable": "mesons",
    "group": "su3",
    "beta": "6.0",
    "lattice": "16x16x16x32",
    "boundary": "0,0,0,pi",
}
EXTENT = 32


def noise(rng, samples, times, rho, near=6.0):
    """Noise of unit variance, correlated among neighbouring times and along the chain."""
    t = np.arange(times)
    root = np.linalg.cholesky(np.exp(-np.abs(t[:, None] - t) / near))
    return autoregressive(rng, samples, times, rho) @ root.T


def cosh_correlator(
    rng, samples, mass, extent=EXTENT, amplitude=1.0, size=0.01, growth=0.0, rho=0.0, excited=0.0
):
    """Return A [exp(-m t) + exp(-m (T - t))], shape (samples, T), symmetric up to its noise.

    Parameters
    ----------
    size, growth : float
        Relative noise, which grows as exp(growth t) up to T/2.
    excited : float
        Weight of a state with 2.5 times the mass.
    """
    t = np.arange(extent)
    near = np.minimum(t, extent - t)

    def decay(m):
        return np.exp(-m * near) + np.exp(-m * (extent - near))

    mean = amplitude * (decay(mass) + excited * decay(2.5 * mass))
    return mean * (1 + size * np.exp(growth * near) * noise(rng, samples, extent, rho))


def exp_correlator(rng, samples, mass, extent=EXTENT, size=0.01, growth=0.1, rho=0.0):
    """Return exp(-m t) with noise that grows, shape (samples, T)."""
    t = np.arange(extent)
    return np.exp(-mass * t) * (1 + size * np.exp(growth * t) * noise(rng, samples, extent, rho))


def write_correlators(path, names, correlators, header=None):
    """Write correlators to a table.

    Parameters
    ----------
    names : sequence of str
        Columns between the sweep and t.
    correlators : mapping of tuple to ndarray, shape (samples, T)
        Values of these columns, and the correlator.
    """
    (samples, extent) = next(iter(correlators.values())).shape
    with Table(path, header or HEADER, ("sweep", *names, "t", "re", "im")) as table:
        for i in range(samples):
            table.append(
                (10 * (i + 1), *labels, t, float(values[i, t]), 0.0)
                for labels, values in correlators.items()
                for t in range(extent)
            )
    return path


def critical(kappa, kappa_c=0.157):
    """Return the bare quark mass 1/2 (1/kappa - 1/kappa_c)."""
    return (1 / kappa - 1 / kappa_c) / 2


def pion_mass(kappa, slope=2.4, kappa_c=0.157):
    return math.sqrt(slope * critical(kappa, kappa_c))
