"""Equations of state by the integral method and by the flow: analysis, fits and plots."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import gauge_mc
from gauge_mc.actions.loops import SCALES, Wilson
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.cli.document import plain
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.groups import GROUPS
from gauge_mc.plots.drawing import plot
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS
from gauge_mc.quantities.thermodynamics.field_correlators import (
    S_1,
    S_2,
    alphas,
    first_coefficient,
    running_coupling,
)
from gauge_mc.quantities.thermodynamics.integral import (
    MeasuredLength,
    action_difference,
    cautions_of,
    equation_of_state,
    ideal_pressure,
    ideal_pressure_on_lattice,
    integration_weights,
    known_scale,
    measured_scale,
    read_bulk_runs,
)
from gauge_mc.quantities.thermodynamics.observables import THERMAL_COLUMNS
from tests.quantities.shown import shown

BETA = np.linspace(5.6, 6.4, 33)
EXTENT = 4
CENTRE, WIDTH, HEIGHT = 5.85, 0.08, 1.6


def pressure(beta):
    """p/T^4 of the model, which is 0 at the first coupling."""
    rise = np.tanh((beta - CENTRE) / WIDTH) - math.tanh((BETA[0] - CENTRE) / WIDTH)
    return HEIGHT * rise / 2


def slope(beta):
    """Its derivative by beta."""
    return HEIGHT / (2 * WIDTH * np.cosh((beta - CENTRE) / WIDTH) ** 2)


def logarithm(beta):
    """ln(length / a) of the model."""
    x = beta - 6
    return 1.1 + 1.7 * x - 0.6 * x**2 + 0.2 * x**3


def rate(beta):
    """-d ln(a) / d beta of the model."""
    x = beta - 6
    return 1.7 - 1.2 * x + 0.6 * x**2


def differences(rng=None, error=1e-5, beta=BETA):
    """Return couplings and differences of the model, with independent errors or without."""
    noise = np.zeros((2, beta.size)) if rng is None else rng.normal(size=(2, beta.size)) * error
    values = slope(beta) / EXTENT**4 + noise[0] - noise[1]
    return beta, [Estimate(v, math.sqrt(2) * error, 0.5, 0.0, 200) for v in values.tolist()]


def model_scale(beta=BETA, error=0.0):
    """Return the scale of the model, from lengths that are exact."""
    at = np.linspace(5.5, 6.5, 7)
    points = [MeasuredLength(b, math.exp(logarithm(b)), error or 1e-6) for b in at.tolist()]
    return measured_scale("l", "the model", points, beta)


def test_the_known_equation_of_state_is_found():
    exact = differences(error=2e-4)
    states = equation_of_state(*exact, EXTENT, model_scale(), math.exp(logarithm(5.85)))
    for beta, state in zip(BETA, states, strict=True):
        p, anomaly = pressure(beta), slope(beta) / rate(beta)
        assert state.pressure.value == pytest.approx(p, abs=2e-3)
        assert state.anomaly.value == pytest.approx(anomaly, rel=1e-6, abs=1e-9)
        assert state.energy.value == pytest.approx(anomaly + 3 * p, abs=6e-3)
        assert state.entropy.value == pytest.approx(anomaly + 4 * p, abs=8e-3)
        assert state.length == pytest.approx(math.exp(logarithm(beta)) / EXTENT)
        assert state.ratio == pytest.approx(math.exp(logarithm(beta) - logarithm(5.85)))
        assert state.beta_function == pytest.approx(1 / rate(beta))
    assert states[0].pressure.value == 0
    assert cautions_of(states) == []


@pytest.mark.slow
def test_errors_are_those_of_repeated_measurements():
    rng, names = np.random.default_rng(3), ("pressure", "anomaly", "energy", "entropy")
    scale = model_scale()
    found = [equation_of_state(*differences(rng), EXTENT, scale) for _ in range(120)]
    for n in (1, 16, 32):
        for name in names:
            values = np.array([getattr(one[n], name).value for one in found])
            error = getattr(found[0][n], name).error
            assert error > 0
            assert values.std(ddof=1) == pytest.approx(error, rel=0.3)  # five errors of it


def test_a_difference_of_the_action_has_the_errors_of_both(rng):
    cold, hot = rng.normal(size=(2, 100)), rng.normal(2, 3, size=(1, 100))
    difference, zero, warm = action_difference(cold, hot), estimate(*cold), estimate(*hot)
    expected = zero.value - warm.value, math.hypot(zero.error, warm.error), 300
    assert (difference.value, difference.error, difference.samples) == pytest.approx(expected)


def test_without_a_scale_there_is_the_pressure_alone():
    for state in equation_of_state(*differences(), EXTENT, None):
        assert state.pressure is not None
        for name in ("anomaly", "energy", "entropy", "ratio", "length", "beta_function"):
            assert getattr(state, name) is None


def test_a_scale_that_is_known_at_some_couplings_only():
    points = [MeasuredLength(b, math.exp(logarithm(b)), 1e-3) for b in (5.9, 6.0, 6.1)]
    states = equation_of_state(*differences(), EXTENT, measured_scale("l", "", points, BETA))
    known = [one.beta for one in states if one.anomaly]
    assert (min(known), max(known)) == pytest.approx((5.9, 6.1))
    assert all(one.pressure for one in states)


def test_a_pressure_that_does_not_begin_at_zero_is_said():
    beta = BETA[12:]
    (sentence,) = cautions_of(equation_of_state(*differences(beta=beta), EXTENT, None))
    assert "add smaller couplings" in sentence
    coarse = cautions_of(equation_of_state(*differences(beta=BETA[::8]), EXTENT, None))
    assert any("straight lines" in one for one in coarse)


@pytest.mark.parametrize("smooth", [True, False])
def test_weights_integrate_what_they_can_exactly(smooth):
    x = np.array([0.0, 0.4, 0.5, 1.1, 1.3, 2.0])
    order = 3 if smooth else 1
    weights = integration_weights(x, smooth)
    np.testing.assert_allclose(weights @ x**order, x ** (order + 1) / (order + 1), atol=1e-13)
    assert not np.allclose(weights @ x ** (order + 1), x ** (order + 2) / (order + 2), atol=1e-4)
    np.testing.assert_allclose(integration_weights(np.array([1.0, 3.0]), smooth)[1], [1, 1])


def test_a_measured_scale_has_the_errors_of_repeated_measurements():
    rng, at, beta = np.random.default_rng(1), np.linspace(5.6, 6.4, 6), np.array([5.7, 6.0, 6.3])

    def made():
        lengths = np.exp(logarithm(at) + 0.01 * rng.normal(size=at.size))
        points = [MeasuredLength(b, v, 0.01 * v) for b, v in zip(at, lengths, strict=True)]
        return measured_scale("l", "", points, beta)

    found = [made() for _ in range(400)]
    slopes = np.array([one.slope for one in found])
    np.testing.assert_allclose(slopes.std(axis=0, ddof=1), found[0].slope_error, rtol=0.2)
    errors = slopes.std(axis=0, ddof=1) / math.sqrt(len(slopes))
    assert np.all(abs(slopes.mean(axis=0) - rate(beta)) < 4.5 * errors)
    assert measured_scale("l", "", [MeasuredLength(6.0, 1.0, 0.1)] * 3, beta) is None


def test_the_scale_of_the_literature_is_that_which_covers_most():
    beta = np.array([5.6, 5.8, 6.0, 6.2])
    found = known_scale(Wilson(), GROUPS["su3"], beta)
    assert found.name == "1/√σ"
    assert np.isfinite(found.slope).all()
    # Necco and Sommer have r0/a = 5.37 and 7.38 at 6.0 and 6.2, a ratio that sqrt(sigma) shares.
    assert found.length[3] / found.length[2] == pytest.approx(7.38 / 5.37, rel=0.02)
    assert found.slope_error[0] == 0
    assert 0 < found.slope_error[2] < 0.05 * found.slope[2]
    high = known_scale(Wilson(), GROUPS["su3"], np.array([6.0, 6.6, 6.9]))
    assert high.name == "r₀"
    assert np.isnan(known_scale(Wilson(), GROUPS["su3"], np.array([5.65, 5.0])).slope[1])
    assert known_scale(Wilson(), GROUPS["su2"], beta) is None


@pytest.mark.slow
def test_the_ideal_gas_on_the_lattice():
    """Against the sum over momenta of a finite lattice, and the expansion in 1/N_t."""
    assert ideal_pressure(8) == pytest.approx(8 * math.pi**2 / 45)
    k = 2 * math.pi * np.arange(1, 96) / 96
    zero = np.concatenate([[0.0], k])
    sines = np.sin(zero / 2) ** 2
    squared = (sines[:, None, None] + sines[:, None] + sines).ravel()[1:]
    for extent in (4, 6):
        frequencies = np.sin(math.pi * np.arange(extent) / extent) ** 2
        hot = np.log(4 * (squared[:, None] + frequencies)).sum(axis=1)
        cold = extent * 2 * np.arcsinh(np.sqrt(squared))  # N_t times the integral over k_4
        summed = -0.5 * np.sum(hot - cold) * 2 * extent**3 / 96**3
        # The mode k = 0 is missing and those near it are few: an effect of (N_t / N_s)^3.
        expected = ideal_pressure_on_lattice(1, extent)
        assert summed == pytest.approx(expected, abs=6 * (extent / 96) ** 3)
    for extent in (16, 32):
        ratio = ideal_pressure_on_lattice(3, extent) / ideal_pressure(3)
        assert (ratio - 1) * (extent / math.pi) ** 2 == pytest.approx(8 / 21, rel=6 / extent**2 * 4)


B0, B1 = 11 / (4 * math.pi) ** 2, 102 / (4 * math.pi) ** 4


def rational(beta, a, b, c, d):
    """The form of arXiv:1503.05652 for the logarithm of a length."""
    two_loops = beta / (12 * B0) + B1 / (2 * B0**2) * math.log(6 * B0 / beta)
    ratio = (1 + a / beta + b / beta**2) / (1 + c / beta + d / beta**2)
    return math.exp(two_loops * ratio)


@pytest.mark.parametrize("beta", [5.7, 5.8, 6.0, 6.2, 6.5, 6.9])
def test_r0_is_that_of_a_later_fit(beta):
    """arXiv:1709.07612 includes finer lattices; 0.7 % is the error of r0."""
    length = next(one for one in SCALES if one.source == "hep-lat/0108008")
    later = rational(beta, -8.9664, 19.21, -5.25217, 0.606828)
    assert length.length(beta) == pytest.approx(later, rel=0.0075)


def test_lengths_agree_with_each_other():
    """r0^2 F = 1.65 with the force sigma + pi / (12 r^2) of a string; sqrt(t0) is 0.334 r0."""
    tension, r0, t0 = SCALES
    string = math.sqrt(1.65 - math.pi / 12)
    for beta in (6.0, 6.2, 6.4):
        assert r0.length(beta) / tension.length(beta) == pytest.approx(string, rel=0.012)
        assert t0.length(beta) / r0.length(beta) == pytest.approx(0.334, rel=0.01)


BETAS = BETA[::2]
HOT, COLD = "16x16x16x4", "16x16x16x16"
NOISE, SIZE = 2e-5, 400
"""Standard deviation of the plaquette of a configuration, and number of configurations."""

CRITICAL = "4:5.85"
"""Critical coupling of the model at N_t = 4, an option."""

SPREAD = 1e-3
"""Relative standard deviation of E of a configuration; 20 of them are measured."""


def write_plaquettes(folder, rng, beta, lattice, **header):
    """Write the plaquettes of a run of the model, in which s_0 - s_T is its slope / N_t^4."""
    folder.mkdir(parents=True)
    action = 2.5 - 0.8 * (beta - 6) - (slope(beta) / EXTENT**4 if lattice != COLD else 0)
    plaquette = 1 - action / 6 + NOISE * rng.normal(size=SIZE)
    head = {"observable": "plaquette", "group": "su3", "beta": f"{beta:.12g}", "action": "wilson"}
    rows = zip(range(1, SIZE + 1), *[plaquette.tolist()] * 3, strict=True)
    names = ("sweep", "plaquette", "spatial", "temporal")
    write_table(folder / "plaquette.csv", head | {"lattice": lattice} | header, names, rows)


def write_t0(folder, rng, beta, target=0.3):
    """Write the flow of a run, with t^2 E = target t / t0."""
    t0 = math.exp(2 * logarithm(beta))
    times = np.linspace(0, 2 * t0, 21)
    head = {"observable": "flow", "flow": "wilson", "lattice": COLD, "group": "su3"}
    head |= {"beta": f"{beta:.12g}", "action": "wilson"}
    rows = []
    for sweep in range(10, 210, 10):
        change = 1 + SPREAD * rng.normal()
        for t in times.tolist():
            energy = target / (t0 * t) * change if t else 1.0
            rows.append((sweep, t, -1, energy, energy, 0.0, 0.0, 0.1))
    write_table(folder / "flow.csv", head, FLOW_COLUMNS, rows)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Runs of the model at T > 0 and at T = 0."""
    folder, rng = tmp_path_factory.mktemp("study"), np.random.default_rng(2)
    for beta in BETAS:
        write_plaquettes(folder / f"hot_{beta:.4g}", rng, beta, HOT)
        write_plaquettes(folder / f"cold_{beta:.4g}", rng, beta, COLD)
    for beta in BETAS[::4]:
        write_t0(folder / f"cold_{beta:.4g}", rng, beta)
    return folder


