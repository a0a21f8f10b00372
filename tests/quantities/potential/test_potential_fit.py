"""Fits of the static potential: JSON files, reports and figures."""

import io
import json
import sys
from dataclasses import asdict, replace
from hashlib import sha256

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits.files import FitOfOtherTablesError, exactly_of_tables
from gauge_mc.plots import PLOTS
from gauge_mc.plots.runs import noted_cautions
from gauge_mc.quantities.potential.fit import read_result
from gauge_mc.quantities.potential.plots import read_potential
from tests.analysis.synthetic_loops import (
    GAPS,
    potential,
    synthetic_loops,
    synthetic_matrices,
    write_loops,
    write_matrices,
)


def steady(samples=100, size=7, **options):
    return synthetic_loops(np.random.default_rng(0), samples, size, **options)


def table_of(folder, *loops, **options):
    return write_loops(folder / "wilson_loops.csv", *(loops or [steady(**options)]))


def printed(*parts):
    console = Console(width=200, file=io.StringIO())
    console.print(*parts)
    return console.file.getvalue()


@pytest.mark.parametrize("options", [{}, {"size": 3}, {"sigma": -0.02}])
def test_json_holds_everything(tmp_path, options):
    table_of(tmp_path, **options)
    result = gauge_mc.fit("potential", tmp_path)
    # NaN is equal to itself as text only, from Python 3.13 on
    assert repr(asdict(read_result(tmp_path / "potential.json"))) == repr(asdict(result.potential))
    content = json.loads((tmp_path / "potential.json").read_text())
    assert content["ensemble"]["beta"] == "2.5"
    assert ("r0" in content["scales"]) == (not options)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"observable": 1, "units": 2, "points": 3}'])
def test_damaged_json_ends_in_one_sentence(tmp_path, content):
    path = tmp_path / "potential.json"
    with pytest.raises(GaugeError, match="make it with `gauge-mc fit potential"):
        read_result(path)
    path.write_text(content)
    with pytest.raises(GaugeError, match="is damaged or not the result of a fit"):
        read_result(path)


def test_a_report_has_the_scales_and_at_most_three_sentences(tmp_path):
    table_of(tmp_path, samples=60)
    result = gauge_mc.fit("potential", tmp_path)
    table, *sentences = result.report()
    assert 2 <= len(sentences) <= 3
    assert all(words.endswith((".", "--all)")) for words in sentences)
    assert "60 configurations" in sentences[1]
    assert "Loops at smearing level 25" in sentences[0]
    assert result.potential.scales.keys() >= {"sigma", "r0", "spacing"}
    for name, scale in result.potential.scales.items():
        assert str(scale) in printed(table), name
    more = printed(*result.further_report())
    first = result.potential.points[0]
    for value in (first.potential.value, *result.potential.best.parameters[:0]):
        assert f"{value:.3f}" in more
    assert str(result.potential.force[0].force) in more
    assert more.count("(1,0,0)") > len(result.potential.points)  # with forces
    assert f"{first.chi2 / first.chi2_expected:.2g}" in more
    assert result.potential.best.form in more
    assert "nan" not in more


def test_further_cautions_are_counted_and_shown_with_all(tmp_path):
    loops = steady(12, 4)
    loops.values[:, 3, 0] *= np.random.default_rng(1).normal(size=12) * 20
    table_of(tmp_path, loops)
    result = gauge_mc.fit("potential", tmp_path)
    cautions = result.potential.cautions
    assert len(cautions) > 1
    assert result.report()[-1] == f"{cautions[0]} ({len(cautions) - 1} more with --all)"
    assert result.further_report()[3:] == cautions[1:]


