"""t0 and w0 of known curves, the coverage of their errors, their fit and their plot."""

import dataclasses
import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import COLOURS
from gauge_mc.quantities.flow.curves import FlowCurve, tree_level
from gauge_mc.quantities.flow.scales import Reference, flow_scales
from tests.analysis.synthetic_flow import HEADER, TIMES, curve, exact, synthetic_flow, write_flow
from tests.plots.test_plots import drawn_texts, pixels_near
from tests.quantities.shown import shown

UNEVEN = np.concatenate([np.arange(0, 1, 0.05), np.arange(1, 3, 0.125), np.arange(3, 4.1, 0.25)])


def flow_of(samples=20, seed=1, **options):
    return synthetic_flow(np.random.default_rng(seed), samples, **options)


@pytest.mark.parametrize("t", [TIMES, TIMES[1:], UNEVEN])
@pytest.mark.parametrize("target", [0.1, 0.3])
def test_scales_of_a_known_curve(t, target):
    found = flow_scales(flow_of(t=t, noise=0.0), target=target)
    t0, w0 = exact(target)
    assert abs(found.t0.value - t0) <= max(2 * found.t0_interpolation, 1e-12)
    assert abs(found.w0.value - w0) <= max(2 * found.w0_interpolation, 1e-12)
    assert found.t0_interpolation < 1e-4
    assert found.w0_interpolation < 1e-4
    assert (found.t0.error, found.t0.tau_int) == (pytest.approx(0, abs=1e-12), pytest.approx(0.5))
    assert found.radius.value == pytest.approx(math.sqrt(8 * found.t0.value) / 16)


def test_the_interpolation_error_is_not_underestimated():
    """On coarse flow times, where it can be seen."""
    for step in (0.2, 0.25, 0.4, 0.5):
        found = flow_scales(flow_of(t=np.arange(0, 4.01, step), noise=0.0))
        for name, true in zip(("t0", "w0"), exact(), strict=True):
            error = abs(getattr(found, name).value - true)
            claimed = getattr(found, f"{name}_interpolation")
            assert error < claimed < 2e-3


def test_the_derivative_is_that_of_the_scale():
    """The linearised series follows the scales of slightly different averages."""
    flow, change = flow_of(40), 1e-5
    for name in ("t0", "w0"):
        here = getattr(FlowCurve.of(flow, "clover"), name)(0.3)
        weight = np.ones(40)
        weight[7] += change
        energy = flow.columns["energy_clover"]
        moved = energy + change * (energy[7] - energy.mean(axis=0))
        other = dataclasses.replace(flow, columns={**flow.columns, "energy_clover": moved})
        there = getattr(FlowCurve.of(other, "clover"), name)(0.3)
        slope = (there.value - here.value) / change
        assert slope == pytest.approx(here.series[7] - here.value, rel=1e-3)
        assert here.series.mean() == pytest.approx(here.value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replicas", "samples", "rho"),
    [
        (250, 300, 0.5),
        pytest.param(600, 400, 0.5, marks=pytest.mark.slow),
        pytest.param(2000, 400, 0.5, marks=pytest.mark.every),
        pytest.param(2000, 1000, 0.8, marks=pytest.mark.every),
    ],
)
def test_coverage_of_the_errors(replicas, samples, rho):
    rng, pulls = np.random.default_rng(5), []
    t = np.arange(0, 4.01, 0.25)
    for _ in range(replicas):
        curves = FlowCurve.of(synthetic_flow(rng, samples, t, rho), "clover")
        found = curves.t0(0.3), curves.w0(0.3)
        pulls.append(
            [(a.value - true) / a.estimate.error for a, true in zip(found, exact(), strict=True)]
        )
    within = (np.abs(pulls) < 1).mean(axis=0)
    spread = math.sqrt(0.68 * 0.32 / replicas)
    assert (np.abs(within - 0.68) < 0.02 + 2.5 * spread).all()
    assert (np.abs(np.mean(pulls, axis=0)) < 0.05 + 2.5 / math.sqrt(replicas)).all()


def test_autocorrelation_times():
    found = flow_scales(flow_of(4000, rho=0.8))
    assert found.t0.tau_int == pytest.approx(4.5, abs=3 * found.t0.tau_int_error)
    assert (found.updates, found.configurations) == (10, 4000)
    assert not found.cautions


