"""Plaquette and Polyakov loop against NumPy, and their gauge invariance."""

import numpy as np
import pytest

from gauge_mc.devices import open_device
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.plaquette import Plaquette, plaquette
from gauge_mc.quantities.polyakov.observables import polyakov_loop
from tests.reference import observables as reference
from tests.reference.fields import gauge_transform, random_field, random_su

SMALLEST = pytest.param(Lattice(2, 4, 2, 2), marks=pytest.mark.slow)
LATTICES = [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6), SMALLEST]
TOLERANCE = {"single": 1e-6, "double": 1e-14}


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_plaquette(lattice, group, precision, device, rng):
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, precision, device)
    measured, expected = Plaquette().measure(field), reference.plaquette(links)
    difference = np.subtract(measured, (expected.mean, expected.spatial, expected.temporal))
    assert np.abs(difference).max() < TOLERANCE[precision]
    assert plaquette(field) == measured[0]


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_polyakov_loop(lattice, group, precision, device, rng):
    links = random_field(lattice.extents, group, rng)
    measured = polyakov_loop(Field.from_slices(lattice, group, links, precision, device))
    assert abs(measured - reference.polyakov_loop(links)) < TOLERANCE[precision]


def test_slabs_on_one_device_do_not_share_the_memory_of_their_sums():
    device = open_device(backend="cpu")
    alone, twice = (
        Field.hot(Lattice(4, 4, 4, 8), "su2", "double", DeviceGroup((device,) * slabs))
        for slabs in (1, 2)
    )
    for name in ("plaquette", "polyakov"):
        observable = OBSERVABLES[name].for_lattice(alone.lattice)
        assert observable.measure(twice) == observable.measure(alone)


def test_gauge_invariance(group, best_device, rng):
    lattice = Lattice(4, 6, 8, 10)
    links = random_field(lattice.extents, group, rng)
    transformed = gauge_transform(links, random_su(int(group[2]), links.shape[:4], rng))
    before, after = (
        Field.from_slices(lattice, group, u, "double", best_device) for u in (links, transformed)
    )
    assert plaquette(after) == pytest.approx(plaquette(before), abs=1e-13)
    assert polyakov_loop(after) == pytest.approx(polyakov_loop(before), abs=1e-13)


def test_cold_field_gives_one(group, precision, best_device):
    field = Field.cold(Lattice(4, 6, 8, 10), group, precision, best_device)
    assert plaquette(field) == 1
    assert polyakov_loop(field) == 1