def test_results_of_several_levels_do_not_overwrite_each_other(tmp_path):
    smeared = steady()
    table_of(tmp_path, replace(smeared, smearing=5, values=0.99 * smeared.values), smeared)
    for options in ({}, {"level": 5}):
        gauge_mc.fit("potential", tmp_path, **options)
        gauge_mc.fit("creutz", tmp_path, **options)
    names = sorted(path.name for path in tmp_path.glob("*.json"))
    assert names == ["creutz_25.json", "creutz_5.json", "potential_25.json", "potential_5.json"]
    assert read_result(tmp_path / "potential_5.json").levels == (5,)
    gauge_mc.fit("potential", tmp_path, output=tmp_path / "mine.json")
    assert read_result(tmp_path / "mine.json").levels == (25,)


def test_samples_are_enough_for_another_fit(tmp_path):
    h5py = pytest.importorskip("h5py")
    table_of(tmp_path, samples=400)
    result = gauge_mc.fit("potential", tmp_path, samples=True).potential
    with h5py.File(tmp_path / "potential.h5") as h5:
        r, v, covariance = (h5[name][:] for name in ("distance", "potential", "covariance"))
        means, series, error = (h5[name][:] for name in ("jackknife", "series", "error"))
        assert h5["path"].asstr()[:].tolist() == ["100"] * 7
        assert h5["systematic"][:].tolist() == [point.systematic for point in result.points]
        assert (h5.attrs["smearing"], h5.attrs["beta"]) == ("25", "2.5")
    assert v == pytest.approx([point.potential.value for point in result.points])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), error)
    np.testing.assert_allclose(means.mean(axis=0), v, rtol=1e-6)
    assert series.shape == (400, 7)
    jackknife = np.sqrt((len(means) - 1) * means.var(axis=0))
    np.testing.assert_allclose(jackknife, error, rtol=0.4)
    design = np.stack([np.ones_like(r), 1 / r, r], axis=1)
    weight = np.linalg.inv(covariance)
    again = np.linalg.solve(design.T @ weight @ design, design.T @ weight @ v)
    sigma = result.scales["sigma"]
    assert again[2] == pytest.approx(sigma.value.value, abs=2 * sigma.error)


def test_samples_need_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    table_of(tmp_path)
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[hdf5\]'"):
        gauge_mc.fit("potential", tmp_path, samples=True)
    assert not list(tmp_path.glob("potential.*"))


def test_skipped_updates_are_left_out(tmp_path):
    loops = steady(120)
    values = loops.values.copy()
    values[:20] *= 1.2  # not yet thermalised
    table_of(tmp_path, replace(loops, values=values))
    early = gauge_mc.fit("potential", tmp_path).potential
    assert any("leave them out with --skip" in one for one in early.cautions)
    late = gauge_mc.fit("potential", tmp_path, skip=240).potential
    assert (late.configurations, late.skip) == (96, 240)
    assert not any("--skip" in one for one in late.cautions)
    with pytest.raises(UsageError, match="--skip 1200 leaves nothing of"):
        gauge_mc.fit("potential", tmp_path, skip=1200)
    with pytest.raises(UsageError, match="--skip is -1"):
        gauge_mc.fit("creutz", tmp_path, skip=-1)


def test_a_table_with_correlations_has_a_variational_analysis_unless_a_level_is_named(tmp_path):
    write_matrices(tmp_path / "wilson_loops.csv", synthetic_matrices(np.random.default_rng(6), 200))
    result = gauge_mc.fit("potential", tmp_path)
    stored = read_result(tmp_path / "potential.json")
    assert repr(asdict(stored)) == repr(asdict(result.potential))
    assert stored.levels == (0, 5, 10, 25)
    for gap, points in ((0, stored.points), (GAPS[1], stored.excited)):
        assert len(points) == 4
        for point in points:
            pull = (point.potential.value - potential(point.distance) - gap) / point.error
            assert abs(pull) < 4
    assert "Variational analysis of smearing levels 0, 5, 10, 25" in result.report()[1]
    assert str(stored.excited[0].potential) in printed(*result.further_report())
    some = gauge_mc.fit("potential", tmp_path, levels="0,25").potential
    single = gauge_mc.fit("potential", tmp_path, level=10).potential
    assert (some.levels, single.levels) == ((0, 25), (10,))
    assert single.excited == ()
    errors = [fit.points[0].error for fit in (result.potential, single)]
    assert errors[0] < errors[1]  # excited states are the systematic error of a single level
    assert {path.name for path in tmp_path.glob("*.json")} == {
        "potential.json", "potential_0_25.json", "potential_10.json"
    }  # fmt: skip


