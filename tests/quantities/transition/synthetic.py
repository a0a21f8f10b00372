"""Synthetic ensembles whose transition is known exactly."""

import math

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.quantities.transition.reweighting import ThermalChain, ThermalVolume

CENTRE, COLOURS = 5.7, 3
"""Coupling at which the four phases of the model of SU(3) have equal weights, and N."""

JUMP = 0.02
"""Difference of the action per site divided by beta between the phases of that model."""

MODULUS, SPREAD = 0.3, 1.0
"""Modulus of L in the deconfined phases; spread of its real and imaginary part times sqrt(V)."""


def correlated(rng, size, tau):
    """Return a series of normally distributed numbers with exp(-1/tau) between neighbours."""
    rho = math.exp(-1 / tau) if tau else 0.0
    noise = rng.normal(size=size) * math.sqrt(1 - rho**2)
    noise[0] /= math.sqrt(1 - rho**2)
    found = noise.copy()
    for n in range(1, size):
        found[n] += rho * found[n - 1]
    return found


def deconfined(beta, lattice):
    """Return the exact probability of the deconfined phases together."""
    odds = COLOURS * math.exp((beta - CENTRE) * JUMP * lattice.sites)
    return odds / (1 + odds)


def two_phase_chain(rng, beta, lattice, size, stay=0.9):
    """Return a chain of a model with one confined and three deconfined phases.

    In every phase the density of states is normal in S with the variance v = 0.3 sites, about a
    mean that is JUMP sites lower in the deconfined phases. At beta the mean is lower by beta v, and
    the weight of a deconfined phase, relative to the confined one, is exp((beta - CENTRE) JUMP
    sites). A new phase is drawn at an update with the probability 1 - stay.
    """
    variance = 0.3 * lattice.sites
    phase = np.zeros(size, dtype=int)
    high = deconfined(beta, lattice)
    new = rng.random(size) > stay
    drawn = np.where(rng.random(size) < high, rng.integers(1, 1 + COLOURS, size), 0)
    last = np.maximum.accumulate(np.where(new | (np.arange(size) == 0), np.arange(size), 0))
    phase = drawn[last]
    action = math.sqrt(variance) * rng.normal(size=size) - beta * variance
    action -= np.where(phase > 0, JUMP * lattice.sites, 0)
    noise = rng.normal(size=(2, size)) * SPREAD / math.sqrt(lattice.slice_sites)
    centre = MODULUS * np.exp(2j * np.pi * (phase - 1) / COLOURS) * (phase > 0)
    return ThermalChain(beta, np.arange(1, size + 1), action, centre + noise[0] + 1j * noise[1])


def two_phase_volume(rng, lattice, betas, size, replicas=50):
    """Return a volume of that model."""
    chains = [two_phase_chain(rng, beta, lattice, size) for beta in betas]
    return ThermalVolume(lattice, COLOURS, chains, replicas)


LATTICES = tuple(map(Lattice.parse, ("8x8x8x4", "10x10x10x4", "12x12x12x4")))
