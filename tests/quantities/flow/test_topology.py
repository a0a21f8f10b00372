"""The distribution of the topological charge: known moments, coverage, cautions, and its fit."""

import dataclasses
import json
import math
import shlex

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.flow.scales import Reference
from gauge_mc.quantities.flow.topology import best_factor, topological_charge
from gauge_mc.quantities.potential.forms import HBAR_C
from tests.analysis.synthetic_flow import HEADER, TIMES, exact, integers, synthetic_flow
from tests.analysis.synthetic_loops import autoregressive
from tests.quantities.flow.test_scales import make
from tests.quantities.shown import shown


def flow_of(samples=400, seed=1, **options):
    return synthetic_flow(np.random.default_rng(seed), samples, **options)


def normal_moments(width):
    """<Q^2> and <Q^4> of the nearest integers to a normal variable."""
    q = np.arange(-60, 61)
    edges = [math.erf((one - 0.5) / (width * math.sqrt(2))) for one in np.arange(-60, 62)]
    weight = np.diff(edges) / 2
    return float(weight @ q**2), float(weight @ q**4.0)


@pytest.mark.parametrize("alpha", [1.0, 1.07, 1.1, 1.25])
@pytest.mark.parametrize("width", [0.6, 3.0, 8.0])
def test_the_factor_is_found(alpha, width):
    rng = np.random.default_rng(int(100 * alpha))
    true = integers(rng, 800, width)
    charges = true / alpha + 0.02 * rng.normal(size=800)
    found, deviation = best_factor(charges)
    assert found == pytest.approx(alpha, abs=0.003)
    assert deviation == pytest.approx(0.02 * alpha, rel=0.1)
    assert (np.rint(found * charges) == true).all()


def test_no_factor_is_better():
    charges = np.random.default_rng(3).normal(size=50)
    found, least = best_factor(charges)
    for alpha in np.linspace(1, 1.4, 20001):
        scaled = alpha * charges
        assert np.sqrt(np.mean((scaled - np.rint(scaled)) ** 2)) >= 0.999 * least
    assert 1 <= found <= 1.4
    assert best_factor(np.zeros(5)) == (1.0, 0.0)


def test_moments():
    flow = flow_of(alpha=1.2)
    found = topological_charge(flow, rounded=True, t=3.0)
    index = int(np.searchsorted(flow.t, 3.0))
    q = np.rint(1.2 * flow.columns["charge"][:, index])
    assert (found.mean.value, found.square.value) == pytest.approx((q.mean(), (q**2).mean()))
    second, fourth = (q**2).mean(), (q**4).mean()
    assert found.kurtosis.value == pytest.approx((fourth - 3 * second**2) / second)
    sites = 16**3 * 32
    assert found.susceptibility.value == pytest.approx(second / sites)
    assert found.susceptibility.error == pytest.approx(found.square.error / sites)
    assert found.susceptibility_t0.value == pytest.approx(second / sites * found.t0.value**2)
    assert (found.rounded, found.t, found.rule) == (True, 3.0, "as given")
    assert found.alpha == pytest.approx(1.2, abs=0.003)
    assert found.changes == np.count_nonzero(np.diff(q))
    plain = topological_charge(flow, t=3.0)
    raw = flow.columns["charge"][:, index]
    assert plain.square.value == pytest.approx((raw**2).mean())
    assert plain.alpha == found.alpha
    assert plain.fourth_root is None


def test_the_susceptibility_in_mev():
    scale = Reference(0.1669, 0.0014, "here")
    found = topological_charge(flow_of(), sqrt_t0=scale)
    expected = found.susceptibility_t0.value**0.25 * HBAR_C / 0.1669
    assert found.fourth_root.value == pytest.approx(expected)
    assert found.fourth_root_scale_error == pytest.approx(expected * 0.0014 / 0.1669)
    relative = found.susceptibility_t0.error / found.susceptibility_t0.value
    assert found.fourth_root.error == pytest.approx(expected * relative / 4)
    assert found.source == "here"


