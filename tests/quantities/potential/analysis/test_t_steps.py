"""Wilson loops of multilevel averages, whose t are multiples of the thickness of the slabs."""

from dataclasses import replace

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_table
from gauge_mc.plots import PLOTS
from gauge_mc.quantities.potential.fit import read_result
from gauge_mc.quantities.potential.loop_tables import (
    all_loops,
    creutz_ratios,
    effective_energies,
    effective_potential,
    read_loops,
)
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.quantities.potential.static_potential import variational
from tests.analysis.synthetic_loops import (
    fitted_series,
    potential,
    static_potential,
    synthetic_loops,
    synthetic_matrices,
    write_loops,
)

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