@pytest.mark.slow
def test_the_equation_of_state_is_written_and_shown(study):
    result = gauge_mc.fit("thermodynamics", study, scale="runs", critical=CRITICAL)
    found, text = result.found, shown(result)
    assert found.lattice == HOT
    assert found.scale == "√t₀"
    content = read_fit(study / "thermodynamics.json")
    assert content["states"][3]["pressure"].value == found.states[3].pressure.value
    pulls = []
    for state in found.states:
        p, anomaly = pressure(state.beta), slope(state.beta) / rate(state.beta)
        # The spline between couplings that are 0.05 apart is off by up to 0.02.
        assert abs(state.pressure.value - p) < 4.5 * state.pressure.error + 0.02
        error = math.hypot(state.anomaly.error, state.scale_error)
        assert abs(state.anomaly.value - anomaly) < 4.5 * error
        pulls.append((state.anomaly.value - anomaly) / error)
        assert state.ratio == pytest.approx(
            math.exp(logarithm(state.beta) - logarithm(5.85)), rel=5e-3
        )
        combined = state.anomaly.value + 4 * state.pressure.value
        assert state.entropy.value == pytest.approx(combined)
        assert str(state.energy) in text
    assert 0.4 < np.std(pulls) < 1.8
    assert "p/T⁴ = 1.7546" in text  # 8 pi^2 / 45
    assert "infinite space: 2.4175" in text
    assert "nan" not in text