def test_the_lattice_spacing():
    flow = flow_of(200)
    found = flow_scales(
        flow, sqrt_t0=Reference(0.16, 0.002, "here"), w0=Reference(0.17, 0.0, "there")
    )
    a, root = found.spacing_t0, math.sqrt(found.t0.value)
    assert a.value.value == pytest.approx(0.16 / root)
    assert a.value.error == pytest.approx(0.16 / root * found.t0.error / (2 * found.t0.value))
    assert a.scale_error == pytest.approx(0.002 / root)
    assert (a.reference, a.reference_error, a.source) == (0.16, 0.002, "here")
    b = found.spacing_w0
    assert b.value.value == pytest.approx(0.17 / found.w0.value)
    assert b.value.error == pytest.approx(b.value.value * found.w0.error / found.w0.value)
    assert b.scale_error == 0
    assert flow_scales(flow).spacing_t0 is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wilson", "zeuthen"])
def test_the_tree_level_correction_divides_the_energy(kind):
    """A curve that has exactly the artefacts of tree level."""
    flow, t = flow_of(noise=0.0), TIMES[1:]
    factor = np.concatenate([[1], tree_level(t, 0.0, kind, (0.0, 1.0))])
    columns = {**flow.columns, "energy_clover": flow.columns["energy_clover"] * factor}
    flow = dataclasses.replace(flow, columns=columns, ensemble={**flow.ensemble, "flow": kind})
    found = flow_scales(flow, corrected=True)
    assert (found.t0.value, found.w0.value) == pytest.approx(exact(), rel=1e-6)
    assert found.tree_level
    assert abs(flow_scales(flow).t0.value - exact()[0]) > 0.02


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"action": "double"}, "correction for the action 'double' is not known; leave --tree"),
        ({"action": None}, "does not state the action and the flow.*leave --tree-level out"),
        ({"flow": None}, "does not state the action and the flow"),
        ({"flow": "stout"}, "flow 'stout' is not known, only those of symanzik, wilson and zeuth"),
    ],
)
def test_unknown_tree_level_corrections(facts, sentence):
    flow = flow_of()
    known = {key: value for key, value in {**flow.ensemble, **facts}.items() if value}
    with pytest.raises(GaugeError, match=sentence):
        flow_scales(dataclasses.replace(flow, ensemble=known), corrected=True)


def test_a_flow_that_is_too_short():
    short = flow_of(t=TIMES[:20])
    with pytest.raises(
        GaugeError,
        match=r"^t²<E> is only 0\.\d+ at t/a² = 1\.9, the end of the flow, and does not reach "
        r"0\.3; measure the flow to t/a² = 3\.4\.$",
    ):
        flow_scales(short)
    between = flow_of(t=TIMES[:30])
    found = flow_scales(between)
    assert math.isnan(found.w0.value)
    assert found.spacing_w0 is None
    assert "w0 is not known: t d/dt t²<E> is only" in found.cautions[0]
    assert found.t0.value == pytest.approx(exact()[0], rel=0.05)


def test_artefacts_at_short_times_are_not_taken_for_scales():
    flow = flow_of(noise=0.0)
    bump = 0.5 * np.exp(-(((flow.t - 0.3) / 0.1) ** 2)) / np.maximum(flow.t, 0.1) ** 2

    def with_bump(one, size):
        rough = {**one.columns, "energy_clover": one.columns["energy_clover"] + size * bump}
        return dataclasses.replace(one, columns=rough)

    assert flow_scales(with_bump(flow, 1.0)).t0.value == pytest.approx(exact()[0], rel=1e-6)
    short = flow_of(t=TIMES[:20], noise=0.0)
    bump = bump[:20]
    with pytest.raises(
        GaugeError, match=r"artefact of the lattice spacing or.*the flow to t/a² = 3.4"
    ):
        flow_scales(with_bump(short, 1.0))


def test_flow_times_that_are_too_few_or_too_late_are_refused():
    with pytest.raises(GaugeError, match="needs at least 8 flow times, but the table has 7; meas"):
        flow_scales(flow_of(t=TIMES[:7]))
    with pytest.raises(GaugeError, match=r"exceeds 0\.3 from the first flow time on; measure the"):
        flow_scales(flow_of(t=TIMES[30:]))


