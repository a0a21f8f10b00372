"""Contractions of propagators: against traces and antisymmetric tensors, and known correlators."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.contractions import (
    Propagator,
    delta,
    diquark,
    meson,
    nucleon,
    of_parity,
    spin_tensor,
)
from gauge_mc.extensions.quarks.vectors.basis import CONJUGATION, GAMMA, GAMMA_5, SIXTEEN
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import check_divisions
from tests.extensions.quarks.reference import hadrons as reference

LATTICE = Lattice(4, 2, 8, 6)
KAPPAS = (0.12, 0.15)
PLACE = (1, 1, 5, 3)
MOMENTA = [(0, 0, 0), (1, 1, -2)]
PHASES = (1, 1, 1, np.exp(0.3j))
PRECISIONS = {"double": 1e-13, "single": 3e-6}


def quarks(field, arrays, precision="double"):
    return [
        Propagator.from_numpy(field, one, kappa, PHASES, PLACE, precision)
        for one, kappa in zip(arrays, KAPPAS, strict=True)
    ]


def arrays_of(colours, rng, lattice=LATTICE):
    return [reference.random_propagator(lattice.extents, colours, rng) for _ in KAPPAS]


def expected(values, momentum, *kappas, phase=1.0):
    """Normalised, and counted from the time of the source."""
    t = np.arange(LATTICE.t)
    there = np.roll(values, -PLACE[3], axis=0)
    factor = np.where(t < LATTICE.t - PLACE[3], 1, phase)
    return (
        np.prod([2 * one for one in kappas]) * there * factor.reshape(-1, *[1] * (there.ndim - 1))
    )


def wave(momentum):
    return reference.waves(LATTICE.extents, momentum, PLACE[:3])


def close(found, wanted, precision):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < PRECISIONS[precision] * np.abs(wanted).max()


@pytest.mark.parametrize("momentum", MOMENTA)
def test_mesons_are_traces(group, precision, momentum, best_device, rng):
    field = Field.empty(LATTICE, group, "single", best_device)
    arrays = arrays_of(field.group.colours, rng)
    first, second = quarks(field, arrays, precision)
    tensor = spin_tensor(second, first, momentum)
    for sink, source in (("g5", "g5"), ("gx", "gxgt"), ("unit", "gyg5"), ("gygz", "gygz")):
        parts = SIXTEEN[sink], SIXTEEN[source]
        wanted = expected(reference.meson(*arrays, *parts, wave(momentum)), momentum, *KAPPAS)
        scale = np.abs(tensor).max()
        assert np.abs(meson(tensor, *parts) - wanted).max() < 16 * PRECISIONS[precision] * scale


def test_a_pion_is_the_sum_of_squares(best_device, rng):
    field = Field.empty(LATTICE, "su3", "double", best_device)
    arrays = arrays_of(3, rng)
    first, _ = quarks(field, arrays)
    found = meson(spin_tensor(first, first), GAMMA_5, GAMMA_5)
    squares = (np.abs(arrays[0]) ** 2).sum(axis=tuple(range(1, 8)))
    close(found, expected(squares, 0, *2 * [KAPPAS[0]]) + 0j, "double")


@pytest.mark.parametrize("momentum", MOMENTA)
def test_nucleons_are_sums_of_antisymmetric_tensors(precision, momentum, best_device, rng):
    field = Field.empty(LATTICE, "su3", "single", best_device)
    arrays = arrays_of(3, rng)
    found = nucleon(*quarks(field, arrays, precision), momentum)
    gamma = CONJUGATION @ GAMMA_5
    whole = reference.baryon(*arrays, gamma, gamma, wave(momentum))
    phase = PHASES[3] ** 3
    close(found, expected(whole, momentum, *KAPPAS, KAPPAS[0], phase=phase), precision)
    for parity in (1, -1):
        projected = reference.projected(found, parity)
        np.testing.assert_allclose(of_parity(found, parity), projected, rtol=1e-12)


@pytest.mark.longer
def test_deltas_are_sums_of_antisymmetric_tensors(best_device, rng):
    field = Field.empty(LATTICE, "su3", "double", best_device)
    arrays = arrays_of(3, rng)
    found = delta(quarks(field, arrays)[0])
    vectors = [CONJUGATION @ one for one in GAMMA[:3]]
    total = 0
    for i, source in enumerate(vectors):
        for j, sink in enumerate(vectors):
            one = reference.resonance(arrays[0], sink, source, wave((0, 0, 0)))
            projector = (i == j) * np.eye(4) - GAMMA[i] @ GAMMA[j] / 3
            total = total + np.einsum("ab,tbc->tac", projector, one)
    close(found, expected(total, 0, *3 * [KAPPAS[0]], phase=PHASES[3] ** 3), "double")


@pytest.mark.parametrize("momentum", MOMENTA)
def test_diquarks_are_sums_of_antisymmetric_tensors(precision, momentum, best_device, rng):
    field = Field.empty(LATTICE, "su2", "single", best_device)
    arrays = arrays_of(2, rng)
    first, second = quarks(field, arrays, precision)
    for name in ("g5", "unit", "gxg5"):
        sink = CONJUGATION @ SIXTEEN[name]
        end = GAMMA[3] @ sink.conj() @ GAMMA[3]
        whole = reference.diquark(*arrays, sink, end, wave(momentum))
        wanted = expected(whole, momentum, *KAPPAS, phase=PHASES[3] ** 2)
        close(diquark(first, second, SIXTEEN[name], momentum), wanted, precision)


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_slabs_give_the_same_bytes(group, rng):
    arrays = arrays_of(int(group[2]), rng)

    def calculate(devices):
        first, second = quarks(Field.empty(LATTICE, group, "double", devices), arrays)
        several = (
            nucleon(first, second, MOMENTA[1])
            if group == "su3"
            else diquark(first, second, GAMMA_5, MOMENTA[1])
        )
        return [*(spin_tensor(first, second, one) for one in MOMENTA), several]

    check_divisions("cpu-16", [(6,), (3, 3), (2, 4)], calculate)


def test_propagators_to_numpy_and_back(group, best_device, rng):
    field = Field.empty(LATTICE, group, "double", best_device)
    arrays = arrays_of(field.group.colours, rng)
    for one, array in zip(quarks(field, arrays), arrays, strict=True):
        np.testing.assert_array_equal(one.to_numpy(), array)
    with pytest.raises(GaugeError, match=r"The propagator has the shape \(2,\), but on 4x2x8x6"):
        Propagator.from_numpy(field, np.zeros(2), 0.1)


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