@pytest.mark.slow
def test_lengths_of_the_runs_have_their_errors(study):
    lengths, complaint = read_bulk_runs(study).lengths("clover", 0.3, 0)
    assert complaint == ""
    assert [one.beta for one in lengths] == pytest.approx(BETAS[::4])
    for one in lengths:
        expected = math.exp(logarithm(one.beta)) * SPREAD / math.sqrt(20) / 2
        assert expected / 2 < one.error < 2 * expected
        assert abs(one.value - math.exp(logarithm(one.beta))) < 4.5 * expected
    lengths, complaint = read_bulk_runs(study).lengths("clover", 0.9, 0)
    assert lengths == []
    assert complaint.startswith("√t₀ at β = 5.6 is left out: t²<E> is only 0.6")


@pytest.mark.slow
def test_the_scale_of_the_literature_is_the_default(study):
    found = gauge_mc.fit("thermodynamics", study).found
    assert found.scale == "1/√σ"
    assert "hep-lat/9711003" in shown(gauge_mc.fit("thermodynamics", study))
    assert found.states[0].ratio is None
    middle = found.states[8]
    expected = slope(middle.beta) * middle.beta_function
    assert middle.anomaly.value == pytest.approx(expected, abs=4 * middle.anomaly.error)


@pytest.mark.slow
def test_critical_couplings_give_the_scale(study):
    """Three on a line in ln N_t, whose slope is then that of ln(1/a) everywhere."""
    critical = ",".join(f"{n}:{5.3 + 0.6 * math.log(n / 2):.10f}" for n in (2, 4, 8, 16))
    found = gauge_mc.fit("thermodynamics", study, scale="critical", critical=critical).found
    assert found.scale == "1/T_c"
    for state in found.states:
        assert state.beta_function == pytest.approx(0.6)
        own = 2 * math.exp((state.beta - 5.3) / 0.6) / EXTENT
        assert (state.ratio, state.length) == pytest.approx((own, own))
        assert state.scale_error == 0
    others = ",".join(one for one in critical.split(",") if not one.startswith("4:"))
    without = gauge_mc.fit("thermodynamics", study, critical=others, scale="critical").found
    assert [one.ratio for one in without.states] == pytest.approx(
        [one.ratio for one in found.states]
    )
    with pytest.raises(UsageError, match="critical couplings at two N_t or more"):
        gauge_mc.fit("thermodynamics", study, scale="critical", critical="4:5.7")
    for wrong in ("5.7", "4:x", "4:5.7;6:5.9"):
        with pytest.raises(UsageError, match=r"as in 4:5.6925,6:5.8943"):
            gauge_mc.fit("thermodynamics", study, critical=wrong)
    with pytest.raises(UsageError, match="--scale is 'x'; choose literature, critical or runs"):
        gauge_mc.fit("thermodynamics", study, scale="x")
    with pytest.raises(UsageError, match="must be positive"):
        gauge_mc.fit("thermodynamics", study, critical="4:-1")


