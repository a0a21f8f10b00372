"""Plateaus of PCAC masses, from synthetic correlators with excited states and a contact term."""

import math

import numpy as np
import pytest

from gauge_mc.extensions.quarks.spectroscopy.correlators import Ranges
from gauge_mc.extensions.quarks.spectroscopy.spectrum import meson_series
from tests.extensions.quarks.synthetic_hadrons import MESON_LABELS, in_memory, noise

TIME, PION, QUARK = 12, 1.2, 0.4
"""Extent in time, and the masses of the pion and of its quarks, in lattice units."""

EXCITED, GAP = 0.06, 1.2
"""Relative contribution of excited states to the PCAC mass at t = 2, and how fast it decays."""


def known_means():
    """Return the means of <P P> and <A P>, which is odd and so vanishes at the source and at T/2.

    Their ratio is QUARK [1 - EXCITED exp(-GAP (t - 2))] from t = 2 on. At t = 1 its derivative
    contains the value at the source, and it is even negative.
    """
    t = np.arange(TIME // 2 + 1)
    density = np.exp(-PION * t) + np.exp(-PION * (TIME - t))
    mass = QUARK * (1 - EXCITED * np.exp(-GAP * (t - 2)))
    current = np.zeros(t.size)
    current[-2] = -4 * QUARK * math.exp(-PION * TIME / 2)
    for one in t[-2:1:-1]:
        current[one - 1] = current[one + 1] - 4 * mass[one] * density[one]
    return density, current


def ensemble(rng, samples):
    """Return correlators whose fluctuations grow with t and are the same for both, but for 4 %."""
    density, current = known_means()
    t = np.arange(TIME // 2 + 1)
    common = 1 + 0.2 * (1 + 0.2 * t) * noise(rng, samples, t.size, 0.0, near=20.0)
    parts = [
        mean * (common + 0.04 * noise(rng, samples, t.size, 0.0)) for mean in (density, current)
    ]
    whole = [
        np.concatenate([one, sign * one[:, -2:0:-1]], axis=1)
        for one, sign in zip(parts, (1, -1), strict=True)
    ]
    labels = (0.15, 0.15, 0.0, 0.0, "point@0;0;0;0", "g5")
    keys = [(*labels, gamma, 0, 0, 0) for gamma in ("g5", "gtg5")]
    return in_memory(MESON_LABELS, dict(zip(keys, whole, strict=True)))


@pytest.mark.slow
def test_plateaus_of_pcac_masses_begin_where_excited_states_are_small():
    """From t = 3 on they shift the mass by 0.6 of its error, and from t = 4 on by 0.25.

    With the value at t = 1, excited states would seem to decay at once, and nearly all plateaus
    begin at t = 3: the mean deviation is then 0.7 errors. Up to half an error is tolerated. Limits
    are four standard deviations from what is then expected.
    """
    rng, pulls, starts = np.random.default_rng(5), [], []
    for _ in range(150):
        found = meson_series(ensemble(rng, 50), Ranges())
        pulls += [(one.mass.value - QUARK) / one.mass.error for one, _ in found.pcac.values()]
        starts += [one.t_min for one, _ in found.pcac.values()]
    assert len(pulls) > 75
    chance = 4 / math.sqrt(len(pulls))
    assert np.mean(np.array(starts) >= 4) > 0.5 + chance / 2
    assert abs(np.mean(pulls)) < 0.5 + chance
    shifted = [
        math.erf((x + 0.5) / math.sqrt(2)) + math.erf((x - 0.5) / math.sqrt(2)) for x in (1, 2)
    ]
    for sigma, expected in zip((1, 2), np.array(shifted) / 2, strict=True):
        within = np.mean(np.abs(pulls) < sigma)
        assert within > expected - chance * math.sqrt(expected * (1 - expected))


def test_a_pcac_mass_begins_at_the_second_time_even_if_told_otherwise():
    """The first one would contain the current at the source."""
    rng = np.random.default_rng(6)
    table = ensemble(rng, 100)
    one, other = (
        next(iter(meson_series(table, Ranges(t_min, 5)).pcac.values()))[0] for t_min in (1, 2)
    )
    assert one == other
    assert one.t_min == 2
