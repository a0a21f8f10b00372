"""HYP smearing and HYP temporal links against NumPy."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.smearing.kinds import Hyp
from gauge_mc.temporal_links import make_temporal_links
from tests.conftest import open_by_name
from tests.reference.fields import (
    CHARGES,
    coordinates,
    dagger,
    gauge_transform,
    random_field,
    random_su,
)
from tests.reference.observables import plaquette
from tests.reference.smearing import ape_alpha, hyp, spatial_hyp
from tests.smearing.test_ape import DEVICES, PROJECT, smeared
from tests.smearing.test_stout import smooth_links

LATTICE = Lattice(4, 6, 8, 4)
ALPHAS = {"hyp1": (0.75, 0.6, 0.3), "hyp2": (1.0, 1.0, 0.5)}
TOLERANCE = {"single": 2e-4, "double": 1e-11}
"""Sums of random links may be nearly singular, which magnifies rounding at each of three levels."""

USUAL = {"single": 1e-6, "double": 1e-14}
"""Largest median of the differences."""


@cache
def random_links(group):
    return random_field(LATTICE.extents, group, np.random.default_rng(12))


@cache
def expected(group, alphas, exclude, projection):
    links, project = random_links(group), PROJECT[projection]
    if exclude == "none":
        return hyp(links, alphas, project)
    if len(exclude) == 1:
        return spatial_hyp(links, alphas[1:], project, "xyzt".index(exclude))
    left = ["xyzt".index(one) for one in "xyzt" if one not in exclude]
    return ape_alpha(links, alphas[2], left, left, project)


@pytest.mark.first_quick
@pytest.mark.kernels
@pytest.mark.parametrize(
    ("alphas", "exclude", "projection"),
    [
        (ALPHAS["hyp1"], "none", "maximal"),
        ((0.5, 0.4, 0.2), "none", "polar"),
        (ALPHAS["hyp1"], "t", "maximal"),
        (ALPHAS["hyp1"], "y", "polar"),
        (ALPHAS["hyp1"], "xt", "maximal"),
    ],
)
@pytest.mark.parametrize(("name", "precision"), DEVICES)
def test_one_iteration(group, name, precision, alphas, exclude, projection):
    field = Field.from_slices(LATTICE, group, random_links(group), precision, open_by_name(name))
    found = smeared(field, Hyp(*alphas, exclude, projection))
    unit = found @ dagger(found)
    assert np.abs(unit - np.eye(unit.shape[-1])).max() < (2e-6 if precision == "single" else 1e-14)
    difference = np.abs(found - expected(group, alphas, exclude, projection))
    assert difference.max() < TOLERANCE[precision]
    assert np.median(difference) < USUAL[precision]
    for mu in {"xyzt".index(one) for one in exclude} if exclude != "none" else ():
        assert np.array_equal(found[..., mu, :, :], field.to_numpy()[..., mu, :, :])


@pytest.mark.first_quick
@pytest.mark.kernels
@pytest.mark.parametrize("kind", ALPHAS)
@pytest.mark.parametrize(("name", "precision"), DEVICES)
def test_temporal_links(group, name, precision, kind):
    links = random_links(group)
    field = Field.from_slices(LATTICE, group, links, precision, open_by_name(name))
    found = smeared(field, make_temporal_links(kind))
    assert np.array_equal(found[..., :3, :, :], field.to_numpy()[..., :3, :, :])
    reference = expected(group, ALPHAS[kind], "none", "maximal")
    difference = np.abs(found - reference)[..., 3, :, :]
    # Without the link itself the sums are more often nearly singular.
    assert np.median(difference) < USUAL[precision]
    assert difference.max() < (1e-2 if precision == "single" else 1e-8)


@pytest.mark.parametrize("exclude", ["none", "t"])
def test_gauge_covariance_and_smoothing(group, best_device, rng, exclude):
    links = smooth_links(group)
    g = random_su(int(group[2]), links.shape[:4], rng)
    fields = [
        Field.from_slices(LATTICE, group, u, "double", best_device)
        for u in (links, gauge_transform(links, g))
    ]
    before, after = (smeared(field, Hyp(exclude=exclude)) for field in fields)
    assert np.abs(gauge_transform(before, g) - after).max() < 1e-12
    assert plaquette(links).spatial < plaquette(before).spatial < 1
    if exclude == "none":
        assert plaquette(links).mean < plaquette(before).mean < 1


def lowest_order(momentum, alphas):
    """A_t after HYP smearing in units of A_t, for a wave A_t(x) with a momentum in space.

    To lowest order of perturbation theory (A. Hasenfratz, R. Hoffmann and F. Knechtli,
    hep-lat/0110168), with p = 2 sin(k/2), it is 1 - a1/6 sum over i of p_i^2 w_i, where
    w_i = 1 + a2 (1 + a3) - a2/4 (1 + 2 a3) (p_j^2 + p_k^2) + a2 a3/4 p_j^2 p_k^2.
    """
    a1, a2, a3 = alphas
    p2 = 4 * np.sin(np.array(momentum) / 2) ** 2
    factor = 1.0
    for i in range(3):
        j, k = np.delete(p2, i)
        w = 1 + a2 * (1 + a3) - a2 / 4 * (1 + 2 * a3) * (j + k) + a2 * a3 / 4 * j * k
        factor -= a1 / 6 * p2[i] * w
    return factor


@pytest.mark.parametrize("kind", ALPHAS)
@pytest.mark.parametrize("number", [(1, 0, 0), (1, 2, 0), (2, 1, 3), (2, 3, 4)])
def test_a_weak_wave_is_damped_as_in_perturbation_theory(group, best_device, kind, number):
    amplitude, (x, y, z, _) = 1e-5, coordinates(LATTICE.extents)
    momentum = 2 * np.pi * np.array(number) / LATTICE.extents[:3]
    wave = np.cos(np.tensordot(momentum, np.array([x, y, z]), 1))
    charges = np.array(CHARGES[group])
    links = np.zeros((*wave.shape, 4, len(charges), len(charges)), complex) + np.eye(len(charges))
    links[..., 3, :, :] = np.exp(1j * amplitude * np.multiply.outer(wave, charges))[
        ..., None
    ] * np.eye(len(charges))
    field = Field.from_slices(LATTICE, group, links, "double", best_device)
    angles = np.angle(smeared(field, make_temporal_links(kind))[..., 3, 0, 0])
    expected = lowest_order(momentum, ALPHAS[kind]) * wave * charges[0]
    assert np.abs(angles / amplitude - expected).max() < 1e-8


def test_headers_have_both_forms():
    assert str(Hyp()) == (
        "HYP, alpha2, alpha3 = 0.6, 0.3 (w = 0.375, 0.214286 in P[U + w sum of staples]), "
        "links along x, y, z, staples in their hypercubes, maximal projection"
    )
    assert "alpha1, alpha2, alpha3 = 1, 1, 0.5 (w = infinity, infinity, 0.5" in str(
        Hyp(1, 1, 0.5, "none")
    )
    assert "alpha1, alpha2, alpha3 = 1, 1, 0.5" in str(make_temporal_links("hyp2"))


def test_one_level_is_a_plane_of_ape_smearing(group, best_device):
    """Without alpha2 and alpha3, HYP smearing is APE smearing with six staples."""
    links = smooth_links(group)
    field = Field.from_slices(LATTICE, group, links, "double", best_device)
    reference = ape_alpha(links, 0.6, range(4), range(4))
    assert np.abs(smeared(field, Hyp(0.6, 0, 0, "none")) - reference).max() < 1e-13
