"""`fit continuum`: products of quoted numbers, their covariance, and the averaged limit."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.continuum import Extrapolation, correlation, powers_of
from tests.analysis.synthetic_flow import HEADER, exact, synthetic_flow, write_flow
from tests.analysis.synthetic_loops import autoregressive


@pytest.mark.parametrize(
    ("text", "powers"),
    [
        ("r₀/a (B = −π/12)", {"r0": 1, "a": -1}),
        ("√σ a", {"sigma": 0.5, "a": 1}),
        ("t0/a²", {"t0": 1, "a": -2}),
        ("χ_t t0²", {"chi_t": 1, "t0": 2}),
        ("sqrt(t0)/r0", {"t0": 0.5, "r0": -1}),
        ("r0 * sqrt_sigma", {"r0": 1, "sigma": 0.5}),
        ("√(8 t0)/L", None),
        ("sqrt(t0/r0)", None),
        ("r0*sqrt(t0", None),
    ],
)
def test_powers_of_products(text, powers):
    assert powers_of(text) == powers


def covariance(errors, x_errors=0.0, shared=0.2, rho=0.0):
    """Covariance matrix of ordinates that share a part of their variance, and of abscissae."""
    n = errors.size
    own, other = np.diag(errors**2), np.full(n, x_errors) ** 2
    own = (1 - shared) * own + shared * np.outer(errors, errors)
    mixed = np.diag(rho * errors * np.sqrt(other))
    return np.block([[own, mixed], [mixed, np.diag(other)]])


def test_average_is_that_of_the_models_by_their_criterion():
    x, y = np.array([0.01, 0.02, 0.03, 0.05]), np.array([1.02, 1.05, 1.04, 1.12])
    total = covariance(np.array([0.02, 0.01, 0.015, 0.01]))
    found = Extrapolation.of(x, y, total, (2,))
    limits, criteria = [], []
    for order, cut in ((0, 0), (1, 0), (1, 1), (2, 0)):
        n, design = 4 - cut, np.vander(x[: 4 - cut], order + 1, increasing=True)
        weight = np.linalg.inv(total[:n, :n])
        fit = np.linalg.solve(design.T @ weight @ design, design.T @ weight @ y[:n])
        rest = y[:n] - design @ fit
        limits.append(fit[0])
        criteria.append(rest @ weight @ rest + 2 * (order + 1) + 2 * cut)
    weights = np.exp(-np.array(criteria) / 2)
    weights /= weights.sum()
    assert sorted(found.weights) == pytest.approx(sorted(weights))
    value, _, spread = found.at(np.zeros(1))
    assert value[0] == pytest.approx(weights @ limits)
    assert spread[0] == pytest.approx(math.sqrt(weights @ (limits - value[0]) ** 2))


def test_error_is_what_shifts_of_points_and_abscissae_cause():
    x, y = np.array([0.25, 0.5, 1.0]), np.array([1.3, 1.5, 2.0])
    total = covariance(np.full(3, 0.01), 0.005, rho=0.6)
    found = Extrapolation.of(x, y, total, (2,))
    draws = np.random.default_rng(1).multivariate_normal(np.concatenate([y, x]), total, 2000)
    line = max(found.models, key=lambda one: one.points - 10 * (len(one.powers) != 1))
    slopes = [np.linalg.lstsq(np.vander(row[3:], 2), row[:3], rcond=None)[0][1] for row in draws]
    assert line.error == pytest.approx(np.std(slopes), rel=0.1)


@pytest.mark.parametrize("artefacts", [(5, 1), (10, 3)])
def test_total_error_covers(artefacts):
    """Random artefacts a² and a⁴ of the given sizes in errors, at 3 to 5 spacings."""
    rng, pulls, ratios = np.random.default_rng(5), [], []
    for points in (3, 4, 5):
        x = np.linspace(0.5, 1, points) ** 2
        total = covariance(np.full(points, 0.01), 0.005, rho=-0.5)
        for _ in range(300):
            first, second = 0.01 * np.array(artefacts) * rng.normal(size=2)
            truth = 1 + first * x + second * x**2
            draw = rng.multivariate_normal(np.concatenate([truth, x]), total)
            found = Extrapolation.of(draw[points:], draw[:points], total, (2,))
            value, error, spread = (float(one[0]) for one in found.at(np.zeros(1)))
            pulls.append((value - 1) / math.hypot(error, spread))
            best = next(one.error for one in found.models if len(one.powers) == 2)
            ratios.append(math.hypot(error, spread) / best)
    pulls = np.abs(pulls)
    assert np.mean(pulls < 1) == pytest.approx(0.68, abs=0.04)
    assert np.mean(pulls < 2) == pytest.approx(0.95, abs=0.03)
    assert np.mean(ratios) < 1.5


def test_correlation_of_means_on_common_configurations():
    """Every configuration has one number, and every third the other, which is half the same."""
    rng, size = np.random.default_rng(2), 300
    updates = np.arange(size)
    pairs = [autoregressive(rng, size, 2, 0.3).T for _ in range(2000)]
    pairs = [(first, (0.8 * first + 0.6 * other)[::3]) for first, other in pairs]
    truth = np.corrcoef([[series.mean() for series in pair] for pair in pairs], rowvar=False)[0, 1]
    guesses = [correlation((updates, one), (updates[::3], other)) for one, other in pairs[:200]]
    assert np.mean(guesses) == pytest.approx(truth, abs=0.04)
    first, other = pairs[0][0], pairs[1][0]
    assert correlation((updates, first), (updates + size, other)) == 0.0


def test_chains_are_told_apart():
    updates, series = np.tile(np.arange(20), 2), np.random.default_rng(3).normal(size=40)
    assert correlation((updates, series), (updates, series)) == pytest.approx(1)
    assert abs(correlation((updates, series), (updates, np.roll(series, 20)))) < 0.9


def write_runs(folder):
    """Write runs with t0/a² in the ratio 1 : 2 : 4, and fit their scales."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 4):
        flow, run = synthetic_flow(rng, 100), folder / f"r{size}"
        scaled = {name: values / size**2 for name, values in flow.columns.items()}
        run.mkdir()
        header = {**HEADER, "beta": f"{5.7 + size / 10:g}"}
        write_flow(run / "flow.csv", replace(flow, t=size * flow.t, columns=scaled), header=header)
        gauge_mc.fit("scale", run)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return write_runs(tmp_path_factory.mktemp("runs"))


