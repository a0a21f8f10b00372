"""The scheduler, its batches and slots: what it tells a stand-in for the program."""

import io
import json
import math
import os
import re
import subprocess
import sys
from contextlib import closing

import pytest
from rich.console import Console

from gauge_mc.devices.choice import Place
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import INTERRUPTED
from gauge_mc.inspection.status import scan_status
from gauge_mc.run.checkpoint import ChainState, save
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution, parse_duration
from gauge_mc.scans import display as display_module
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.carry_out import SECONDS_TO_STOP, Scheduler
from gauge_mc.scans.display import ProgressDisplay, Tally
from gauge_mc.scans.ladders import pack
from gauge_mc.scans.pool import PARENT, Pool, Slot
from gauge_mc.scans.scan import Member, Scan
from tests.patience import PATIENCE
from tests.run.sessions import carry_out, stop_after
from tests.scans.commands import A, B

NOTE = """
import json, sys
runs = json.load(sys.stdin)
for values in runs:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]
    open('children', 'a').write(' '.join(words) + chr(10))
open('batches', 'a').write(str(len(runs)) + chr(10))
"""


@pytest.fixture
def work(folder):
    """Carry out a scan by children that only note their options; return these and the scheduler."""
    there = Scan(folder / "s", Parameters(thermalize=5, configs=1)).enlarged((2.3, 2.4), (A, B))

    def carry_out(stop=lambda seconds: None, busy_sites=1, **execution):
        members = there.members()
        display = ProgressDisplay(Tally(members), Console(file=io.StringIO()))
        with Pool([Slot("CPU", Place(backend="cpu"))]) as pool:
            averages = ScanAverages(there)
            command = (sys.executable, "-c", NOTE)
            scheduler = Scheduler(pool, command, display, averages, Execution(**execution))
            reason = scheduler.carry_out(pack(members, busy_sites, 1), stop)
        notes = folder / "children"
        return reason, notes.read_text().splitlines() if notes.exists() else [], scheduler

    return carry_out


def test_children_stop_before_the_scan_has_to(work):
    reason, lines, _ = work(time_limit=1000.0)
    assert len(lines) == 4
    for line in lines:
        limit = parse_duration(re.search(r"--time-limit=(\S+)", line)[1])
        assert 0 < limit <= 1000 - SECONDS_TO_STOP / 2
    assert reason == "the time limit"  # since the runs are not complete


def test_a_child_that_fails_is_named_with_what_it_said_last(work, monkeypatch):
    failing = "import sys; sys.exit('Traceback of something\\n\\ngauge-mc: No luck.')"
    monkeypatch.setattr("tests.scans.test_scheduler.NOTE", failing)
    _, _, scheduler = work()
    assert len(scheduler.failures) == 4
    assert set(scheduler.failures.values()) == {"No luck."}


@pytest.mark.slow
def test_runs_of_a_failed_child_are_tried_alone(work, monkeypatch):
    failing = "if len(runs) > 1: sys.exit('gauge-mc: One of them is damaged.')"
    monkeypatch.setattr(
        "tests.scans.test_scheduler.NOTE", NOTE.replace("for", f"{failing}\nfor", 1)
    )
    _, lines, scheduler = work(busy_sites=10**6)
    assert len(lines) == 4
    assert scheduler.failures == {}


