"""`fit hmc` and `plot hmc` of a made table of trajectories."""

import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots.drawing import find_plot
from tests.quantities.shown import shown as printed

MEAN, COUNT, STEPS = 0.5, 4000, 7


def write_trajectories(folder, mean=MEAN, count=COUNT, shift=0.0, thermal=0):
    """A table of trajectories whose dH is normal with the mean m and the variance 2 m."""
    rng = np.random.default_rng(7)
    change = rng.normal(mean, math.sqrt(2 * mean), count) + shift
    probability = np.minimum(1, np.exp(-change))
    accepted = rng.uniform(size=count) < probability
    action = np.empty(count)
    value = 0.0
    for n in range(count):  # tau_int is (1 + a) / (1 - a) / 2 = 2 for a = 3/5
        value = 0.6 * value + 0.8 * rng.normal()
        action[n] = 10 + value + 5 * (n < thermal)
    header = "# group: su3\n# beta: 6.0\n# lattice: 4x4x4x4\n# integrator: omf4\n# length: 1.5\n"
    names = "sweep,delta_h,accepted,probability,steps,action,kinetic,force,largest_force\n"
    rows = zip(range(11, 11 + count), change, accepted, probability, action, strict=True)
    lines = [
        f"{sweep},{dh!r},{int(a)},{p!r},{STEPS},{s!r},0.5,{3.0 + (sweep % 2) * 4.0},9.5\n"
        for sweep, dh, a, p, s in ((n, float(h), k, float(q), float(v)) for n, h, k, q, v in rows)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "hmc.csv").write_text(header + names + "".join(lines))
    return folder


def test_averages_and_costs_are_those_of_the_table(tmp_path):
    result = gauge_mc.fit("hmc", write_trajectories(tmp_path / "run"))
    found = result.found
    exact = math.erfc(math.sqrt(MEAN) / 2)
    assert abs(found.acceptance.value - exact) < 4 * found.acceptance.error < 0.04
    assert abs(found.change.value - MEAN) < 4 * found.change.error < 0.1
    assert abs(found.weight.value - 1) < 4 * found.weight.error < 0.1
    assert found.predicted == pytest.approx(math.erfc(math.sqrt(found.change.value) / 2))
    assert (found.steps, found.forces, found.trajectories) == (STEPS, 5 * STEPS + 1, COUNT)
    assert abs(found.action.tau_int - 2) < 4 * found.action.tau_int_error
    assert found.cost == pytest.approx(2 * found.action.tau_int * 36)
    assert found.force == pytest.approx(math.sqrt((9 + 49) / 2))
    assert found.largest_force == 9.5
    assert found.cautions == []
    text = printed(result)
    assert f"{COUNT} trajectories of {STEPS} steps" in text
    assert str(found.weight) in text
    assert "is not 1" not in text
    content = json.loads((tmp_path / "run" / "hmc.json").read_text())
    assert content["ensemble"]["integrator"] == "omf4"
    assert content["acceptance"]["value"] == found.acceptance.value


def test_energies_that_cannot_be_in_equilibrium_are_said(tmp_path):
    result = gauge_mc.fit("hmc", write_trajectories(tmp_path / "run", shift=0.3))
    assert "⟨exp(−ΔH)⟩ is not 1 within its error" in printed(result)
    early = gauge_mc.fit("hmc", write_trajectories(tmp_path / "early", thermal=60))
    assert "--skip 7" in printed(early)
    later = gauge_mc.fit("hmc", tmp_path / "early", skip=70)
    assert later.found.trajectories == COUNT - 60
    assert later.found.cautions == []


def test_a_short_table_is_said_to_be_short(tmp_path):
    """By the average that varies most slowly, here the action."""
    short = gauge_mc.fit("hmc", write_trajectories(tmp_path / "run", count=40))
    assert any(one.startswith("The series is only") for one in short.found.cautions)
    assert "50 τ_int are needed" in printed(short)


def test_without_a_positive_mean_no_acceptance_is_predicted(tmp_path):
    negative = gauge_mc.fit("hmc", write_trajectories(tmp_path / "run", shift=-2 * MEAN))
    assert math.isnan(negative.found.predicted)
    assert "erfc" not in printed(negative)
    assert "nan" not in printed(negative)


def test_tables_with_too_little_are_refused(tmp_path):
    run = write_trajectories(tmp_path / "run", count=20)
    with pytest.raises(UsageError, match="--skip is -1"):
        gauge_mc.fit("hmc", run, skip=-1)
    with pytest.raises(GaugeError, match="has 1 trajectory after update 29; at least two"):
        gauge_mc.fit("hmc", run, skip=29)
    path = run / "hmc.csv"
    path.write_text(path.read_text().replace(",9.5\n", ",nan\n", 1))
    with pytest.raises(GaugeError, match="a value that is not a number"):
        gauge_mc.fit("hmc", run)


@pytest.mark.slow
def test_energies_are_drawn(tmp_path):
    run, drawn = write_trajectories(tmp_path / "run", count=300), []
    for n, options in enumerate(({}, {"skip": 200})):
        file = tmp_path / f"{n}.svg"
        assert find_plot("hmc").draw([run], file, **options) == []
        drawn.append(file.read_text())
    assert drawn[0] != drawn[1]
    # A negative mean has no normal distribution to compare with.
    odd = write_trajectories(tmp_path / "odd", mean=0.01, shift=-0.2, count=50)
    assert find_plot("hmc").draw([odd], tmp_path / "odd.svg") == []
    assert "NaN" not in printed(gauge_mc.fit("hmc", odd)).replace("nan", "")
    with pytest.raises(UsageError, match="The energy of trajectories is"):
        find_plot("hmc").draw([run, odd], tmp_path / "2.svg")
