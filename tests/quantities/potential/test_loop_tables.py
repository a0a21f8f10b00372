"""Effective potentials and Creutz ratios of loops of all T, and of multiples of a thickness."""

import math
from dataclasses import replace

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.table_series import series_of
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData, read_table, write_table
from gauge_mc.plots import PLOTS
from gauge_mc.quantities.potential.fit import read_result
from gauge_mc.quantities.potential.loop_tables import (
    COLUMNS,
    LOOP_COLUMNS,
    PathLoops,
    all_loops,
    creutz_ratios,
    effective_energies,
    effective_potential,
    effective_potential_grid,
    paths_of,
    read_loops,
    select_loops,
    smearing_levels,
)
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.quantities.potential.static_potential import variational
from tests.analysis.synthetic_loops import (
    SIGMA,
    fitted_series,
    potential,
    static_potential,
    synthetic_loops,
    synthetic_matrices,
    write_loops,
)


def write_rows(path, rows):
    # Tables of earlier versions may contain values that are not finite.
    write_table(path, {"observable": "Wilson loops"}, LOOP_COLUMNS, rows)
    return read_table(path)


def loops_of(table):
    return series_of(table, "w.csv", COLUMNS, "Wilson loops")


def rows_of(loops):
    return [
        (int(sweep), loops.smearing, loops.path, int(r), int(t), float(loops.values[c, i, j]))
        for c, sweep in enumerate(loops.sweeps)
        for i, r in enumerate(loops.r)
        for j, t in enumerate(loops.t)
    ]


def exact_loops(mean):
    """Return two configurations that deviate a little from a mean W(r, t), in either direction."""
    size = len(mean)
    steps = np.arange(1, size + 1)
    values = np.stack([mean * (1 + 1e-9), mean * (1 - 1e-9)])
    return PathLoops("100", 0, np.array([1, 2]), steps, steps, values)


def jackknife(values, function):
    """Return jackknife errors, which are right for data without autocorrelation."""
    samples = len(values)
    rest = (values.sum(axis=0) - values) / (samples - 1)
    derived = np.array([function(one) for one in rest])
    return np.sqrt((samples - 1) * derived.var(axis=0))


def test_loops_are_selected_from_a_table(tmp_path):
    rng = np.random.default_rng(1)
    on, off = (synthetic_loops(rng, 3, 4, path) for path in ("100", "110"))
    thin = PathLoops("100", 0, on.sweeps, on.r, on.t, 0.9 * on.values)
    rows = rows_of(thin) + rows_of(on) + rows_of(off)
    table = loops_of(write_rows(tmp_path / "w.csv", sorted(rows, key=lambda row: row[0])))
    assert paths_of(table) == ["100", "110"]
    assert smearing_levels(table) == [0, 25]
    for expected, wanted in ((on, ("100", None)), (thin, ("100", 0)), (off, ("110", 25))):
        found = select_loops(table, *wanted)
        assert (found.path, found.smearing) == (expected.path, expected.smearing)
        np.testing.assert_array_equal(found.sweeps, expected.sweeps)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_allclose(found.distances, expected.distances)
    assert off.distances[1] == pytest.approx(2 * math.sqrt(2))


def test_bad_tables_are_refused_in_one_sentence(tmp_path):
    rows = rows_of(synthetic_loops(np.random.default_rng(1), 3, 4))
    whole = write_rows(tmp_path / "w.csv", rows)
    lacking = {name: values for name, values in whole.columns.items() if name != "loop"}
    cases = {
        "lacks one": (rows[:-1], {}, "configuration 30 does not have the same rows"),
        "has one twice": ([*rows, rows[-1]], {}, "configuration 30 does not have the same rows"),
        "not a number": ([*rows[:-1], (*rows[-1][:-1], math.nan)], {}, "column 'loop' contains"),
        "starts at 2": ([row for row in rows if row[3] > 1], {}, "lack some r between 1"),
        "other path": (rows, {"path": "111"}, "no loops along .1,1,1., only along .1,0,0."),
        "other level": (rows, {"smearing": 7}, "choose from the levels 25"),
    }
    for name, (content, wanted, message) in cases.items():
        table = write_rows(tmp_path / f"{name}.csv", content)
        with pytest.raises(GaugeError, match=message):
            select_loops(loops_of(table), **wanted)
    with pytest.raises(GaugeError, match="no column 'loop'"):
        loops_of(TableData({}, lacking))
    words = TableData({}, {**whole.columns, "loop": np.full(len(rows), "oops")})
    with pytest.raises(GaugeError, match="column 'loop' contains"):
        loops_of(words)
    with pytest.raises(GaugeError, match="no rows of Wilson loops"):
        loops_of(write_rows(tmp_path / "empty.csv", []))


