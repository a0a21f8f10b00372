"""Contractions of propagators, compared with explicit traces and antisymmetric tensors."""

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