class Running:
    """A stand-in for a child: the runs that it carries out, with what their lock files say."""

    def __init__(self, *members, slot="CPU"):
        self.members, self.process, self.pid = members, self, os.getpid()
        self.slot = Slot(slot, Place())

    def reports(self, sweep, rate):
        for member in self.members:
            member.run.path.mkdir(parents=True, exist_ok=True)
            with closing(RunLock(member.run.lock)) as lock:
                lock.record(sweep=sweep, rate=rate)


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(display_module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def four(folder):
    """The progress of a scan of four runs, none of which has begun, and its runs."""
    scan = Scan(folder / "s", Parameters(thermalize=0, configs=1000, separation=1))
    members = scan.enlarged((2.3, 2.4, 2.5, 2.6), (A,)).members()
    return Tally(members), members


def test_the_eta_of_a_scan_does_not_count_compilation(four, clock, monkeypatch):
    tally, members = four
    child = Running(members[0])
    child.reports(0, 0.0)
    clock[0] += 60.0  # which the compiler takes
    tally.look(child)
    assert math.isnan(tally.remaining([child]))
    assert not tally.updating
    clock[0] += 10.0
    child.reports(500, 50.0)
    tally.look(child)
    assert tally.updating
    assert tally.remaining([child]) == pytest.approx(70.0)
    clock[0] += 10.0
    child.reports(1000, 50.0)  # and it ended before anybody looked
    monkeypatch.setattr(Member, "sweep", lambda member: 1000)
    tally.note(child)
    assert tally.done(members[0])
    assert tally.remaining([child]) == pytest.approx(60.0)
    clock[0] += 5.0  # until the next process has begun
    child = Running(members[1])
    clock[0] += 5.0
    child.reports(250, 50.0)
    tally.look(child)
    assert tally.remaining([child]) == pytest.approx(2750 / (1250 / 30))


def test_updates_that_killed_processes_had_done_are_counted(folder):
    there = Scan(folder / "s", Parameters(thermalize=5, configs=1)).enlarged((2.3, 2.4), (A,))
    members = there.members()
    for member, sweep in zip(members, (1, 4), strict=True):
        with member.run.locked() as lock:
            there.write()
            member.run.write(member.parameters, [])
            save(member.run.checkpoint, ChainState(0, 0, {}), [])
            lock.record(sweep=sweep)
    words = "; at least 5 updates to be repeated"
    shown = display_module.opening(there, Tally(members), [Slot("CPU", Place())])
    assert f"0 of 2 runs complete{words}\n" in shown
    assert scan_status(there).lines()["done"] == f"0% of the work{words}"


@pytest.mark.slow
def test_a_child_whose_parent_is_dead_does_not_begin(tmp_path):
    """The parent may be killed before the child can ask for the signal of its death."""
    code = "from gauge_mc.cli import child; child()"
    words, runs = [sys.executable, "-c", code], [{"output": f"{tmp_path}/run", "lattice": "4"}]
    options = {"env": {**os.environ, PARENT: "1"}, "capture_output": True, "timeout": PATIENCE}
    done = subprocess.run(words, input=json.dumps(runs).encode(), check=False, **options)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, b"", b"")
    assert not (tmp_path / "run").exists()


SMALL, LARGE = Lattice(4, 4, 4, 2), Lattice(4, 4, 4, 4)


def scan(folder, chains=3):
    shared = Parameters(thermalize=5, configs=1, separation=1)
    return Scan(folder / "s", shared).enlarged((2.3, 2.4), (SMALL, LARGE), chains)


def names(batches):
    return [[member.name for member in batch] for batch in batches]


def test_batches_have_one_lattice_and_at_most_the_sites_that_keep_a_device_busy(tmp_path):
    members = scan(tmp_path).members()
    batches = pack(members, 4 * SMALL.sites, 1)
    assert [len(batch) for batch in batches] == [2, 2, 2, 4, 2]
    assert all(len({member.parameters.lattice for member in batch}) == 1 for batch in batches)
    packed = [name for batch in names(batches) for name in batch]
    assert sorted(packed) == sorted(member.name for member in members)


def test_only_runs_after_the_same_update_are_packed(tmp_path, best_device):
    members = scan(tmp_path, chains=1).members()
    members[0].run.path.mkdir(parents=True)
    carry_out(members[0].run, members[0].parameters, best_device, stop=stop_after(2))
    batches = pack(members, 10**9, 1)
    assert sorted(map(len, batches)) == [1, 1, 2]
    assert [members[0].name] in names(batches)
