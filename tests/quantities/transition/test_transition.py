"""`fit transition` and `plot transition`: reading runs, report, JSON file, figure."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

import gauge_mc
from gauge_mc import action_density
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.groups import GROUPS
from gauge_mc.plots.drawing import plot
from gauge_mc.quantities.transition import results as infinite_volume
from gauge_mc.quantities.transition import thermal_runs
from gauge_mc.quantities.transition.thermal_runs import read_thermal_runs
from gauge_mc.updates import terms
from tests.calls import call, call_apart
from tests.quantities.shown import shown
from tests.quantities.transition.synthetic import CENTRE, JUMP, LATTICES, two_phase_chain

BETAS = (5.68, 5.69, 5.70, 5.71)


def write_run(folder, chain, extents, **header):
    """Write the tables of a run with the Wilson action; the action is counted from 6 per site."""
    folder.mkdir(parents=True)
    head = {"group": "su3", "action": "wilson", "beta": f"{chain.beta:.12g}"} | header
    head = {"lattice": str(extents)} | head
    plaquette = 1 - chain.action / (6 * extents.sites)
    rows = zip(chain.sweeps.tolist(), *[plaquette.tolist()] * 3, strict=True)
    names = ("sweep", "plaquette", "spatial", "temporal")
    write_table(folder / "plaquette.csv", {"observable": "plaquette", **head}, names, rows)
    loop = chain.loop
    columns = (loop.real.tolist(), loop.imag.tolist(), np.abs(loop).tolist())
    rows = zip(chain.sweeps.tolist(), *columns, strict=True)
    names = ("sweep", "re", "im", "abs")
    write_table(folder / "polyakov.csv", {"observable": "polyakov", **head}, names, rows)
    return folder


def write_study(folder, lattices=LATTICES, betas=BETAS, size=1500):
    rng = np.random.default_rng(5)
    for lattice in lattices:
        for beta in betas:
            chain = two_phase_chain(rng, beta, lattice, size)
            write_run(folder / f"b{beta}_{lattice}", chain, lattice)
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("study"))


@pytest.mark.slow
def test_the_transition_is_written_and_shown(study):
    result = gauge_mc.fit("transition", study, bootstrap=40)
    found, text = result.found, shown(result)
    content = read_fit(study / "transition.json")
    assert [one["lattice"] for one in content["volumes"]] == [str(one) for one in LATTICES]
    assert content["critical"][0]["method"] == "peak of χ"
    best = found.critical[0].beta
    assert abs(best.value - CENTRE) < 4 * best.error < 0.04
    assert content["critical"][0]["beta"].value == best.value
    for one in found.volumes:
        assert abs(one.jump.value - JUMP) < 5 * one.jump.error + 0.05 * JUMP
        assert str(one.beta_peak) in text
        assert [run.beta for run in one.runs] == list(BETAS)
        for run in one.runs:
            assert sum(run.sectors) == pytest.approx(1)
            assert run.tunnelling > 10
            assert run.tunnelling_time == pytest.approx(1500 / run.tunnelling, rel=1e-3)
            assert f"{run.tunnelling_time:.0f}" in text
        assert all(0.05 < run.overlap < 0.5 for run in one.runs[:-1])
    assert f"σ_I / T_c³ = {found.volumes[-1].interface} on {LATTICES[-1]}" in text
    # -d ln a / d beta of hep-lat/9711003 at beta = 5.7 is 2.3, and N_t^4 = 256.
    grown, split = found.latent_heats
    assert split.value.value == pytest.approx(256 * found.volumes[-1].jump.value / 2.3, rel=0.1)
    exact = JUMP * split.value.value / found.volumes[-1].jump.value
    assert abs(grown.value.value - exact) < 2.5 * grown.value.error < 0.2 * exact
    assert grown.points == len(LATTICES)
    assert str(grown.value) in text
    tension = found.temperatures[0]
    assert tension.length == "1/√σ"
    assert tension.value == pytest.approx(0.63, abs=0.02)  # Boyd et al. have 0.630(5) at N_t = 4
    for word in ("3 of a transition of first order", "Latent heat", "T_c/√σ", "hep-lat/9711003"):
        assert word in text
    assert "nan" not in text


@pytest.mark.slow
def test_parts_are_chosen_by_options(study, tmp_path):
    one = gauge_mc.fit("transition", study, bootstrap=5, skip=500, output=tmp_path / "x.json")
    assert one.found.volumes[0].runs[0].measurements == 1000
    assert json.loads((tmp_path / "x.json").read_text())["extent"] == 4
    with pytest.raises(GaugeError, match="no run with Polyakov loops"):
        gauge_mc.fit("transition", study, nt=6)
    with pytest.raises(UsageError, match="bootstrap"):
        gauge_mc.fit("transition", study, bootstrap=1)
    with pytest.raises(UsageError, match="leaves nothing"):
        gauge_mc.fit("transition", study, skip=5000)


def test_a_single_volume_is_not_extrapolated(tmp_path):
    write_study(tmp_path, LATTICES[:1], size=600)
    result = gauge_mc.fit("transition", tmp_path, bootstrap=10)
    assert result.found.critical == []
    assert result.found.exponent is None
    assert "needs two volumes" in shown(result)
    assert result.found.temperatures[0].error > 0


def test_a_fit_and_its_plot_share_cautions_about_what_enters(tmp_path, sketched):
    """The modulus of the Polyakov loop does, and its real part does not."""
    rng, lattice = np.random.default_rng(6), LATTICES[0]
    for number, beta in enumerate(BETAS):
        chain = two_phase_chain(rng, beta, lattice, 900)
        if number == 3:
            chain.loop[:] = np.abs(chain.loop)
        chain.loop[:180] *= (1, 3, 3, -1)[number]
        write_run(tmp_path / f"run{number}", chain, lattice)
    result = gauge_mc.fit("transition", tmp_path, bootstrap=5)
    found = [one for one in result.cautions if one.kind == "thermalisation"]
    runs = [str(tmp_path / f"run{number}") for number in (1, 2, 3)]
    entering = {one.run: one.column for one in found if one.enters}
    assert entering == dict.fromkeys(runs[:2], "abs in polyakov.csv")
    assert ("re in polyakov.csv", runs[2]) in [(one.column, one.run) for one in found]
    words = "polyakov.csv: The measurements up to update "
    (said,) = [one for one in result.whole_report() if words in str(one)]
    assert said.startswith("abs in ")
    assert said.endswith("auto. (1 more with --json)")
    drawn = json.loads(call("plot", "transition", tmp_path, "--bootstrap", 5, "--json")[0])
    assert drawn["cautions"] == json.loads(json.dumps(result.document()["cautions"]))
    assert "needs two volumes" in drawn["cautions"][0]["sentence"]
    assert said in call_apart("plot", "transition", tmp_path, "--bootstrap", 5)[1]


@pytest.mark.slow
def test_crossings_that_are_not_seen_between_the_runs_are_named(tmp_path):
    write_study(tmp_path / "short", LATTICES[:2], (5.69, 5.70), size=60)
    found = gauge_mc.fit("transition", tmp_path / "short", bootstrap=60).found
    (crossing,) = found.crossings
    assert math.isfinite(crossing.beta.value)
    volumes = read_thermal_runs(tmp_path / "short").volumes(60)
    at = infinite_volume.crossing(*volumes)
    assert at.open
    expected = (
        f"The cumulants of {LATTICES[0]} and {LATTICES[1]} agree within their errors from "
        f"β = {at.begin:.6g} to {at.end:.6g}, where one of the curves ends, so that the error of "
        "their crossing may be larger: make the runs longer, or add runs beyond them."
    )
    assert expected in found.cautions
    assert crossing.beta.error >= max(at.end - at.samples[0], at.samples[0] - at.begin) * 0.999
    write_study(tmp_path / "longer", LATTICES[1:], (5.69, 5.70), size=200)
    longer = gauge_mc.fit("transition", tmp_path / "longer", bootstrap=60).found
    assert not any("agree within" in one for one in longer.cautions)


def test_missing_runs_are_named(tmp_path):
    write_study(tmp_path, LATTICES[2:], (5.40, 5.41, 5.56), size=400)
    text = shown(gauge_mc.fit("transition", tmp_path, bootstrap=5))
    assert "at β = 5.41 and 5.56 hardly overlap" in text
    assert "add a run at β = 5.485" in text
    assert "nan" not in text
    curves = joined(plot("transition", tmp_path, bootstrap=5).axes[0])
    (begin, left), (right, end) = (one.get_xdata()[[0, -1]] for one in curves)
    assert begin < 5.40 < 5.41 < left < 5.42 < 5.54 < right < 5.56 < end


@pytest.mark.parametrize(
    ("betas", "words"), [((5.66, 5.67), "larger than 5.67"), ((5.73, 5.74), "smaller than 5.73")]
)
def test_a_missing_peak_is_named(tmp_path, betas, words):
    write_study(tmp_path, LATTICES[2:], betas, size=800)
    text = shown(gauge_mc.fit("transition", tmp_path, bootstrap=5))
    assert f"no peak between the runs: add runs at β {words}" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"action": "iwasaki"}, "has action iwasaki, but other runs beside it have wilson"),
        ({"group": "su2"}, "has group su2"),
        ({"lattice": "8x8x8x6"}, r"several temporal extents, 4, 6; choose one with --nt"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(tmp_path, change, sentence):
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    other = Lattice.parse(change.get("lattice", str(lattice)))
    write_run(tmp_path / "a", two_phase_chain(rng, 5.69, lattice, 50), lattice)
    write_run(tmp_path / "b", two_phase_chain(rng, 5.70, other, 50), other, **change)
    with pytest.raises(GaugeError, match=sentence):
        gauge_mc.fit("transition", tmp_path)


@pytest.mark.parametrize(
    ("words", "fit", "sentence"),
    [
        ("", "", "have different charges, between which .*; move the runs that belong together"),
        ("heavy charges", "peaks", "different heavy charges, .* with `gauge-mc fit peaks "),
    ],
)
def test_runs_with_different_terms_are_refused(tmp_path, monkeypatch, words, fit, sentence):
    """Those of an option of hybrid Monte Carlo that an extension or another package declares."""
    kinds = {"charges": SimpleNamespace(words=words, compared_by=fit)}
    for module in (thermal_runs, terms):
        monkeypatch.setattr(module, "ACTION_TERMS", kinds)
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    for name, more in (("a", {}), ("b", {"charges": "e=1"})):
        write_run(tmp_path / name, two_phase_chain(rng, 5.69, lattice, 50), lattice, **more)
    with pytest.raises(GaugeError, match=sentence):
        gauge_mc.fit("transition", tmp_path)


def test_runs_must_have_measured_their_action(tmp_path):
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    chain = two_phase_chain(rng, 5.69, lattice, 50)
    write_run(tmp_path / "a", chain, lattice, action="iwasaki")
    with pytest.raises(GaugeError, match=r"has not measured rectangles, which .* iwasaki needs"):
        gauge_mc.fit("transition", tmp_path)
    (tmp_path / "a" / "plaquette.csv").unlink()
    words = r"has not measured plaquette.* with the loops of its action in --measure"
    with pytest.raises(GaugeError, match=words):
        gauge_mc.fit("transition", tmp_path)
    with pytest.raises(UsageError, match="needs the folder of a scan"):
        gauge_mc.fit("transition", tmp_path / "a" / "polyakov.csv")


def test_only_updates_at_which_all_was_measured_count(tmp_path):
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    chain = two_phase_chain(rng, 5.69, lattice, 100)
    run = write_run(tmp_path / "a", chain, lattice)
    every = 2
    plaquette = 1 - chain.action[::every] / (6 * lattice.sites)
    rows = zip(chain.sweeps[::every].tolist(), *[plaquette.tolist()] * 3, strict=True)
    head = {"observable": "plaquette", "group": "su3", "beta": "5.69"}
    names = ("sweep", "plaquette", "spatial", "temporal")
    write_table(run / "plaquette.csv", head, names, list(rows))
    found = read_thermal_runs(tmp_path).chains[lattice][0]
    np.testing.assert_array_equal(found.sweeps, chain.sweeps[::every])
    np.testing.assert_allclose(found.action, chain.action[::every], rtol=1e-10)
    np.testing.assert_array_equal(found.loop, chain.loop[::every])
    with pytest.raises(GaugeError, match="together at 15 updates after update 70, and 20 are"):
        read_thermal_runs(tmp_path, 70)


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "options"),
    [
        ("wilson", {}),
        pytest.param("iwasaki", {"anisotropy": 1.5}, marks=SLOW),
        pytest.param("wilson", {"anisotropy": 0.7}, marks=SLOW),
        pytest.param("rectangle", {"c1": -0.05}, marks=SLOW),
        pytest.param("luscher-weisz", {"u0": 0.9}, marks=SLOW),
    ],
)
def test_the_action_of_a_run_is_that_of_its_field(tmp_path, action, options):
    """From the tables of a run, against the action of the field at every update."""

    def density(field):
        return action_density(field, 6.5, action, **options)

    gauge_mc.generate(
        group="su3",
        lattice="4x4x4x4",
        beta=6.5,
        action=action,
        **options,
        **SHORT,
        measure="plaquette,rectangles,parallelograms,polyakov",
        output=tmp_path / "run",
        observables=[density],
    )
    expected = read_table(tmp_path / "run" / "density.csv")["value"]
    found = read_thermal_runs(tmp_path).chains[Lattice.parse("4x4x4x4")][0]
    np.testing.assert_allclose(6.5 * found.action / 256, expected, rtol=1e-10)


SHORT = {
    "format": "none",
    "thermalize": 2,
    "configs": 20,
    "separation": 1,
    "devices": "cpu",
    "precision": "double",
    "progress": False,
}
"""Settings of the runs whose action is compared."""


def joined(axes):
    """The curves of a frame, without points."""
    return [one for one in axes.lines if one.get_linestyle() == "-"]


@pytest.mark.slow
def test_reweighted_runs_agree_with_a_direct_one(tmp_path):
    """SU(2) at N_t = 2: the runs at both sides, reweighted to beta = 1.86, and a run there."""
    for beta in (1.83, 1.86, 1.89):
        gauge_mc.generate(
            group="su2",
            lattice="6x6x6x2",
            beta=beta,
            format="none",
            thermalize=200,
            configs=1,
            separation=4000,
            devices="cpu",
            progress=False,
            seed=round(1000 * beta),
            output=tmp_path / ("direct" if beta == 1.86 else "sides") / str(beta),
        )
    direct = read_thermal_runs(tmp_path / "direct").volumes(10)[0].chains[0]
    volume = read_thermal_runs(tmp_path / "sides").volumes(60)[0]
    every = volume.reweighting
    modulus = np.abs(direct.loop)
    values = np.array([*every.values[:3], every.measured + every.offset])
    samples = every.averages(np.array([1.86]), values)[:, :, 0]
    errors = samples[1:].std(axis=0, ddof=1)
    series = (modulus, modulus**2, modulus**4, direct.action)
    for value, error, one in zip(samples[0], errors, series, strict=True):
        own = estimate(one)
        assert abs(value - own.value) < 4 * np.hypot(error, own.error)
        assert error < 2 * own.error
    assert volume.colours == GROUPS["su2"].colours