def test_cautions():
    few = flow_scales(flow_of(40, rho=0.8))
    assert any("50 τ_int are needed" in one for one in few.cautions)
    coarse = flow_scales(flow_of(4000, t=np.arange(0, 4.01, 0.5), noise=1e-4))
    assert any("interpolation error of w0" in one for one in coarse.cautions)
    small = flow_of(200)
    small = dataclasses.replace(small, lattice=type(small.lattice)(8, 8, 8, 16))
    assert any("smoothing radius is 0.59 times" in one for one in flow_scales(small).cautions)
    assert curve(exact()[0]) == pytest.approx(0.3)


def make(folder, samples=60, header=None, **options):
    flow = synthetic_flow(np.random.default_rng(4), samples, **options)
    write_flow(folder / "flow.csv", flow, header=header)
    return folder


def test_scales_are_written_and_shown(tmp_path):
    result = gauge_mc.fit("scale", make(tmp_path))
    found, content = result.scales, json.loads((tmp_path / "scale.json").read_text())
    assert (found.t0.value, found.w0.value) == pytest.approx(exact(), rel=0.02)
    for name in ("t0", "w0", "radius"):
        one = getattr(found, name)
        assert (content[name]["value"], content[name]["error"]) == (one.value, one.error)
        assert (content[name]["tau_int"], content[name]["samples"]) == (one.tau_int, 60)
    assert (content["target"], content["energy"], content["tree_level"]) == (0.3, "clover", False)
    assert (content["configurations"], content["updates"], content["t_max"]) == (60, 10, 4.0)
    assert content["ensemble"] == {key: HEADER[key] for key in HEADER if key != "observable"}
    value, error, source = GROUPS["su3"].sqrt_t0
    a = content["spacing_t0"]
    assert a["value"]["value"] == pytest.approx(value / math.sqrt(found.t0.value))
    assert a["scale_error"] == pytest.approx(error / math.sqrt(found.t0.value))
    assert (a["source"], content["spacing_w0"]) == (source, None)
    text = shown(result)
    for word in (str(found.t0), str(found.w0), str(found.spacing_t0.value), source, "10 updates"):
        assert word in text
    assert found.t0.format_tau() in text
    assert "nan" not in text


@pytest.mark.slow
def test_options(tmp_path):
    make(tmp_path)
    usual = gauge_mc.fit("scale", tmp_path).scales
    lower = gauge_mc.fit("scale", tmp_path, target=0.1)
    assert lower.scales.t0.value == pytest.approx(exact(0.1)[0], rel=0.02)
    assert lower.scales.spacing_t0 is None  # the reference belongs to 0.3
    assert "Give √t0 in fm with --sqrt-t0" in shown(lower)
    plaquette = gauge_mc.fit("scale", tmp_path, energy="plaquette").scales
    assert plaquette.t0.value < usual.t0.value
    corrected = gauge_mc.fit("scale", tmp_path, tree_level=True)
    assert corrected.scales.t0.value < usual.t0.value  # C < 1 for the clover
    assert "divided by its tree-level artefacts" in shown(corrected)
    given = gauge_mc.fit("scale", tmp_path, target=0.1, sqrt_t0=0.2, w0=0.17, w0_error=0.002)
    assert given.scales.spacing_t0.scale_error == 0
    assert given.scales.spacing_w0.reference_error == 0.002
    assert "w0 = 0.1700(20) fm, given with --w0" in shown(given)


def test_groups_without_a_reference(tmp_path):
    for group in ("su2", "su9"):
        make(tmp_path, header={**HEADER, "group": group})
        assert gauge_mc.fit("scale", tmp_path).scales.spacing_t0 is None


