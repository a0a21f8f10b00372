"""Stout smearing against NumPy and against the Wilson flow."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.smearing.kinds import Stout
from tests.conftest import open_by_name
from tests.reference.fields import dagger, gauge_transform, random_field, random_su
from tests.reference.flow import exponential, force
from tests.reference.observables import plaquette
from tests.reference.smearing import stout
from tests.smearing.test_ape import DEVICES, smeared

LATTICE = Lattice(4, 6, 8, 4)
TOLERANCE = {"single": 2e-6, "double": 2e-14}
EXCLUDED = {"t": (0, 1, 2), "none": (0, 1, 2, 3), "xz": (1, 3)}


@cache
def random_links(group):
    return random_field(LATTICE.extents, group, np.random.default_rng(13))


def smooth_links(group):
    """Links near 1, as of a field at weak coupling."""
    n = int(group[2])
    noise = np.random.default_rng(3).normal(size=(2, *LATTICE.extents[::-1], 4, n, n)) * 0.2
    x = noise[0] + 1j * noise[1]
    x = (x - dagger(x)) / 2
    return exponential(x - np.trace(x, axis1=-2, axis2=-1)[..., None, None] / n * np.eye(n))


@pytest.mark.kernels
@pytest.mark.parametrize("exclude", EXCLUDED)
@pytest.mark.parametrize("rho", [0.1, 0.9])
@pytest.mark.parametrize(("name", "precision"), DEVICES)
def test_one_iteration(group, name, precision, rho, exclude):
    field = Field.from_slices(LATTICE, group, random_links(group), precision, open_by_name(name))
    found = smeared(field, Stout(rho, exclude))
    unit = found @ dagger(found)
    assert np.abs(unit - np.eye(unit.shape[-1])).max() < (2e-6 if precision == "single" else 1e-14)
    expected = stout(random_links(group), rho, EXCLUDED[exclude])
    assert np.abs(found - expected).max() < TOLERANCE[precision]
    before = field.to_numpy()
    for mu in {0, 1, 2, 3} - {*EXCLUDED[exclude]}:
        assert np.array_equal(found[..., mu, :, :], before[..., mu, :, :])


def test_an_iteration_is_an_euler_step_of_the_wilson_flow(group, best_device):
    links = random_links(group)
    field = Field.from_slices(LATTICE, group, links, "double", best_device)
    expected = exponential(0.1 * force(links, "wilson")) @ links
    assert np.abs(smeared(field, Stout(0.1, "none")) - expected).max() < 1e-13


def test_gauge_covariance_and_smoothing(group, best_device, rng):
    links = smooth_links(group)
    g = random_su(int(group[2]), links.shape[:4], rng)
    fields = [
        Field.from_slices(LATTICE, group, u, "double", best_device)
        for u in (links, gauge_transform(links, g))
    ]
    before, after = (smeared(field, Stout(0.1, "none")) for field in fields)
    assert np.abs(gauge_transform(before, g) - after).max() < 1e-13
    assert plaquette(links).mean < plaquette(before).mean < 1


def test_small_rho(group, best_device):
    """APE smearing with a small weight agrees to first order."""
    from gauge_mc.smearing.kinds import Ape

    field = Field.from_slices(LATTICE, group, smooth_links(group), "double", best_device)
    differences = [
        np.abs(smeared(field, Stout(rho)) - smeared(field, Ape(rho))).max() for rho in (1e-2, 1e-3)
    ]
    start = field.to_numpy()
    assert np.abs(smeared(field, Stout(0.0)) - start).max() < 1e-14
    first = np.abs(smeared(field, Stout(1e-3)) - start).max()
    assert first > 1e-4
    # The projection of APE smearing also divides by 1 + 4 w, which changes rho to that order.
    assert differences[1] < 0.3 * first
    weight = 1e-3 / (1 - 4e-3)
    closer = np.abs(smeared(field, Stout(1e-3)) - smeared(field, Ape(weight))).max()
    assert closer < differences[1]