@pytest.mark.slow
def test_runs_at_zero_temperature_may_be_elsewhere(study, tmp_path):
    hot, cold = tmp_path / "hot", tmp_path / "cold"
    for one in study.iterdir():
        if one.is_dir():
            target = hot if one.name.startswith("hot") else cold
            target.mkdir(exist_ok=True)
            (target / one.name).symlink_to(one)
    first, apart = (
        plain(gauge_mc.fit("thermodynamics", folder, **more).found)  # NaN does not equal itself
        for folder, more in ((study, {}), (hot, {"cold": str(cold)}))
    )
    assert apart == first
    with pytest.raises(GaugeError, match="there are 0; add runs, or name the folder"):
        gauge_mc.fit("thermodynamics", hot)
    with pytest.raises(GaugeError, match="no run at T > 0"):
        gauge_mc.fit("thermodynamics", cold)
    with pytest.raises(GaugeError, match="no run at T = 0 in"):
        gauge_mc.fit("thermodynamics", study, cold=str(hot))
    with pytest.raises(GaugeError, match="is not a folder"):
        gauge_mc.fit("thermodynamics", hot, cold=str(tmp_path / "nowhere"))


def test_missing_partners_and_small_lattices_are_named(tmp_path):
    rng = np.random.default_rng(1)
    for beta in (5.6, 5.7, 5.8, 5.9):
        write_plaquettes(tmp_path / f"hot_{beta}", rng, beta, HOT)
    write_plaquettes(tmp_path / "small", rng, 5.65, "8x8x8x4")
    for beta in (5.6, 5.7, 5.9):
        write_plaquettes(tmp_path / f"cold_{beta}", rng, beta, COLD)
    result = gauge_mc.fit("thermodynamics", tmp_path)
    assert [one.beta for one in result.found.states] == [5.6, 5.7, 5.9]
    text = shown(result)
    assert "no run at T = 0 at β = 5.8, which is left out" in text
    assert "8x8x8x4 are left out" in text
    with pytest.raises(
        GaugeError, match=r"no run at T > 0 in .*, with fewer links along t, 6, than"
    ):
        gauge_mc.fit("thermodynamics", tmp_path, nt=6)
    write_plaquettes(tmp_path / "other", rng, 5.8, "16x16x16x6")
    with pytest.raises(GaugeError, match="several temporal extents, 4, 6; choose one with --nt"):
        gauge_mc.fit("thermodynamics", tmp_path)