def test_the_flow_time():
    t0 = exact()[0]
    found = topological_charge(flow_of(noise=0.001))
    assert found.t == pytest.approx(math.ceil(10 * t0) / 10)
    assert "from t0 on" in found.rule
    short = topological_charge(flow_of(t=TIMES[:20]))
    assert (short.t, short.rule, short.t0, short.susceptibility_t0) == (
        1.9,
        "the last one",
        None,
        None,
    )
    assert any("t0 is not known: t²<E> is only" in one for one in short.cautions)
    for wanted, taken in ((0.3, 0.3), (0.31, 0.4), (4.0, 4.0), (0.0, 0.0)):
        assert topological_charge(flow_of(), t=wanted).t == taken


def test_admissibility():
    flow = flow_of()
    found = topological_charge(flow, t=2.0)
    peaks = flow.columns["s_max"][:, 20]
    assert (found.s_max, found.inadmissible) == (peaks.max(), np.mean(peaks >= 0.067))
    assert 0 < found.inadmissible < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "draw", "kurtosis"),
    [
        ("normal", lambda rng, n: 2 * rng.normal(size=n), 0.0),
        ("poisson", lambda rng, n: rng.poisson(1, n) - rng.poisson(1, n), 1.0),
        ("uniform", lambda rng, n: rng.uniform(-3, 3, n), -1.2 * 3),
    ],
)
def test_kurtosis_of_known_distributions(name, draw, kurtosis):
    rng, samples = np.random.default_rng(11), 40000
    t = np.linspace(0, 4, 9)
    flow = synthetic_flow(rng, samples, t, charges=draw(rng, samples), alpha=1.0, smear=0.0)
    found = topological_charge(flow, t=4.0)
    assert found.kurtosis.value == pytest.approx(kurtosis, abs=3 * found.kurtosis.error), name
    assert found.kurtosis.error < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replicas", "samples", "rho"),
    [
        (150, 400, 0.5),
        pytest.param(500, 400, 0.5, marks=pytest.mark.slow),
        pytest.param(1500, 400, 0.5, marks=pytest.mark.every),
        pytest.param(1500, 1000, 0.8, marks=pytest.mark.every),
    ],
)
def test_coverage_of_the_errors(replicas, samples, rho):
    rng, pulls = np.random.default_rng(17), []
    second, fourth = normal_moments(3.0)
    true = {"square": second, "kurtosis": fourth / second - 3 * second, "mean": 0.0}
    t = np.linspace(0, 4, 9)
    for _ in range(replicas):
        charges = integers(rng, samples, 3.0, rho)
        flow = synthetic_flow(rng, samples, t, charges=charges, smear=0.0)
        found = topological_charge(flow, t=4.0, rounded=True)
        pulls.append(
            [(getattr(found, k).value - x) / getattr(found, k).error for k, x in true.items()]
        )
    within = (np.abs(pulls) < 1).mean(axis=0)
    spread = math.sqrt(0.68 * 0.32 / replicas)
    assert (within > 0.66 - 2.5 * spread).all(), within
    assert (within < 0.76 + 2.5 * spread).all(), within


def test_a_frozen_charge_has_no_errors():
    charges = np.repeat([1.0, 2.0, 1.0], (100, 100, 200))
    found = topological_charge(flow_of(charges=charges))
    assert found.changes == 2
    for one in (found.mean, found.square, found.kurtosis, found.susceptibility):
        assert math.isnan(one.error)
        assert math.isnan(one.tau_int)
        assert math.isfinite(one.value)
    assert "Q changes 2 times in 400 configurations, too rarely" in found.cautions[0]
    nothing = topological_charge(flow_of(charges=np.zeros(400), smear=0.0), rounded=True, t=4.0)
    assert (nothing.square.value, nothing.changes) == (0.0, 0)
    assert math.isnan(nothing.kurtosis.value)


def test_a_charge_that_hardly_moves():
    slow = np.rint(4 * autoregressive(np.random.default_rng(2), 400, 1, 0.98)[:, 0])
    found = topological_charge(flow_of(charges=slow))
    assert any("τ_int of Q long" in one and "50 τ_int are needed" in one for one in found.cautions)
    assert not topological_charge(
        flow_of(2000, charges=integers(np.random.default_rng(2), 2000))
    ).cautions


def test_charges_that_are_no_integers():
    spread = np.random.default_rng(2).normal(size=400) * 3
    found = topological_charge(flow_of(charges=spread), rounded=True)
    assert any("rounding them is questionable" in one for one in found.cautions)
    assert topological_charge(flow_of(charges=spread)).deviation == found.deviation > 0.2