def test_creutz_ratios_of_an_area_law():
    r = np.arange(1, 7)[:, None]
    sigma, perimeter, corner = 0.2, 0.35, 0.1
    grid = creutz_ratios(exact_loops(np.exp(corner - perimeter * (r + r.T) - sigma * r * r.T)))
    np.testing.assert_allclose(grid.value[1:, 1:], sigma, rtol=1e-12)
    assert grid.value[0, 0] == pytest.approx(sigma + 2 * perimeter - corner)  # -ln W(1, 1)
    assert (grid.error < 1e-8).all()


def test_effective_potential_of_one_exponential():
    t = np.arange(1, 6)
    v = potential(t.astype(float))
    grid = effective_potential_grid(effective_energies(exact_loops(np.exp(-v[:, None] * t))))
    np.testing.assert_allclose(grid.value, np.repeat(v[:, None], 4, axis=1), rtol=1e-12)
    assert grid.t.tolist() == [1, 2, 3, 4]


def test_errors_equal_the_jackknife():
    loops = synthetic_loops(np.random.default_rng(4), 400, 4, rho=0.0)
    ratio = effective_potential_grid(effective_energies(loops))
    expected = jackknife(loops.values, lambda w: np.log(w[:, :-1] / w[:, 1:]))
    np.testing.assert_allclose(ratio.error, expected, rtol=0.35)  # windows add noise
    assert np.mean(ratio.error / expected) == pytest.approx(1, abs=0.1)

    def creutz(w):
        return -np.log(w[1:, 1:] * w[:-1, :-1] / (w[1:, :-1] * w[:-1, 1:]))

    chi, expected = creutz_ratios(loops), jackknife(loops.values, creutz)
    assert np.mean(chi.error[1:, 1:] / expected) == pytest.approx(1, abs=0.1)
    true = potential(2.0) - potential(1.0)
    assert true > SIGMA
    assert abs(chi.value[1, 1] - true) < 4 * chi.error[1, 1]


def test_a_loop_that_is_not_positive_has_no_logarithm():
    mean = np.full((3, 3), 0.1)
    mean[2, 2] = -0.01
    grid = effective_potential_grid(effective_energies(exact_loops(mean)))
    assert np.isnan(grid.value[2, 1])
    assert np.isfinite(grid.value[:2]).all()


def test_too_little_for_errors():
    loops = exact_loops(np.full((3, 3), 0.1))
    one = PathLoops("100", 0, loops.sweeps[:1], loops.r, loops.t, loops.values[:1])
    for function, single in (
        (creutz_ratios, one),
        (effective_potential_grid, effective_energies(one)),
    ):
        with pytest.raises(GaugeError, match="Errors need at least two configurations"):
            function(single)
    short = PathLoops("100", 0, loops.sweeps, loops.r, loops.t[:1], loops.values[:, :, :1])
    energies = effective_energies(short)
    with pytest.raises(GaugeError, match="two values of t"):
        effective_potential_grid(energies)
    with pytest.raises(GaugeError, match="on axis"):
        creutz_ratios(PathLoops("110", 0, loops.sweeps, loops.r, loops.t, loops.values))


