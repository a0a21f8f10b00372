"""The command ``gauge-mc scan --tempering``: ladders, reports, refusals, lost workers."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import gauge_mc
from gauge_mc.files.table import read_table
from gauge_mc.quantities.transition.thermal_runs import read_thermal_runs
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.ladders import ladders, pack, unfinished
from gauge_mc.scans.scan import Scan
from tests.calls import call
from tests.patience import PATIENCE, wait_for
from tests.scans.commands import A, B, rows, scan, written

WORDS = ("--thermalize", 5, "--configs", 30, "--separation", 1, "--backend", "cpu")
WORDS += ("--format", "none", "--tempering")
LADDER = ("--beta", "1.6:1.8:0.1", "--lattice", A, "--output", "s")


def everything(path):
    return {one.parent.name: written(one.parent) for one in path.glob("*/run.toml")}


@pytest.mark.slow
def test_a_tempered_scan_from_beginning_to_end(folder, sketched):
    shown = scan(*LADDER, *WORDS)
    assert "1 process on" in shown  # since there is one ladder
    table = read_table(folder / "s" / "b1.6_4x4x4x2_chain1" / "tempering.csv")
    tried = table["partner"] == 1
    report, *_ = gauge_mc.status("s").ladders
    assert (report.lattice, report.chain, len(report.pairs)) == (str(A), 1, 2)
    pair = report.pairs[0]
    assert (pair.lower_beta, pair.upper_beta, pair.attempts) == (1.6, 1.7, tried.sum())
    assert pair.acceptance.value == table["accepted"][tried].mean()
    for text in (shown, call("status", "s")[0]):
        words = " ".join(text.split())
        assert f"{A} 1 1.6 1.7 15 {pair.acceptance}" in words
        assert report.sentence in words
    assert str(pair.acceptance) in call("info", "s")[0]
    assert gauge_mc.info("s").ladders == [report]
    assert len(rows(folder / "s")) == 3
    assert call("verify", "s")[1] == 0
    # More updates give what a longer scan would have given.
    scan("--output", "s", "--configs", 40, "--backend", "cpu")
    scan("--beta", "1.6:1.8:0.1", "--lattice", A, *WORDS, "--configs", 40, "--output", "t")
    assert everything(folder / "s") == everything(folder / "t")
    (volume,) = read_thermal_runs(folder / "s").volumes(2)
    blocks, groups = volume.reweighting.units
    assert np.unique(groups).size == 1
    assert groups.size == blocks.size // 3 > 1  # simultaneous blocks are drawn together


@pytest.mark.slow
def test_ladders_are_lattices_and_chains_whatever_processes_there_are(folder, sketched):
    words = ("--beta", "1.6,1.7", "--lattice", f"{A},{B}", "--chains", 2, *WORDS)
    assert "2 processes on" in scan(*words, "--output", "s", "--per-device", 2)
    assert "1 process on" in scan(*words, "--output", "t", "--threads", 2, "--per-device", 1)
    assert len(everything(folder / "s")) == 8
    assert everything(folder / "s") == everything(folder / "t")
    found = [(one.lattice, one.chain) for one in gauge_mc.status("s").ladders]
    assert found == [(str(lattice), chain) for lattice in (A, B) for chain in (1, 2)]


def test_a_ladder_is_one_batch_and_is_continued_as_a_whole(folder):
    shared = Parameters(tempering=True, lattice=A)
    members = Scan(folder, shared).enlarged((2.2, 2.4, 2.3), (A, B), 2).members()
    found = ladders(members)
    assert [len(one) for one in found] == [3] * 4
    for one in found:
        assert [m.parameters.beta for m in one] == [2.2, 2.3, 2.4]
        assert len({(m.point.lattice, m.chain) for m in one}) == 1
    batches = pack(members, 1, 7)
    assert sorted(map(str, batches)) == sorted(map(str, found))
    assert batches[0][0].parameters.lattice == B  # the largest ones come first
    left = unfinished(members, lambda one: one is not members[0])
    assert {m.name for m in left} == {m.name for m in found[0]}
    plain = Scan(folder, Parameters(lattice=A)).enlarged((2.2, 2.4), (A,)).members()
    assert ladders(plain) == []
    assert unfinished(plain, lambda one: one is not plain[0]) == plain[:1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--beta", "2.3"), f"on {A} there is only β = 2.3; give --beta several values"),
        (("--submit", "slurm", "--submit-option", "time=1"), "makes a job of every run"),
        (("--exchange-every", "0"), "--exchange-every is 0; give a whole number from 1"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, words, sentence):
    shown = scan("--beta", "2.3,2.4", "--lattice", A, *WORDS, "--output", "new", *words, expect=2)
    assert sentence in " ".join(shown.split())
    assert not (folder / "new").exists()


@pytest.mark.slow
def test_couplings_cannot_be_added_but_lattices_can(folder):
    there = Scan(folder / "s", Parameters(tempering=True)).enlarged((1.6, 1.7), (A,))
    there.make()
    there.write()
    refused = scan("--output", "s", "--beta", 1.9, "--backend", "cpu", "--dry-run", expect=2)
    assert "exchange their couplings, so that no β can be added or taken out" in " ".join(
        refused.split()
    )
    words = ("--output", "s", "--lattice", B, "--beta", "1.6:1.8:0.1")
    shown = scan(*words, "--backend", "cpu", "--dry-run")
    assert "1 of 3 runs that are updated together, 1 of 2 runs" in " ".join(shown.split())


def test_generate_has_no_tempering(folder):
    assert "--tempering is not an option of gauge-mc generate" in call("generate", "--tempering")[0]
    (folder / "card.toml").write_text("tempering = true\nbeta = 2.3\n")
    shown, code = call("generate", "--card", "card.toml", "--backend", "cpu", "--output", "new")
    assert code == 2
    assert "at β = 2.3; carry out a scan with several β" in " ".join(shown.split())
    assert not (folder / "new").exists()


def worker_of(path):
    """Return the process that carries out a run, once it has updated; None before."""
    holder, at_work = Run(path).holder()
    there = at_work and Run(path).checkpoint.exists()
    return holder.process if there and read_state(Run(path).checkpoint).sweep > 8 else None


@pytest.mark.slow
@pytest.mark.parametrize("tempering", [(), ("--tempering",)], ids=["independent", "tempering"])
def test_a_lost_worker_loses_nothing(folder, tempering):
    """A worker is killed; the scan says so, and the repeated command gives the same bytes."""
    words = ("--beta", "2.2,2.22", "--lattice", "8x8x8x4", "--chains", 2, "--thermalize", 5)
    words += ("--configs", 150, "--separation", 1, "--format", "none", "--backend", "cpu")
    words += (*tempering, "--per-device", 1)
    scan(*words, "--output", "whole", "--quiet")
    program = [sys.executable, "-m", "gauge_mc", "scan", *map(str, words), "--output", "s"]
    program += ["--checkpoint-every", "0"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = folder / "s" / "b2.2_8x8x8x4_chain1"
    wait_for(lambda: process.poll() is not None or worker_of(first))
    os.kill(worker_of(first), signal.SIGKILL)
    _, complaint = process.communicate(timeout=PATIENCE)
    if tempering:
        assert process.returncode == 1
        assert "2 of 4 runs failed, and repeating the command tries them again" in complaint
        assert "The process was killed by SIGKILL" in complaint
        status = gauge_mc.status("s")
        assert (status.complete, status.others["failed"]) == (2, 2)
        assert "2 of 4 complete, 2 failed" in call("status", "s")[0]
        scan(*words, "--output", "s", "--quiet")
    else:  # the runs of the batch are tried again at once, one by one
        assert (process.returncode, complaint) == (0, "")
    assert everything(folder / "s") == everything(folder / "whole")
    assert "4 of 4 complete" in call("status", "s")[0]
