"""The action with parallelograms: staples, lanes, coefficients, and averages."""

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS, parse
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import Parallelograms, Rectangles, plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.domain.conftest import open_group
from tests.reference.fields import random_field
from tests.reference.free_gluons import free_gluons
from tests.reference.observables import loop_action, loop_staple
from tests.updates.every_action import loops_of
from tests.updates.links import start
from tests.updates.test_colours import LATTICES

NAME = "luscher-weisz:0.7"
LOOPS = loops_of(parse(NAME))


@pytest.mark.slow
@pytest.mark.parametrize("lattice", [Lattice(8, 8, 8, 4), Lattice(8, 12, 6, 4)], ids=str)
def test_lanes_do_not_matter(lattice):
    """Sites that are not of the colour keep their links and the states of their random numbers."""
    found = []
    for kind in ("cpu-1", "cpu-16"):
        field = Field.hot(lattice, "su3", device=open_group(kind, (lattice.t,)), seed=3)
        random = Random.for_field(field, "lcg", seed=4)
        heatbath(field, 8.0, random, action=NAME)
        found.append((field.to_numpy(), random.numbers(1)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=0, atol=5e-3)
    np.testing.assert_array_equal(found[1][1], found[0][1])


@pytest.mark.slow
def test_tree_level_is_the_symanzik_action(best_device):
    """With u0 = 1 and 5/3 of its beta, because the factor of the plaquettes is c0 = 5/3 there."""
    one, other = parse("luscher-weisz:1").c1, ACTIONS["symanzik"].c1
    assert one == pytest.approx(other / (1 - 8 * other), rel=1e-15)
    assert parse("luscher-weisz:1").c2 == 0
    means, errors = [], []
    for name, beta in (("luscher-weisz:1", 7.5), ("symanzik", 4.5)):
        field = Field.hot(Lattice(4, 4, 4, 4), "su3", device=best_device, seed=7)
        random = Random.for_field(field, seed=8)
        series = []
        for _ in range(160):
            heatbath(field, beta, random, action=name)
            overrelax(field, 2, action=name)
            series.append((plaquette(field), Rectangles().measure(field)[0]))
        blocks = np.reshape(series[40:], (12, 10, 2)).mean(axis=1)
        means.append(blocks.mean(axis=0))
        errors.append(blocks.std(axis=0, ddof=1) / np.sqrt(12))
    error = np.hypot(*errors)
    assert (error < 4e-3).all()
    assert (np.abs(means[0] - means[1]) < 4 * error).all()


@pytest.mark.slow
def test_strong_coupling(best_device):
    """SU(3): with x = beta c / 18, a loop is x + 3/2 x^2 if only itself is expanded.

    A plaquette and a rectangle make up a plaquette, so 4 x0 x1 are added to P. A parallelogram
    takes three plaquettes of a cube, of third order, which is far below the errors.
    """
    action, beta = parse("luscher-weisz:0.5"), 0.6
    x0, x1, x2 = (beta * c / 18 for c in (1, action.c1, action.c2))
    field = Field.hot(Lattice(8, 8, 8, 8), "su3", device=best_device, seed=2)
    random = Random.for_field(field, seed=2)
    found = []
    for _ in range(60):
        heatbath(field, beta, random, action=action)
        found.append((plaquette(field), Parallelograms().measure(field)[0]))
    (p, q), error = np.mean(found[10:], axis=0), np.std(found[10:], axis=0) / np.sqrt(50)
    assert abs(x2) > 8 * error[1]
    assert abs(q - (x2 + 3 / 2 * x2**2)) < 4 * error[1] + 2e-4
    assert abs(p - (x0 + 3 / 2 * x0**2 + 4 * x0 * x1)) < 4 * error[0] + 1e-3


@pytest.mark.slow
def test_weak_coupling(fast_device):
    """Perturbation theory at leading order, where parallelograms matter by 12 to 14 %."""
    lattice, action, beta = Lattice(4, 4, 4, 12), parse("luscher-weisz:0.8"), 1200.0
    field = Field.cold(lattice, "su3", "double", fast_device)
    random, found = Random.for_field(field, seed=9), []
    for update in range(-12, 100):
        heatbath(field, beta, random, 1, action)
        overrelax(field, 2, action)
        if update >= 0:
            loops = [one.measure(field)[0] for one in (Rectangles(), Parallelograms())]
            found.append((plaquette(field), *loops))
    c1, c2 = action.c1, action.c2
    paths = [one.paths for one in action.loops]
    leading, without = (
        8 / beta * np.array(free_gluons(lattice.extents, paths, (1, *c)))
        for c in ((c1, c2), (c1, 0))
    )
    # One more power of 1/beta; modes of momentum 0 are quartic, and one in 768 of all.
    np.testing.assert_allclose(1 - np.mean(found, axis=0), leading, rtol=0.01)
    assert (np.abs(without / leading - 1) > 0.05).all()


def test_coefficients():
    """Those that the MILC code prints for u0 = 0.87, with constants of four digits."""
    action = parse("luscher-weisz:0.87")
    assert action.c1 == pytest.approx(-7.182149e-02, rel=1e-5)
    assert action.c2 == pytest.approx(-7.975969e-03, rel=2e-4)


def test_refusals(best_device):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=best_device)
    for name, said in (
        ("luscher-weisz", "needs --u0 U0: Tadpole factor"),
        ("luscher-weisz:", "which is not a number; write luscher-weisz:u0=NUMBER"),
        ("luscher-weisz:u0=x", "which is not a number"),
        ("luscher-weisz:1.1", "--u0 is 1.1; give a number from 0.1 to 1"),
    ):
        with pytest.raises(UsageError, match=said):
            overrelax(field, action=name)
    with pytest.raises(UsageError, match=r"are those for SU\(3\)"):
        overrelax(field, action="luscher-weisz:0.9")
    with pytest.raises(UsageError, match="--anisotropy is not an option of the action"):
        overrelax(field, action="luscher-weisz:1", anisotropy=2.0)
    small = Field.cold(Lattice(4, 4, 4, 2), "su3", "double", best_device)
    with pytest.raises(UsageError, match="do not fit"):
        overrelax(small, action="luscher-weisz:0.9")


@pytest.mark.parametrize("mu", range(4))
def test_staples_of_the_reference_are_derivatives_of_its_action(mu):
    """The action is linear in a link."""
    rng = np.random.default_rng(5)
    links = random_field((4, 4, 4, 4), "su3", rng)
    changed = links.copy()
    changed[1, 2, 3, 0, mu] = random_field((2, 2, 2, 2), "su3", rng)[0, 0, 0, 0, 0]
    step = changed[1, 2, 3, 0, mu] - links[1, 2, 3, 0, mu]
    a = loop_staple(links, mu, LOOPS)[1, 2, 3, 0]
    difference = loop_action(changed, LOOPS) - loop_action(links, LOOPS)
    assert difference == pytest.approx(-np.trace(step @ a).real / 3, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_overrelaxation_keeps_the_action(lattice, best_device):
    field = Field.from_slices(lattice, "su3", start(lattice, "su3"), "double", best_device)
    before = loop_action(field.to_numpy(), LOOPS)
    overrelax(field, sweeps=10, action=NAME)
    assert loop_action(field.to_numpy(), LOOPS) == pytest.approx(before, rel=1e-12)
