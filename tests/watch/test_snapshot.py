"""Snapshots: made of the files of runs alone, cheaply, and with everything that is measured."""

import html
import math
import os
import re
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gauge_mc import generate
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.files.table import Table, read_table
from gauge_mc.inspection.status import status
from gauge_mc.run import session
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thermalisation import found_thermalisation
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.scan import Scan
from gauge_mc.watch.server import parts_of
from gauge_mc.watch.snapshot import POINTS, Watcher
from tests.calls import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    values = {
        "measure": ("plaquette", "wilson-loops:1:iterations=25"),
        "algorithm": "hmc",
        "configs": 30,
    }
    return make_run(tmp_path_factory.mktemp("made") / "run", **values, separation=1, format="none")


@pytest.fixture
def run(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "run"))


def table(path, rows, first=1, observable="mine", columns=("sweep", "value")):
    """Write a table, or append to it; return its values."""
    values = np.random.default_rng(first).normal(size=(rows, len(columns) - 1))
    with Table(path, {"observable": observable}, columns) as out:
        out.append_numbers(range(first, first + rows), values)
    return values[:, 0]


def test_a_snapshot_has_what_status_says_and_all_that_is_measured(run):
    whole = Watcher(run).snapshot()
    (one,) = whole.runs
    said = status(run)
    assert (one.state, one.sweep, one.sweeps) == (said.state, said.sweep, said.sweeps)
    assert (whole.state, whole.done, whole.over, whole.is_scan) == ("complete", 1.0, True, False)
    named = {series.name: series for series in one.histories}
    cut = found_thermalisation(run).update
    assert said.averages.keys() <= named.keys()
    for name, average in said.averages.items():
        series = named[name]
        later = [v for v, n in zip(series.values, series.sweeps, strict=True) if n > cut]
        assert series.average == estimate(later)
        assert series.measurements == average.samples
    assert one.acceptance == named["acceptance"]
    plaquette = read_table(run / "plaquette.csv")
    assert named["plaquette"].values == tuple(plaquette["plaquette"])
    assert named["plaquette"].sweeps == tuple(plaquette["sweep"])
    loops = read_table(run / "wilson_loops.csv")
    last = loops["loop"][loops["sweep"] == loops["sweep"][-1]]
    assert named["wilson-loops, mean of loop"].latest == pytest.approx(last.mean(), rel=1e-14)
    assert any("τ_int long" in words for words in one.warnings)
    assert one.log[0].event == "session"


def test_nothing_is_written(run):
    def files():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.rglob("*")}

    for path in run.rglob("*"):
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    before = files()
    watcher = Watcher(run)
    watcher.snapshot()
    assert files() == before


def test_a_run_at_work_is_followed(run):
    watcher, parameters = Watcher(run), Run(run).read()[0]
    watcher.snapshot()
    with Run(run).locked() as lock:
        lock.record(sweep=40, rate=2.0, times={"update": 3.0})
        Run(run).write(replace(parameters, configs=58), [])
        (one,) = watcher.snapshot().runs
        assert (one.state, one.sweep, one.sweeps) == ("running", 40, 60)
        assert (one.remaining_seconds, one.times) == (10.0, {"update": 3.0})
        assert one.links_per_s == 2.0 * parameters.links_per_update
        assert one.ns_per_link == pytest.approx(1e9 / one.links_per_s)
        assert str(os.getpid()) in one.process
    assert watcher.snapshot().state == "stopped"


@pytest.mark.parametrize(("algorithm", "words"), [("heatbath", ""), ("hmc:steps=4", "  ΔH ")])
def test_a_run_that_thermalises_shows_its_physics(algorithm, words, tmp_path, monkeypatch):
    """Nothing is recorded in tables then, and a quiet run shows nothing itself."""
    monkeypatch.setattr(session, "RECORD_SECONDS", 0.0)
    monkeypatch.setattr(session, "LIVE_SHARE", math.inf)
    known, shown = [], []

    def look(chain):
        snapshot = Watcher(tmp_path).snapshot()
        page = html.unescape(str(parts_of(snapshot)))
        shown.append((snapshot.runs[0].physics, page, status(tmp_path).lines().get("now", "")))
        known.append(chain.live())

    parameters = {"lattice": "4x4x4x4", "thermalize": 4, "configs": 1, "separation": 1}
    generate(**parameters, algorithm=algorithm, output=tmp_path, progress=False, on_update=look)
    assert len(set(known)) == 5
    assert all(re.match(rf"plaquette 0\.\d+  Polyakov loop .*{words}", one) for one in known)
    for one, texts in zip(known, shown[1:], strict=False):  # recorded after it was looked at
        assert all(one in text for text in texts)
    assert not status(tmp_path).physics


