"""A gradient flow with known t0 and w0 and a known distribution of the charge."""

import math

import numpy as np
from scipy.optimize import brentq

from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.table import write_table
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, FlowTable
from tests.analysis.synthetic_loops import autoregressive

HEADER = {
    "observable": "flow",
    "flow": "wilson",
    "lattice": "16x16x16x32",
    "group": "su3",
    "beta": "6.0",
    "action": "wilson",
}
SIZE, SMALL, POWER = 0.138, 0.25, 1.15
"""Parameters of t²E = SIZE t² / (t + SMALL)^POWER, near that of SU(3) at beta = 6."""

TIMES = np.round(np.arange(0, 4.01, 0.1), 10)


def curve(t):
    """t²<E>."""
    return SIZE * t**2 / (t + SMALL) ** POWER


def slope(t):
    """t d/dt t²<E>."""
    return curve(t) * (2 - POWER * t / (t + SMALL))


def exact(target=0.3):
    """t0 and w0 of the curve."""
    t0 = brentq(lambda t: curve(t) - target, 0.01, 100, xtol=1e-14)
    square = brentq(lambda t: slope(t) - target, 0.01, 100, xtol=1e-14)
    return t0, math.sqrt(square)


def energies(rng, samples, t=TIMES, rho=0.5, noise=0.01):
    """Return E of each configuration: two AR(1) chains that mix differently at each time."""
    first, second = autoregressive(rng, samples, 2, rho).T
    angle = t / t[-1]
    mixed = np.outer(first, np.cos(angle)) + np.outer(second, np.sin(angle))
    safe = np.where(t > 0, t, 1)
    mean = np.where(t > 0, curve(t) / safe**2, SIZE / SMALL**POWER)
    return mean * (1 + noise * (0.5 + angle) * mixed)


def integers(rng, samples, width=3.0, rho=0.6):
    """Return integers near the values of an AR(1) chain."""
    return np.rint(width * autoregressive(rng, samples, 1, rho)[:, 0]) + 0.0


def synthetic_flow(
    rng, samples, t=TIMES, rho=0.5, noise=0.01, alpha=1.1, smear=0.03, every=10, charges=None
):
    """Return the flow of an ensemble.

    Parameters
    ----------
    rng, samples, t, rho, noise
        See `energies`.
    alpha, smear : float
        The charge is an integer, divided by alpha, with Gaussian noise of this width.
    every : int
        Updates between configurations.
    charges : ndarray of float64, optional
        The integers.
    """
    clover = energies(rng, samples, t, rho, noise)
    whole = integers(rng, samples) if charges is None else charges
    rough = rng.normal(size=(samples, t.size)) * (smear + np.exp(-2 * t))
    peaks = 2.5 / (1 + 15 * t) * np.exp(0.2 * rng.normal(size=(samples, 1)))
    columns = {
        "energy_plaquette": clover * (1 + 0.12 / (t + 0.2)),
        "energy_clover": clover,
        "charge": whole[:, None] / alpha + rough,
        "charge_improved": whole[:, None] + 0.3 * rough,
        "s_max": peaks,
    }
    facts = {key: value for key, value in HEADER.items() if key != "observable"}
    sweeps = every * np.arange(1, samples + 1)
    lattice, replicas = Lattice.parse(HEADER["lattice"]), Replicas.of(sweeps)
    return FlowTable(facts, lattice, sweeps, replicas, np.asarray(t), columns)


def rows_of(flow, slices=0):
    """Yield the rows of the table of a flow, with rows of so many time slices."""
    for i, sweep in enumerate(flow.sweeps):
        for j, t in enumerate(flow.t):
            values = [float(flow.columns[name][i, j]) for name in FLOW_COLUMNS[3:]]
            yield (int(sweep), float(t), -1, *values)
            yield from ((int(sweep), float(t), k, *[9.0] * len(values)) for k in range(slices))


def write_flow(path, flow, slices=0, header=None):
    """Write a flow to a table."""
    write_table(path, HEADER if header is None else header, FLOW_COLUMNS, rows_of(flow, slices))
    return path
