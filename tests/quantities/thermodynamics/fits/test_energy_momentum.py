"""`fit energy-momentum`: synthetic flows whose limit is known."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.quantities.thermodynamics.field_correlators import (
    S_1,
    S_2,
    alphas,
    first_coefficient,
    running_coupling,
)
from gauge_mc.quantities.thermodynamics.observables import THERMAL_COLUMNS
from tests.quantities.shown import shown
from tests.quantities.thermodynamics.fits.test_thermodynamics import write_plaquettes

HOT, COLD, EXTENT = "16x16x16x8", "16x16x16x16", 8
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
    total = cold - e * ANOMALY * line / EXTENT**4
    difference = 3 / 4 * u * ENTROPY * line / EXTENT**4
    return cold, (total - difference) / 2, (total + difference) / 2


def write_flows(folder, rng, colours, beta, noise, times=slice(None)):
    """Write the flows of two runs of the model."""
    cold, electric, magnetic = model(colours)
    head = {"observable": "thermal-flow", "group": f"su{colours}", "beta": f"{beta:.12g}"}
    for lattice, parts in ((COLD, (cold / 2, cold / 2)), (HOT, (electric, magnetic))):
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