def test_histories_are_those_of_the_quoted_numbers(runs):
    result = gauge_mc.fit("scale", runs[0])
    for number in result.quoted()[:2]:
        updates, series = result.histories()[number.name]
        assert (updates.size, np.mean(series)) == (100, pytest.approx(number.value))
        assert estimate(series).error == pytest.approx(number.error)


def test_limit_of_runs(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = gauge_mc.fit("continuum", runs, of="w0/√t₀").found
    t0, w0 = exact()
    assert abs(found.value - w0 / math.sqrt(t0)) < 3 * math.hypot(found.error, found.spread)
    content = json.loads((tmp_path / "continuum_w0_t0.json").read_text())
    assert content["result"][0]["error"] == found.error
    assert (content["abscissa"], content["points"][0]["beta"]) == ("a²/t0", "6.1")
    assert (found.artefacts, found.cautions) == ((2,), [])
    point, scales = found.points[-1], gauge_mc.fit("scale", runs[0])
    (_, time), (_, width) = scales.histories().values()
    direct = point.y * (1 + (width / width.mean() - 1) - (time / time.mean() - 1) / 2)
    systematic = math.hypot(
        *(one.systematic / one.value / n for n, one in zip((2, 1), scales.quoted(), strict=False))
    )
    expected = math.hypot(estimate(direct).error, point.y * systematic)
    assert point.y_error == pytest.approx(expected, rel=0.15)
    gauge_mc.plot("continuum", runs, output=tmp_path / "continuum.pdf", of="w0/√t₀")
    assert (tmp_path / "continuum.pdf").stat().st_size > 1000


def test_numbers_are_those_of_all_runs_with_both_errors(runs, tmp_path):
    """One run also quotes the product itself, which the others do not."""
    copies = [shutil.copytree(run, tmp_path / run.name) for run in runs]
    before = gauge_mc.fit("continuum", copies, tmp_path / "before.json", of="w0/√t₀").found.points
    file = copies[0] / "scale.json"
    content = json.loads(file.read_text())
    width = content["result"][1]
    added = 0.1 * width["value"]
    width["systematic"] = math.hypot(width["systematic"], added)
    content["result"].insert(0, {**width, "name": "w0/√t0"})
    file.write_text(json.dumps(content))
    after = gauge_mc.fit("continuum", copies, tmp_path / "after.json", of="w0/√t₀").found.points
    assert after[-1].numbers == ["t0/a²", "w0/a"]
    assert after[-1].y_error == pytest.approx(math.hypot(before[-1].y_error, 0.1 * after[-1].y))
    assert after[:-1] == before[:-1]


def test_two_runs_say_what_they_cannot_tell(runs, tmp_path):
    result = gauge_mc.fit("continuum", runs[:2], tmp_path / "two.json", of="w0/√t₀")
    assert "Two points" in " ".join(result.found.cautions)


@pytest.mark.parametrize(
    ("chosen", "of", "message"),
    [
        (slice(3), None, "The runs quote t0/a² and w0/a"),
        (slice(3), "r0*sqrt(t0", "give a product of symbols"),
        (slice(3), "sqrt(t0)/r0", "r1 has no result of a fit that quotes r0"),
        (slice(3), "t0*w0", "is not a dimensionless product"),
        (slice(1), "w0/√t₀", "two lattice spacings"),
    ],
)
def test_refusals(runs, chosen, of, message):
    with pytest.raises(GaugeError, match=message):
        gauge_mc.fit("continuum", runs[chosen], of=of)


def test_other_definitions_and_actions_are_told(runs, tmp_path):
    run = tmp_path / "other"
    run.mkdir()
    table = (runs[0] / "flow.csv").read_text()
    (run / "flow.csv").write_text(table)
    gauge_mc.fit("scale", run, target=0.2)
    result = gauge_mc.fit("continuum", [*runs[1:], run], tmp_path / "x.json", of="w0/√t₀")
    assert "target = 0.2" in " ".join(result.found.cautions)
    changed = table.replace("action: wilson", "action: symanzik").partition("# sha256")[0]
    (run / "flow.csv").write_text(changed)
    with pytest.raises(GaugeError, match="from another table than"):
        gauge_mc.fit("continuum", [*runs[1:], run], of="w0/√t₀")
    gauge_mc.fit("scale", run)
    with pytest.raises(UsageError, match="different actions"):
        gauge_mc.fit("continuum", [*runs[1:], run], of="w0/√t₀")


@pytest.mark.parametrize(("name", "product"), [("T_c √t₀", "T_c*sqrt(t0)"), ("T_c/√σ", "T_c/√σ")])
def test_temperatures_are_extrapolated_in_the_extent_along_t(tmp_path, monkeypatch, name, product):
    """T_c a is 1 / N_t, without an error."""
    runs = []
    for extent in (4, 6, 8):
        runs.append(tmp_path / f"nt{extent}")
        runs[-1].mkdir()
        number = {"name": name, "value": 0.24 + 0.3 / extent**2, "error": 1e-3, "systematic": None}
        content = {"observable": "the transition", "units": "none", "extent": extent}
        content |= {"ensemble": {"group": "su3", "action": "wilson"}}
        content |= {"result": [{**number, "unit": ""}]}
        (runs[-1] / "transition.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    found = gauge_mc.fit("continuum", runs, of=product).found
    assert (found.abscissa, found.cautions) == ("a² T_c^2", [])
    assert [point.x for point in found.points] == pytest.approx([1 / 64, 1 / 36, 1 / 16])
    assert not any(point.x_error for point in found.points)
    assert found.value == pytest.approx(0.24, abs=2e-3)
