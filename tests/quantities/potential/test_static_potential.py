"""V(R), effective potentials and Creutz ratios of loops and of matrices of loops that are known."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import gauge_mc
from docs.studies.potential_coverage import TRUTH, cover, study
from gauge_mc.analysis.table_series import series_of
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table, write_table
from gauge_mc.plots import PLOTS
from gauge_mc.quantities.potential.fit import read_result
from gauge_mc.quantities.potential.forms import StaticGluons
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
from gauge_mc.quantities.potential.static_potential import potential_of, variational
from tests.analysis.synthetic_loops import (
    FINE,
    GAPS,
    LEVELS,
    SIGMA,
    A,
    B,
    fine_matrices,
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


def loops_with_mean(mean):
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
    grid = creutz_ratios(loops_with_mean(np.exp(corner - perimeter * (r + r.T) - sigma * r * r.T)))
    np.testing.assert_allclose(grid.value[1:, 1:], sigma, rtol=1e-12)
    assert grid.value[0, 0] == pytest.approx(sigma + 2 * perimeter - corner)  # -ln W(1, 1)
    assert (grid.error < 1e-8).all()


def test_effective_potential_of_one_exponential():
    t = np.arange(1, 6)
    v = potential(t.astype(float))
    grid = effective_potential_grid(effective_energies(loops_with_mean(np.exp(-v[:, None] * t))))
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
    grid = effective_potential_grid(effective_energies(loops_with_mean(mean)))
    assert np.isnan(grid.value[2, 1])
    assert np.isfinite(grid.value[:2]).all()


def test_too_little_for_errors():
    loops = loops_with_mean(np.full((3, 3), 0.1))
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


def steady(samples=100, size=6, seed=0, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


def exact_loops(energy, size=10, path="100"):
    """Return loops of a potential, a function of the number of steps, with almost no noise."""
    steps, t = np.arange(1, size + 1), np.arange(1, 6)
    mean = np.exp(-np.outer([energy(int(n)) for n in steps], t))
    noise = 1e-7 * np.random.default_rng(1).normal(size=(50, size, 5))
    return PathLoops(path, 25, 10 * np.arange(1, 51), steps, t, mean * (1 + noise))


def within(results, ensembles, least):
    """Assert that errors are neither too small, beyond three deviations of chance, nor too large.

    Systematic errors may be larger than what one sees of them, with a variational analysis by 1.7.
    """
    one, two, size = cover(results)
    chance = [3 * math.sqrt(p * (1 - p) / ensembles) for p in (0.683, 0.954)]
    assert 0.683 - chance[0] < one < 0.97
    assert two > 0.954 - chance[1]
    assert len(results) > least * ensembles
    assert size < 1.8


@pytest.mark.slow
@pytest.mark.parametrize("single", [True, False])
def test_errors_contain_the_truth(single):
    """Loops of a string with excited states, with noise that is correlated in R, T and time."""
    results = study(40, 100, 2.0, single)
    for name, least in (("V", 6), *((name, 0.9) for name in TRUTH)):
        within(results[name], 40, least)


def test_errors_of_a_few_ensembles_contain_the_truth():
    """The same within seconds, of loops with one state and no artefacts: V(R) and sqrt(sigma)."""
    rng, deviations = np.random.default_rng(3), []
    for _ in range(40):
        for point in fitted_series([synthetic_loops(rng, 60, 3)]).points:
            truth = potential(point.distance)
            deviations.append((point.potential.value - truth, point.error))
    within(np.array(deviations), 40, 2.9)


def test_a_potential_with_artefacts_is_exact():
    gluons = StaticGluons()
    loops = exact_loops(lambda n: float(A + B / gluons.potential_distance("100", n) + SIGMA * n))
    result = static_potential([loops])
    truth = {"sigma": SIGMA, "root_sigma": math.sqrt(SIGMA)}
    truth["spacing"] = math.sqrt(SIGMA) * 197.3269804 / 440
    truth |= {n: math.sqrt((f + B) / SIGMA) for n, f in (("r0", 1.65), ("r1", 1), ("rc", 0.65))}
    assert result.scales.keys() == truth.keys()
    for name, value in truth.items():
        assert result.scales[name].value.value == pytest.approx(value, rel=1e-4)
    smooth = potential(result.distances)
    np.testing.assert_allclose(result.continuum, smooth, atol=1e-5)
    assert [point.steps for point in result.force] == list(range(2, 11))
    for point in result.force:
        assert point.force.value == pytest.approx(SIGMA - B / point.distance**2, rel=1e-5)
        assert point.scaled.value == pytest.approx(point.distance**2 * point.force.value)
    assert not [caution for caution in result.cautions if "poor" in caution or "r₀" in caution]


def test_paths_are_fitted_together_and_have_forces_of_their_own():
    length = {"100": 1.0, "110": math.sqrt(2), "111": math.sqrt(3)}
    sizes = {"100": 7, "110": 5, "111": 4}
    gluons = StaticGluons()

    def level(path, n):
        return float(A + B / gluons.potential_distance(path, n) + SIGMA * n * length[path])

    loops = [
        exact_loops(lambda n, path=path: level(path, n), size, path) for path, size in sizes.items()
    ]
    result = static_potential(loops)
    assert len(result.points) == 16
    assert result.distances.tolist() == sorted(result.distances)
    assert result.best.points > 7
    assert result.scales["sigma"].value.value == pytest.approx(SIGMA, rel=1e-3)
    for point in result.force:
        change = level(point.path, point.steps) - level(point.path, point.steps - 1)
        assert point.force.value == pytest.approx(change / length[point.path], rel=1e-4)


def test_bounds_of_t_and_r_are_those_of_all_fits():
    loops = steady(200, 8)
    result = static_potential([loops], r_min=2, r_max=7, t_min=2, t_max=4)
    assert {point.t_max for point in result.points} == {4}
    assert {point.t_min for point in result.points} <= {2, 3, 4}
    assert len(result.points) == 8
    assert all(2 <= fit.r_min < fit.r_max <= 7 for fit in result.fits)
    (single,) = {(p.t_min, p.t_max) for p in fitted_series([loops], 3, 3).points}
    assert single == (3, 3)
    value = fitted_series([loops], 3, 3).points[1].potential.value
    mean = loops.values.mean(axis=0)
    assert value == pytest.approx(math.log(mean[1, 2] / mean[1, 3]))


def test_distances_that_are_too_noisy_are_named():
    loops = steady(200, 8)
    loops.values[:, 5:, 0] *= np.random.default_rng(1).normal(size=(200, 3)) * 20
    result = static_potential([loops])
    assert result.left_out == ("(1,0,0) R = 6", "(1,0,0) R = 7", "(1,0,0) R = 8")
    assert f"Distances that are too noisy: {', '.join(result.left_out)}." in result.cautions


def test_a_wrong_form_is_called_poor():
    loops = steady(400, 9, noise=1e-4)
    bends = np.exp(-0.02 * np.outer((-1.0) ** loops.r, loops.t))
    result = static_potential([replace(loops, values=loops.values * bends)], r_min=2)
    assert result.best.p_value < 1e-3
    assert any(words.startswith("The most probable fit is poor (p = ") for words in result.cautions)
    assert not any("poor" in words for words in static_potential([loops], r_min=2).cautions)


def test_gaps_between_configurations_are_allowed():
    loops = steady(120, 7)
    rest = np.delete(np.arange(120), [5, 6, 77])
    gappy = replace(loops, sweeps=loops.sweeps[rest], values=loops.values[rest])
    whole, fewer = (static_potential([one]).scales["sigma"].value for one in (loops, gappy))
    assert fewer.samples == 117
    assert fewer.value == pytest.approx(whole.value, abs=whole.error)
    assert fewer.error == pytest.approx(whole.error, rel=0.3)


def test_too_little_or_unfit_data_end_in_one_sentence():
    loops = steady()
    few = replace(loops, sweeps=loops.sweeps[:9], values=loops.values[:9])
    still = replace(loops, values=np.repeat(loops.values[:1], 100, axis=0))
    short = replace(loops, t=loops.t[:1], values=loops.values[:, :, :1])
    noisy = replace(loops, values=loops.values + np.random.default_rng(1).normal(size=(100, 6, 6)))
    cases = [
        (few, {}, "at least 10 configurations; measure more than these 9"),
        (still, {}, "do not fluctuate"),
        (short, {}, "has a single t"),
        (noisy, {"t_min": 4}, "too noisy"),
    ]
    for data, options, message in cases:
        with pytest.raises(GaugeError, match=message):
            fitted_series([data], **options)
    for bounds in ({"t_min": 6}, {"t_max": 0}, {"t_min": 4, "t_max": 3}):
        with pytest.raises(UsageError, match="choose t_min <= t_max between 1 and 5"):
            fitted_series([loops], **bounds)


def test_larger_distances_expect_the_exponential_of_smaller_ones():
    """At R = 1 loops fall by 0.02, and at R = 2 and t > 1 they are noise."""
    loops = exact_loops(lambda n: 0.3 * n, 2)
    t, noise = loops.t, np.random.default_rng(2).normal(size=(50, 5)).cumsum(axis=1)
    values = loops.values * (1 + 0.05 * np.exp(-0.7 * t))
    values[:, 1] *= 1 + 0.03 * (noise - noise.mean(axis=0))
    points = fitted_series([replace(loops, values=values)]).points
    alone = replace(loops, r=loops.r[1:], values=values[:, 1:])
    (expected,) = fitted_series([alone]).points
    assert points[1].systematic > 1.15 * expected.systematic > 0


def exact(levels, **options):
    """Return matrices of some levels without noise but for its last digits."""
    whole = synthetic_matrices(np.random.default_rng(1), 12, noise=1e-12, **options)
    values = whole.values[..., levels, :][..., levels]
    return replace(whole, values=values, levels=tuple(LEVELS[n] for n in levels))


def truth(matrices, state):
    return potential(matrices.distances)[:, None] + GAPS[state]


@pytest.mark.parametrize("levels", [[0, 3], [0, 1, 3], [0, 1, 2, 3]])
def test_as_many_states_as_levels_are_exact(levels):
    matrices = exact(levels, states=len(levels), times=6)
    states = variational(matrices)
    assert len(states) == len(levels)
    for number, state in enumerate(states):
        energies = effective_energies(state).series.mean(axis=0)
        np.testing.assert_allclose(energies - truth(matrices, number), 0, atol=2e-5)
        assert state.levels == matrices.levels
        np.testing.assert_allclose(state.values.mean(axis=0)[:, 0], 1, rtol=1e-5)


def test_levels_that_say_nothing_new_are_dropped():
    """A third level that is the sum of two others makes C(t0) singular."""
    two = exact([0, 3], states=2, times=6)
    mix = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]])
    singular = replace(two, values=mix @ two.values @ mix.T, levels=(0, 5, 25))
    states = variational(singular)
    assert len(states) == 2
    for number, state in enumerate(states):
        energies = effective_energies(state).series.mean(axis=0)
        np.testing.assert_allclose(energies - truth(two, number), 0, atol=2e-5)


def test_more_levels_bring_energies_nearer_from_above():
    deviations = []
    for levels in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]):
        matrices = exact(levels)
        ground = effective_energies(variational(matrices)[0]).series.mean(axis=0)
        assert (np.diff(ground, axis=1) < 1e-8).all()
        deviations.append((ground - truth(matrices, 0))[0, 2])
    pairs = pairwise(deviations)
    assert all(before > 3 * after > 0 for before, after in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "trials", [pytest.param(12, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.every)]
)
def test_ground_states_of_a_fine_lattice(trials):
    """Two thirds of V(R) of SU(3) at beta = 6.2 are within one error, which is of a per mille."""
    rng, pulls, errors = np.random.default_rng(8), [], []
    for _ in range(trials):
        matrices = fine_matrices(rng, 300, 0.05)
        energies = [effective_energies(variational(matrices)[0])]
        for point in potential_of(energies, matrices.replicas, single=False).points:
            pulls.append((point.potential.value - potential(point.distance, **FINE)) / point.error)
            errors.append(point.error / point.potential.value)
    assert np.median(errors) < 2e-3
    assert 0.683 - 3 * (0.22 / trials) ** 0.5 < np.mean(np.abs(pulls) < 1)
    assert np.mean(np.abs(pulls) < 2) > 0.9 - 0.6 / trials**0.5
    assert abs(np.mean(pulls)) < 0.8


def test_what_cannot_be_analysed():
    matrices = exact([0, 3])
    with pytest.raises(UsageError, match="needs loops of at least two t; measure larger t"):
        variational(replace(matrices, t=matrices.t[:1], values=matrices.values[:, :, :1]))
    matrices.values[:, 1, 0, 1, 1] *= -1
    with pytest.raises(GaugeError, match="shortest t are not positive"):
        variational(matrices)
