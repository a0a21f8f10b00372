"""Fields go to a device and come back as they were; starts are what they say."""

import numpy as np
import pytest

from gauge_mc.devices import Device
from gauge_mc.devices.cpu import CpuDevice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.layout import Layout, split_lanes
from tests.reference.distributions import HAAR_MOMENTS
from tests.reference.fields import cold_field, dagger, random_field

LATTICES = [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6), Lattice(2, 2, 2, 2)]


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_round_trip(lattice, group, precision, device: Device, rng):
    links = random_field(lattice.extents, group, rng)
    field = Field.load(lattice, group, links, precision, device)
    assert np.abs(field.to_numpy() - links).max() < (2e-7 if precision == "single" else 1e-14)

    copy = Field.empty(lattice, group, precision, device)
    copy.restore(field.stored())
    bits = [device.read(one.slabs[0].buffer, 0, one.nbytes) for one in (field, copy)]
    assert np.array_equal(*bits)


@pytest.mark.parametrize(
    ("text", "most", "split"),
    [
        ("16x16x16x4", 16, (1, 4, 4)),
        ("24x24x24x4", 16, (1, 4, 4)),
        ("4x6x8x10", 16, (2, 1, 4)),
        ("6x6x6x6", 16, (1, 1, 1)),
        ("12x12x12x12", 16, (2, 2, 2)),
        ("32x32x32x32", 8, (1, 2, 4)),
    ],
)
def test_lanes_have_even_sublattices(text, most, split):
    assert split_lanes(Lattice.parse(text), most) == split


def test_every_site_has_one_place():
    layout = Layout(Lattice(8, 8, 4, 6), "single", (2, 4, 2), 0, 0, 6)
    numbers = np.arange(8 * 8 * 4, dtype=np.uint32).reshape(4, 8, 8, 1)
    for t in range(2):
        stored = layout.stored_words(numbers, t)
        assert np.array_equal(np.sort(stored), numbers.ravel())
        assert np.array_equal(layout.words_of(stored, t), numbers)
        z, y, x = np.unravel_index(stored.reshape(2, -1), numbers.shape[:3])
        assert np.array_equal((x + y + z + t) % 2, np.repeat([[0], [1]], 128, axis=1))


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
        Field.load(lattice, "su3", links[:3], device=device)
    with pytest.raises(GaugeError, match="not those of SU2"):
        Field.load(lattice, "su2", links, device=device)
    with pytest.raises(GaugeError, match="GiB"):
        Field.empty(Lattice(160, 160, 160, 1000), "su3", "double", device)
    with pytest.raises(UsageError, match="group 'su4'"):
        Field.empty(lattice, "su4", device=device)
    with pytest.raises(UsageError, match="precision 'half'"):
        Field.empty(lattice, "su3", "half", device)


@pytest.mark.parametrize("text", ["3x4x4x4", "4x4x4x0", "4x4", "4x4x4x4x4", "ax4x4x4", "4x4x4x-2"])
def test_wrong_lattices_are_refused(text):
    with pytest.raises(UsageError):
        Lattice.parse(text)
