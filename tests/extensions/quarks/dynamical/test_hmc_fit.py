"""Fits of made tables of runs with quarks: trajectories, and runs with different quarks."""

import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.plots.drawing import find_plot
from tests.quantities.test_hmc import printed, write_trajectories
from tests.quantities.thermodynamics.test_thermodynamics import COLD, HOT, write_plaquettes
from tests.quantities.transition.synthetic import LATTICES, two_phase_chain
from tests.quantities.transition.test_transition import write_run

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


def test_runs_with_different_quarks_have_no_common_pressure(tmp_path):
    rng = np.random.default_rng(1)
    write_plaquettes(tmp_path / "a", rng, 5.7, HOT)
    write_plaquettes(tmp_path / "b", rng, 5.7, COLD, quarks="wilson")
    words = "has quarks wilson, but other runs beside it have unset"
    with pytest.raises(GaugeError, match=words):
        gauge_mc.fit("thermodynamics", tmp_path)


def test_runs_with_different_quarks_have_no_common_transition(tmp_path):
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    write_run(tmp_path / "a", two_phase_chain(rng, 5.69, lattice, 50), lattice)
    write_run(tmp_path / "b", two_phase_chain(rng, 5.70, lattice, 50), lattice, quarks="wilson")
    with pytest.raises(GaugeError, match=r"have different dynamical quarks.*fit crossover"):
        gauge_mc.fit("transition", tmp_path)
