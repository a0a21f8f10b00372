"""Polyakov loops in higher representations, of planes, and their correlators against NumPy."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import iv

from gauge_mc import generate, measure
from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import PATHS, Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import TableData
from gauge_mc.quantities.polyakov.observables import (
    PolyakovCorrelators,
    PolyakovPlanes,
    PolyakovRepresentations,
    dimensions,
    polyakov_planes,
)
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.multilevel import MultilevelAverages, parse_levels
from tests.observables.loops import (
    MANY_LANES,
    TOLERANCE,
    UNEQUAL,
    multilevel_links,
    random_links,
    with_mean_links,
)
from tests.reference.fields import (
    dagger,
    gauge_transform,
    random_field,
    random_su,
    reunitarise,
    trace,
)
from tests.reference.mean_links import mean_links, mean_trace
from tests.reference.observables import (
    mean_polyakov_correlator,
    polyakov_field,
    transport,
    two_level_correlator,
)


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


def test_series_are_those_of_each_distance(rng):
    header, sweeps = {"observable": "polyakov-correlators"}, np.repeat([10, 20, 30], 3)
    path, r = np.tile(["100", "100", "110"], 3), np.tile([1, 2, 1], 3)
    values = rng.normal(size=9)
    table = TableData(header, {"sweep": sweeps, "path": path, "r": r, "re": values})
    found = PolyakovCorrelators.series(table, "a.csv")
    assert {*found} == {"path=100,r=1", "path=100,r=2", "path=110,r=1"}
    np.testing.assert_array_equal(found["path=110,r=1"].samples, values[2::3])
    short = TableData(header, {name: column[:-1] for name, column in table.columns.items()})
    with pytest.raises(
        GaugeError, match="does not contain the same numbers of every configuration"
    ):
        PolyakovCorrelators.series(short, "a.csv")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"r_max": 3}, "--r-max is 3; on 4x6x8x10 choose it between 1 and 2, half the lattice"),
        ({"r_max": 0}, "--r-max is 0"),
        ({"paths": ["321"]}, "There is no path '321'; choose from 100, 110, 210, 111"),
    ],
)
def test_distances_that_cannot_be(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        PolyakovCorrelators(UNEQUAL, **({"r_max": 1} | options))


SLOW = pytest.mark.slow
LEVELS = ["5,1", "2,1", "1,1", "10,1", "10,1/5,1", "2,1/1,1"]


@pytest.mark.parametrize("multilevel", LEVELS)
def test_one_value_is_that_of_the_links_as_they_are(multilevel, group, precision, device):
    """Also with slabs that begin on odd slices, and across sub-lattices of lanes."""
    links = random_links(UNEQUAL, group)
    field = Field.from_slices(UNEQUAL, group, links, precision, device)
    found, expected = measured(field, multilevel=multilevel, beta=2.0), measured(field)
    assert found == pytest.approx(expected, abs=TOLERANCE[precision])
    assert np.abs(field.to_numpy() - links).max() < 1e-6  # the field is as it was


@pytest.mark.parametrize("multilevel", ["2,3", "5,2/1,3"])
def test_averages_are_products_of_the_averages_of_slabs(multilevel, group, best_device):
    """Against NumPy, with the same updates of the slabs."""
    field = Field.from_slices(UNEQUAL, group, random_links(UNEQUAL, group), "double", best_device)
    levels = parse_levels(multilevel)
    vectors = [(1, 0, 0), (0, 2, 0), (0, 0, 3), (1, -2, 1)]
    averages = MultilevelAverages(field, levels, vectors, Coupling.of(2.0), 3, 2)
    drawn = multilevel_links(field, levels, Coupling.of(2.0), 3, 2, 7)
    for vector, found in zip(vectors, averages(field, Coupling.of(2.0), 7), strict=True):
        expected = two_level_correlator(drawn, vector, *(one.thickness for one in levels))
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_threads_do_not_change_a_bit(group):
    links = random_links(UNEQUAL, group)
    one, two = (
        measured(
            Field.from_slices(UNEQUAL, group, links, "double", CpuDevice(threads)),
            multilevel="5,2/1,3",
            beta=2.0,
        )
        for threads in (1, 2)
    )
    assert one == two


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"multilevel": "4"}, "'4' is not of the form THICKNESS,VALUES"),
        ({"multilevel": "3,10"}, "slabs of 3 time slices do not make up the lattice 4x6x8x10"),
        ({"multilevel": "0,10"}, "0,10 has an invalid number"),
        ({"multilevel": "2,0"}, "2,0 has an invalid number"),
        ({"multilevel": "1,10/2,10"}, "slabs of 1 time slices are not made up of several"),
        ({"multilevel": "10,2/5,2/1,2"}, "There are 3 levels; choose at most 2"),
        ({"multilevel": "2,9", "overrelax": -1}, "--overrelax is -1"),
        ({"multilevel": "2,9", "beta": -1.0}, "--beta is -1"),
        ({"multilevel": "2,9", "action": "none"}, "There is no action 'none'"),
        ({"overrelax": 2}, "--overrelax is for --multilevel"),
    ],
)
def test_levels_that_cannot_be(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        PolyakovCorrelators.for_lattice(UNEQUAL, **options)


def test_the_coupling_is_that_of_the_run(tmp_path, rng):
    run = generate(
        lattice="4x4x4x4",
        group="su2",
        beta=1.5,
        thermalize=1,
        configs=2,
        separation=1,
        measure="polyakov-correlators:1:multilevel=2,3",
        output=tmp_path / "run",
        progress=False,
        threads=1,
    )
    along = run["polyakov-correlators"]
    assert along.header["multilevel"].startswith("2,3 (slices,values); 1 heatbath")
    options = {"multilevel": "2,3", "threads": 1, "progress": False}
    stored = measure(run, "polyakov-correlators", **options)
    assert stored.header["beta"] == "1.5"
    for column in ("sweep", "r", "re"):
        np.testing.assert_array_equal(stored[column], along[column])
    with pytest.raises(UsageError, match=r"--beta is 2.0, but the ensemble has 1.5"):
        measure(run, "polyakov-correlators", beta=2.0, output=tmp_path / "a.csv", **options)
    files = sorted((tmp_path / "run" / "configs").iterdir())
    with pytest.raises(UsageError, match="coupling of the configurations is unknown"):
        measure(files, "polyakov-correlators", output=tmp_path / "b.csv", **options)
    assert not (tmp_path / "b.csv").exists()
    options |= {"beta": 1.5, "output": tmp_path / "c.csv"}
    alone = measure(files, "polyakov-correlators", **options)
    np.testing.assert_array_equal(alone["re"], along["re"])


def strong(group, beta):
    """Return u, the coefficient of the fundamental character of exp(beta Re Tr U / N)."""
    if group == "su2":
        return iv(2, beta) / iv(1, beta)
    return mean_trace(int(group[2]), beta)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("group", "precision", "beta"),
    [
        ("su3", "double", 2.5),
        *(
            pytest.param(group, "single", beta, marks=pytest.mark.slow)
            for group, beta in (("su2", 1.0), ("su3", 2.5))
        ),
    ],
)
def test_area_law_at_strong_coupling(group, precision, beta, fast_device):
    """<Tr L Tr L^*> = u^(r T) (1 + 4 r T u^4 + ...), which plain averages cannot see here."""
    lattice = Lattice(4, 8, 4, 4) if precision == "double" else Lattice(8, 8, 8, 4)
    field = Field.hot(lattice, group, precision, fast_device, seed=4)
    random = Random.for_field(field, seed=5)
    observable = PolyakovCorrelators.for_lattice(
        lattice, r_max=2, multilevel="2,10/1,10", beta=beta, overrelax=0
    )
    measure_field = observable.measurer(field)
    heatbath(field, beta, random, 20)
    series = []
    for _ in range(40):
        heatbath(field, beta, random, 2)
        series.append([record[-1] for record in measure_field(field)])
    u = strong(group, beta)
    found = estimate(np.array(series)[:, 0])
    value = u**4 / int(group[2]) ** 2 * (1 + 16 * u**4)
    assert found.error < 0.05 * value
    assert abs(found.value - value) < 4 * found.error + 0.03 * value


@pytest.mark.slow
def test_multilevel_and_plain_averages_agree(fast_device):
    lattice, beta = Lattice(6, 6, 6, 4), 2.2
    field = Field.hot(lattice, "su2", "single", fast_device, seed=4)
    random = Random.for_field(field, seed=5)
    plain = PolyakovCorrelators.for_lattice(lattice)
    better = PolyakovCorrelators.for_lattice(lattice, multilevel="2,10", beta=beta)
    measurers = [one.measurer(field) for one in (plain, better)]
    heatbath(field, beta, random, 50)
    series = [[], []]
    for _ in range(300):
        heatbath(field, beta, random, 2)
        overrelax(field, 2)
        for values, one in zip(series, measurers, strict=True):
            values.append([record[-1] for record in one(field)])
    for r in range(3):
        first, second = (estimate(np.array(values)[:, r]) for values in series)
        assert second.error < 0.7 * first.error
        difference = estimate(np.subtract(*(np.array(values)[:, r] for values in series)))
        assert abs(difference.value) < 4 * difference.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "weight", [pytest.param(0.3, marks=SLOW), 2.0, pytest.param(6.0, marks=SLOW)]
)
def test_the_reference_of_mean_links_is_the_integral_over_the_group(group, weight, rng):
    n = int(group[2])
    s = (
        rng.normal(size=(1, n, n)) + 1j * rng.normal(size=(1, n, n))
        if n == 3
        else 0.8 * random_su(n, (1,), rng)
    )
    draws = random_su(n, (400_000,), rng)
    density = np.exp(weight / n * trace(draws @ dagger(s)).real)
    expected = (density[:, None, None] * draws).mean(0) / density.mean()
    error = 4 / np.sqrt(density.sum() ** 2 / (density**2).sum())
    assert np.abs(mean_links(s, weight / n)[0] - expected).max() < error


@pytest.mark.longer
@pytest.mark.parametrize(
    ("beta", "smooth"),
    [(0.2, False), pytest.param(2.5, False, marks=SLOW), (6.0, True), (12.0, False), (12.0, True)],
)
def test_multihit_is_the_integral_over_every_link(group, precision, best_device, beta, smooth):
    lattice = Lattice(4, 4, 4, 4)
    links = random_field(lattice.extents, group, np.random.default_rng(5))
    if smooth:
        links = reunitarise(np.eye(int(group[2])) + 0.1 * links)
    replaced = with_mean_links(links, beta / int(group[2]))
    scale = np.abs(replaced[..., 3, :, :]).max() ** 8
    field = Field.from_slices(lattice, group, links, precision, best_device)
    for multilevel in (None, "4,1", "2,1/1,1"):
        found = measured(field, multihit=True, multilevel=multilevel, beta=beta)
        assert ("100", 1) not in found
        for (path, r), value in found.items():
            expected = mean_polyakov_correlator(replaced, path, r)
            # The reference differentiates numerically, to about 1e-9 for each of the eight links.
            assert abs(value - expected) < (1e-5 if precision == "single" else 3e-8) * scale


LARGER_GROUPS = [
    ("su4", 0.1),
    ("su4", 0.7),
    ("su4", 1.3),
    pytest.param("su8", 0.7, marks=pytest.mark.every),
]


@pytest.mark.parametrize(("group", "strength"), LARGER_GROUPS)
def test_multihit_of_larger_groups(group, strength, precision, best_device, rng):
    """At beta = `strength` N^2, for random links and for unit staples, with equal singular values.

    The reference for random links is a ratio of small differences, which loses digits with N.
    """
    lattice, n = Lattice(4, 4, 4, 2), int(group[2])
    beta = strength * n**2
    links = random_su(n, (2, 4, 4, 4, 4), rng)
    if n == 4:
        replaced = with_mean_links(links, beta / n)
        field = Field.from_slices(lattice, group, links, precision, best_device)
        scale = np.abs(replaced[..., 3, :, :]).max() ** 4
        for multilevel in (None, "2,1/1,1"):
            found = measured(field, multihit=True, multilevel=multilevel, beta=beta)
            for (path, r), value in found.items():
                expected = mean_polyakov_correlator(replaced, path, r)
                assert abs(value - expected) < (1e-6 if precision == "single" else 1e-8) * scale
    # The staples are 6 times the unit matrix.
    ones = np.broadcast_to(np.eye(n), links.shape)
    expected = mean_trace(n, 6 * beta) ** 4
    frame = random_su(n, links.shape[:4], rng)
    tolerance = 2e-6 if precision == "single" else 1e-9
    for cold in (ones, gauge_transform(ones, frame)):
        field = Field.from_slices(lattice, group, cold, precision, best_device)
        for value in measured(field, multihit=True, beta=beta).values():
            assert value == pytest.approx(expected, rel=tolerance)


def plain_and_multihit(lattice, group, beta, updates, measurements, device):
    """Return series of the correlators at R = 2 and 3 without and with multihit."""
    field = Field.hot(lattice, group, "single", device, seed=4)
    random = Random.for_field(field, seed=5)
    plain = PolyakovCorrelators.for_lattice(lattice)
    better = PolyakovCorrelators.for_lattice(lattice, multihit=True, beta=beta)
    measurers = [one.measurer(field) for one in (plain, better)]
    heatbath(field, beta, random, updates)
    series = [[], []]
    for _ in range(measurements):
        heatbath(field, beta, random, 2)
        overrelax(field, 2)
        for values, one in zip(series, measurers, strict=True):
            values.append([value for path, r, value in one(field) if r > 1])
    return zip(*(np.transpose(values) for values in series), strict=True)


@pytest.mark.parametrize("group", ["su4"])
def test_multihit_does_not_change_the_average(group, fast_device):
    for one, other in plain_and_multihit(Lattice(6, 6, 6, 2), group, 11.0, 100, 150, fast_device):
        difference = estimate(one - other)
        assert difference.error < 0.02 * estimate(one).value
        assert abs(difference.value) < 4 * difference.error


@pytest.mark.slow
def test_multihit_reduces_the_noise(fast_device):
    """And does not change the average."""
    for one, other in plain_and_multihit(Lattice(6, 6, 6, 4), "su2", 1.5, 50, 300, fast_device):
        assert estimate(other).error < 0.5 * estimate(one).error
        difference = estimate(one - other)
        assert abs(difference.value) < 4 * difference.error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"r_max": 1}, "--r-max is 1, where --multihit is not possible"),
        ({"beta": 13.0}, r"means of links of SU\(2\) are computed for beta up to 12, not 13"),
        ({}, "coupling of the configurations is unknown"),
    ],
)
def test_multihit_that_cannot_be(options, sentence):
    field = Field.cold(UNEQUAL, "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match=sentence):
        measure(field, "polyakov-correlators", multihit=True, **options)


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


def measured_planes(field):
    return PolyakovPlanes.for_lattice(field.lattice).measurer(field)(field)


def planes_by_numpy(links):
    """Return the records of a field: the loops are turned by the element of the centre."""
    loops = polyakov_field(links)  # [z, y, x]
    colours = links.shape[-1]
    centre = np.exp(2j * math.pi * np.arange(colours) / colours)
    loops = loops * max(centre, key=lambda z: (loops.mean() * z).real)
    records = []
    for axis, number in (("x", 2), ("y", 1), ("z", 0)):
        planes = loops.mean(axis=tuple({0, 1, 2} - {number}))
        n = planes.size
        for r in range(n // 2 + 1):
            pairs = [(planes[i], planes[(i + r) % n]) for i in range(n)]
            re, im = (np.mean([part(a) * part(b) for a, b in pairs]) for part in (np.real, np.imag))
            records.append((axis, r, re, im))
    return records


def assert_equal(found, known, tolerance):
    assert [one[:2] for one in found] == [one[:2] for one in known]
    difference = np.subtract([one[2:] for one in found], [one[2:] for one in known])
    assert np.abs(difference).max() < tolerance


@pytest.mark.parametrize("lattice", [UNEQUAL, MANY_LANES, Lattice(6, 2, 10, 4)], ids=str)
def test_records_are_those_of_the_reference(lattice, group, precision, device):
    links = random_links(lattice, group)
    field = Field.from_slices(lattice, group, links, precision, device)
    known = planes_by_numpy(links)
    assert np.abs([one[2] for one in known]).min() > 1e-7
    assert_equal(measured_planes(field), known, TOLERANCE[precision])
    assert PolyakovPlanes(lattice).records == len(known)


def test_the_centre_and_gauge_transformations_change_nothing(group, best_device, rng):
    """Links along t at one t times an element of the centre turn all loops to another sector."""
    links = random_links(UNEQUAL, group)
    colours = links.shape[-1]
    turned = gauge_transform(links, random_su(colours, links.shape[:4], rng))
    turned[3, ..., 3, :, :] *= np.exp(2j * math.pi / colours)
    one, two = (
        measured_planes(Field.from_slices(UNEQUAL, group, u, "double", best_device))
        for u in (links, turned)
    )
    assert_equal(two, one, 1e-14)


def test_planes_of_all_axes_have_the_same_mean(best_device):
    field = Field.hot(UNEQUAL, "su3", "double", best_device, seed=4)
    means = [planes.mean() for planes in polyakov_planes(field)]
    assert means == pytest.approx([polyakov_field(field.to_numpy()).mean()] * 3, abs=1e-14)


OF_TRACES = {"single": 2e-6, "double": 1e-14}


def symmetriser(n, rank, sign):
    """Return the projector onto symmetric (+1) or antisymmetric (-1) tensors of a rank."""
    found, orders = np.zeros([n] * (2 * rank)), [*itertools.permutations(range(rank))]
    for index in itertools.product(range(n), repeat=rank):
        for order in orders:
            odd = sum(a > b for a, b in itertools.combinations(order, 2)) % 2
            place = (*index, *(index[one] for one in order))
            found[place] += (sign if odd else 1) / len(orders)
    return found.reshape(n**rank, n**rank)


def traces(line):
    """Return the traces of matrices in all representations, from matrices on tensors."""
    n = line.shape[-1]
    pair = np.einsum("xab,xcd->xacbd", line, line).reshape(-1, n**2, n**2)
    triple = np.einsum("xab,xcd->xacbd", pair, line).reshape(-1, n**3, n**3)
    mixed = np.einsum("xab,xcd->xacbd", line, line.conj()).reshape(-1, n**2, n**2)
    adjoint = np.trace(mixed, axis1=1, axis2=2) - 1  # n x n* is 1 and the adjoint representation
    projections = [(pair, symmetriser(n, 2, -1)), (pair, symmetriser(n, 2, 1))]
    projections.append((triple, symmetriser(n, 3, 1)))
    return [adjoint, *(np.einsum("xab,ba->x", one, p) for one, p in projections)]


@pytest.mark.parametrize("lattice", [Lattice(4, 6, 8, 10), Lattice(8, 4, 2, 6)], ids=str)
def test_characters(lattice, group, precision, device, rng):
    links = random_field(lattice.extents, group, rng)
    line = transport(links, [(3, 1)] * lattice.t)[0]
    n = line.shape[-1]
    adjoint, *others = (one.mean() for one in traces(line.reshape(-1, n, n)))
    expected = [adjoint.real, *(part for one in others for part in (one.real, one.imag))]
    sizes = dimensions(n)
    expected /= np.array([sizes[0], *np.repeat(sizes[1:], 2)])
    field = Field.from_slices(lattice, group, links, precision, device)
    difference = np.subtract(PolyakovRepresentations().measure(field), expected)
    assert np.abs(difference).max() < OF_TRACES[precision]


def test_dimensions_are_those_of_projectors():
    assert dimensions(3) == (8, 3, 6, 10)
    for n in (2, 3, 4):
        projected = [(2, -1), (2, 1), (3, 1)]
        ranks = tuple(round(np.trace(symmetriser(n, *one))) for one in projected)
        assert dimensions(n)[1:] == ranks


@pytest.mark.parametrize("group", ["su2", "su3", "su4"])
def test_cold_field_gives_one(group, best_device):
    field = Field.cold(Lattice(4, 6, 8, 10), group, "double", best_device)
    found = PolyakovRepresentations().measure(field)
    assert found == pytest.approx([1, 1, 0, 1, 0, 1, 0], abs=1e-14)
