"""Results of fits of the static potential: JSON files and reports."""

import io
import json
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots import PLOTS
from gauge_mc.quantities.potential.fits.potential import PotentialResult, read_result
from tests.analysis.synthetic_loops import (
    GAPS,
    SIGMA,
    potential,
    static_potential,
    synthetic_loops,
    synthetic_matrices,
    write_loops,
    write_matrices,
)


def steady(samples=100, **options):
    return synthetic_loops(np.random.default_rng(0), samples, 5, **options)


@pytest.mark.slow
def test_json_holds_everything(tmp_path):
    path = tmp_path / "potential.json"
    for sigma in (SIGMA, -0.02):  # the latter has no scale: null in the file
        result = static_potential([steady(sigma=sigma)], t_min=1, r_min=1)
        PotentialResult(result).write(path)
        assert repr(asdict(read_result(path))) == repr(asdict(result))  # nan equals nan
    assert json.loads(path.read_text())["free"]["fit"]["r0"]["value"] is None
    refused = static_potential([steady()], t_min=1, ensemble={"beta": "2.5"})
    PotentialResult(refused).write(path)
    assert json.loads(path.read_text())["free"] is None
    assert repr(asdict(read_result(path))) == repr(asdict(refused))


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"observable": 1, "units": 2, "points": 3}'])
def test_damaged_json_ends_in_one_sentence(tmp_path, content):
    path = tmp_path / "potential.json"
    with pytest.raises(GaugeError, match="make it with gauge-mc fit potential"):
        read_result(path)
    path.write_text(content)
    with pytest.raises(GaugeError, match="is damaged or not the result of a fit"):
        read_result(path)


def test_tables_show_the_results():
    result = static_potential([steady(60)], r_min=1)
    console = Console(width=200, file=io.StringIO())
    console.print(*PotentialResult(result).report())
    text = console.file.getvalue()
    shown = (result.free.fit.sigma, result.string.fit.r0, result.points[2].potential)
    for estimate in shown:
        assert str(estimate) in text
    assert "a (fm)" in text
    assert "60 configurations, 25 smearing iterations" in text
    assert "half of its error" in " ".join(text.split())  # how the plateaus were chosen
    assert "1 to 5" in text
    assert potential(1.0) == pytest.approx(result.points[0].potential.value, abs=0.02)


@pytest.mark.slow
def test_results_of_several_levels_do_not_overwrite_each_other(tmp_path):
    smeared = steady()
    thin = replace(smeared, smearing=5, values=0.99 * smeared.values)
    write_loops(tmp_path / "wilson_loops.csv", thin, smeared)
    for options in ({}, {"level": 5}):
        gauge_mc.fit("potential", tmp_path, t_min=1, **options)
        gauge_mc.fit("creutz", tmp_path, **options)
    names = sorted(one.name for one in tmp_path.glob("*.json"))
    assert names == ["creutz_25.json", "creutz_5.json", "potential_25.json", "potential_5.json"]
    assert read_result(tmp_path / "potential_5.json").smearing == 5
    gauge_mc.fit("potential", tmp_path, output=tmp_path / "mine.json", t_min=1)
    assert read_result(tmp_path / "mine.json").smearing == 25


def test_samples_are_enough_for_another_fit(tmp_path):
    h5py = pytest.importorskip("h5py")
    write_loops(tmp_path / "wilson_loops.csv", steady(400))
    found = gauge_mc.fit("potential", tmp_path, t_min=1, r_min=1, samples=True).potential
    with h5py.File(tmp_path / "potential.h5") as h5:
        r, v, covariance = (h5[name][:] for name in ("distance", "potential", "covariance"))
        means, series, error = (h5[name][:] for name in ("jackknife", "series", "error"))
        assert h5["path"].asstr()[:].tolist() == ["100"] * 5
        assert h5.attrs["smearing"] == "25"
        assert h5.attrs["beta"] == "2.5"
    assert v == pytest.approx([one.potential.value for one in found.points])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), error)
    np.testing.assert_allclose(means.mean(axis=0), v, rtol=1e-6)
    assert series.shape == (400, 5)
    jackknife = np.sqrt((len(means) - 1) * means.var(axis=0))
    np.testing.assert_allclose(jackknife, error, rtol=0.4)
    fit = found.free.fit
    used = (r >= fit.r_min) & (r <= fit.r_max)
    design = np.stack([np.ones_like(r), 1 / r, r], axis=1)[used]
    weight = np.linalg.inv(covariance[np.ix_(used, used)])
    again = np.linalg.solve(design.T @ weight @ design, design.T @ weight @ v[used])
    assert fit.correlated
    assert again[2] == pytest.approx(fit.sigma.value, abs=fit.sigma.error)


