"""Correlators of hadrons of known masses, with the noise of a Markov chain."""

import math
from itertools import combinations_with_replacement, product

import numpy as np

from gauge_mc.extensions.quarks.spectroscopy.correlators import BARYONS, MESONS, HadronCorrelators
from gauge_mc.files.table import Table
from tests.analysis.synthetic_loops import autoregressive

HEADER = {"observable": "mesons", "group": "su3", "beta": "6.0"}
HEADER |= {"lattice": "16x16x16x32", "boundary": "0,0,0,pi"}
EXTENT = 32

MESON_LABELS, BARYON_LABELS = (
    tuple(one.name for one in columns if one.index and not one.optional)[:-1]
    for columns in (MESONS, BARYONS)
)
"""Columns that say which correlator a row belongs to, without masses."""


def noise(rng, samples, times, rho, near=6.0):
    """Noise of unit variance, correlated among neighbouring times and along the chain."""
    t = np.arange(times)
    root = np.linalg.cholesky(np.exp(-np.abs(t[:, None] - t) / near))
    return autoregressive(rng, samples, times, rho) @ root.T


def cosh_correlator(
    rng, samples, mass, extent=EXTENT, amplitude=1.0, size=0.01, growth=0.0, rho=0.0, excited=0.0
):
    """Return A [exp(-m t) + exp(-m (T - t))], shape (samples, T), symmetric up to its noise.

    It has the relative `size`, grows as exp(`growth` t) up to T/2, and excited states 2.5 m.
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
    """Write correlators, shape (samples, T), by the values of columns between the sweep and t."""
    (samples, extent) = next(iter(correlators.values())).shape
    with Table(path, header or HEADER, ("sweep", *names, "t", "re", "im")) as table:
        for i in range(samples):
            table.append(
                (10 * (i + 1), *labels, t, float(values[i, t]), 0.0)
                for labels, values in correlators.items()
                for t in range(extent)
            )
    return path


def in_memory(names, correlators):
    """Return what is read from the table that `write_correlators` writes, but without it."""
    values = np.stack([*correlators.values()])
    rows = [dict(zip(names, labels, strict=True)) for labels in correlators]
    for row in rows:
        row["source"] = row["source"].partition("@")[0]
    return HadronCorrelators({}, 10 * np.arange(1, values.shape[1] + 1), tuple(rows), values)


KAPPAS = (0.150, 0.152, 0.154)
KAPPA_C = 0.157


def quark_mass(*kappas):
    """Return the bare quark mass 1/2 (1/kappa - 1/kappa_c), averaged over quarks."""
    return np.mean([(1 / one - 1 / KAPPA_C) / 2 for one in kappas])


def write_mesons(path, rng, samples, kappas=KAPPAS, **how):
    """Write the correlators of `make_mesons`."""
    return write_correlators(path, MESON_LABELS, make_mesons(rng, samples, kappas, **how))


def make_mesons(rng, samples, kappas=KAPPAS, together=0.0, mus=(0.0,)):
    """Return correlators of pions, rho mesons and the axial current of known masses, by labels.

    With the quark mass m, m_pi^2 = 2.4 m, m_rho = 0.3 + 0.5 m_pi^2, and the PCAC mass is m.
    Twisted masses add their mean to m but not to the PCAC mass; `together` is the correlation of
    the noise at different kappa.
    """
    values, t = {}, np.arange(EXTENT)
    common = {name: noise(rng, samples, EXTENT, 0.0) for name in ("pion", "rho", "axial")}

    def noisy(name, mean, size):
        own = noise(rng, samples, EXTENT, 0.0)
        unit = math.sqrt(together) * common[name] + math.sqrt(1 - together) * own
        return mean * (1 + size * unit)

    for one, other in combinations_with_replacement(list(product(kappas, mus)), 2):
        pair, masses = zip(one, other, strict=True)
        quark = quark_mass(*pair)
        pion = math.sqrt(2.4 * (quark + np.mean(masses)))
        rho = 0.3 + 0.5 * pion**2
        ahead, back = np.exp(-pion * t), np.exp(-pion * (EXTENT - t))
        start = (*pair, *masses, "point@0;0;0;0")
        values[*start, "g5", "g5", 0, 0, 0] = noisy("pion", ahead + back, 0.01)
        for gamma in ("gx", "gy", "gz"):
            mean = np.exp(-rho * t) + np.exp(-rho * (EXTENT - t))
            values[*start, gamma, gamma, 0, 0, 0] = noisy("rho", mean, 0.02)
        # Its symmetric difference is 4 m times the correlator of the pion.
        mean = 2 * quark / math.sinh(pion) * (back - ahead)
        values[*start, "g5", "gtg5", 0, 0, 0] = noisy("axial", mean, 0.02)
    return values


def write_baryons(path, rng, samples, kappas=KAPPAS, boundary=-1):
    """Write correlators of nucleons of masses 0.6 and 0.9, plus m_pi^2, of parity 1 and -1."""
    values = {}
    for kappa in kappas:
        shift = 2.4 * quark_mass(kappa)
        for parity, masses in ((1, (0.6, 0.9)), (-1, (0.9, 0.6))):
            ahead, back = (
                exp_correlator(rng, samples, mass + shift, growth=0.2) for mass in masses
            )
            whole = ahead - boundary * back[:, -np.arange(EXTENT) % EXTENT]
            values[kappa, kappa, 0.0, 0.0, "point@0;0;0;0", "nucleon", parity, 0, 0, 0] = whole
    return write_correlators(path, BARYON_LABELS, values, {**HEADER, "observable": "baryons"})
