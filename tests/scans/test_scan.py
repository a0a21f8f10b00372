"""``gauge-mc scan``: grids, runs on disk, children, resuming, refinement."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.inspection.verify import verify
from gauge_mc.quantities.transition.thermal_runs import missing_couplings
from gauge_mc.run.directory import Run
from gauge_mc.run.lock import RunLock
from gauge_mc.run.log import LogTail
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.grid import Grid, parse_lattices, parse_numbers
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from tests.calls import call, make_run
from tests.patience import PATIENCE, wait_for
from tests.quantities.transition.synthetic import CENTRE, LATTICES, two_phase_volume
from tests.scans.commands import LONG, SMALL, A, B, rows, scan, written


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--beta", "2.2:2.8:0"), "the step must be a positive number"),
        (("--beta", "2.8:2.2:0.1"), "must not be below the first"),
        (("--beta", "2.2:2.8:0.25"), "is not a multiple of the step"),
        (("--beta", "2.2:2.8"), "FIRST:LAST:STEP"),
        (("--beta", "2:3:1e-9"), "more than 10000"),
        (("--beta", "2.2,"), "must consist of numbers"),
        (("--beta", "1e999999999"), "must consist of numbers"),
        (("--beta", "2.0000000000001"), "12 digits"),
        (("--lattice", "4x5"), "does not have the form"),
        (("--chains", "0"), "chains must be at least 1"),
        (("--chains", "10001"), "1 to 10000 runs"),
        (
            ("--seed", str(2**63 - 1), "--chains", "2"),
            "--seed is 9223372036854775808; give a whole number",
        ),
        (("--submit", "pbx"), "did you mean 'pbs'"),
        (("--submit", "slurm", "--submit-option", "ncpus=2"), "ncpus is an option of PBS and not"),
        (("--submit", "slurm", "--per-device", "2"), "each job carries out one run"),
        (("--collect",), "no scan in new"),
        (("--card", "none.toml"), "No such file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, words, sentence):
    shown = scan("--beta", "2.3", "--backend", "cpu", "--output", "new", *words, expect=2)
    assert re.search(sentence, shown)
    assert not (folder / "new").exists()


def test_a_new_scan_needs_a_beta_and_a_place(folder):
    assert "to begin one, give --beta" in scan(expect=2)
    (folder / "file").touch()
    assert "is a file" in scan("--beta", 2.3, "--output", "file", "--backend", "cpu", expect=2)
    assert "not empty" in scan("--beta", 2.3, "--output", ".", "--backend", "cpu", expect=2)
    assert [item.name for item in folder.iterdir()] == ["file"]


def test_enlarging_a_grid_keeps_its_runs(folder):
    small = Scan(folder, Parameters(seed=7)).enlarged((2.2, 2.3), (A,), 2)
    names = [member.name for member in small.members()]
    assert names == [f"b{beta}_4x4x4x2_chain{chain}" for beta in (2.2, 2.3) for chain in (1, 2)]
    larger = small.enlarged(beta=(2.4,)).enlarged(lattice=(B,)).enlarged(chains=3)
    members = larger.members()
    assert members[:4] == small.members()
    assert [member.parameters.seed for member in members] == list(range(7, 7 + 3 * 3 * 2))
    assert len({member.name for member in members}) == 18
    assert set(larger.points().values()) == {3}
    for same in (larger.enlarged(), larger.enlarged((2.3,)), larger.enlarged((2.2,), (A,), 1)):
        assert same == larger
    refined = small.enlarged((2.31,), (B,))
    assert [one[:2] for one in refined.points()] == [(2.2, A), (2.3, A), (2.31, B)]
    assert refined.enlarged(chains=3).points() == dict.fromkeys(refined.points(), 3)
    with pytest.raises(UsageError, match="at most 10000 runs, not 10006"):
        refined.enlarged((3.0,), None, 5000)


def test_a_scan_file_is_read_back_and_damage_is_noticed(folder):
    shared = Parameters.from_values({"group": "su3", "measure": "none"})
    there = Scan(folder, shared).enlarged((5.7, 5.75), (A, B), 2)
    there = there.enlarged(beta=(5.9,))
    there.write()
    assert Scan.read(folder) == there
    text = there.toml.read_text()
    for old, new in (("5.75", "-1"), ("chains", "chain"), ("[[grid]]", "[[odd]]")):
        there.toml.write_text(text.replace(old, new))
        with pytest.raises(GaugeError, match=r"scan\.toml is damaged: .+\.$"):
            Scan.read(folder)
    there.toml.write_text(text.replace("su3", "zu8"))
    with pytest.raises(
        GaugeError, match=r"scan\.toml names something that is unknown here: .*'zu8'"
    ):
        Scan.read(folder)


def test_runs_that_are_taken_out_leave_the_others_as_they_are(folder):
    scan_there = Scan(folder, Parameters(seed=7)).enlarged((2.2, 2.3, 2.4), (A,), 2)
    scan_there.write()
    for member in scan_there.members()[:2]:
        make_run(member.run.path, **member.parameters.values() | {"configs": 1})
    words = ("--output", ".", "--backend", "cpu")
    for wrong, sentence in (
        (("--beta", 2.9), "would take out 0 of the 6 runs"),
        (("--beta", "2.2:2.4:0.1"), "would take out 6 of the 6 runs"),
        ((), "options of the grid name, and nothing else"),
        (("--beta", 2.3, "--configs", 500), "and nothing else; give these only"),
        (("--beta", 2.3, "--dry-run"), "--dry-run cannot be combined with --remove"),
    ):
        assert sentence in scan(*words, "--remove", *wrong, expect=2)
    with closing(RunLock(scan_there.members()[2].run.path.with_name("lock"))):
        assert "in use by" in scan(*words, "--remove", "--beta", 2.3, expect=1)
    assert Scan.read(folder) == scan_there
    said = scan(*words, "--remove", "--beta", 2.3, "--lattice", A)
    names = [f"b2.3_{A}_chain{chain}" for chain in (1, 2)]
    assert f"taken out of .: {names[0]} and {names[1]}; their folders stay" in said
    left = Scan.read(Path())
    whole = scan_there.members()
    expected = [whole[n].parameters for n in (0, 1, 4, 5)]  # with their seeds
    assert [one.parameters for one in left.members()] == expected
    assert [point.beta for point in left.points()] == [2.2, 2.4]
    assert json.loads(call("info", ".", "--json")[0])["removed"] == names
    assert all(check.sound for check in verify("."))
    again = left.enlarged(beta=(2.3,), lattice=(A,), chains=2)
    assert [one.parameters for one in again.members()] == [one.parameters for one in whole]
    assert left.enlarged(beta=(2.2,)) == left


def test_names_tell_scans_apart_and_what_is_added_is_said(folder):
    """Every study went into runs/scan_su2."""

    def path(**values):
        return str(ScanRequest.of({"lattice": str(A), **values}).path)

    assert path(beta="2.2") == f"runs/scan_su2_b2.2_{A}"
    assert path(beta="2.2,2.5,2.3", seed=5) == f"runs/scan_su2_b2.2-2.5_{A}_seed5"
    assert path(beta="2", lattice=f"{B},{A}") == f"runs/scan_su2_b2_{A}-{B}"
    assert path(beta="2", anisotropy="1.5,2") == f"runs/scan_su2_b2_{A}_xi1.5-2"
    assert path(beta="2.2") != path(beta="2.3")
    there = Scan(Path("runs/mine"), Parameters()).enlarged((2.2,), (A,), 1)
    there.path.mkdir(parents=True)
    there.write()
    assert path() == "runs/mine"  # the only scan, without a coupling
    words = ("--output", "runs/mine", "--beta", "2.2:2.7:0.1", "--backend", "cpu", "--dry-run")
    first = ", ".join(f"b{beta}_{A}_chain1" for beta in (2.3, 2.4, 2.5))
    assert f"adds 5 runs to runs/mine, which has 1: {first} and 2 more\n" in scan(*words)
    assert "adds" not in scan("--backend", "cpu", "--dry-run")
    assert scan("--backend", "cpu", "--dry-run").startswith("taken, the newest: runs/mine\n")


@pytest.mark.slow
def test_lowering_the_configs_of_a_scan_completes_its_runs(folder):
    """Those of a run that has no more stay, and its run.toml says so."""
    words = ("--beta", "2.2", "--lattice", A, "--output", "s", *SMALL)
    scan(*words)
    toml = folder / "s" / f"b2.2_{A}_chain1" / "run.toml"
    for path in (toml, folder / "s" / "scan.toml"):
        path.write_text(path.read_text().replace("configs = 1\n", "configs = 9\n"))
    assert "0 of 1 complete" in call("status", "s")[0]
    assert "has made 1 configuration; " in scan("--output", "s", "--configs", 0, expect=2)
    assert "1 of 1 runs complete" in scan("--output", "s", "--configs", 1, "--backend", "cpu")
    assert "configs = 1\n" in toml.read_text()


@pytest.mark.slow
def test_a_scan_from_beginning_to_end(folder, sketched):
    grid = ("--beta", "2.2:2.3:0.1", "--lattice", A, "--chains", 2)
    shown = scan(*grid, "--output", "s", *SMALL)
    assert "s begins, 0 of 4 runs complete" in shown
    assert shown.count("plaquette 0.") == 2  # since the chains of a point are updated together
    # Each run is what generate makes of the same parameters, with a seed of its own.
    runs = sorted(folder.glob("s/*/run.toml"))
    facts = {path.parent.name: tomllib.loads(path.read_text()) for path in runs}
    assert sorted(one["seed"] for one in facts.values()) == [1, 2, 3, 4]
    one = facts["b2.3_4x4x4x2_chain2"]
    assert (one["beta"], one["lattice"], one["seed"]) == (2.3, str(A), 4)
    same = {"beta": 2.3, "lattice": str(A), "seed": 4, "thermalize": 5, "configs": 1}
    make_run(folder / "same", **same, separation=40)
    assert written(folder / "same") == written(folder / "s" / "b2.3_4x4x4x2_chain2")
    # The table is of both chains.
    chains = [
        read_table(f"s/b2.3_4x4x4x2_chain{chain}/plaquette.csv").columns["plaquette"]
        for chain in (1, 2)
    ]
    row = rows(folder / "s")[2.3, str(A)]
    found = estimate(*chains)
    assert (row["chains"], row["sweeps"]) == (2, 80)
    assert row["plaquette"] == np.concatenate(chains).mean()
    assert (row["plaquette_error"], row["plaquette_tau_int"]) == (found.error, found.tau_int)
    assert {"polyakov_abs_error", "polyakov_susceptibility_error"} <= row.keys()
    assert (folder / "s" / "scan.pdf").read_bytes().startswith(b"%PDF-")
    # The same again does nothing; another lattice adds to it.
    before = {item: item.stat().st_mtime_ns for item in folder.glob("s/*/*.csv")}
    assert "s continues, 4 of 4 runs complete" in scan(*grid, "--output", "s", *SMALL)
    assert {item: item.stat().st_mtime_ns for item in folder.glob("s/*/*.csv")} == before
    shown = scan("--output", "s", "--beta", 2.4, "--lattice", B, "--backend", "cpu")
    assert "s continues, 4 of 6 runs complete" in shown
    assert list(rows(folder / "s")) == [(2.2, str(A)), (2.3, str(A)), (2.4, str(B))]
    refusal = scan("--output", "s", "--precision", "double", "--thermalize", 6, expect=2)
    assert "precision = single, not double; thermalize = 5, not 6" in refusal


@pytest.mark.slow
def test_a_failing_run_does_not_stop_the_others(folder):
    (folder / "s" / "b2.2_4x4x4x2_chain1").mkdir(parents=True)
    (folder / "s" / "b2.2_4x4x4x2_chain1" / "notes.txt").touch()
    Scan(folder / "s", Parameters()).write()
    words = ("--beta", "2.2,2.3", "--lattice", A, "--output", "s", "--backend", "cpu")
    shown = scan(*words, "--configs", 20, expect=1)
    assert "gauge-mc: 1 of 2 runs failed" in shown
    assert "b2.2_4x4x4x2_chain1: s/b2.2_4x4x4x2_chain1 is not empty" in shown
    assert list(rows(folder / "s")) == [(2.3, str(A))]
    assert "not empty" in Scan.read(folder / "s").failures()["b2.2_4x4x4x2_chain1"]
    logged = {one.event: one for one in LogTail(folder / "s").new()}
    assert "not empty" in logged["failure"].fields["message"]
    assert (logged["failure"].level, logged["end"].fields["ended"]) == ("error", "incomplete")
    (folder / "s" / "b2.2_4x4x4x2_chain1" / "notes.txt").unlink()
    assert scan(*words, "--quiet") == ""
    assert Scan.read(folder / "s").failures() == {}
    assert len(rows(folder / "s")) == 2
    (folder / "s" / "b2.3_4x4x4x2_chain1" / "plaquette.csv").write_text("sweep\n")
    shown = scan("--output", "s", "--collect", expect=1)
    assert "2 of 2 runs complete" in shown
    assert "plaquette.csv is damaged: it contains no numbers for plaquette" in shown
    assert list(rows(folder / "s")) == [(2.2, str(A))]


def begin(*words):
    """Begin a long scan, and wait for its children to have measured something."""
    program = [sys.executable, "-m", "gauge_mc", "scan", *map(str, words), "--output", "s"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tables = [Path(f"s/b{beta}_8x8x8x8_chain1/plaquette.csv") for beta in (2.3, 2.4)]
    wait_for(lambda: all(one.exists() and len(one.read_bytes()) > 2000 for one in tables))
    assert process.poll() is None
    return process


def check_saved(member):
    """Check that a run has a row for every update that its checkpoint has."""
    table = read_table(member.run.table("plaquette"))
    assert len(table) == max(0, member.sweep() - member.parameters.thermalize)


def at_work():
    return [path for path in Path("s").glob("*/run.toml") if Run(path.parent).holder()[1]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_all_runs_in_order(number):
    process = begin(*LONG, "--per-device", 2)
    process.send_signal(number)
    shown, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaint) == (INTERRUPTED, "")
    assert f"Stopped by {number.name}; to continue: gauge-mc scan --output s" in shown
    assert not at_work()
    for member in Scan.read(Path("s")).members():
        check_saved(member)


@pytest.mark.slow
def test_updates_can_be_left_out_of_the_averages(folder, sketched):
    how = ("--beta", "2.2,2.4", "--lattice", "4x4x4x4", "--chains", 2, "--output", "s")
    words = ("--thermalize", 0, "--configs", 30, "--separation", 10, "--format", "none")
    shown = scan(*how, *words, "--start", "cold", "--backend", "cpu")
    assert "as if the chain had not thermalised; leave them out with --skip" in " ".join(
        shown.split()
    )
    whole = rows(folder / "s")
    shown = scan("--collect", "--output", "s", "--skip", 45)
    assert "thermalised" not in shown
    later = rows(folder / "s")
    assert read_table(folder / "s" / "scan.csv", text=("lattice",)).header["skip"] == "45"
    for (beta, lattice), row in later.items():
        runs = [one for one in Scan.read(Path("s")).members() if one.point[0] == beta]
        tables = [read_table(one.run.table("plaquette")) for one in runs]
        chains = [table["plaquette"][table["sweep"] > 45] for table in tables]
        assert row["plaquette"] == pytest.approx(np.concatenate(chains).mean(), rel=1e-12)
        assert row["plaquette_error"] == pytest.approx(estimate(*chains).error, rel=1e-9)
        assert (row["sweeps"], whole[beta, lattice]["sweeps"]) == (2 * 255, 2 * 300)
    for number, sentence in (
        (300, "whose last measurement is made after update 300"),
        (-1, "0 or"),
    ):
        assert sentence in " ".join(
            scan("--collect", "--output", "s", "--skip", number, expect=2).split()
        )
    assert rows(folder / "s") == later
    scan(*how, *words, "--start", "cold", "--backend", "cpu")
    assert rows(folder / "s") == whole


@pytest.mark.slow
def test_no_child_outlives_a_scan_that_is_killed():
    process = begin(*LONG, "--per-device", 2)
    assert len(at_work()) == 2
    process.kill()
    process.communicate()
    wait_for(lambda: not at_work())
    assert all(member.sweep() > 1 for member in Scan.read(Path("s")).members())


@pytest.mark.slow
def test_a_time_limit_stops_all_runs_in_order(folder):
    shown = scan(*LONG, "--output", "s", "--time-limit", "0:0:6", expect=INTERRUPTED)
    assert "Stopped by the time limit; to continue: gauge-mc scan --output s\n" in shown
    assert not at_work()
    for member in Scan.read(folder / "s").members():
        if member.run.begun():
            assert member.sweep() < member.parameters.updates
            check_saved(member)


def test_no_run_is_started_when_the_time_is_too_short_to_stop_it(folder):
    shown = scan(*LONG, "--output", "s", "--time-limit", "0:0:4", expect=INTERRUPTED)
    assert "Stopped by the time limit" in shown
    assert not list(folder.glob("s/b*"))


@pytest.mark.slow
def test_runs_wait_for_others_that_hold_them_and_leave_mpi_alone(folder, monkeypatch, sketched):
    monkeypatch.setenv("PMI_SIZE", "2")
    there = Scan(folder / "s", Parameters(thermalize=5, configs=1)).enlarged((2.3, 2.4), (A,))
    there.make()
    there.write()
    member = there.members()[0]
    with member.run.locked():
        pid = os.fork()
        if not pid:  # another process, to which the lock is foreign
            try:
                call("scan", "--output", "s", "--backend", "cpu", "--per-device", 2)
            finally:
                os._exit(0)
        try:
            wait_for(there.members()[1].complete)
            time.sleep(0.3)
            assert not member.complete()
        except BaseException:
            os.kill(pid, signal.SIGTERM)
            raise
    try:
        wait_for(member.complete)
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def test_ranges_are_counted_in_decimals():
    assert parse_numbers("2.2:2.8:0.05") == tuple(round(2.2 + 0.05 * i, 2) for i in range(13))
    assert parse_numbers("0.1:0.3:0.1") == (0.1, 0.2, 0.3)
    assert parse_numbers("2.4") == (2.4,)
    assert parse_numbers("5.7, 5.8:6:0.1,1e1") == (5.7, 5.8, 5.9, 6.0, 10.0)
    assert parse_numbers("2.2:2.2:0.1") == (2.2,)
    assert parse_lattices("4x4x4x2, 4") == (A, B)


def test_grids_are_checked():
    assert Grid((2.2,), (A,)).chains == 1
    with pytest.raises(UsageError, match="1 to 10000 runs, not 0"):
        Grid((), (A,))


@pytest.mark.parametrize(
    "text",
    [
        "sNaN",
        "nan",
        "inf",
        "1_0",
        "1e400",
        "1e-400",
        400 * "9",
        5000 * "9",
        "0x1",
        "٢",
        "2.2:2.3:sNaN",
    ],
)
def test_what_is_not_a_plain_number_is_no_coupling(text):
    with pytest.raises(UsageError, match=r"must consist of|is 0; give a number"):
        parse_numbers(text)


def test_couplings_have_bounds():
    with pytest.raises(UsageError, match="give a number from 1e-06 to 1000000"):
        Grid(parse_numbers("1e7"), (A,))
    with pytest.raises(UsageError, match="give a number from 1e-06"):
        Grid((1e9,), (A,))


def test_what_is_given_twice_counts_once():
    grid = Grid(
        parse_numbers("2.2:2.4:0.1,2.3:2.5:0.1,2.20"), parse_lattices("4,4x4x4x4,4x4x4x2"), 2
    )
    assert grid.beta == (2.2, 2.3, 2.4, 2.5)
    assert grid.lattice == (B, A)
    assert Grid.from_values(grid.values()) == grid
    # The limit is for runs, not for what was typed.
    assert len(Grid(parse_numbers("1:10:0.001,1:10:0.001"), (A,)).beta) == 9001


SIZE = (*SMALL[:4], "--separation", 30, "--format", "none", "--backend", "cpu")
"""Settings of runs that take no time."""

LARGE = LATTICES[2]
WIDTH = (0.3 * LARGE.sites) ** -0.5
"""1/sigma of the action in one phase."""


def missing(*betas, size=3000):
    volume = two_phase_volume(np.random.default_rng(6), LARGE, betas, size, 0)
    return sorted(missing_couplings(volume))


def test_a_run_is_added_at_the_peak_unless_one_is_near():
    (found,) = missing(5.68, 5.725)
    assert abs(found - CENTRE) < WIDTH / 2
    assert missing(5.68, found, 5.725) == []


def test_a_run_is_added_on_the_side_of_the_transition():
    (found,) = missing(5.67, 5.68)
    assert 5.68 + WIDTH < found < 5.68 + 2.2 * WIDTH  # the second phase makes sigma larger
    (found,) = missing(5.72, 5.73)
    assert 5.72 - 2.2 * WIDTH < found < 5.72 - WIDTH


def test_gaps_between_histograms_are_filled_first():
    found = missing(5.40, 5.41, 5.56)
    assert len(found) == 3
    assert 5.41 < found[0] < found[-1] < 5.56
    assert max(np.diff([5.41, *found, 5.56])) < 2.5 * WIDTH
    (found,) = missing(5.40, 5.40 + 5.6 * WIDTH)[:1]
    assert 5.40 < found < 5.40 + 5.6 * WIDTH


@pytest.mark.slow
def test_a_scan_is_refined(folder):
    place = ("--output", "fine")
    assert "no scan in fine" in scan("--refine", *place, expect=2)
    scan("--beta", "1.3,2.6", "--lattice", "4x4x4x2", *SIZE, "--separation", 60, *place)
    scan("--refine", "--backend", "cpu", *place)
    points = Scan.read(folder / "fine").members()
    betas = [one.point.beta for one in points]
    assert betas[:2] == [1.3, 2.6]
    assert len(betas) > 2
    assert all(1.3 < one < 2.6 for one in betas[2:])
    assert all(one.complete() for one in points)
    assert "--collect carries out none" in scan("--refine", "--collect", *place, expect=2)


@pytest.mark.slow
def test_a_scan_without_the_action_is_refused_in_a_sentence(folder):
    place = ("--output", "bare")
    scan("--beta", "2.2", "--lattice", "4x4x4x2", "--measure", "polyakov", *SIZE, *place)
    shown = scan("--refine", *place, expect=1)
    assert "has not measured plaquette, which the value of the action wilson needs" in shown
