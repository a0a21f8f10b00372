"""Fields: to a device and back, starts, and what is refused."""

import numpy as np
import pytest

from gauge_mc.devices import Device
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from tests.reference.distributions import HAAR_MOMENTS
from tests.reference.fields import cold_field, dagger, random_field

LATTICES = [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6), Lattice(2, 2, 2, 2)]


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_round_trip(lattice, group, precision, device: Device, rng):
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, precision, device)
    assert np.abs(field.to_numpy() - links).max() < (2e-7 if precision == "single" else 1e-14)

    copy = Field.empty(lattice, group, precision, device)
    copy.restore(field.packed_slices())
    bits = [device.read(one.slabs[0].buffer, 0, one.nbytes) for one in (field, copy)]
    assert np.array_equal(*bits)


def test_cold_start(group, precision, device):
    lattice = Lattice(4, 6, 8, 10)
    field = Field.cold(lattice, group, precision, device)
    assert np.array_equal(field.to_numpy(), cold_field(lattice.extents, group))


def test_hot_start_is_haar_distributed(group, precision, device):
    field = Field.hot(Lattice(8, 8, 8, 16), group, precision, device, seed=3)
    links = field.to_numpy()
    unit = links @ dagger(links)
    assert np.abs(unit - np.eye(links.shape[-1])).max() < (1e-6 if precision == "single" else 1e-14)
    assert np.abs(np.linalg.det(links) - 1).max() < (1e-6 if precision == "single" else 1e-14)
    left = np.trace(links, axis1=-2, axis2=-1).ravel()
    # A fixed rotation must not matter: the measure is invariant.
    right = np.trace(links @ links[0, 0, 0, 0, 0], axis1=-2, axis2=-1).ravel()
    for traces in (left, right):
        for (m, n), expected in HAAR_MOMENTS[group].items():
            values = (traces**m * traces.conj() ** n).real
            error = values.std() / np.sqrt(values.size)
            assert abs(values.mean() - expected) < 4.5 * error


def test_hot_start_depends_on_the_seed_alone(group, device):
    lattice = Lattice(8, 8, 4, 6)
    scalar = Field.hot(lattice, group, "double", CpuDevice(1, lanes=1), seed=5).to_numpy()
    same = Field.hot(lattice, group, "double", device, seed=5).to_numpy()
    other = Field.hot(lattice, group, "double", device, seed=6).to_numpy()
    assert np.abs(same - scalar).max() < 1e-12
    assert np.abs(other - scalar).mean() > 0.1


def test_wrong_fields_are_refused(rng):
    lattice = Lattice(4, 4, 4, 4)
    device = CpuDevice(1)
    links = random_field(lattice.extents, "su3", rng)
    with pytest.raises(GaugeError, match="end after 3 of 4 time slices"):
        Field.from_slices(lattice, "su3", links[:3], device=device)
    with pytest.raises(GaugeError, match=r"not those of SU\(2\) on 4x4x4x4: slice 0"):
        Field.from_slices(lattice, "su2", links, device=device)
    with pytest.raises(GaugeError, match="GiB"):
        Field.empty(Lattice(160, 160, 160, 1000), "su3", "double", device)
    with pytest.raises(UsageError, match="group 'zu8'"):
        Field.empty(lattice, "zu8", device=device)
    with pytest.raises(UsageError, match="precision 'half'"):
        Field.empty(lattice, "su3", "half", device)


@pytest.mark.parametrize("format", ["ildg", "nersc"])
def test_files_keep_every_bit(format, group, precision, tmp_path, rng):
    lattice, device = Lattice(4, 6, 8, 10), CpuDevice(1)
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, precision, device)
    field.save(tmp_path / "links", format)
    again = Field.load(tmp_path / "links", device=device)
    assert (again.lattice, again.group.name, again.precision) == (lattice, group, precision)
    for one, other in zip(field.packed_slices(), again.packed_slices(), strict=True):
        assert np.array_equal(one, other)
    assert Field.load(tmp_path / "links", "single", device).precision == "single"
