"""Sources, compared with arrays made by hand."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.sources import parse_source, smear_step
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.reference.fields import dagger, gauge_transform, random_field, shift

LATTICE = Lattice(4, 6, 8, 4)
TOLERANCE = {"double": 1e-13, "single": 2e-6}


def filled(text, field, precision="double", links=None):
    source = parse_source(text, field.lattice)
    vectors = SpinorField.empty(field, precision, 4 * field.group.colours)
    source.fill(vectors, links or field)
    return vectors.to_numpy()


def laplacian(links, psi):
    """Sum over x, y, z of U psi(x + mu) + U^+ psi(x - mu) - 2 psi(x)."""
    total = -6 * psi
    for mu in range(3):
        u = links[..., mu, :, :]
        total = total + np.einsum("...ab,...sb->...sa", u, shift(psi, mu))
        total = total + shift(np.einsum("...ab,...sb->...sa", dagger(u), psi), mu, -1)
    return total


def smeared(links, psi, width, steps):
    for _ in range(steps):
        psi = psi + width**2 / (4 * steps) * laplacian(links, psi)
    return psi


def points(colours, where):
    """Vectors of all spins and colours that are 1 at some sites."""
    psi = np.zeros((4, colours, *LATTICE.extents[::-1], 4, colours), complex)
    for spin in range(4):
        for colour in range(colours):
            psi[spin, colour, ..., spin, colour] = where
    return psi.reshape(-1, *psi.shape[2:])


def test_points_and_walls(group, precision, best_device):
    field = Field.cold(LATTICE, group, precision, best_device)
    where = np.zeros(LATTICE.extents[::-1])
    where[3, 7, 4, 1] = 1
    found = filled("point:1,4,7,3", field, precision)
    np.testing.assert_array_equal(found, points(field.group.colours, where))
    where[:] = 0
    where[2] = 1
    np.testing.assert_array_equal(
        filled("wall:2", field, precision), points(field.group.colours, where)
    )


@pytest.mark.parametrize("steps", [4, 5])
def test_gaussian_sources(group, precision, steps, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    field = field_of(links, best_device, precision)
    where = np.zeros(LATTICE.extents[::-1])
    where[3, 7, 4, 1] = 1
    expected = np.array(
        [smeared(links, psi, 1.5, steps) for psi in points(field.group.colours, where)]
    )
    found = filled(f"gauss:1.5,{steps};1;4;7;3", field, precision)
    assert np.abs(found - expected).max() < TOLERANCE[precision]
    assert np.abs(expected).max() < 0.9
    # A sink is smeared on all slices.
    psi = np.array([random_spinor(LATTICE.extents, field.group.colours, rng) for _ in range(2)])
    vectors = SpinorField.from_numpy(field, psi, precision)
    parse_source(f"gauss:1.5,{steps}", LATTICE).smear_sink(vectors, field)
    expected = np.array([smeared(links, one, 1.5, steps) for one in psi])
    assert np.abs(vectors.to_numpy() - expected).max() < 10 * TOLERANCE[precision]


def test_slabs_give_the_same_bytes(rng):
    links = random_field(LATTICE.extents, "su3", rng)
    texts = ("point:1,4,7,3", "wall:2", "gauss:1.5,5,1,4,7,3")

    def calculate(devices):
        return [filled(text, field_of(links, devices)) for text in texts]

    check_divisions("cpu-16", [(4,), (2, 2)], calculate)


def test_labels_have_no_commas():
    texts = {
        "point:1,2,3,0": "point@1;2;3;0",
        "point": "point@0;0;0;0",
        "wall:3": "wall@3",
        "gauss:1.5,20": "gauss:1.5;20@0;0;0;0",
        "gauss:1.5;20;1;2;3;0": "gauss:1.5;20@1;2;3;0",
    }
    for text, label in texts.items():
        assert parse_source(text, LATTICE).label == label


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pont", "--source: There is no source 'pont'; did you mean 'point'?"),
        ("point:1,2", r"--source is 'point:1,2'; write point:X,Y,Z,T with numbers"),
        ("point:a,0,0,0", r"write point:X,Y,Z,T with numbers"),
        ("point:0,0,0,4", "The place 0,0,0,4 of the source is outside the lattice 4x6x8x4"),
        ("wall:-1", "outside the lattice"),
        ("gauss:2", r"write gauss:WIDTH,STEPS\[,X,Y,Z,T\] with numbers"),
        ("gauss:2,6", "A source of width 2 is smeared in 6 steps; choose from 7 to 10000"),
        ("gauss:-2,6", "The width of the source is -2; give a positive number"),
        ("gauss:nan,6", r"is 'gauss:nan,6'; write gauss:WIDTH,STEPS\[,X,Y,Z,T\] with numbers"),
    ],
)
def test_what_is_refused(text, sentence):
    with pytest.raises(UsageError, match=sentence):
        parse_source(text, LATTICE)


@pytest.mark.slow
def test_gaussian_sources_are_gaussian():
    """On links 1 and far from the boundary, the mean square of the distance is 3 width^2 / 2."""
    lattice, width = Lattice(24, 24, 24, 2), 2.5
    field = Field.cold(lattice, "su2", "double")
    psi = filled(f"gauss:{width},40,12,12,12,1", field)[0, 1, ..., 0, 0].real
    z, y, x = np.indices(psi.shape) - 12
    assert psi.sum() == pytest.approx(1)
    assert (psi * (x**2 + y**2 + z**2)).sum() == pytest.approx(1.5 * width**2, rel=1e-6)
    exact = np.exp(-((x[12, 12]) ** 2) / width**2)
    assert np.abs(psi[12, 12] / psi[12, 12, 12] - exact).max() < 0.04


def test_smearing_is_covariant(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    g = random_field(LATTICE.extents, "su3", rng)[..., 0, :, :]
    psi = random_spinor(LATTICE.extents, 3, rng)

    def step(links, psi):
        field = field_of(links, best_device)
        source = SpinorField.from_numpy(field, psi)
        target = source.like()
        smear_step(source, target, field, 0.1)
        return target.to_numpy()[0]

    turned = np.einsum("...ab,...sb->...sa", g, step(links, psi))
    found = step(gauge_transform(links, g), np.einsum("...ab,...sb->...sa", g, psi))
    assert np.abs(found - turned).max() < 1e-13
