"""Noise of stochastic sources: its distribution and its dilution, which depend on sites alone."""

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.noise import DILUTIONS, NoiseSource, dilution_of, source_parts
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import check_divisions
from tests.reference.randoms import philox4x32

LATTICE = Lattice(4, 6, 8, 4)
DIGEST = 0xA1B2C3D4E5
EVERYTHING = ",".join(DILUTIONS)


def vectors_of(field, noise="z4", number=0, seed=1, digest=DIGEST, dilute="none"):
    parts = source_parts(dilution_of(dilute), field.group.colours, field.lattice.t)
    source = NoiseSource(noise, number, seed, digest, tuple(parts))
    vectors = SpinorField.empty(field, "double", source.count(field.group.colours))
    source.fill(vectors, field)
    return vectors.to_numpy()


def uniforms(seed, number, colours):
    """The random numbers of every site, of shape (T, Z, Y, X, 8 N), by Philox's definition."""
    sites = np.arange(LATTICE.sites, dtype=np.uint64)
    step = 1 << 63 | DIGEST << 20 | number
    words = []
    for block in range(4 * colours):
        counter = np.zeros((LATTICE.sites, 4), np.uint32)
        counter[:, 0], counter[:, 1] = sites, block << 4
        counter[:, 2], counter[:, 3] = step & 0xFFFFFFFF, step >> 32
        key = np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)
        words.append(philox4x32(counter, np.broadcast_to(key, (LATTICE.sites, 2))))
    pairs = np.concatenate(words, axis=1).astype(np.uint64).reshape(LATTICE.sites, -1, 2)
    mantissa = (pairs[..., 0] << np.uint64(32) | pairs[..., 1]) >> np.uint64(12)
    values = (mantissa.astype(float) + 0.5) / 2**52
    return values.reshape(*LATTICE.extents[::-1], -1)


def test_roots_are_those_of_the_numbers_of_the_site(best_device):
    field = Field.cold(LATTICE, "su2", "double", best_device)
    u = uniforms(5, 3, 2).reshape(*LATTICE.extents[::-1], 2, 4, 2)[..., 0]  # colour, spin
    u = u.swapaxes(-1, -2)
    np.testing.assert_array_equal(
        vectors_of(field, "z2", 3, 5).sum(axis=0), np.where(u < 0.5, 1, -1)
    )
    np.testing.assert_array_equal(
        vectors_of(field, "z4", 3, 5).sum(axis=0), np.array([1, 1j, -1, -1j])[(4 * u).astype(int)]
    )


def test_moments(best_device):
    """Of 2 * 10^5 numbers: <z>, <z^2> and <z^3> within four errors, <|z|^2> and <|z|^4> as well."""
    lattice = Lattice(8, 8, 8, 16)
    field = Field.cold(lattice, "su2", "double", best_device)
    exact = {"z2": (0, 1, 0, 1, 1), "z4": (0, 0, 0, 1, 1), "gaussian": (0, 0, 0, 1, 2)}
    for noise, expected in exact.items():
        z = np.concatenate([vectors_of(field, noise, n).sum(axis=0).ravel() for n in range(3)])
        for power, value in zip((z, z**2, z**3, abs(z) ** 2, abs(z) ** 4), expected, strict=True):
            error = power.std() / np.sqrt(z.size)
            assert abs(power.mean() - value) <= 4 * error + 1e-12


def test_sources_configurations_and_seeds_differ(best_device):
    field = Field.cold(LATTICE, "su2", "double", best_device)
    first = vectors_of(field)
    for change in ({"number": 1}, {"digest": DIGEST + 1}, {"seed": 2}):
        other = vectors_of(field, **change)
        overlap = abs((first.conj() * other).sum()) / (abs(first) ** 2).sum()
        assert overlap < 4 / np.sqrt(first[0].size)


@pytest.mark.parametrize("dilute", ["none", *DILUTIONS, "spin,time", EVERYTHING])
def test_dilution_divides_a_source_into_parts(dilute, best_device):
    field = Field.cold(LATTICE, "su2", "double", best_device)
    whole, parts = vectors_of(field).sum(axis=0), vectors_of(field, dilute=dilute)
    words = dilution_of(dilute)
    counts = {"spin": 2, "colour": 2, "even-odd": 2, "time": LATTICE.t}
    assert len(parts) == 2 * np.prod([counts[one] for one in words], dtype=int)
    np.testing.assert_array_equal(parts.sum(axis=0), whole)
    assert ((parts != 0).sum(axis=0) == 1).all()  # no component is in two parts
    z, y, x = np.indices(LATTICE.extents[2::-1])
    for vector in parts:
        t, *_, spin, colour = (np.unique(one) for one in np.nonzero(vector))
        assert len({*(spin // 2).tolist()}) == 1
        assert ("spin" in words) <= (len(spin) == 1)
        assert ("colour" in words) == (len(colour) == 1)
        assert ("time" in words) == (len(t) == 1)
        odd = np.unique([(x + y + z + n)[np.any(vector[n] != 0, axis=(-1, -2))] % 2 for n in t])
        assert ("even-odd" in words) == (len(odd) == 1)


@pytest.mark.slow
@pytest.mark.parametrize("dilute", ["none", "even-odd,time"])
def test_slabs_and_precisions_give_the_same_bytes(dilute):
    for precision in ("double", "single"):

        def calculate(devices, precision=precision):
            field = Field.cold(LATTICE, "su2", precision, devices)
            return [vectors_of(field, "gaussian", dilute=dilute)]

        check_divisions("cpu-16", [(4,), (2, 2)], calculate)
    fields = (Field.cold(LATTICE, "su2", one, CpuDevice(1)) for one in ("double", "single"))
    assert np.array_equal(*(vectors_of(one, "gaussian", dilute=dilute) for one in fields))
