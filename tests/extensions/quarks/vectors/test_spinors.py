"""Spinor fields and links: to a device and back, and in other precisions."""

import numpy as np
import pytest

from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField
from gauge_mc.extensions.quarks.vectors.transport import in_precision
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.reference.fields import parity, random_field

LATTICE = Lattice(4, 6, 8, 10)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("lattice", [LATTICE, Lattice(2, 2, 2, 2), Lattice(4, 6, 2, 8)], ids=str)
def test_round_trip(lattice, group, storage, device, rng):
    field = Field.empty(lattice, group, "single", device)
    psi = np.stack([random_spinor(lattice.extents, int(group[2]), rng) for _ in range(3)])
    found = SpinorField.from_numpy(field, psi, storage).to_numpy()
    largest = 1.0
    if storage == "half":
        parts = np.maximum(np.abs(psi.real), np.abs(psi.imag))
        largest = parts.max(axis=(-2, -1), keepdims=True)
    allowed = 2.01 * STORAGES[storage].rounding * np.maximum(largest, np.abs(psi))
    assert (np.abs(found - psi) <= allowed).all()
    if storage == "double":
        assert np.array_equal(found, psi)


def test_one_parity(group, best_device, rng):
    field = Field.empty(LATTICE, group, "double", best_device)
    psi = random_spinor(LATTICE.extents, int(group[2]), rng)
    for own in (0, 1):
        found = SpinorField.from_numpy(field, psi, "double", own).to_numpy()[0]
        there = (parity(LATTICE.extents) == own)[..., None, None]
        assert np.array_equal(found, np.where(there, psi, 0))


@pytest.mark.longer
@pytest.mark.parametrize("to", STORAGES)
@pytest.mark.parametrize("origin", STORAGES)
def test_copies_between_types_of_storage(group, origin, to, device, rng):
    field = Field.empty(LATTICE, group, "single", device)
    psi = np.stack([random_spinor(LATTICE.extents, int(group[2]), rng) for _ in range(2)])
    source = SpinorField.from_numpy(field, psi, origin)
    target = source.like(to)
    target.copy(source)
    through = SpinorField.from_numpy(field, source.to_numpy(), to)
    rounding = 3e-7 if origin == "half" else 0  # of the product of an integer and its unit
    assert np.abs(target.to_numpy() - through.to_numpy()).max() <= rounding


def test_zeros_and_extreme_numbers_in_half_precision(best_device):
    field = Field.empty(LATTICE, "su3", "single", best_device)
    psi = np.zeros((*LATTICE.extents[::-1], 4, 3), complex)
    psi[0, 0, 0, 0, 1, 2] = 3e4j
    psi[1, 0, 0, 0, 0, 0] = 1e-33
    psi[2, 0, 0, 0] = 1e-20
    psi[3, 0, 0, 0, 2, 1] = complex(np.nan, 0)
    found = SpinorField.from_numpy(field, psi, "half").to_numpy()[0]
    assert np.isnan(found[3, 0, 0, 0]).any()
    psi[3], found[3] = 0, 0
    psi[1] = 0
    assert np.abs(found - psi).max() < 3e4 * 1e-6
    assert np.abs(found[2, 0, 0, 0] - 1e-20).max() < 1e-25


def test_what_is_refused(rng):
    field = Field.empty(Lattice(2, 2, 2, 4), "su3", "double")
    with pytest.raises(GaugeError, match=r"shape \(4, 2, 2, 2, 4, 2\), but on 2x2x2x4 with SU"):
        SpinorField.from_numpy(field, np.zeros((4, 2, 2, 2, 4, 2)))
    with pytest.raises(UsageError, match="no precision 'singel' of spinors; did you mean 'single'"):
        SpinorField.empty(field, "singel")
    with pytest.raises(GaugeError, match="The array has 1 vector, but the field has 2"):
        SpinorField.empty(field, count=2).restore(np.zeros((4, 2, 2, 2, 4, 3)))


@pytest.mark.parametrize("origin", REAL_BYTES)
@pytest.mark.parametrize("to", REAL_BYTES)
def test_links_in_another_precision_are_those_of_the_host(group, origin, to, device, rng):
    field = field_of(random_field(LATTICE.extents, group, rng), device, origin)
    copy = in_precision(field, to)
    through = Field.from_slices(LATTICE, group, field.slices(), to, device)
    assert copy.precision == to
    assert (copy is field) == (origin == to)
    np.testing.assert_array_equal(copy.to_numpy(), through.to_numpy())


def test_links_in_another_precision_have_halos(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    field = field_of(links, DeviceGroup((best_device,) * 2), "single")
    copy = in_precision(field, "double")
    through = Field.from_slices(LATTICE, "su3", field.slices(), "double", field.devices)
    through.exchange_halo(None)
    for one, other in zip(copy.slabs, through.slabs, strict=True):
        content = [slab.device.read(slab.buffer, 0, slab.buffer.nbytes) for slab in (one, other)]
        np.testing.assert_array_equal(*content)
