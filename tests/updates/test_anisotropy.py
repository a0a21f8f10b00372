"""Anisotropic actions: staples, distributions, limits of weak and strong coupling."""

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import Plaquette, Rectangles
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.conftest import open_by_name
from tests.domain.conftest import open_group
from tests.reference.distributions import a0_pvalue, su2_character_ratio
from tests.reference.fields import parity, trace
from tests.reference.flow import PLANES
from tests.reference.free_gluons import free_gluons
from tests.reference.observables import loop_action, loop_staple
from tests.updates.every_action import loops_of
from tests.updates.links import start
from tests.updates.test_colours import XI0

LATTICE = Lattice(4, 6, 8, 4)
NAMES = ["wilson", "symanzik"]
KINDS = pytest.mark.parametrize(
    ("name", "group", "precision"),
    [
        ("wilson", "su3", "double"),
        ("symanzik", "su2", "single"),
        *(
            pytest.param(name, group, precision, marks=pytest.mark.slow)
            for name in NAMES
            for group in ("su2", "su3")
            for precision in ("single", "double")
            if (name, group, precision)
            not in (("wilson", "su3", "double"), ("symanzik", "su2", "single"))
        ),
    ],
)
"""Either action in quick tests, with one group and precision."""


def loops_with(name):
    """Return the loops of an action with their factors, at the anisotropy of these tests."""
    return loops_of(ACTIONS[name].with_options(anisotropy=XI0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mu", [1, 3])
def test_the_staples_of_the_reference_are_those_of_its_loops(name, mu, rng):
    """One link after another is moved; the loops do not know the staples."""
    links, loops = start(Lattice(4, 6, 4, 4), "su3"), loops_with(name)
    staples = loop_staple(links, mu, loops)
    before = loop_action(links, loops)
    for _ in range(3):
        site = tuple(rng.integers(links.shape[:4]))
        moved, other = links.copy(), tuple(rng.integers(links.shape[:4]))
        moved[(*site, mu)] = links[(*other, mu)]
        change = (moved - links)[(*site, mu)] @ staples[site]
        expected = -trace(change).real / 3
        assert loop_action(moved, loops) - before == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("xi0", [0.5, 3.0])
@pytest.mark.parametrize("kind", ["cpu-8", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_distribution_of_single_links(xi0, kind):
    """On a cold field the staples of links along x add up to 4 / xi0 + 2 xi0."""
    lattice = Lattice(32, 32, 16, 8)
    field = Field.cold(lattice, "su2", "single", open_by_name(kind))
    heatbath(field, 0.3, Random.for_field(field, seed=11), anisotropy=xi0)
    first = field.to_numpy()[..., 0, :, :][parity(lattice.extents) == 0]
    assert a0_pvalue(first[:, 0, 0].real, 0.3 * (4 / xi0 + 2 * xi0)) > 1e-3


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("kind", ["cpu-16", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_division_does_not_change_a_bit(name, group, precision, kind):
    found = []
    for slices in ((12,), (4, 8), (4, 4, 4)):
        lattice = Lattice(4, 4, 4, 12)
        field = Field.hot(lattice, group, precision, open_group(kind, slices), seed=3)
        random = Random.for_field(field, seed=4)
        for _ in range(2):
            heatbath(field, 3.1, random, 2, name, anisotropy=XI0)
            overrelax(field, 2, name, anisotropy=XI0)
        found.append(field.to_numpy())
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


def plaquettes(lattice, group, beta, xi0, updates, name="wilson"):
    """Return the estimates of the spatial and temporal plaquettes and the series of everything."""
    field = Field.cold(lattice, group, "single" if group == "su2" else "double", CpuDevice(1))
    random, rows = Random.for_field(field, seed=9), []
    for update in range(-updates // 5, updates):
        heatbath(field, beta, random, 1, name, anisotropy=xi0)
        overrelax(field, 2, name, anisotropy=xi0)
        if update >= 0:
            rows.append((*Plaquette().measure(field)[1:], *Rectangles().measure(field)[1:]))
    series = np.array(rows)
    return estimate(series[:, 0]), estimate(series[:, 1]), series


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "beta"), [("su2", 150.0), pytest.param("su3", 300.0, marks=pytest.mark.slow)]
)
def test_weak_coupling(group, beta):
    lattice = Lattice(4, 6, 8, 8)
    *found, _ = plaquettes(lattice, group, beta, 2.0, 60)
    n = int(group[2])
    planes = ([k for k in PLANES if (3 in k) == along] for along in (False, True))
    loops = [[[(i, 1), (j, 1), (i, -1), (j, -1)] for i, j in one] for one in planes]
    for one, expected in zip(found, free_gluons(lattice.extents, loops, (0.5, 2.0)), strict=True):
        leading = (n**2 - 1) * expected / beta
        # One more power of 1/beta; modes of momentum 0 are quartic, and one in 1536 of all.
        assert abs(1 - one.value - leading) < 0.01 * leading


@pytest.mark.slow
def test_equipartition_with_rectangles():
    """At weak coupling every mode except those of the gauge has the action 1/2."""
    lattice, beta, xi0, c1 = Lattice(4, 6, 8, 6), 200.0, 1.6, ACTIONS["symanzik"].rectangle
    *_, series = plaquettes(lattice, "su2", beta, xi0, 40, "symanzik")
    space, along, rectangles, short, long = 1 - series.mean(axis=0)
    per_site = (3 * (1 - 8 * c1) * space + 6 * c1 * rectangles) / xi0
    per_site += xi0 * (3 * (1 - 8 * c1) * along + 3 * c1 * (short + long))
    assert beta * per_site == pytest.approx(3 * 3 / 2, rel=0.01)


@pytest.mark.slow
def test_strong_coupling():
    """Character expansion: single plaquettes, and cubes with 6 faces in space or 2 and 4 along t.

    ln Z per site is 3 ln z(beta_s) + 3 ln z(beta_t) + 4 u_s^6 + 12 u_s^2 u_t^4.
    """
    beta, xi0 = 0.8, 1.5
    in_space, along_t, _ = plaquettes(Lattice(16, 16, 16, 16), "su2", beta, xi0, 400)
    u, v = su2_character_ratio(beta / xi0), su2_character_ratio(beta * xi0)
    du, dv = 1 - 3 * u / (beta / xi0) - u**2, 1 - 3 * v / (beta * xi0) - v**2
    for found, expected in (
        (in_space, u + 8 * (u**5 + u * v**4) * du),
        (along_t, v + 16 * u**2 * v**3 * dv),
    ):
        assert found.error < 1.5e-4
        assert abs(found.value - expected) < 4 * found.error + 1e-5


@pytest.mark.parametrize("xi0", [0.0, -2.0, float("nan"), float("inf"), 1e3])
def test_bad_anisotropies_are_refused(xi0):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match=r"give a number from 0\.01 to 100"):
        overrelax(field, anisotropy=xi0)


def test_an_action_without_an_anisotropic_form_is_refused():
    with pytest.raises(UsageError, match="--anisotropy is not an option of the action luscher"):
        ACTIONS["luscher-weisz"].with_options(anisotropy=2.0)


@pytest.mark.parametrize("name", ["wilson", pytest.param("symanzik", marks=pytest.mark.slow)])
def test_overrelaxation_keeps_the_action(name, best_device):
    links = start(LATTICE, "su3")
    field = Field.from_slices(LATTICE, "su3", links, "double", best_device)
    overrelax(field, 5, name, anisotropy=XI0)
    before, after = (loop_action(u, loops_with(name)) for u in (links, field.to_numpy()))
    assert after == pytest.approx(before, rel=1e-12)
    assert np.abs(field.to_numpy() - links).max() > 0.1
