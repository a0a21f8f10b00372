"""``gauge-mc measure mesons`` and ``baryons``, their fits and plots, as a user meets them."""

import json

import numpy as np
import pytest

import gauge_mc as package
from gauge_mc import __version__
from gauge_mc.cli import app
from gauge_mc.devices.rehearsal import RehearsalDevice
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks.solvers import solve
from gauge_mc.extensions.quarks.spectroscopy import propagators
from gauge_mc.files.table import read_table
from gauge_mc.run import parameters
from tests import calls
from tests.calls import make_run

OLD = f"gauge-mc {__version__}"

pytestmark = [pytest.mark.kernels, pytest.mark.slow]  # they share runs with all hadrons


def call(*words):
    """Run a command in this process; its errors come through."""
    on_cpu = ("--backend", "cpu") if words[0] in ("generate", "measure") else ()
    app([str(word) for word in (*words, *on_cpu)], standalone_mode=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of ten configurations of SU(2), with mesons and baryons."""
    run = tmp_path_factory.mktemp("made") / "run"
    call(
        "generate", "--output", run, "--lattice", "4x4x4x8", "--group", "su2", "--beta", "2.3",
        "--configs", 10, "--thermalize", 50, "--separation", 5, "--quiet",
    )  # fmt: skip
    for what in ("mesons", "baryons"):
        call("measure", what, run, "--kappa", "0.12,0.13", "--quiet")
    return run


def test_tables(made):
    table = read_table(made / "mesons.csv")
    assert table.header["kappa"] == "0.12,0.13"
    assert table.header["boundary"] == "0,0,0,1 (angles in units of pi)"
    assert len(table) == 10 * 3 * 18 * 8
    pion = (table["gamma_source"] == "g5") & (table["gamma_sink"] == "g5")
    assert (table["re"][pion] > 0).all()
    solves = read_table(made / "mesons_solves.csv")
    assert len(solves) == 10 * 2
    assert (solves["residual"] <= 1e-10).all()
    assert (solves["iterations"] > 5).all()
    assert set(solves["kappa"]) == {0.12, 0.13}
    assert all(one.sound for one in package.verify(made))


def test_along_the_way(tmp_path):
    """The rows of stored configurations, also if the run was interrupted, with the solutions."""
    words = ["--lattice", "4x4x4x4", "--group", "su3", "--beta", "5.7", "--thermalize", 2]
    words += ["--separation", 1, "--configs"]
    measure = "mesons:1:kappa=0.1:mu=0;0.05,baryons:2:kappa=0.1"
    run = tmp_path / "run"
    call("generate", "--output", run, *words, 2, "--measure", measure, "--quiet")
    call("generate", "--output", run, *words, 4, "--measure", measure, "--quiet")
    assert all(one.sound for one in package.verify(run))
    for name, mu, every in (("mesons", "0,0.05", 1), ("baryons", "0", 2)):
        call("measure", name, run, "--kappa", "0.1", "--mu", mu, "--quiet")
        for kind in ("", "_solves"):
            along = read_table(run / f"{name}{kind}.csv")
            stored = read_table(run / f"{name}_configs{kind}.csv")
            chosen = (stored["sweep"] - 2) % every == 0
            for column in set(stored.columns) - {"seconds"}:
                np.testing.assert_array_equal(along[column], stored[column][chosen])
    assert set(read_table(run / "mesons_solves.csv")["mu"]) == {0, 0.05}
    assert read_table(run / "baryons_solves.csv").header["of table"] == "baryons.csv"


def test_an_interrupted_measurement_is_continued(made, tmp_path):
    """With rows of solutions that the table of correlators does not have."""
    words = ["measure", "mesons", made, "--kappa", "0.12,0.13", "--quiet", "--output"]
    whole, again = (made / "mesons.csv").read_bytes(), tmp_path / "again.csv"
    lines = whole.splitlines(keepends=True)[:-1]
    again.write_bytes(b"".join(lines[: -3 * 18 * 8 - 50]))
    solves = (made / "mesons_solves.csv").read_bytes().splitlines(keepends=True)
    (tmp_path / "again_solves.csv").write_bytes(b"".join(solves[:-2]))
    call(*words, again)
    assert again.read_bytes() == whole
    rows = read_table(tmp_path / "again_solves.csv")
    np.testing.assert_array_equal(
        rows["iterations"], read_table(made / "mesons_solves.csv")["iterations"]
    )


@pytest.mark.parametrize("words", [["--devices", "cpu:2", "--split"], ["--threads", "2"]])
def test_slabs_and_threads_give_the_same_bytes(made, tmp_path, words):
    output = tmp_path / "same.csv"
    given = ["--kappa", "0.12,0.13", "--quiet", "--output", output]
    files = sorted((made / "configs").iterdir())[:2]
    call("measure", "mesons", *files, *given, *words)
    found = [line for line in output.read_text().splitlines() if line[0].isdigit()]
    lines = (made / "mesons.csv").read_text().splitlines()
    assert found == [line for line in lines if line[0].isdigit()][: len(found)]
    assert len(found) == 2 * 3 * 18 * 8


def test_diquarks_have_the_masses_of_mesons(made, sketched):
    call("fit", "mesons", made, "--t-min", 1, "--t-max", 4)
    call("fit", "baryons", made, "--t-min", 1, "--t-max", 4)
    masses = {
        name: {
            (one["name"], one["kappa1"], one["kappa2"]): one["fit"]["mass"]["value"]
            for one in json.loads((made / f"{name}.json").read_text())["masses"]
        }
        for name in ("mesons", "baryons")
    }
    for kappas in ((0.12, 0.12), (0.12, 0.13), (0.13, 0.13)):
        pion = masses["mesons"]["pion", *kappas]
        assert masses["baryons"]["diquark-g5", *kappas] == pytest.approx(pion, rel=1e-6)
        assert 0.5 < pion < 3
    for name in ("mesons", "effective-mass", "chiral"):
        call("plot", name, made, "--t-min", 1, "--t-max", 4)
        assert (made / f"{name}.pdf").stat().st_size > 1000


def test_what_is_refused(made):
    for options, message in (
        ({}, "--kappa is missing; give the hopping parameters"),
        ({"kappa": "0.1", "solver": "gc"}, "There is no solver 'gc'; did you mean 'cg'"),
        ({"kappa": "0.1", "tolerance": 2.0}, "--tolerance is 2; give a number from"),
    ):
        with pytest.raises(UsageError, match=message):
            package.measure(made, "mesons", output=made / "none.csv", progress=False, **options)
    assert not (made / "none.csv").exists()


def test_a_solution_that_is_not_found_is_named(made):
    """With the configuration, the quark and the source."""
    words = ["measure", "mesons", made, "--kappa", "0.12", "--source", "point:1,0,0,0", "--quiet"]
    said = r"^Configuration 55: κ = 0\.12, point@1;0;0;0: The residual is .* after 2 iterations"
    with pytest.raises(ConvergenceError, match=said):
        call(*words, "--limit", 2, "--output", made / "few.csv")


def test_mesons_and_baryons_of_a_run_share_propagators(tmp_path, monkeypatch):
    solved = []

    def counted(operator, source, *others):
        (device,) = source.field.devices.devices
        if not isinstance(device, RehearsalDevice):
            solved.append(operator.kappa)
        return solve(operator, source, *others)

    monkeypatch.setattr(propagators, "solve", counted)
    hadrons = "mesons:2:kappa=0.1;0.12,baryons:2:kappa=0.12:p2-max=1,plaquette"
    package.generate(
        lattice="4x4x4x8", group="su2", beta=2.3, configs=2, separation=2, measure=hadrons,
        format="none", output=tmp_path, backend="cpu", progress=False,
    )  # fmt: skip
    trials = [0.05, 0.05]  # which compile the kernels
    assert solved == trials + 2 * [0.12, 0.1]


def test_secondary_tables_have_versions_and_are_kept_together(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", lattice="2x2x2x4", configs=1)
    words = ("measure", "mesons", run, "--kappa", "0.1", "--backend", "cpu", "--threads", "1")
    assert calls.call(*words)[1] == 0
    tables = sorted(run.glob("mesons*.csv"))
    assert len(tables) == 2
    before = [one.read_bytes() for one in tables]
    assert [read_table(one).makers for one in tables] == [{0: OLD}] * 2
    monkeypatch.setattr(parameters, "__version__", "99.0")
    checked = calls.call("verify", run)[0]
    lines = [line for line in checked.splitlines() if "mesons" in line]
    assert [line.endswith("of them by another version") for line in lines] == [True] * 2
    assert calls.call(*words, "--again")[1] == 0
    assert [one.with_name(f"{one.name}.1").read_bytes() for one in tables] == before
    assert [read_table(one).makers for one in tables] == [{0: "gauge-mc 99.0"}] * 2


def test_secondary_tables_along_the_way_have_versions(tmp_path):
    how = {"lattice": "2x2x2x4", "configs": 1, "measure": "mesons:3:kappa=0.1"}
    tables = sorted(make_run(tmp_path / "run", **how).glob("mesons*.csv"))
    assert [read_table(one).makers for one in tables] == [{0: OLD}] * 2