def test_samples_need_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    write_loops(tmp_path / "wilson_loops.csv", steady())
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[hdf5\]'"):
        gauge_mc.fit("potential", tmp_path, t_min=1, samples=True)
    assert not list(tmp_path.glob("potential.*"))


def test_skipped_updates_are_left_out(tmp_path):
    loops = steady(120)
    values = loops.values.copy()
    values[:20] *= 1.2  # not yet thermalised
    write_loops(tmp_path / "wilson_loops.csv", replace(loops, values=values))
    early = gauge_mc.fit("potential", tmp_path, t_min=1).potential
    assert any("leave them out with --skip 2" in one for one in early.cautions)
    late = gauge_mc.fit("potential", tmp_path, t_min=1, skip=240).potential
    assert (late.configurations, late.skip) == (96, 240)
    assert not any("--skip" in one for one in late.cautions)
    with pytest.raises(UsageError, match="--skip 1200 leaves nothing of"):
        gauge_mc.fit("potential", tmp_path, skip=1200)
    with pytest.raises(UsageError, match="--skip is -1"):
        gauge_mc.fit("creutz", tmp_path, skip=-1)


@pytest.mark.slow
def test_a_variational_analysis(tmp_path):
    matrices = synthetic_matrices(np.random.default_rng(6), 200)
    write_matrices(tmp_path / "wilson_loops.csv", matrices)
    for t0, words in (("half", "t0 = t/2"), ("2", "t0 = 2")):
        result = gauge_mc.fit("potential", tmp_path, levels="0,5,10,25", t0=t0, r_min=1)
        found = read_result(tmp_path / "potential_0_5_10_25.json")
        assert repr(asdict(found)) == repr(asdict(result.potential))
        assert found.levels == (0, 5, 10, 25)
        assert words in found.reference
        for gap, points in ((0, found.points), (GAPS[1], found.excited)):
            assert len(points) == 4
            for one in points:
                pull = (one.potential.value - potential(one.distance) - gap) / one.potential.error
                assert abs(pull) < 4
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report())
    text = console.file.getvalue()
    assert "variational analysis of 0, 5, 10, 25" in text
    assert str(found.excited[0].potential) in text
    one = gauge_mc.fit("potential", tmp_path, level=10, r_min=1, t_min=3).potential
    assert (one.smearing, one.levels) == (10, ())  # the loops with this level on both sides


@pytest.mark.slow
def test_from_the_chain_to_a_variational_analysis(tmp_path):
    """The ground state is that of the loops at one level, and excited states lie above it."""
    run = tmp_path / "run"
    gauge_mc.generate(
        beta=2.3, lattice="4x4x4x8", thermalize=30, configs=80, separation=5, format="none",
        measure="wilson-loops:5:iterations=0,2,6:correlations:off-axis", output=run,
        backend="cpu", threads=1, progress=False,
    )  # fmt: skip
    ranges = {"r_min": 1, "t_min": 2, "t_max": 2}
    result = gauge_mc.fit("potential", run, levels="0,2,6", t0="1", **ranges).potential
    single = gauge_mc.fit("potential", run, level=6, **ranges).potential
    assert result.levels == (0, 2, 6)
    assert result.configurations == 80
    near = {(one.path, one.steps): one.potential for one in single.points if one.distance < 2.5}
    excited = {(one.path, one.steps): one.potential for one in result.excited}
    assert near.keys() >= {("100", 1), ("110", 1), ("111", 1), ("100", 2), ("210", 1)}
    for one in result.points:
        key = one.path, one.steps
        if key in near:
            assert abs(one.potential.value - near[key].value) < 4 * near[key].error
    gap = excited["100", 1].value - next(iter(result.points)).potential.value
    assert 2 * excited["100", 1].error < gap < 3
    assert (run / "potential_0_2_6.json").exists()
    plot = tmp_path / "energies.png"
    PLOTS["wilson-loops"].draw([run], plot, levels="0,2,6", t0="1")
    assert plot.stat().st_size > 5000