def test_an_unknown_w0(tmp_path):
    result = gauge_mc.fit("scale", make(tmp_path, t=TIMES[:30]), w0=0.17)
    content = json.loads((tmp_path / "scale.json").read_text())
    assert (content["w0"]["value"], content["spacing_w0"]) == (None, None)
    assert "unknown" in shown(result)
    assert "measure the flow to t/a²" in shown(result)
    assert "nan" not in shown(result)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": -1.0}, "--target is -1; give a positive number, such as 0.3"),
        ({"energy": "wrong"}, "--energy is 'wrong'; choose clover, plaquette or improved"),
        ({"sqrt_t0": 0.0}, "--sqrt-t0 is 0; give a positive length in fm"),
        ({"sqrt_t0": 0.1, "sqrt_t0_error": -1.0}, "--sqrt-t0-error is -1; give 0 or a positive"),
        ({"sqrt_t0_error": 0.1}, "--sqrt-t0-error has no effect without --sqrt-t0; give"),
        ({"w0": math.inf}, "--w0 is inf; give a number"),
        ({"w0_error": 0.1}, "--w0-error has no effect without --w0; give --w0 as well"),
        ({"charge": "clover"}, "--charge is not an option of fit scale"),
    ],
)
def test_options_that_are_refused(tmp_path, options, sentence):
    make(tmp_path, 12)
    with pytest.raises(UsageError, match=sentence):
        gauge_mc.fit("scale", tmp_path, **options)
    assert not (tmp_path / "scale.json").exists()


def test_runs_that_are_refused(tmp_path):
    with pytest.raises(GaugeError, match="There is no run in"):
        gauge_mc.fit("scale", tmp_path)
    with pytest.raises(GaugeError, match=r"measure the flow to t/a² = 3\.4"):
        gauge_mc.fit("scale", make(tmp_path, t=TIMES[:15]))
    assert not (tmp_path / "scale.json").exists()


@pytest.mark.slow
def test_the_flow_names_its_scales(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch, save=True)
    run, file = make(tmp_path), tmp_path / "flow.png"
    assert PLOTS["flow"].draw([run], file) == []
    for name in ("clover", "plaquette", "improved"):
        assert any(text.startswith(f"{name}: $t_0/a^2=2.") for text in texts)
        assert any(text.startswith(f"{name}: $w_0/a=1.7") for text in texts)
    assert "target 0.3" in texts
    assert any("Wilson flow" in text for text in texts)
    assert all(pixels_near(file, colour) > 200 for colour in COLOURS[:3])


@pytest.mark.slow
def test_a_short_flow_is_drawn_without_scales(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    run = make(tmp_path, t=TIMES[:15])
    PLOTS["flow"].draw([run], tmp_path / "flow.png", target=0.2)
    assert "clover: not reached" in texts
    assert "target 0.2" in texts


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_charge_that_is_always_zero(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    run = make(tmp_path, 20, charges=np.zeros(20), smear=0.0)
    PLOTS["topology"].draw([run], tmp_path / "topology.png", round=True)
    assert not any("normal" in text for text in texts)
    assert not any("nan" in text for text in texts)


def test_what_is_refused(tmp_path):
    file = tmp_path / "plot.png"
    for name in ("flow", "topology"):
        with pytest.raises(UsageError, match="one run at a time"):
            PLOTS[name].draw([tmp_path, tmp_path], file)
        with pytest.raises(GaugeError, match="There is no run in"):
            PLOTS[name].draw([tmp_path], file)
    make(tmp_path, 12)
    for name in ("flow", "topology"):
        with pytest.raises(UsageError, match="--target is 0; give a positive number"):
            PLOTS[name].draw([tmp_path], file, target=0.0)
    with pytest.raises(UsageError, match=r"let its name end in \.pdf"):
        PLOTS["flow"].draw([tmp_path], tmp_path / "plot.gif")
    assert not file.exists()


@pytest.mark.slow
@pytest.mark.parametrize("rounded", [False, True])
def test_the_charge(tmp_path, monkeypatch, rounded):
    texts = drawn_texts(monkeypatch, save=True)
    run, file = make(tmp_path, 200), tmp_path / "topology.png"
    PLOTS["topology"].draw([run], file, round=rounded, t=3.0)
    assert any(r"\langle Q^2\rangle=" in text and "updates" in text for text in texts)
    assert any("clover charge" in text and "= 3" in text for text in texts)
    assert ("$Q$ (rounded)" in texts) == rounded
    assert pixels_near(file, COLOURS[1]) > 100  # the normal distribution
