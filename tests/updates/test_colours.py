"""Updates of improved and anisotropic actions: the colours of sites, and sweeps against NumPy."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS, COLOURINGS, CUBES, PARITIES, ROWS, parse
from gauge_mc.actions.loops import LuscherWeisz
from gauge_mc.domain.lattice import Lattice, links_along
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.domain.conftest import open_group
from tests.reference import parallelograms
from tests.reference import updates as reference
from tests.reference.observables import loop_action
from tests.reference.parallelograms import colour_mask as mask_of_cubes
from tests.updates.every_action import loops_of
from tests.updates.links import assert_heated, assert_overrelaxed, start
from tests.updates.test_heatbath import SEED, STEP, PhiloxDraws

ANY = Lattice(4, 6, 8, 4)
MULTIPLES_OF_4 = Lattice(8, 8, 4, 4)
LATTICES = [ANY, MULTIPLES_OF_4]
LOOPS = loops_of(ACTIONS["iwasaki"])
XI0 = 2.5
TOLERANCE = {"single": 1e-4, "double": 1e-12}

SWEEPS = {
    "iwasaki": (ACTIONS["iwasaki"], reference, {"su2": 1.0, "su3": 2.6}),
    "luscher-weisz": (parse("luscher-weisz:0.7"), parallelograms, {"su2": 1.5, "su3": 4.0}),
    **{
        name: (ACTIONS[name].with_options(anisotropy=XI0), reference, {"su2": 1.7, "su3": 3.1})
        for name in ("wilson", "symanzik")
    },
}
"""Actions, the sweeps of NumPy, and couplings; the last two actions are anisotropic."""

QUICK = {
    ("iwasaki", "su2", "single", ANY): pytest.mark.longer,
    ("iwasaki", "su3", "double", MULTIPLES_OF_4): pytest.mark.longer,
    ("luscher-weisz", "su2", "single", ANY): (),
    ("wilson", "su3", "double", ANY): (),
    ("symanzik", "su2", "single", ANY): (),
}
"""Marks of one group and precision for every action, and of one lattice of either kind."""

KINDS = pytest.mark.parametrize(
    ("name", "group", "precision", "lattice"),
    [
        pytest.param(*kind, marks=QUICK.get(kind, pytest.mark.slow))
        for kind in product(SWEEPS, ("su2", "su3"), ("single", "double"), LATTICES)
        if kind[3] == ANY or kind[0] in ("iwasaki", "luscher-weisz")
    ],
    ids=str,
)


MASKS = {PARITIES: reference.half_mask, ROWS: reference.colour_mask, CUBES: mask_of_cubes}
"""Links of a colour in NumPy, by which updates are compared; see `COLOURINGS`."""


@pytest.mark.parametrize(
    "extents",
    [
        (4, 6, 8, 10),
        (4, 4, 4, 4),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ((4, 8, 12, 16), (6, 14, 4, 4), (16, 10, 6, 4), (22, 4, 4, 6))
        ),
    ],
)
@pytest.mark.parametrize("colouring", COLOURINGS, ids=lambda one: one.cpp)
def test_no_loop_contains_two_links_of_one_colour(colouring, extents):
    links = np.zeros((*extents[::-1], 4, 1, 1))
    colours = np.full(links.shape[:5], -1)
    for mu, colour in product(range(4), range(colouring.colours(Lattice(*extents)) or 2)):
        mask = MASKS[colouring](links, mu, colour)[..., 0, 0]
        assert (colours[mask] == -1).all()
        colours[mask] = colour
    assert (colours >= 0).all()
    axes = (3, 2, 1, 0)  # of x, y, z and t
    for path in (one for loops in colouring.loops for one in loops.paths):
        for (mu, here), (nu, there) in combinations(links_along(path), 2):
            if mu == nu:
                shifts = [np.roll(colours[..., mu], np.negative(x), axes) for x in (here, there)]
                assert (shifts[0] != shifts[1]).all()


@pytest.fixture
def any_group(monkeypatch):
    """Let the action have one-loop coefficients for every group, to test the kernels."""

    def coefficients(self, group, beta):
        return {"beta_over_n": beta / group.colours, "c1": self.c1, "c2": self.c2}

    monkeypatch.setattr(LuscherWeisz, "coefficients", coefficients)


@cache
def overrelaxed(name, lattice, group):
    action, numpy_sweeps, _ = SWEEPS[name]
    links, reflect = start(lattice, group), reference.reflect
    return numpy_sweeps.coloured_sweep(links, loops_of(action), lambda mu: reflect)


@KINDS
def test_overrelaxation(name, lattice, group, precision, device, any_group):
    field = Field.from_slices(lattice, group, start(lattice, group), precision, device)
    overrelax(field, action=SWEEPS[name][0])
    most = 50 if name == "luscher-weisz" else 20
    assert_overrelaxed(field, overrelaxed(name, lattice, group), TOLERANCE[precision], most)


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "lattice",
    [Lattice(14, 4, 4, 6), Lattice(10, 4, 10, 4), Lattice(8, 6, 6, 4), Lattice(6, 4, 14, 4)],
    ids=str,
)
def test_each_site_of_a_colour_is_found(lattice, best_device):
    field = Field.from_slices(lattice, "su2", start(lattice, "su2"), "double", best_device)
    overrelax(field, action="iwasaki")
    assert_overrelaxed(field, overrelaxed("iwasaki", lattice, "su2"), TOLERANCE["double"])


@cache
def heated(name, lattice, group, precision):
    action, numpy_sweeps, betas = SWEEPS[name]

    def rotation(mu):
        draws = PhiloxDraws(lattice, SEED, STEP, mu, precision)
        return reference.heat(draws, betas[group] / int(group[2]))

    return numpy_sweeps.coloured_sweep(start(lattice, group), loops_of(action), rotation)


@KINDS
def test_heatbath(name, lattice, group, precision, device, any_group):
    action, _, betas = SWEEPS[name]
    field = Field.from_slices(lattice, group, start(lattice, group), precision, device)
    random = Random.for_field(field, "philox", seed=SEED)
    random.step = STEP - 1
    heatbath(field, betas[group], random, action=action)
    changed = 1e-2 if action.factors else 2e-3
    expected = heated(name, lattice, group, precision)
    assert_heated(field, expected, TOLERANCE[precision], changed)


@pytest.mark.longer
@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_overrelaxation_keeps_the_action(lattice, group, best_device):
    field = Field.from_slices(lattice, group, start(lattice, group), "double", best_device)
    before = loop_action(field.to_numpy(), LOOPS)
    overrelax(field, sweeps=10, action="iwasaki")
    after = loop_action(field.to_numpy(), LOOPS)
    assert after == pytest.approx(before, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "lattice", "generator"),
    [
        ("su2", Lattice(4, 4, 4, 8), "lcg"),
        *(
            pytest.param("su3", *one, marks=pytest.mark.slow)
            for one in (
                (Lattice(8, 8, 8, 4), "philox"),
                (Lattice(8, 8, 8, 4), "lcg"),
                (Lattice(8, 8, 8, 4), "ranlux"),
                (Lattice(8, 12, 6, 4), "philox"),
            )
        ),
    ],
    ids=str,
)
def test_lanes_do_not_matter(group, lattice, generator):
    """Sites that are not of the colour keep their links and the states of their random numbers."""
    found = []
    for kind in ("cpu-1", "cpu-16"):
        field = Field.hot(lattice, group, device=open_group(kind, (lattice.t,)), seed=3)
        random = Random.for_field(field, generator, seed=4)
        heatbath(field, 2.6, random, sweeps=2, action="dbw2")
        overrelax(field, 2, action="dbw2")
        found.append((field.to_numpy(), random.numbers(1)))
    (links, numbers), others = found[0], found[1]
    np.testing.assert_allclose(others[0], links, rtol=0, atol=5e-3)
    np.testing.assert_array_equal(others[1], numbers)


def test_refusals(best_device):
    field = Field.cold(Lattice(4, 4, 4, 2), "su3", "double", best_device)
    with pytest.raises(UsageError, match="The loops of the action iwasaki do not fit"):
        overrelax(field, action="iwasaki")
    for name, sentence in (
        ("rectangle", "needs --c1 C1"),
        ("rectangle:", "--c1 with the value '', which is not a number"),
        ("rectangle:x", "--c1 with the value 'x', which is not a number"),
        ("rectangle:0.125", "--c1 is 0.125; give a number between -1000 and 0.125, which are"),
        ("rectangle:nan", "--c1 with the value 'nan', which is not a number"),
    ):
        with pytest.raises(UsageError, match=sentence):
            overrelax(field, action=name)
    with pytest.raises(UsageError, match="--c1 is not an option of the action wilson"):
        overrelax(field, action="wilson:c1=2")
