"""Correlators of Polyakov loops against NumPy, exact results, and what they are invariant under."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.observables.polyakov_correlators import PolyakovCorrelators
from gauge_mc.observables.wilson_loops import PATHS
from tests.reference.fields import gauge_transform, random_field, random_su
from tests.reference.observables import mean_polyakov_correlator

UNEQUAL = Lattice(4, 6, 8, 10)
MANY_LANES = Lattice(8, 8, 8, 4)
TOLERANCE = {"single": 1e-7, "double": 1e-14}


@cache
def random_links(lattice, group):
    return random_field(lattice.extents, group, np.random.default_rng(11))


def measured(field, **options):
    """Return the correlators by path and r."""
    observable = PolyakovCorrelators.for_lattice(field.lattice, off_axis=True, **options)
    return {(path, r): value for path, r, value in observable.measurer(field)(field)}


@pytest.mark.parametrize("lattice", [UNEQUAL, MANY_LANES], ids=str)
def test_correlators_are_those_of_the_reference(lattice, group, precision, device):
    links = random_links(lattice, group)
    found = measured(Field.from_slices(lattice, group, links, precision, device))
    half = min(lattice.extents[:3]) // 2
    assert {*found} == {(path, r) for path in PATHS for r in range(1, half // int(path[0]) + 1)}
    for (path, r), value in found.items():
        expected = mean_polyakov_correlator(links, path, r)
        assert value == pytest.approx(expected, abs=TOLERANCE[precision])


def test_gauge_invariance(group, best_device, rng):
    links = random_links(UNEQUAL, group)
    transformed = gauge_transform(links, random_su(int(group[2]), links.shape[:4], rng))
    before, after = (
        measured(Field.from_slices(UNEQUAL, group, u, "double", best_device))
        for u in (links, transformed)
    )
    assert after == pytest.approx(before, abs=1e-14)


def test_a_cold_field_gives_one(group, precision, best_device):
    found = measured(Field.cold(UNEQUAL, group, precision, best_device))
    assert set(found.values()) == {1.0}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"r_max": 3}, "r_max is 3; on 4x6x8x10 choose it between 1 and 2, half the lattice"),
        ({"r_max": 0}, "r_max is 0"),
        ({"paths": ["321"]}, "There is no path '321'; choose from 100, 110, 210, 111"),
    ],
)
def test_distances_that_cannot_be(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        PolyakovCorrelators(UNEQUAL, **({"r_max": 1} | options))
