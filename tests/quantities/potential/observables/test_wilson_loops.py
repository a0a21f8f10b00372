"""Wilson loops against NumPy, against exact results, and what they must be invariant under."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import iv

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import PATHS, Lattice, equivalent_steps, shortest_paths, steps_along
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import Plaquette
from gauge_mc.quantities.potential.loops import LoopMeasurer
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.smearing import SmearingSequence
from gauge_mc.smearing.kinds import Ape, Hyp, Stout
from gauge_mc.temporal_links import make_temporal_links
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.conftest import open_by_name
from tests.observables.loops import MANY_LANES, TOLERANCE, UNEQUAL, random_links
from tests.reference.fields import CHARGES, abelian_field, angle, gauge_transform, random_su
from tests.reference.observables import blocks_21, mean_wilson_loop
from tests.reference.smearing import ape, hyp, spatial_hyp, stout
from tests.smearing.test_ape import DEVICES
from tests.smearing.test_stout import smooth_links

QUICK = {("cpu-8", "double", "su3", UNEQUAL), ("cpu-8", "single", "su2", MANY_LANES)}
"""Devices, precisions, groups and lattices of quick tests."""

KINDS = pytest.mark.parametrize(
    ("name", "precision", "group", "lattice"),
    [
        pytest.param(*values, group, lattice, marks=[*marks, *slow])
        for values, marks in (
            (getattr(one, "values", one), getattr(one, "marks", ())) for one in DEVICES
        )
        for group in ("su2", "su3")
        for lattice in (UNEQUAL, MANY_LANES)
        for slow in [
            () if values[0] == "cuda" or (*values, group, lattice) in QUICK else (pytest.mark.slow,)
        ]
    ],
    ids=str,
)


@cache
def expected(lattice, group, smeared=0):
    """Return loops of a random field by NumPy at some corners of their range."""
    links = random_links(lattice, group)
    for _ in range(smeared):
        links = ape(links, 0.2)
    r_max, t_max = min(lattice.extents[:3]) // 2, lattice.t // 2
    corners = {
        (path, r, t)
        for path in PATHS
        for r, t in product((1, steps_along(path, r_max)), (1, t_max))
        if smeared == 0 or path in ("100", "210")
    }
    return {corner: mean_wilson_loop(links, *corner) for corner in corners}


def measured(field, **how):
    """Return all loops by level, path, r and t."""
    lattice = field.lattice
    half = {"r_max": min(lattice.extents[:3]) // 2, "t_max": lattice.t // 2, "paths": PATHS}
    measure = LoopMeasurer(WilsonLoops(lattice, **(half | {"smearing": Ape()} | how)), field)
    return {
        (*levels, path, r + 1, t + 1): loop
        for levels, path, loops in measure(field)
        for (r, t), loop in np.ndenumerate(loops)
    }


@pytest.mark.kernels
@KINDS
def test_loops_are_those_of_the_reference(lattice, group, name, precision):
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, precision, open_by_name(name))
    loops = measured(field)
    for corner, value in expected(lattice, group).items():
        assert loops[0, *corner] == pytest.approx(value, abs=TOLERANCE[precision])
    assert np.abs(field.to_numpy() - links).max() < 1e-6  # the field is as it was


@pytest.mark.parametrize("lattice", [Lattice(4, 4, 4, 26), Lattice(4, 4, 4, 2)], ids=str)
def test_times_that_need_several_launches_or_fill_none(lattice, group, best_device):
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, "double", best_device)
    loops = measured(field, paths=["100"])
    half = lattice.t // 2
    assert len(loops) == 2 * half
    for t in {1, half // 2, half // 2 + 1, half} - {0}:
        value = mean_wilson_loop(links, "100", 2, t)
        assert loops[0, "100", 2, t] == pytest.approx(value, abs=TOLERANCE["double"])


@pytest.mark.longer
def test_levels_of_smearing_in_one_pass(group, best_device):
    field = Field.from_slices(UNEQUAL, group, random_links(UNEQUAL, group), "double", best_device)
    loops = measured(field, smearing=Ape(0.2), levels=(3, 0, 2))
    for level in (0, 2, 3):
        for corner, value in expected(UNEQUAL, group, level).items():
            assert loops[level, *corner] == pytest.approx(value, abs=1e-13)


CHAINS = {
    "in space": (((Ape(0.2), 2), (Hyp(), 1)), "none"),
    "in space, static": (((Stout(0.1), 2),), "hyp2"),
    "all links": (((Stout(0.1, "none"), 1), (Hyp(exclude="none"), 1)), "none"),
    "all links, static": (((Ape(0.1, exclude="none"), 1), (Ape(0.2, 4), 1)), "hyp1"),
    "no smearing, static": ((), "hyp2"),
}
"""Chains of smearings, and temporal links of static sources."""


@pytest.mark.longer
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if "static" in one else pytest.mark.slow) for one in CHAINS]
)
def test_chains_and_static_sources(group, best_device, name):
    """The smeared links are those of the reference, and so are the temporal links."""
    steps, temporal = CHAINS[name]
    links = smooth_links(group)
    field = Field.from_slices(Lattice(4, 6, 8, 4), group, links, "double", best_device)
    chain = SmearingSequence(steps) if steps else None
    levels = range(chain.most + 1) if chain else (0,)
    loops = measured(field, smearing=chain, levels=levels, temporal=make_temporal_links(temporal))
    for level in levels:
        if level:
            links = smeared_by_numpy(links, chain.iteration(level - 1))
        mixed = links.copy()
        if temporal != "none":
            alphas = (0.75, 0.6, 0.3) if temporal == "hyp1" else (1.0, 1.0, 0.5)
            mixed[..., 3, :, :] = hyp(smooth_links(group), alphas)[..., 3, :, :]
        for path, r, t in (("100", 2, 2), ("100", 1, 1), ("111", 1, 2)):
            value = mean_wilson_loop(mixed, path, r, t)
            assert loops[level, path, r, t] == pytest.approx(value, abs=1e-12)
    assert np.abs(field.to_numpy() - smooth_links(group)).max() < 1e-14  # the field is as it was


def smeared_by_numpy(links, smearing):
    if isinstance(smearing, Ape):
        return ape(links, smearing.weight, smearing.along, smearing.directions)
    if isinstance(smearing, Stout):
        return stout(links, smearing.rho, smearing.directions)
    return hyp(links) if smearing.exclude == "none" else spatial_hyp(links)


@pytest.mark.longer
@pytest.mark.parametrize(
    "ape",
    [Ape(0.2), Ape(0.1, dims=4, projection="polar"), Hyp(exclude="none"), Stout(0.1, "x")],
    ids=str,
)
def test_gauge_invariance(group, best_device, ape, rng):
    links = random_links(UNEQUAL, group)
    transformed = gauge_transform(links, random_su(int(group[2]), links.shape[:4], rng))
    fields = (
        Field.from_slices(UNEQUAL, group, u, "double", best_device) for u in (links, transformed)
    )
    before, after = (measured(field, smearing=ape, levels=(0, 2)) for field in fields)
    assert max(abs(before[key] - after[key]) for key in before) < 1e-13


@pytest.mark.longer
def test_constant_abelian_field(group, best_device):
    """W is the mean of exp(i q flux); the flux is the field strength times the area."""
    lattice = Lattice(8, 12, 8, 10)
    flux = {(0, 3): 3, (1, 3): -2, (2, 3): 1}
    links = abelian_field(lattice.extents, group, flux)
    loops = measured(Field.from_slices(lattice, group, links, "double", best_device), levels=(0, 4))
    omega = [angle(lattice.extents, plane, quanta) for plane, quanta in flux.items()]
    for (_, path, r, t), loop in loops.items():
        turns = np.array([np.dot(step, omega) for step in equivalent_steps(path)]) * r * t
        value = np.cos(np.outer(turns, CHARGES[group])).mean()
        assert loop == pytest.approx(value, abs=1e-12)


@pytest.mark.longer
def test_area_law_at_strong_coupling(fast_device):
    """W = u^A (1 + 4 A u^4 + ...) for SU(2) with u = I2(beta)/I1(beta)."""
    beta = 1.0
    u = iv(2, beta) / iv(1, beta)
    field = Field.hot(Lattice(12, 12, 12, 12), "su2", "single", fast_device, seed=4)
    random = Random.for_field(field, seed=5)
    loops = LoopMeasurer(WilsonLoops(field.lattice, 2, 2), field)
    heatbath(field, beta, random, 20)
    series = []
    for _ in range(120):
        heatbath(field, beta, random)
        overrelax(field)
        series += [values for _, _, values in loops(field)]
    for r, t in product((1, 2), repeat=2):
        found = estimate(np.array(series)[:, r - 1, t - 1])
        area = r * t
        value = u**area * (1 + 4 * area * u**4)
        assert found.error < 0.3 * value
        assert abs(found.value - value) < 4 * found.error + 0.01 * value


@pytest.mark.kernels
def test_threads_do_not_change_a_bit(group):
    links = random_links(UNEQUAL, group)
    fields = (
        Field.from_slices(UNEQUAL, group, links, "double", CpuDevice(threads)) for threads in (1, 2)
    )
    one, two = (measured(field, levels=(0, 1)) for field in fields)
    assert one == two


@pytest.mark.slow
@pytest.mark.kernels
@KINDS
def test_loops_between_levels_are_those_of_the_reference(lattice, group, name, precision):
    """The matrix is averaged over both orders, and its diagonal are the loops of each level."""
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, precision, open_by_name(name))
    how = {"smearing": Ape(0.2), "levels": (0, 1, 3)}
    loops = measured(field, **how, correlations=True)
    alone = measured(field, **how)
    assert {key: loops[key[0], *key] for key in alone} == alone
    assert len(loops) == 2 * len(alone)
    by_level = levels_by_numpy(lattice, group)
    r_max, t_max = min(lattice.extents[:3]) // 2, lattice.t // 2
    for (i, j), path in product(((0, 1), (0, 3), (1, 3)), ("100", "210")):
        corner = path, steps_along(path, r_max), t_max
        both = [mean_wilson_loop(by_level[a], *corner, by_level[b]) for a, b in ((i, j), (j, i))]
        assert loops[i, j, *corner] == pytest.approx(np.mean(both), abs=TOLERANCE[precision])
        assert abs(both[0] - both[1]) > 10 * TOLERANCE["single"]


@cache
def levels_by_numpy(lattice, group):
    levels = [random_links(lattice, group)]
    for _ in range(3):
        levels.append(ape(levels[-1], 0.2))
    return levels


@pytest.mark.longer
@pytest.mark.parametrize("lattice", [Lattice(4, 4, 4, 26), Lattice(4, 4, 4, 2)], ids=str)
def test_levels_correlated_in_several_launches(lattice, group, best_device):
    field = Field.from_slices(lattice, group, random_links(lattice, group), "double", best_device)
    loops = measured(field, paths=["100"], smearing=Ape(0.2), levels=(1, 2), correlations=True)
    _, *levels = levels_by_numpy(lattice, group)
    half = lattice.t // 2
    for t in {1, half // 2, half // 2 + 1, half} - {0}:
        both = [mean_wilson_loop(a, "100", 2, t, b) for a, b in (levels[:2], levels[1::-1])]
        assert loops[1, 2, "100", 2, t] == pytest.approx(np.mean(both), abs=TOLERANCE["double"])


@pytest.mark.longer
def test_levels_correlated_with_static_sources(group, best_device):
    """The gauge is fixed for every level, to the same links in direction t."""
    links = smooth_links(group)
    field = Field.from_slices(Lattice(4, 6, 8, 4), group, links, "double", best_device)
    chain = SmearingSequence(((Hyp(exclude="none"), 1),))
    how = {"smearing": chain, "levels": (0, 1), "temporal": make_temporal_links("hyp2")}
    loops = measured(field, **how, correlations=True)
    again = measured(field, **how, correlations=True)
    static = hyp(links, (1.0, 1.0, 0.5))[..., 3, :, :]
    levels = [links.copy(), smeared_by_numpy(links, chain.iteration(0))]
    for one in levels:
        one[..., 3, :, :] = static
    for path, r, t in (("100", 2, 2), ("111", 1, 1)):
        both = [mean_wilson_loop(a, path, r, t, b) for a, b in (levels, levels[::-1])]
        assert loops[0, 1, path, r, t] == pytest.approx(np.mean(both), abs=1e-12)
    assert loops == again


@pytest.mark.parametrize(("name", "precision"), DEVICES[-4:])
def test_orderings_are_those_of_the_reference(group, name, precision):
    links = random_links(UNEQUAL, group)
    field = Field.from_slices(UNEQUAL, group, links, precision, open_by_name(name))
    blocks, every = (measured(field, orderings=one) for one in ("blocks", "all"))
    for t in (1, 5):
        value = mean_wilson_loop(links, "210", 1, t, along=blocks_21)
        assert blocks[0, "210", 1, t] == pytest.approx(value, abs=TOLERANCE[precision])
        assert abs(every[0, "210", 1, t] - value) > 10 * TOLERANCE["single"]
    others = [key for key in every if key[1] != "210"]
    assert all(blocks[key] == every[key] for key in others)


def test_steps_and_paths():
    assert shortest_paths((1, 0, -2), "blocks") == [(-3, -3, 0), (0, -3, -3)]
    assert shortest_paths((1, 1, 0), "blocks") == shortest_paths((1, 1, 0))
    assert shortest_paths((1, -1, 1), "blocks") == shortest_paths((1, -1, 1))
    assert [len(equivalent_steps(path)) for path in PATHS] == [3, 6, 12, 4]
    assert shortest_paths((1, 0, -2)) == [(-3, -3, 0), (-3, 0, -3), (0, -3, -3)]
    assert len(shortest_paths((1, -1, 1))) == 6


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"r_max": 3}, "--r-max is 3; on 4x6x8x10 choose it between 1 and 2, half the lattice"),
        ({"t_max": 6}, "--t-max is 6; on 4x6x8x10 choose it between 1 and 5, half the lattice"),
        ({"r_max": 0}, "--r-max is 0"),
        ({"paths": ["321"]}, "There is no path '321'; choose from 100, 110, 210, 111"),
        ({"r_max": 1, "paths": ["210"]}, "less than one step along 210"),
        ({"levels": (-1, 2)}, "numbers of iterations"),
        ({"levels": ()}, "numbers of iterations"),
        ({"levels": (2, 0), "smearing": None}, "after 2 smearing iterations need a smearing"),
        ({"orderings": "some"}, "no orderings 'some'; choose all or blocks"),
        ({"correlations": True}, "--correlations needs at least two smearing levels"),
        (
            {"correlations": True, "levels": (0, 1), "smearing": Ape(exclude="none")},
            "the same links in direction t at all levels",
        ),
    ],
)
def test_loops_that_cannot_be(how, sentence):
    field = Field.cold(UNEQUAL, "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match=sentence):
        measured(field, **how)


def test_the_smallest_loop_is_the_plaquette(group, precision, best_device):
    field = Field.hot(UNEQUAL, group, precision, best_device, seed=2)
    random = Random.for_field(field)
    heatbath(field, 2.0 * int(group[2]), random, 5)
    value = measured(field, r_max=1, t_max=1, paths=["100"])[0, "100", 1, 1]
    _, _, temporal = Plaquette().measure(field)
    tolerance = 1e-7 if precision == "single" else 1e-14
    assert value == pytest.approx(temporal, abs=tolerance)


def test_a_cold_field_gives_one(group, precision, best_device):
    field = Field.cold(UNEQUAL, group, precision, best_device)
    assert max(abs(loop - 1) for loop in measured(field, levels=(0, 1)).values()) < 1e-6


def test_smearing_keeps_a_constant_abelian_field(group, best_device):
    lattice = Lattice(4, 6, 8, 4)
    links = abelian_field(lattice.extents, group, {(0, 1): 1, (1, 2): 2, (0, 3): 1})
    source = Field.from_slices(lattice, group, links, "double", best_device)
    target = Field.empty(lattice, group, "double", best_device)
    Ape(0.2, dims=4)(source, target)
    assert np.abs(target.to_numpy() - links).max() < 1e-13
