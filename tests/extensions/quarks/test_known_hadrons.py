"""Correlators that are known: free quarks, and two colours."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.hadrons.contractions import (
    Propagator,
    delta,
    meson,
    nucleon,
    of_parity,
    spin_tensor,
)
from gauge_mc.extensions.quarks.vectors.basis import GAMMA_5, SIXTEEN
from gauge_mc.fields.field import Field
from tests.extensions.quarks.reference import hadrons as reference

PI = np.pi


def free(lattice, kappa, angles, device=None, group="su3"):
    field = Field.cold(lattice, group, "double", device)
    array = reference.free_propagator(lattice.extents, kappa, angles, field.group.colours)
    return Propagator.from_numpy(field, array, kappa, np.exp(1j * np.array(angles)))


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