def test_what_a_variational_analysis_needs(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", steady())
    with pytest.raises(GaugeError, match="needs the loops between all pairs of levels"):
        gauge_mc.fit("potential", tmp_path, levels="0,25")
    for options, message in (
        ({"levels": "25"}, "has 1 level; give 2 to 6"),
        ({"levels": "a,b"}, "give numbers, such as"),
        ({"levels": "0,25", "level": 25}, "exclude each other"),
        ({"t0": "3"}, "has no effect without --levels"),
        ({"coulomb": "mine"}, "choose continuum or lattice"),
    ):
        with pytest.raises(UsageError, match=message):
            gauge_mc.fit("potential", tmp_path, **options)


def test_results_of_earlier_versions_are_read(tmp_path):
    path = tmp_path / "potential.json"
    PotentialResult(static_potential([steady()], t_min=1, r_min=1)).write(path)
    content = json.loads(path.read_text())
    for name in ("nambu_goto", "force", "force_scales", "averaged", "levels", "left_out", "skip"):
        del content[name]
    for scan in (content["free"], content["string"]):
        del scan["window"]
        for fit in (scan["fit"], *scan["from_r"], *scan["to_r"]):
            for name in ("rc", "root_sigma", "form", "coulomb"):
                del fit[name]
    path.write_text(json.dumps(content))
    found = read_result(path)
    assert found.force_scales == {}
    assert np.isnan(found.free.fit.rc.value)


def test_more_columns_of_the_report():
    result = static_potential([steady(400)], t_min=1, r_min=1, average=True)
    console = Console(width=200, file=io.StringIO())
    shown = PotentialResult(result)
    console.print(*shown.further_report(), *shown.report())
    text = console.file.getvalue()
    for one in (result.averaged["sigma"].value, result.force[0].force, result.free.fit.root_sigma):
        assert str(one) in text
    assert "± range" in text
    assert "nan" not in text


@pytest.mark.slow
def test_v_of_r_is_shown_where_no_fit_can_be_trusted(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", steady())
    result = gauge_mc.fit("potential", tmp_path, t_min=1)
    assert result.potential.free is None
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report())
    text = " ".join(console.file.getvalue().split())
    assert str(result.potential.points[4].potential) in text
    assert "No string tension: V(R) is known at 4 distances from R = 2 on" in text
    assert "√σ" not in text
    with pytest.raises(GaugeError, match=r"r0 of .* is not known"):
        PLOTS["scaling"].draw([tmp_path], tmp_path / "plot.png")
    for name in ("potential", "wilson-loops", "static-force"):
        PLOTS[name].draw([tmp_path], tmp_path / f"{name}.png")
    assert not (tmp_path / "plot.png").exists()


@pytest.mark.slow
def test_a_result_with_what_was_left_out_can_be_drawn(tmp_path, sketched):
    write_loops(tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 60))
    gauge_mc.fit("potential", tmp_path, skip="auto")
    path = tmp_path / "potential.json"
    assert json.loads(path.read_text())["thermalisation"]
    whole = read_result(path)
    gauge_mc.fit("potential", tmp_path, skip=whole.skip)
    # NaN is equal to itself as text only, from Python 3.13 on
    assert str(asdict(read_result(path))) == str(asdict(whole))
    gauge_mc.plot("potential", tmp_path, tmp_path / "figure.svg")
