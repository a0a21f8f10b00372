"""`fit thermodynamics` and `plot thermodynamics`: reading runs, report, JSON file, figure."""

import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.cli.document import plain
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.plots.drawing import plot
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS
from gauge_mc.quantities.thermodynamics.integral import read_bulk_runs
from tests.quantities.shown import shown
from tests.quantities.thermodynamics.analysis.test_integral import (
    BETA,
    EXTENT,
    logarithm,
    pressure,
    rate,
    slope,
)

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