@pytest.mark.slow
def test_from_the_chain_to_a_variational_analysis(tmp_path):
    """The ground state is that of the loops at one level, and excited states lie above it."""
    run = tmp_path / "run"
    gauge_mc.generate(
        beta=2.3, lattice="4x4x4x8", thermalize=30, configs=80, separation=5, format="none",
        measure="wilson-loops:5:iterations=0,2,6:correlations:off-axis", output=run,
        backend="cpu", threads=1, progress=False,
    )  # fmt: skip
    result = gauge_mc.fit("potential", run).potential
    single = gauge_mc.fit("potential", run, level=6).potential
    assert (result.levels, result.configurations) == ((0, 2, 6), 80)
    near = {(p.path, p.steps): p for p in single.points if p.distance < 2.5}
    excited = {(p.path, p.steps): p for p in result.excited}
    assert near.keys() >= {("100", 1), ("110", 1), ("111", 1), ("100", 2), ("210", 1)}
    for point in result.points:
        if other := near.get((point.path, point.steps)):
            assert abs(point.potential.value - other.potential.value) < 4 * other.error
    first = excited["100", 1]
    gap = first.potential.value - result.points[0].potential.value
    assert 2 * first.potential.error < gap < 3
    PLOTS["wilson-loops"].draw([run], tmp_path / "energies.png", levels="0,2,6")
    assert (tmp_path / "energies.png").stat().st_size > 5000


def test_what_a_variational_analysis_needs(tmp_path):
    table_of(tmp_path)
    with pytest.raises(GaugeError, match="needs the loops between all pairs of levels"):
        gauge_mc.fit("potential", tmp_path, levels="0,25")
    for options, message in (
        ({"levels": "25"}, "has a single level; give several"),
        ({"levels": "a,b"}, "give numbers, such as"),
        ({"levels": "0,25", "level": 25}, "exclude each other"),
    ):
        with pytest.raises(UsageError, match=message):
            gauge_mc.fit("potential", tmp_path, **options)


@pytest.mark.slow
def test_v_of_r_is_shown_where_nothing_can_be_fitted(tmp_path):
    table_of(tmp_path, size=3)
    result = gauge_mc.fit("potential", tmp_path)
    assert result.potential.scales == {}
    assert result.quoted() == []
    assert result.unquoted() == "V(R) is known at too few distances"
    assert "r₀ is not within the distances, which end at R = 3" in printed(*result.report())
    with pytest.raises(GaugeError, match=r"r0 of .* is not known"):
        PLOTS["scaling"].draw([tmp_path], tmp_path / "plot.png")
    for name in ("potential", "wilson-loops", "static-force"):
        PLOTS[name].draw([tmp_path], tmp_path / f"{name}.png")
    assert not (tmp_path / "plot.png").exists()


def test_a_result_with_what_was_left_out_can_be_drawn(tmp_path, sketched):
    table_of(tmp_path)
    gauge_mc.fit("potential", tmp_path, skip="auto")
    path = tmp_path / "potential.json"
    assert json.loads(path.read_text())["thermalisation"]
    whole = read_result(path)
    gauge_mc.fit("potential", tmp_path, skip=whole.skip)
    assert repr(asdict(read_result(path))) == repr(asdict(whole))
    gauge_mc.plot("potential", tmp_path, tmp_path / "figure.svg")


def drawn(name, run):
    """Draw a figure of a run; return its cautions about the file of a fit."""
    with noted_cautions() as found:
        assert PLOTS[name].draw([run], run / "figure.png") == []
    return [one.sentence for one in found if "potential.json" in one.sentence]


