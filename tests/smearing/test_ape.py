"""APE smearing against NumPy."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.smearing import PROJECTIONS
from gauge_mc.smearing.kinds import Ape
from tests.conftest import open_by_name
from tests.reference.fields import dagger, random_field
from tests.reference.smearing import ape, ape_alpha, project_maximal, project_unitary

LATTICE = Lattice(4, 6, 8, 4)
DEVICES = [
    *(
        pytest.param(*one, marks=pytest.mark.slow)
        for one in (("cpu-1", "double"), ("cpu-2", "double"), ("cpu-4", "single"))
    ),
    ("cpu-8", "single"),
    ("cpu-8", "double"),
    pytest.param("cpu-16", "single", marks=pytest.mark.slow),
    pytest.param("cuda", "single", marks=pytest.mark.gpu),
    pytest.param("cuda", "double", marks=pytest.mark.gpu),
]
PROJECT = {"maximal": project_maximal, "polar": project_unitary}
TOLERANCE = {"single": 1e-5, "double": 1e-12}
"""Sums of random links may be nearly singular, which magnifies rounding."""


@cache
def random_links(group):
    return random_field(LATTICE.extents, group, np.random.default_rng(12))


@cache
def expected(group, weight, dims, projection):
    return ape(random_links(group), weight, range(dims), project=PROJECT[projection])


def smeared(field, smearing):
    target = Field.empty(field.lattice, field.group.name, field.precision, field.devices)
    smearing(field, target)
    return target.to_numpy()


@pytest.mark.kernels
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize(("weight", "dims"), [(0.2, 3), (0.2, 4), (2.0, 3)])
@pytest.mark.parametrize(("name", "precision"), DEVICES)
def test_one_iteration(group, name, precision, weight, dims, projection):
    field = Field.from_slices(LATTICE, group, random_links(group), precision, open_by_name(name))
    found = smeared(field, Ape(weight, dims, projection))
    unit = found @ dagger(found)
    assert np.abs(unit - np.eye(unit.shape[-1])).max() < (2e-6 if precision == "single" else 1e-14)
    difference = np.abs(found - expected(group, weight, dims, projection))
    assert difference.max() < TOLERANCE[precision]
    # The temporal links are unchanged, to the bit.
    assert np.array_equal(found[..., 3, :, :], field.to_numpy()[..., 3, :, :])


@pytest.mark.parametrize(
    ("exclude", "dims", "links", "along"),
    [("none", 3, range(4), range(4)), ("y", 3, (0, 2, 3), (0, 2, 3)), ("yt", 4, (0, 2), range(4))],
)
def test_excluded_directions(group, best_device, exclude, dims, links, along):
    field = Field.from_slices(LATTICE, group, random_links(group), "double", best_device)
    found = smeared(field, Ape(0.2, dims, exclude=exclude))
    reference = ape(random_links(group), 0.2, along, links)
    assert np.abs(found - reference).max() < TOLERANCE["double"]
    smearing = Ape.from_alpha(0.5, dims, exclude=exclude)
    reference = ape_alpha(random_links(group), 0.5, along, links)
    assert np.abs(smeared(field, smearing) - reference).max() < TOLERANCE["double"]
    words = ", ".join("xyzt"[mu] for mu in links)
    assert f"links along {words}, staples in {len(along)} dimensions" in str(smearing)


@pytest.mark.parametrize("dims", [3, 4])
def test_the_other_form(group, best_device, dims):
    field = Field.from_slices(LATTICE, group, random_links(group), "double", best_device)
    smearing = Ape.from_alpha(0.5, dims)
    reference = ape_alpha(random_links(group), 0.5, range(dims))
    assert np.abs(smeared(field, smearing) - reference).max() < TOLERANCE["double"]
    assert smearing.alpha == pytest.approx(0.5)
    assert f"w = {smearing.weight:.6g} (alpha = 0.5)" in str(smearing)