def test_without_a_scale_the_pressure_alone_is_known(tmp_path, sketched):
    rng = np.random.default_rng(1)
    for beta in (5.6, 5.7, 5.8):
        write_plaquettes(tmp_path / f"hot_{beta}", rng, beta, HOT, group="su2")
        write_plaquettes(tmp_path / f"cold_{beta}", rng, beta, COLD, group="su2")
    result = gauge_mc.fit("thermodynamics", tmp_path)
    assert result.found.states[2].pressure.value > 0
    assert result.found.states[2].energy is None
    assert "The scale is not known" in shown(result)
    with pytest.raises(UsageError, match=r"No length of SU\(2\) with the action wilson is known"):
        gauge_mc.fit("thermodynamics", tmp_path, scale="literature")
    plot("thermodynamics", tmp_path, tmp_path / "pressure.png")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"action": "iwasaki"}, "has action iwasaki, but other runs beside it have wilson"),
        ({"anisotropy": "2"}, "has anisotropy 2"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(tmp_path, change, sentence):
    rng = np.random.default_rng(1)
    write_plaquettes(tmp_path / "a", rng, 5.7, HOT)
    write_plaquettes(tmp_path / "b", rng, 5.7, COLD, **change)
    with pytest.raises(GaugeError, match=sentence):
        gauge_mc.fit("thermodynamics", tmp_path)


def test_anisotropic_runs_are_refused(tmp_path):
    write_plaquettes(tmp_path / "a", np.random.default_rng(1), 5.7, HOT, anisotropy="2")
    with pytest.raises(GaugeError, match="has the bare anisotropy 2"):
        gauge_mc.fit("thermodynamics", tmp_path)


def test_short_runs_are_refused(study):
    with pytest.raises(GaugeError, match="at 10 updates after update 390, and 20 are needed"):
        gauge_mc.fit("thermodynamics", study, skip=390)


def test_all_loops_of_an_improved_action_count(tmp_path):
    """The difference has 12 c1 times that of the average of rectangles, c1 = -0.331."""
    rng, plaquettes, rectangles = np.random.default_rng(1), {HOT: 0.62, COLD: 0.60}, {}
    for beta in (2.4, 2.5):
        for lattice, shift in ((HOT, 0.01), (COLD, 0.0)):
            run = tmp_path / f"{lattice}_{beta}"
            write_plaquettes(run, rng, beta, lattice, action="iwasaki")
            rectangles[lattice] = 0.4 + shift
            head = {"group": "su3", "beta": f"{beta}", "action": "iwasaki", "lattice": lattice}
            for name, value, kinds in (
                ("plaquette", plaquettes[lattice], ("spatial", "temporal")),
                ("rectangles", rectangles[lattice], ("spatial", "short", "long")),
            ):
                first = {"plaquette": "plaquette", "rectangles": "rectangle"}[name]
                values = value + NOISE * rng.normal(size=SIZE)
                rows = zip(range(1, SIZE + 1), *[values.tolist()] * (1 + len(kinds)), strict=True)
                names = ("sweep", first, *kinds)
                write_table(run / f"{name}.csv", {"observable": name} | head, names, rows)
    states = gauge_mc.fit("thermodynamics", tmp_path).found.states
    c1 = -0.331
    expected = 6 * (1 - 8 * c1) * 0.02 + 12 * c1 * 0.01
    for state in states:
        assert abs(state.difference.value - expected) < 4.5 * state.difference.error < 1e-3
    (tmp_path / f"{HOT}_2.4" / "rectangles.csv").unlink()
    with pytest.raises(GaugeError, match="has not measured rectangles"):
        gauge_mc.fit("thermodynamics", tmp_path)


WARM, LINKS = "16x16x16x8", 8
TIMES = np.round(np.arange(0, 2.51, 0.1), 10)
ENTROPY, ANOMALY, TILT = 5.2, 1.3, -0.4
"""s/T^3 and (e - 3 p)/T^4 of the model at t = 0, and their slopes in t, relative to them."""

SCALED = 0.11
"""t^2 <E> of the model at T = 0, at t = 1; it grows as the root of t."""


def coupling(scaled, colours):
    """g^2 for which the series of t^2 E to one loop has a value."""
    k = {2: 1.0978 * 2 / 3, 3: 1.0978}[colours]  # Luescher, arXiv:1006.4518, for N = 3: 1.0978
    alpha = brentq(
        lambda a: (3 * (colours**2 - 1) / (32 * math.pi)) * a * (1 + k * a) - scaled, 0, 5
    )
    return 4 * math.pi * alpha


def model(colours):
    """Return <E> at T = 0, and the electric and magnetic <E> at T > 0, at all flow times."""
    t = np.where(TIMES > 0, TIMES, 0.01)
    cold = SCALED * np.sqrt(t) / t**2
    g2 = np.array([coupling(one, colours) for one in t**2 * cold])
    b = 11 * colours / 3 / (16 * math.pi**2)
    u = g2 * (1 + 2 * b * (7 / 22 + 0.5772156649 / 2 - math.log(2)) * g2)
    e = (1 + 2 * b * 27 / 484 * g2) / (2 * b)
    line = 1 + TILT * TIMES
    total = cold - e * ANOMALY * line / LINKS**4
    difference = 3 / 4 * u * ENTROPY * line / LINKS**4
    return cold, (total - difference) / 2, (total + difference) / 2


def write_flows(folder, rng, colours, beta, noise, times=slice(None)):
    """Write the flows of two runs of the model."""
    cold, electric, magnetic = model(colours)
    head = {"observable": "thermal-flow", "group": f"su{colours}", "beta": f"{beta:.12g}"}
    for lattice, parts in ((COLD, (cold / 2, cold / 2)), (WARM, (electric, magnetic))):
        run = folder / f"{lattice}_{beta}"
        write_plaquettes(run, rng, beta, lattice, group=f"su{colours}")
        rows = []
        for sweep in range(10, 610, 10):
            pair = [one * (1 + noise * rng.normal()) for one in parts]
            for t, e, m in zip(TIMES[times], pair[0][times], pair[1][times], strict=True):
                rows.append(
                    (sweep, float(t), float(e), float(m), 2 * float(e), 3.0, -0.3, 0.4 * float(t))
                )
        header = {**head, "action": "wilson", "lattice": lattice}
        write_table(run / "thermal_flow.csv", header, THERMAL_COLUMNS, rows)


def test_the_coefficients_are_those_of_the_literature():
    """Asakawa et al., arXiv:1312.7492, have these s_1 and s_2."""
    assert pytest.approx(-0.08635752993) == S_1
    assert pytest.approx(0.05578512397) == S_2
    for colours in (2, 3):
        for scaled in (0.02, 0.1, 0.3):
            found = running_coupling(np.array([scaled]), colours)[0]
            assert found == pytest.approx(coupling(scaled, colours), rel=2e-4)
    # 2 b_0 = 11 / (8 pi^2) for SU(3)
    assert 2 * first_coefficient(3) == pytest.approx(11 / (8 * math.pi**2))
    u, e = alphas(np.array([1e-6]), 3)
    assert (u[0], 1 / e[0]) == pytest.approx((1e-6, 11 / (8 * math.pi**2)), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("colours", [2, 3])
def test_the_known_limit_is_found(tmp_path, colours):
    rng = np.random.default_rng(1)
    for beta in (6.0, 6.1):
        write_flows(tmp_path, rng, colours, beta, 3e-4)
    result = gauge_mc.fit("energy-momentum", tmp_path)
    content = read_fit(tmp_path / "energy-momentum.json")
    for state, stored in zip(result.found.states, content["states"], strict=True):
        assert stored["entropy"].value == state.entropy.value
        expected = {
            "entropy": ENTROPY,
            "anomaly": ANOMALY,
            "energy": (3 * ENTROPY + ANOMALY) / 4,
            "pressure": (ENTROPY - ANOMALY) / 4,
        }
        for name, value in expected.items():
            found = getattr(state, name)
            assert 0 < found.error < 0.6
            assert abs(found.value - value) < 4.5 * found.error
            assert str(found) in shown(result)
        assert state.t[0] == pytest.approx(0.5)
        assert state.t[-1] == pytest.approx(2.0)
        loops = [math.hypot(0.3, 0.4 * t) for t in state.t]
        assert [one.value for one in state.loop_at] == pytest.approx(loops)
        line = ENTROPY * (1 + TILT * state.t[-1])
        assert abs(state.entropy_at[-1].value - line) < 4.5 * state.entropy_at[-1].error


@pytest.mark.slow
def test_without_noise_the_limit_is_exact(tmp_path):
    write_flows(tmp_path, np.random.default_rng(1), 3, 6.0, 1e-9)
    (state,) = gauge_mc.fit("energy-momentum", tmp_path).found.states
    assert state.entropy.value == pytest.approx(ENTROPY, rel=1e-3)
    assert state.anomaly.value == pytest.approx(ANOMALY, rel=1e-3)
    narrow = gauge_mc.fit("energy-momentum", tmp_path, radius_min=2.5, radius_max=3.0)
    assert narrow.found.states[0].t == pytest.approx([0.8, 0.9, 1.0, 1.1])
    other = gauge_mc.fit("energy-momentum", tmp_path, energy="plaquette").found.states[0]
    assert other.entropy.value != pytest.approx(ENTROPY, rel=0.1)


def test_what_is_missing_is_one_sentence(tmp_path):
    rng = np.random.default_rng(1)
    write_flows(tmp_path, rng, 3, 6.0, 1e-3, slice(0, 4))
    with pytest.raises(GaugeError, match=r"0 flow times with √\(8t\)/a from 2 to 4"):
        gauge_mc.fit("energy-momentum", tmp_path)
    with pytest.raises(UsageError, match="from 4 to 3 with N_t = 8"):
        gauge_mc.fit("energy-momentum", tmp_path, radius_min=4.0, radius_max=3.0)
    for run in tmp_path.iterdir():
        if run.is_dir():
            (run / "thermal_flow.csv").unlink()
    with pytest.raises(GaugeError, match="No coupling has runs at T > 0 and at T = 0"):
        gauge_mc.fit("energy-momentum", tmp_path)


def test_couplings_without_a_partner_are_named(tmp_path):
    rng = np.random.default_rng(1)
    for beta in (6.0, 6.1):
        write_flows(tmp_path, rng, 3, beta, 1e-3)
    (tmp_path / f"{COLD}_6.1" / "thermal_flow.csv").unlink()
    result = gauge_mc.fit("energy-momentum", tmp_path)
    assert [one.beta for one in result.found.states] == [6.0]
    assert "At β = 6.1 the flow was not measured at both temperatures" in shown(result)