def first_of(loops, number):
    return replace(loops, sweeps=loops.sweeps[:number], values=loops.values[:number])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["potential", "wilson-loops"])
def test_a_fit_of_fewer_configurations_is_drawn_with_a_caution(tmp_path, sketched, name):
    table, loops = tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 50)
    write_loops(table, first_of(loops, 40))
    gauge_mc.fit("potential", tmp_path)
    assert drawn(name, tmp_path) == []
    table.unlink()
    write_loops(table, loops)
    (caution,) = drawn(name, tmp_path)
    assert "potential.json was made before the last rows of wilson_loops.csv; make it" in caution
    assert caution.endswith(f"again with `gauge-mc fit potential {tmp_path}`.")
    with exactly_of_tables(), pytest.raises(FitOfOtherTablesError, match="before the last rows"):
        drawn(name, tmp_path)
    gauge_mc.fit("potential", tmp_path)
    with exactly_of_tables():
        assert drawn(name, tmp_path) == []


@pytest.mark.slow
def test_a_fit_of_another_table_is_not_drawn(tmp_path, sketched):
    """The content decides, and neither the name nor the number of configurations."""
    table = tmp_path / "wilson_loops.csv"
    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    (stored,) = json.loads((tmp_path / "potential.json").read_text())["tables"]
    content = table.read_bytes().partition(b"# sha256")[0]
    assert stored["file"] == "wilson_loops.csv"
    assert (stored["size"], stored["sha256"]) == (len(content), sha256(content).hexdigest())
    table.rename(tmp_path / "other.csv")
    assert drawn("potential", tmp_path) == []
    (tmp_path / "other.csv").unlink()
    assert drawn("potential", tmp_path) == []  # the fit is enough
    write_loops(table, synthetic_loops(np.random.default_rng(2), 40))
    sentence = "was made from another table than wilson_loops.csv is now, so that it is not shown"
    with pytest.raises(FitOfOtherTablesError, match=sentence):
        drawn("potential", tmp_path)
    (caution,) = drawn("wilson-loops", tmp_path)  # without the plateaus
    assert sentence in caution


@pytest.mark.slow
def test_a_fit_of_an_earlier_version_does_not_say_of_which_table_it_is(tmp_path, sketched):
    table, file = tmp_path / "wilson_loops.csv", tmp_path / "potential.json"
    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    content = json.loads(file.read_text())
    del content["tables"]
    file.write_text(json.dumps(content))
    (caution,) = drawn("potential", tmp_path)
    assert "does not say whether it was made from the present wilson_loops.csv; make" in caution
    with exactly_of_tables(), pytest.raises(FitOfOtherTablesError, match="does not say whether"):
        drawn("potential", tmp_path)


@pytest.mark.slow
def test_a_result_is_chosen_by_name(tmp_path):
    matrices = synthetic_matrices(np.random.default_rng(1), 40, size=5)
    write_matrices(tmp_path / "wilson_loops.csv", matrices)
    gauge_mc.fit("potential", tmp_path, levels="0,25")
    assert read_potential(tmp_path).levels == (0, 25)
    gauge_mc.fit("potential", tmp_path, level=25)
    assert read_potential(tmp_path, "potential_25.json").levels == (25,)
    with pytest.raises(UsageError, match=r"choose one of potential_0_25\.json, potential_25\.json"):
        read_potential(tmp_path)
    for name, options in (
        ("wilson-loops", {"levels": "0,25"}),
        ("wilson-loops", {"level": 25}),
        ("static-force", {"result": "potential_0_25.json"}),
    ):
        file = tmp_path / "plot.png"
        assert PLOTS[name].draw([tmp_path], file, **options) == []
        assert file.stat().st_size > 8000
        file.unlink()
    with pytest.raises(UsageError, match=r"no loops along \(1,1,0\)"):
        PLOTS["wilson-loops"].draw([tmp_path], tmp_path / "plot.png", levels="0,25", path="110")
