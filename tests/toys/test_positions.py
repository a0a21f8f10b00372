"""The integrator that moves positions first, of a harmonic oscillator."""

import numpy as np
import pytest

from gauge_mc.updates.integrators import INTEGRATORS, Kick


def changed_energy(steps):
    """Return by how much the energy changes along a trajectory of length 1."""
    q, p = 0.7, 0.4
    before = (p * p + q * q) / 2
    for one in INTEGRATORS["positions"].trajectory(1.0, steps):
        if isinstance(one, Kick):
            p = p - one.size * q
        else:
            q = q + one.size * p
    return (p * p + q * q) / 2 - before


def test_the_energy_changes_with_the_declared_power_of_the_step():
    """Up to corrections that are smaller by the square of the step."""
    ratio = changed_energy(64) / changed_energy(128)
    assert np.log2(ratio) == pytest.approx(INTEGRATORS["positions"].order, abs=1e-3)