HEADER = {"observable": "wilson_loops", "group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}


def every(loops, step):
    """Return the loops whose t is a multiple of a step, at one level or between all."""
    part = slice(step - 1, None, step)
    return replace(loops, t=loops.t[part], values=loops.values[:, :, part])


def loops(samples=60, size=8, seed=3, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_the_effective_potential_is_the_mean_of_those_between(step):
    whole = loops()
    fine, coarse = effective_potential(whole), effective_potential(every(whole, step))
    for n in range(coarse.shape[2]):
        begin = step * (n + 1) - 1
        np.testing.assert_allclose(coarse[:, :, n], fine[:, :, begin : begin + step].mean(axis=2))


def test_all_t_are_multiples_and_bounds_are_the_next_ones_within():
    coarse = every(loops(400, 12, excited=0.05), 2)
    for point in fitted_series([coarse]).points:
        assert point.t_min % 2 == point.t_max % 2 == 0
        assert 2 <= point.t_min <= point.t_max <= 10
        assert abs(point.potential.value - potential(point.distance)) < 4 * point.error
    for bounds, ends in (((2, 4), (2, 4)), ((3, 6), (4, 6)), ((1, 7), (2, 6)), ((4, 4), (4, 4))):
        points = fitted_series([coarse], *bounds).points
        assert {point.t_max for point in points} == {ends[1]}
        assert min(point.t_min for point in points) >= ends[0]


@pytest.mark.parametrize("step", [2, 3])
def test_excited_states_are_taken_away_between_multiples(step):
    """At the first multiple, V(R, t) is higher by several errors."""
    coarse = every(loops(400, 8, excited=0.4, times=24, growth=0.1), step)
    raw = effective_energies(coarse).series[:, :, 0].mean(axis=0)
    for point, value in zip(fitted_series([coarse]).points, raw, strict=True):
        assert abs(point.potential.value - potential(point.distance)) < 3 * point.error
        assert value - potential(point.distance) > 4 * point.error


def test_one_multiple_is_too_few():
    with pytest.raises(GaugeError, match="has a single t"):
        fitted_series([every(loops(), 8)])


def test_what_needs_every_t_is_refused():
    for some in (every(loops(), 2), replace(loops(), r=np.arange(2, 10))):
        with pytest.raises(GaugeError, match="Creutz ratios need loops of all r and t from 1 on"):
            creutz_ratios(some)


def test_a_variational_analysis_of_multiples():
    matrices = every(synthetic_matrices(np.random.default_rng(0), 100, states=4), 2)
    energies = effective_energies(variational(matrices)[0])
    assert energies.t == range(2, 12, 2)
    for value, r in zip(energies.series[:, :, 0].mean(axis=0), matrices.r, strict=True):
        assert value == pytest.approx(potential(float(r)), abs=2e-3)


@pytest.mark.slow
def test_a_table_is_fitted_and_drawn(tmp_path):
    """With multihit, R = 1 on axis is missing as well."""
    whole = [loops(150, 10, path=path, seed=n) for n, path in enumerate(("100", "110"))]
    coarse = [every(path, 2) for path in whole]
    coarse[0] = replace(coarse[0], r=coarse[0].r[1:], values=coarse[0].values[:, 1:])
    header = {**HEADER, "t_step": "2", "multihit": "yes"}
    path = write_loops(tmp_path / "wilson_loops.csv", *coarse, header=header)
    table = read_loops(path)
    assert [(part.r[0], part.t_step) for part in all_loops(table)] == [(2, 2), (1, 2)]
    result = gauge_mc.fit("potential", tmp_path)
    assert result.potential.scales == static_potential(coarse).scales
    assert read_result(tmp_path / "potential.json").t_step == 2
    PLOTS["wilson-loops"].draw([tmp_path], tmp_path / "loops.pdf")
    assert (tmp_path / "loops.pdf").stat().st_size > 1000
    series = WilsonLoops.series(read_table(path), "w.csv")
    single = series["smearing=25,path=100,r=3"]
    assert (single.first, single.step) == (2, 2)
    np.testing.assert_allclose(single.samples, coarse[0].values[:, 1])
    with pytest.raises(GaugeError, match="Creutz ratios need"):
        gauge_mc.fit("creutz", tmp_path)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({}, "some t between 1 and 8"),
        ({"t_step": "4"}, "some t between 4 and 8"),
        ({"t_step": "x"}, "is damaged: t_step is 'x'"),
        ({"t_step": "0"}, "is damaged: t_step is '0'"),
        ({"t_step": "2", "multihit": "yes"}, "lack some r between 2 and 8"),
    ],
)
def test_incomplete_tables_are_refused(tmp_path, header, sentence):
    path = write_loops(tmp_path / "w.csv", every(loops(12), 2), header={**HEADER, **header})
    with pytest.raises(GaugeError, match=sentence):
        all_loops(read_loops(path))