@pytest.mark.parametrize("name", ["run.toml", "plaquette.csv", "checkpoint/latest"])
def test_damage_is_a_warning(run, name):
    watcher = Watcher(run)
    (run / name).write_bytes(b"# broken\n1,2,3\n4,nonsense\n")
    (one,) = watcher.snapshot().runs
    assert any(str(run / name) in words for words in one.warnings)
    (run / name).unlink()
    assert watcher.snapshot().runs[0].warnings != one.warnings


def found(watcher):
    (one,) = watcher.snapshot().runs
    return next(series for series in one.histories if series.table == "mine.csv")


@pytest.mark.parametrize("rows", [1, POINTS, POINTS + 1, 5 * POINTS + 3])
def test_long_histories_have_few_points_that_are_means(run, rows):
    values = table(run / "mine.csv", rows)
    one = found(Watcher(run))
    assert len(one.values) <= POINTS
    assert len(one.values) * one.per_point <= rows < (len(one.values) + 1) * one.per_point
    first = values[: one.per_point].mean()
    assert (one.values[0], one.sweeps[0]) == (pytest.approx(first), one.per_point)
    assert (one.latest, one.measurements) == (values[-1], rows)


def test_a_chain_that_has_not_thermalised_is_warned_of(run):
    drift = np.where(np.arange(400) < 190, 5, 0) + np.random.default_rng(3).normal(size=400)
    with Table(run / "mine.csv", {"observable": "mine"}, ("sweep", "value")) as out:
        out.append_numbers(range(1, 401), drift[:, None])
    assert any("not thermalised" in words for words in Watcher(run).snapshot().warnings)


@pytest.mark.slow
def test_a_scan_consists_of_its_runs(tmp_path, made):
    parameters = replace(Run(made).read()[0], algorithm=Parameters().algorithm)
    grid = Grid((2.2, 2.3, 2.4, 2.5), (parameters.lattice,), 1, {})
    scan = Scan(tmp_path / "scan", parameters).including([grid])
    scan.make()
    scan.write()
    watcher = Watcher(scan.path)
    assert watcher.snapshot().state == "waiting"
    first, second, third, _ = scan.members()
    make_run(first.run.path, **_values(first))
    make_run(second.run.path, **{**_values(second), "configs": 5})
    scan.record_failures({third.name: "no"})
    third.run.path.mkdir()
    with ExitStack() as stack:
        lock = stack.enter_context(second.run.locked())
        lock.record(sweep=16, rate=4.0)
        whole = watcher.snapshot()
        assert [one.state for one in whole.members] == ["complete", "running", "failed", "waiting"]
        assert (whole.state, whole.is_scan) == ("running", True)
        assert [one.name for one in whole.runs] == [second.name]
        assert whole.done == pytest.approx((32 + 16) / (4 * 32))
        assert whole.remaining_seconds == pytest.approx((4 * 32 - 48) / 4.0)
        assert whole.warnings == (f"{third.name}: no",)
    whole = watcher.snapshot()
    assert (whole.state, whole.over) == ("stopped", False)
    assert [one.name for one in whole.runs] == [first.name, second.name]
    make_run(second.run.path, **_values(second))
    assert watcher.snapshot().members[1].state == "complete"


def _values(member):
    names = ("beta", "seed", "thermalize", "separation")
    given = {name: getattr(member.parameters, name) for name in names}
    return {**given, "measure": ("plaquette",), "format": "none", "configs": 30} | {
        "lattice": str(member.parameters.lattice)
    }