def test_a_small_volume():
    flow = flow_of()
    flow = dataclasses.replace(flow, lattice=type(flow.lattice)(8, 8, 8, 16))
    assert any("smoothing radius" in one for one in topological_charge(flow).cautions)


def test_a_longer_flow_is_advised_by_commands_that_can_be_pasted(tmp_path):
    """For each chain, with a table of its own, because that of another length is refused."""
    flow = synthetic_flow(np.random.default_rng(1), 20)
    runs = [tmp_path / name for name in ("one", "a b")]
    for run in runs:
        run.mkdir()
        (run / "run.toml").touch()
    several = dataclasses.replace(
        flow,
        sources=[run / "flow.csv" for run in runs],
        ensemble={**flow.ensemble, "flow": "zeuthen"},
    )
    lines = several.further(4.01).split("`")[1::2]
    for run, line in zip(runs, lines, strict=True):
        rest = ["--to", "4.1", "--flow", "zeuthen", "--output", f"{run}/flow_to_4.1.csv"]
        assert shlex.split(line) == ["gauge-mc", "measure", "flow", str(run), *rest]
    assert flow.further(8.0) == "measure the flow to t/a² = 8"
    for t in (8.1, math.inf):
        assert several.further(t).startswith("√(8t) is half of 16x16x16x32 at t/a² = 8, so that")


@pytest.mark.slow
def test_the_charge_is_written_and_shown(tmp_path):
    result = gauge_mc.fit("topology", make(tmp_path, 300))
    found, content = result.topology, json.loads((tmp_path / "topology.json").read_text())
    for name in ("mean", "square", "kurtosis", "susceptibility", "susceptibility_t0"):
        one = getattr(found, name)
        assert (content[name]["value"], content[name]["error"]) == (one.value, one.error)
        assert str(one) in shown(result)
    assert content["fourth_root_scale_error"] == found.fourth_root_scale_error > 0
    assert 100 < found.fourth_root.value < 300
    assert (content["charge"], content["rounded"]) == ("clover", False)
    assert (content["configurations"], content["updates"]) == (300, 10)
    assert content["ensemble"]["beta"] == HEADER["beta"]
    text = shown(result)
    for word in (f"t/a² = {found.t:g}", "arXiv:1503.05652", "0.067", str(found.t0), "1.1"):
        assert word in text
    assert "nan" not in text


@pytest.mark.slow
def test_options(tmp_path):
    make(tmp_path, 300)
    rounded = gauge_mc.fit("topology", tmp_path, round=True, t=2.0, charge="improved").topology
    assert (rounded.rounded, rounded.t, rounded.charge) == (True, 2.0, "improved")
    assert rounded.alpha == pytest.approx(1.0, abs=0.01)
    assert rounded.square.value * 300 == pytest.approx(np.rint(rounded.square.value * 300))
    scaled = gauge_mc.fit("topology", tmp_path, sqrt_t0=0.2, target=0.1, tree_level=True).topology
    assert scaled.fourth_root_scale_error == 0
    assert scaled.source == "given with --sqrt-t0"


def test_without_t0(tmp_path):
    result = gauge_mc.fit("topology", make(tmp_path, 300, t=TIMES[:15]))
    content = json.loads((tmp_path / "topology.json").read_text())
    assert (content["t"], content["t0"], content["fourth_root"]) == (1.4, None, None)
    assert "the last one" in shown(result)
    assert "t0 is not known" in shown(result)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"t": 9.0},
            GaugeError,
            "--t is 9, but the flow ends at t/a² = 4; √.8t. is half of 16x16x16x32 at t/a² = 8",
        ),
        ({"t": -1.0}, UsageError, "--t is -1; give a flow time between 0 and 4"),
        ({"charge": "wrong"}, UsageError, "--charge is 'wrong'; choose clover or improved"),
        ({"energy": "wrong"}, UsageError, "--energy is 'wrong'; choose clover"),
        ({"target": 0.0}, UsageError, "--target is 0; give a positive number"),
        ({"w0": 0.17}, UsageError, "--w0 is not an option of fit topology"),
    ],
)
def test_what_is_refused(tmp_path, options, error, sentence):
    make(tmp_path, 12)
    with pytest.raises(error, match=sentence):
        gauge_mc.fit("topology", tmp_path, **options)
    assert not (tmp_path / "topology.json").exists()
