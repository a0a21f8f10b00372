"""Correlators that are known: free quarks, and two colours."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.spectroscopy.contractions import (
    Propagator,
    delta,
    diquark,
    meson,
    nucleon,
    of_parity,
    spin_tensor,
)
from gauge_mc.extensions.quarks.vectors.basis import GAMMA, GAMMA_5, SIXTEEN
from gauge_mc.fields.field import Field
from tests.extensions.quarks.reference import hadrons as reference
from tests.reference.fields import random_field

PI = np.pi


def free(lattice, kappa, angles, device=None, group="su3"):
    field = Field.cold(lattice, group, "double", device)
    array = reference.free_propagator(lattice.extents, kappa, angles, field.group.colours)
    return Propagator.from_numpy(field, array, kappa, np.exp(1j * np.array(angles)))


def test_pion_of_free_quarks_with_twisted_boundaries(best_device):
    """Known values; their last digits are those of a solution with a finite residual."""
    quark = free(Lattice(4, 4, 4, 8), 0.1, (0.2 * PI, 0.4 * PI, 0, 0), best_device)
    found = meson(spin_tensor(quark, quark), GAMMA_5, GAMMA_5)
    known = [0.550448091581, 0.018777678858, 0.001913035711, 0.000304754974, 0.000111618742]
    np.testing.assert_allclose(found[:5].real, known, rtol=3e-7)
    assert np.abs(found.imag).max() < 1e-15


def test_mesons_are_positive_and_symmetric_in_time():
    quark = free(Lattice(4, 4, 4, 8), 0.12, (0, 0, 0, PI))
    tensor = spin_tensor(quark, quark)
    reflection = GAMMA[3] @ GAMMA_5
    commute = {n: np.allclose(reflection @ one, one @ reflection) for n, one in SIXTEEN.items()}
    for source, begin in SIXTEEN.items():
        assert (meson(tensor, begin, begin)[1:].real > 0).all()
        for sink, end in SIXTEEN.items():
            found = meson(tensor, end, begin)[1:]
            sign = 1 if commute[source] == commute[sink] else -1
            np.testing.assert_allclose(found, sign * found[::-1], atol=1e-14)


def test_pcac_mass_of_free_quarks():
    """At late times of quarks at rest it tends to the mass of the pole, ln(1 + m0)."""
    mass = 0.2
    quark = free(Lattice(4, 4, 4, 64), 1 / (2 * mass + 8), (0, 0, 0, PI))
    tensor = spin_tensor(quark, quark)
    axial = meson(tensor, SIXTEEN["gtg5"], GAMMA_5).real
    density = meson(tensor, GAMMA_5, GAMMA_5).real
    found = (axial[2:] - axial[:-2]) / (4 * density[1:-1])
    pole = np.log(1 + mass)
    pion = np.arccosh((density[28] + density[30]) / (2 * density[29]))
    assert pion == pytest.approx(2 * pole, rel=1e-3)
    assert found[29] == pytest.approx(np.sinh(2 * pole) / 2, rel=2e-3)


@pytest.mark.parametrize("angle", [0, PI])
def test_baryons_are_positive_and_come_back_with_the_other_parity(angle):
    quark = free(Lattice(4, 4, 4, 12), 0.12, (0, 0, 0, angle))
    for correlator in (nucleon(quark, quark), delta(quark)):
        ahead, back = (of_parity(correlator, parity).real for parity in (1, -1))
        assert (ahead[1:6] > 0).all()
        assert (back[1:6] > 0).all() or not angle  # or else the other parity dominates
        sign = 1 if angle else -1
        np.testing.assert_allclose(ahead[1:], sign * back[:0:-1], rtol=1e-9, atol=1e-18)


@pytest.mark.slow
def test_diquarks_of_two_colours_are_mesons(rng):
    """M is the same for quarks and antiquarks, so that q^T C Gamma q is like q-bar Gamma q."""
    lattice, kappa, place = Lattice(4, 4, 4, 2), 0.13, (1, 0, 1, 1)
    phases = (1, 1, 1, -1)
    links = random_field(lattice.extents, "su2", rng)
    array = reference.dense_propagator(links, kappa, phases, place)
    field = Field.cold(lattice, "su2", "double")
    quark = Propagator.from_numpy(field, array, kappa, phases, place)
    tensor = spin_tensor(quark, quark)
    for gamma in SIXTEEN.values():
        found = diquark(quark, quark, gamma, (0, 0, 0))
        expected = meson(tensor, gamma, gamma)
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
