"""`fit hmc` and `plot hmc` of a made table of trajectories."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots.runs.drawing import find_plot

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


QUARKS = {"quarks1_ratio1": (0.2, 170), "quarks1_det": (0.4, 0), "quarks1": (0.5, 90)}
"""Forces and iterations of the terms of the action of some quarks with a clover term."""


def write_quarks(folder, failed=(), inner=4, forces=QUARKS):
    """A table of trajectories of quarks; in some of them, by their place, solvers have failed."""
    path = write_trajectories(folder, count=400) / "hmc.csv"
    text = path.read_text()
    head, rows = text[: text.index("sweep,")], text[text.index("sweep,") :].splitlines()
    head = head.replace("length: 1.5", "length: 2.0").replace("omf4", "leapfrog")
    head += f"# levels: leapfrog,omf2:{inner}\n"
    head += "# quarks: kappa=0.13:csw=1.5:heavier=kappa=0.12\n"
    names = [f"force_{n},largest_force_{n},iterations_{n}" for n in forces]
    lines = [",".join((rows[0], "failed", *names))]
    for n, row in enumerate(rows[1:]):
        cells = row.split(",")
        own = [f"{force},{3 * force},{count}" for force, count in forces.values()]
        if n in failed:
            cells[1:4], cells[-2:] = ["0.0", "0", "0.0"], ["0.0", "0.0"]
            own = [f"0.0,0.0,{count}" for _, count in forces.values()]
        lines.append(",".join((*cells, str(int(n in failed)), *own)))
    path.write_text(head + "\n".join(lines) + "\n")
    return folder


def printed(result):
    """The report as text."""
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report())
    return console.file.getvalue()


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


def test_forces_and_costs_of_quarks_are_shown_by_term(tmp_path):
    found = gauge_mc.fit("hmc", write_quarks(tmp_path / "run")).found
    terms = {one.name: one for one in found.terms}
    assert [*terms] == [*QUARKS, "gauge"]
    # The leapfrog has 7 steps with 8 kicks, and each of its drifts is 4 steps with two kicks each.
    assert [one.level for one in found.terms] == [0, 0, 0, 1]
    assert [one.forces for one in found.terms] == [8, 8, 8, 2 * 4 * 7 + 1]
    assert terms["quarks1"].step == pytest.approx(2 / 7)
    assert terms["quarks1"].kick == pytest.approx(0.5 * 2 / 7)
    assert terms["gauge"].kick == pytest.approx(math.sqrt((9 + 49) / 2) * 2 / 56)
    assert terms["quarks1"].largest_force == pytest.approx(1.5)
    assert terms["quarks1_ratio1"].iterations == 170
    assert (found.iterations, found.forces, found.failed) == (260, 57, 0)
    assert found.cost_in_iterations == pytest.approx(2 * found.action.tau_int * 260)
    text = printed(gauge_mc.fit("hmc", tmp_path / "run"))
    assert "quarks1_det" in text
    assert "force times the step" not in text


@pytest.mark.parametrize(("inner", "coarse"), [(1, 1), (30, 0)])
def test_a_level_that_is_too_coarse_is_said(tmp_path, inner, coarse):
    text = printed(gauge_mc.fit("hmc", write_quarks(tmp_path / "run", inner=inner)))
    assert f"give level {coarse} more steps if the acceptance is low, or level {1 - coarse}" in text


def test_trajectories_with_failed_solvers_have_no_energy(tmp_path):
    whole = gauge_mc.fit("hmc", write_quarks(tmp_path / "whole")).found
    failed = gauge_mc.fit("hmc", write_quarks(tmp_path / "run", failed=range(100))).found
    assert failed.failed == 100
    assert failed.trajectories == 400
    assert failed.weight.value < 0.8 < whole.weight.value
    others = gauge_mc.fit("hmc", tmp_path / "whole", skip=110).found
    assert failed.change.value == pytest.approx(others.change.value, rel=1e-12)
    assert failed.force == pytest.approx(whole.force, rel=0.01)
    assert "with a failed solver" in printed(gauge_mc.fit("hmc", tmp_path / "run"))
    with pytest.raises(GaugeError, match="Solvers have failed in 399 of 400 trajectories"):
        gauge_mc.fit("hmc", write_quarks(tmp_path / "none", failed=range(399)))


@pytest.mark.slow
def test_forces_and_iterations_of_quarks_are_drawn(tmp_path):
    find_plot("hmc").draw([write_quarks(tmp_path / "run", failed=(3,))], tmp_path / "quarks.svg")
    text = (tmp_path / "quarks.svg").read_text()
    assert text.count('id="axes_') == 6


@pytest.mark.slow
def test_ends_of_the_spectrum_are_drawn_where_there_are_any(tmp_path):
    run = write_quarks(tmp_path / "run", forces={"quarks1": (0.5, 90)})
    path = run / "hmc.csv"
    text = path.read_text().replace("csw=1.5:heavier=kappa=0.12", "flavours=1")
    head, rows = text[: text.index("sweep,")], text[text.index("sweep,") :].splitlines()
    rows[0] += ",smallest_eigenvalue_quarks1,largest_eigenvalue_quarks1"
    path.write_text(head + "\n".join([rows[0], *(f"{row},0.03,2.5" for row in rows[1:])]) + "\n")
    find_plot("hmc").draw([run], tmp_path / "ends.svg")
    drawn = (tmp_path / "ends.svg").read_text()
    assert drawn.count('id="axes_') == 8
    assert [one.name for one in gauge_mc.fit("hmc", run).found.terms] == ["quarks1", "gauge"]
