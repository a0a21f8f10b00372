"""Wilson loops of multilevel averages, whose t are multiples of the thickness of the slabs."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.analysis.gevp import variational
from gauge_mc.quantities.potential.analysis.loop_ratios import creutz_ratios, effective_potential
from gauge_mc.quantities.potential.analysis.loop_tables import read_loops
from gauge_mc.quantities.potential.analysis.plateau_search import find_plateaus
from gauge_mc.quantities.potential.fits.potential import read_result
from gauge_mc.quantities.potential.observables.wilson_loops import WilsonLoops
from tests.analysis.synthetic_loops import (
    SIGMA,
    potential,
    static_potential,
    synthetic_loops,
    synthetic_matrices,
    write_loops,
)

HEADER = {"observable": "wilson_loops", "group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}


def every(loops, step):
    """Return the loops whose t is a multiple of a step."""
    return replace(loops, t=loops.t[step - 1 :: step], values=loops.values[..., step - 1 :: step])


def loops(samples=60, size=8, seed=3, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_the_effective_potential_is_the_mean_of_those_between(step):
    whole = loops()
    fine, coarse = effective_potential(whole), effective_potential(every(whole, step))
    for n in range(coarse.shape[2]):
        begin = step * (n + 1) - 1
        np.testing.assert_allclose(coarse[:, :, n], fine[:, :, begin : begin + step].mean(axis=2))


@pytest.mark.slow
@pytest.mark.parametrize("average", [False, True])
def test_plateaus_of_multiples(average):
    """The means of V(R, t) do not see the step, and plateaus begin and end at multiples."""
    whole = loops(400, 12, excited=0.05)
    coarse = every(whole, 2)
    points = find_plateaus([coarse], average=average).points
    assert len(points) >= 8
    for one in points:
        assert one.t_min % 2 == one.t_max % 2 == 0
        assert 2 <= one.t_min < one.t_max <= 10
        truth = potential(one.distance)
        assert abs(one.potential.value - truth) < 4 * one.potential.error + 0.003
    rule = find_plateaus([coarse]).rule
    assert "W(R, t + 2)" in rule
    assert "W(R, t + 1)" in find_plateaus([whole]).rule
    for bounds, t in (((2, 4), (2, 4)), ((3, 6), (4, 6)), ((1, 7), (2, 6)), ((4, 4), (4, 4))):
        chosen = find_plateaus([coarse], *bounds, average=False).points[0]
        assert (chosen.t_min, chosen.t_max) == t


@pytest.mark.parametrize("step", [2, 3])
def test_excited_states_are_seen_between_multiples(step):
    """Plateaus begin later than the first multiple, and a chosen one is shifted as stated."""
    coarse = every(loops(400, 8, excited=0.4, times=24, growth=0.1), step)
    for one in find_plateaus([coarse]).points:
        assert one.t_min % step == 0
        assert one.t_min > step
        error = one.potential.error
        assert abs(one.potential.value - potential(one.distance)) < 4 * error
        assert 0 < one.shift <= 0.5 * error
    for one in find_plateaus([coarse], t_min=step).points:
        shifted = one.potential.value - potential(one.distance)
        assert one.contaminated
        assert shifted > 4 * one.potential.error
        assert one.shift == pytest.approx(shifted, rel=0.25, abs=4 * one.potential.error)


def test_a_plateau_of_one_t_is_one_value():
    coarse = every(loops(), 2)
    chosen = find_plateaus([coarse], 4, 4).points[2]
    assert chosen.potential.value == pytest.approx(effective_potential(coarse)[:, 2, 1].mean())


@pytest.mark.parametrize(("t_min", "t_max"), [(3, 3), (1, 1), (8, 8), (0, 4), (6, 4)])
def test_bounds_without_a_multiple_are_refused(t_min, t_max):
    with pytest.raises(UsageError, match=r"with loops up to t = 8, choose .* multiples of 2"):
        find_plateaus([every(loops(), 2)], t_min, t_max)


def test_one_multiple_is_too_few():
    with pytest.raises(GaugeError, match="at least two values of t"):
        find_plateaus([every(loops(), 8)])


def test_what_needs_every_t_is_refused():
    with pytest.raises(GaugeError, match="Creutz ratios need loops of all r and t from 1 on"):
        creutz_ratios(every(loops(), 2))
    with pytest.raises(GaugeError, match="Creutz ratios need loops of all r and t from 1 on"):
        creutz_ratios(replace(loops(), r=np.arange(2, 10)))
    with pytest.raises(UsageError, match="A variational analysis needs loops of all t"):
        variational(every_matrix(synthetic_matrices(np.random.default_rng(0), 20), 2))


def every_matrix(matrices, step):
    part = slice(step - 1, None, step)
    return replace(matrices, t=matrices.t[part], values=matrices.values[:, :, part])


def without_neighbours(one):
    return replace(one, r=one.r[1:], values=one.values[:, 1:])


@pytest.mark.slow
def test_a_table_is_fitted_and_drawn(tmp_path):
    """With multihit, R = 1 on axis is missing as well."""
    whole = [loops(150, 10, path=path, seed=n) for n, path in enumerate(("100", "110"))]
    coarse = [without_neighbours(every(whole[0], 2)), every(whole[1], 2)]
    header = {**HEADER, "t_step": "2", "multihit": "yes"}
    path = write_loops(tmp_path / "wilson_loops.csv", *coarse, header=header)
    found, _ = read_loops(path)
    assert [one.r[0] for one in found] == [2, 1]
    assert [one.t_step for one in found] == [2, 2]
    result = gauge_mc.fit("potential", tmp_path)
    expected = static_potential(coarse)
    assert result.potential.free.fit.sigma.value == pytest.approx(expected.free.fit.sigma.value)
    assert abs(expected.free.fit.sigma.value - SIGMA) < 4 * expected.free.fit.sigma.error
    assert read_result(tmp_path / "potential.json").t_step == 2
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report())
    assert "ln [W(R, t) / W(R, t + 2)] / 2" in console.file.getvalue()
    gauge_mc.plots.PLOTS["wilson-loops"].draw([tmp_path], tmp_path / "loops.pdf")
    assert (tmp_path / "loops.pdf").stat().st_size > 1000
    series = WilsonLoops.series(gauge_mc.files.table.read_table(path), "w.csv")
    one = series["smearing=25,path=100,r=3"]
    assert (one.first, one.step) == (2, 2)
    np.testing.assert_allclose(one.samples, coarse[0].values[:, 1])
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
        read_loops(path)
