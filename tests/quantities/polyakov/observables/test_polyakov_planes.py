"""The observable ``polyakov-planes``: against NumPy, and the same for any division."""

import math

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quantities.polyakov.observables import PolyakovPlanes, polyakov_planes
from tests.observables.loops import MANY_LANES, TOLERANCE, UNEQUAL, random_links
from tests.reference.fields import gauge_transform, random_su
from tests.reference.observables import polyakov_field


def measured(field):
    return PolyakovPlanes.for_lattice(field.lattice).measurer(field)(field)


def expected(links):
    """Return the records of a field: the loops are turned by the element of the centre."""
    loops = polyakov_field(links)  # [z, y, x]
    colours = links.shape[-1]
    centre = np.exp(2j * math.pi * np.arange(colours) / colours)
    loops = loops * max(centre, key=lambda z: (loops.mean() * z).real)
    records = []
    for axis, number in (("x", 2), ("y", 1), ("z", 0)):
        planes = loops.mean(axis=tuple({0, 1, 2} - {number}))
        n = planes.size
        for r in range(n // 2 + 1):
            pairs = [(planes[i], planes[(i + r) % n]) for i in range(n)]
            re, im = (np.mean([part(a) * part(b) for a, b in pairs]) for part in (np.real, np.imag))
            records.append((axis, r, re, im))
    return records


def assert_equal(found, known, tolerance):
    assert [one[:2] for one in found] == [one[:2] for one in known]
    difference = np.subtract([one[2:] for one in found], [one[2:] for one in known])
    assert np.abs(difference).max() < tolerance


@pytest.mark.parametrize("lattice", [UNEQUAL, MANY_LANES, Lattice(6, 2, 10, 4)], ids=str)
def test_records_are_those_of_the_reference(lattice, group, precision, device):
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, precision, device)
    known = expected(links)
    assert np.abs([one[2] for one in known]).min() > 1e-7
    assert_equal(measured(field), known, TOLERANCE[precision])
    assert PolyakovPlanes(lattice).records == len(known)


def test_the_centre_and_gauge_transformations_change_nothing(group, best_device, rng):
    """Links along t at one t times an element of the centre turn all loops to another sector."""
    links = random_links(UNEQUAL, group)
    colours = links.shape[-1]
    turned = gauge_transform(links, random_su(colours, links.shape[:4], rng))
    turned[3, ..., 3, :, :] *= np.exp(2j * math.pi / colours)
    one, two = (
        measured(Field.from_slices(UNEQUAL, group, u, "double", best_device))
        for u in (links, turned)
    )
    assert_equal(two, one, 1e-14)


def test_planes_of_all_axes_have_the_same_mean(best_device):
    field = Field.hot(UNEQUAL, "su3", "double", best_device, seed=4)
    means = [planes.mean() for planes in polyakov_planes(field)]
    assert means == pytest.approx([polyakov_field(field.to_numpy()).mean()] * 3, abs=1e-14)
