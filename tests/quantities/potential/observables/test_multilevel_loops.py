"""Multilevel and planar loops against NumPy, and against plain Wilson loops."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from gauge_mc import generate, measure
from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import PATHS, Lattice, steps_along
from gauge_mc.domain.slab import Layout, Slab
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import PLAQUETTE, lattice_sums
from gauge_mc.groups import GROUPS
from gauge_mc.observables.noise_reduction import digest_of
from gauge_mc.quantities.potential.observables import PlanarLoops, WilsonLoops
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.multilevel import Level, _SlabMemory
from tests.observables.loops import (
    MANY_LANES,
    TOLERANCE,
    UNEQUAL,
    multilevel_links,
    random_links,
    with_mean_links,
)
from tests.reference.fields import random_field, trace
from tests.reference.observables import (
    blocks_21,
    equivalent_steps,
    mean_wilson_loop,
    transport,
    two_level_wilson_loop,
)
from tests.reference.smearing import ape


@cache
def smeared_links(lattice, group, iterations):
    if not iterations:
        return random_links(lattice, group)
    return ape(smeared_links(lattice, group, iterations - 1), 0.2)


@cache
def expected(lattice, group, iterations, *where, **how):
    return mean_wilson_loop(smeared_links(lattice, group, iterations), *where, **how)


def observable(lattice, **options):
    return WilsonLoops.for_lattice(lattice, **({"off_axis": True, "beta": 2.0} | options))


def measured(field, **options):
    """Return the loops by level, path, r and t."""
    loops = observable(field.lattice, **options)
    records = loops.measurer(field)(field)
    assert len(records) == loops.records
    return {where: value for *where, value in map(tuple, records) for where in [tuple(where)]}


LEVELS = [
    (UNEQUAL, "5,1"),
    (UNEQUAL, "2,1"),
    (UNEQUAL, "1,1"),
    (UNEQUAL, "2,1/1,1"),
    (MANY_LANES, "2,1"),
]
"""Lattices and levels, every second one for each group in quick tests."""


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("group", "lattice", "multilevel"),
    [
        pytest.param(group, *one, marks=() if number % 2 == rest else pytest.mark.slow)
        for rest, group in enumerate(("su2", "su3"))
        for number, one in enumerate(LEVELS)
    ],
    ids=str,
)
def test_one_value_is_that_of_loops_that_begin_on_boundaries(
    lattice, multilevel, group, precision, device
):
    """Also with slabs that begin on odd slices, and across sub-lattices of lanes."""
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, precision, device)
    found = measured(field, multilevel=multilevel, iterations="0,2")
    thickness = int(multilevel[0])
    r_max, times = min(lattice.extents[:3]) // 2, range(thickness, lattice.t // 2 + 1, thickness)
    assert list(found) == [
        (level, path, r, t)
        for level in (0, 2)
        for path in PATHS
        for r in range(1, steps_along(path, r_max) + 1)
        for t in times
    ]
    for (level, path, r, t), value in found.items():
        if t in (times[0], times[-1]):
            loop = expected(lattice, group, level, path, r, t, every=thickness)
            assert value == pytest.approx(loop, abs=TOLERANCE[precision])
    assert np.abs(field.to_numpy() - links).max() < 1e-6  # the field is as it was


@pytest.mark.longer
@pytest.mark.parametrize("multilevel", ["2,3", "5,2/1,3"])
def test_averages_are_products_of_the_averages_of_slabs(multilevel, group, best_device):
    """Against NumPy, with the same updates of the slabs, and smeared lines in space."""
    field = Field.from_slices(UNEQUAL, group, random_links(UNEQUAL, group), "double", best_device)
    options = {"multilevel": multilevel, "iterations": "2", "seed": 3, "overrelax": 2}
    found = measured(field, **options)
    levels = observable(UNEQUAL, **options).noise.levels
    number = digest_of(lattice_sums(field, PLAQUETTE, 2))
    drawn = multilevel_links(field, levels, Coupling.of(2.0), 3, 2, number)
    fixed, thick = smeared_links(UNEQUAL, group, 2), [one.thickness for one in levels]
    for (_, path, r, t), value in found.items():
        if path in ("100", "210"):
            steps = equivalent_steps(tuple(map(int, path)))
            loops = [two_level_wilson_loop(drawn, fixed, (one, r, t), *thick) for one in steps]
            assert value == pytest.approx(np.mean(loops), abs=1e-12)
    assert np.abs(drawn[0][0] - drawn[-1][-1]).max() > 0.1  # the slabs have been updated


def test_times_that_need_several_launches(group, best_device):
    lattice = Lattice(4, 4, 4, 28)
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, "double", best_device)
    found = measured(field, multilevel="2,1", smear="none", off_axis=False, t_max=14)
    assert [t for _, _, r, t in found if r == 1] == [2, 4, 6, 8, 10, 12, 14]
    for t in (2, 12, 14):
        value = mean_wilson_loop(links, "100", 2, t, every=2)
        assert found[0, "100", 2, t] == pytest.approx(value, abs=1e-14)


@pytest.mark.longer
def test_orderings_along_210(group, best_device):
    links = random_links(UNEQUAL, group)
    field = Field.from_slices(UNEQUAL, group, links, "double", best_device)
    found = measured(field, multilevel="2,1", smear="none", orderings="blocks")
    for t in (2, 4):
        value = mean_wilson_loop(links, "210", 1, t, along=blocks_21, every=2)
        assert found[0, "210", 1, t] == pytest.approx(value, abs=1e-14)
        assert abs(value - expected(UNEQUAL, group, 0, "210", 1, t, every=2)) > 1e-6


@pytest.mark.first_quick
@pytest.mark.parametrize("beta", [pytest.param(2.5, marks=pytest.mark.slow), 6.0])
def test_multihit_replaces_the_links_along_t(beta, group, precision, best_device):
    lattice = Lattice(4, 4, 4, 4)
    links = random_links(lattice, group)
    replaced = with_mean_links(links, beta / int(group[2]))
    field = Field.from_slices(lattice, group, links, precision, best_device)
    for multilevel, thickness in ((None, 1), ("2,1", 2), ("2,1/1,1", 2)):
        found = measured(field, multihit=True, multilevel=multilevel, beta=beta, smear="none")
        assert ("100", 1) not in {where[1:3] for where in found}
        for (_, path, r, t), value in found.items():
            expected = mean_wilson_loop(replaced, path, r, t, every=thickness)
            assert value == pytest.approx(expected, abs=1e-6 if precision == "single" else 1e-9)


def test_multihit_on_an_anisotropic_lattice(best_device):
    lattice, beta, xi0 = Lattice(4, 6, 8, 4), 1.3, 2.5
    links = random_links(lattice, "su2")
    replaced = with_mean_links(links, beta * xi0 / 2)
    field = Field.from_slices(lattice, "su2", links, "single", best_device)
    found = measured(field, multihit=True, beta=beta, anisotropy=xi0, smear="none")
    for (_, path, r, t), value in found.items():
        assert value == pytest.approx(mean_wilson_loop(replaced, path, r, t), abs=1e-6)
    with pytest.raises(UsageError, match="beta times the anisotropy up to 12, not 15"):
        measured(field, multihit=True, beta=5.0, anisotropy=3.0, smear="none")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"multilevel": "5,9", "t_max": 4}, "--t-max is 4, but with slabs of 5 time slices T is a"),
        ({"multilevel": "10,9"}, "--t-max is 5, but with slabs of 10 time slices"),
        ({"multilevel": "3,9"}, "slabs of 3 time slices do not make up the lattice"),
        ({"multilevel": "2,9", "temporal": "hyp2"}, "leave --temporal out"),
        ({"multilevel": "2,9", "smear": "ape", "exclude": "none"}, "exclude t from the smearing"),
        ({"multilevel": "2,9", "smear": ["ape:0.2x2", "hyp:exclude=nonex1"]}, "exclude t from"),
        (
            {"multihit": True, "r_max": 1, "off_axis": False},
            "--r-max is 1, where --multihit is not",
        ),
        ({"overrelax": 2, "beta": None}, "--overrelax is for --multilevel"),
        ({"multilevel": "2,9", "iterations": "0,2", "correlations": True}, "--correlations out"),
        ({"multihit": True, "iterations": "0,2", "correlations": True}, "--correlations out"),
    ],
)
def test_loops_that_cannot_be(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        observable(UNEQUAL, **options)


RUN = {
    "lattice": "4x4x4x8",
    "group": "su2",
    "beta": 1.5,
    "thermalize": 1,
    "separation": 1,
    "measure": "wilson-loops:1:multilevel=2,3:iterations=0,2:r-max=2",
    "progress": False,
    "threads": 1,
}


@pytest.mark.slow
def test_a_run_that_is_stopped_and_continued_writes_the_same(tmp_path):
    whole = generate(**RUN, configs=4, output=tmp_path / "whole")
    along = whole["wilson-loops"]
    assert along.header["t_step"] == "2"
    assert along.header["multilevel"].startswith("2,3 (slices,values); 1 heatbath")
    assert set(along["t"]) == {2, 4}
    for _ in range(3):
        generate(**RUN, configs=4, output=tmp_path / "parts", on_update=lambda one: one.sweep == 3)
    table = "wilson_loops.csv"
    assert (tmp_path / "parts" / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()
    stored = measure(whole, "wilson-loops", multilevel="2,3", iterations="0,2", r_max=2)
    for column in ("sweep", "smearing", "r", "t", "loop"):
        np.testing.assert_array_equal(stored[column], along[column])


@pytest.mark.slow
@pytest.mark.parametrize("multihit", [pytest.param(False, marks=pytest.mark.every), True])
def test_multilevel_and_plain_loops_agree(multihit):
    """On 8^4, with smaller errors of large loops."""
    lattice, beta = Lattice(8, 8, 8, 8), 2.2
    field = Field.hot(lattice, "su2", "single", CpuDevice(2), seed=4)
    random = Random.for_field(field, seed=5)
    common = {"off_axis": False, "iterations": "5"}
    kinds = (
        {"beta": None},
        {"multilevel": "2,10", "multihit": multihit, "beta": beta},
        {"multilevel": "4,4/2,4", "multihit": multihit, "beta": beta},
    )
    measurers = [observable(lattice, **common, **one).measurer(field) for one in kinds]
    heatbath(field, beta, random, 50)
    series = [[] for _ in kinds]
    for _ in range(200):
        heatbath(field, beta, random, 1)
        overrelax(field, 4)
        for values, one in zip(series, measurers, strict=True):
            values.append({record[2:4]: record[-1] for record in one(field)})
    for better in series[1:]:
        for where in better[0]:
            first, second = (np.array([one[where] for one in each]) for each in (series[0], better))
            errors = [estimate(one).error for one in (first, second)]
            difference = estimate(second - first)
            assert abs(difference.value) < 4.5 * difference.error
            if where == (4, 4):
                assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(("packet_bytes", "refused"), [(16, True), (0, False)])
def test_operators_that_kernels_of_a_gpu_would_not_find(packet_bytes, refused):
    """On 48^4 the operators of SU(8) are 80 GiB, whereas the links are 10 GiB."""
    asked = []
    device = SimpleNamespace(allocate=lambda nbytes: asked.append(nbytes) or SimpleNamespace())
    layout = Layout(Lattice(48, 48, 48, 48), "single", (1, 1, 1), packet_bytes, 0, 48)
    links = SimpleNamespace(nbytes=layout.field_bytes(GROUPS["su8"].components))
    slab = Slab(GROUPS["su8"], device, layout, links)
    levels = Level(8, 10), Level(2, 10)
    if refused:
        with pytest.raises(GaugeError, match="at most 64 GiB of them: choose thicker slabs or mor"):
            _SlabMemory(slab, levels, 1, 1)
        assert not asked
    else:
        _SlabMemory(slab, levels, 1, 1)
        assert max(asked) > 2**36


LATTICE = Lattice(8, 6, 4, 12)
OF_PLANES = {"single": 1e-6, "double": 1e-14}


def planar_loop(links, plane, r, t):
    """Return the average over the loops along mu and nu, one after another."""
    pairs = {
        "space": [(mu, nu) for mu in range(3) for nu in range(3) if mu != nu],
        "time": [(mu, 3) for mu in range(3)],
    }[plane]
    found = []
    for mu, nu in pairs:
        path = [*r * [(mu, 1)], *t * [(nu, 1)], *r * [(mu, -1)], *t * [(nu, -1)]]
        found.append(trace(transport(links, path)).real.mean() / links.shape[-1])
    return np.mean(found)


def test_loops(group, precision, device):
    links = random_field(LATTICE.extents, group, np.random.default_rng(3))
    field = Field.from_slices(LATTICE, group, links, precision, device)
    loops = PlanarLoops.for_lattice(LATTICE)
    records = loops.measurer(field)(field)
    assert len(records) == loops.records == 4 + 2 * 6
    for plane, r, t, value in records:
        assert value == pytest.approx(planar_loop(links, plane, r, t), abs=OF_PLANES[precision])
    again = loops.measurer(field)(field)
    assert again == records


@pytest.mark.parametrize(("r_max", "t_max", "name"), [(3, 6, "--r-max"), (2, 7, "--t-max")])
def test_loops_longer_than_half_the_lattice_are_refused(r_max, t_max, name):
    with pytest.raises(UsageError, match=f"{name} is .* half the lattice"):
        PlanarLoops(LATTICE, r_max, t_max)


def test_loops_are_one_on_a_cold_field():
    field = Field.cold(LATTICE, "su2", "single", CpuDevice(1))
    records = PlanarLoops(LATTICE, 1, 1).measurer(field)(field)
    assert [value for *_, value in records] == pytest.approx([1, 1])
