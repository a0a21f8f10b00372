"""Logs of runs: complete, safe from kills, and without effect on results."""

import json
import os
import threading
from pathlib import Path

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.run.directory import Run
from gauge_mc.run.generate import generate
from gauge_mc.run.log import LOG, LogTail, RunLog
from gauge_mc.stored.measure import measure
from tests.calls import TINY, call, make_run
from tests.run.sessions import written

COMMON = {"time", "level", "event"}


def entries(folder):
    """The entries of a log; every line must be one."""
    lines = (folder / LOG).read_text().splitlines()
    assert all(json.loads(line).keys() >= COMMON for line in lines)
    found = LogTail(folder).new()
    assert len(found) == len(lines)
    return found


def events(folder):
    return [one.event for one in entries(folder)]


def test_every_torn_last_line_is_skipped_and_repaired(tmp_path):
    log, path = RunLog(tmp_path), tmp_path / LOG
    log.add("session", sweep=1)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole + whole[:size])
        assert [one.fields for one in LogTail(tmp_path).new()] == [{"sweep": 1}]
        log.add("end", sweep=2)
        found = LogTail(tmp_path).new()
        assert [one.fields["sweep"] for one in found] == [1, 2]
        if size >= len(b'{"time"'):
            assert path.read_bytes().startswith(whole + b'{"time"')


def test_a_line_of_somebody_else_stays(tmp_path):
    (tmp_path / LOG).write_bytes(b"my notes\nand more")
    RunLog(tmp_path).add("end")
    lines = (tmp_path / LOG).read_bytes().splitlines()
    assert lines[:2] == [b"my notes", b"and more"]
    assert [one.event for one in LogTail(tmp_path).new()] == ["end"]


def test_links_are_not_followed(tmp_path):
    for make in (os.symlink, os.link):
        other, path = tmp_path / "other", tmp_path / LOG
        other.write_text("mine")
        make(other, path)
        RunLog(tmp_path).add("end")
        assert other.read_text() == "mine"
        path.unlink()


def test_processes_append_whole_lines_at_the_same_time(tmp_path):
    log = RunLog(tmp_path)
    several = [threading.Thread(target=lambda: [log.add("end") for _ in range(50)]) for _ in "1234"]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert events(tmp_path) == ["end"] * 200


@pytest.mark.slow
def test_a_run_logs_its_sessions_and_checkpoints(tmp_path):
    run = make_run(tmp_path / "run", configs=1, rng="lcg")
    shown = entries(run)
    first, warning, begun, last, *more = shown
    assert (first.event, first.fields["sweep"], first.fields["sweeps"]) == ("session", 0, 5)
    assert first.fields["process"] == os.getpid()
    assert first.fields["threads"] == 1
    assert {"command", "version", "host", "devices"} <= first.fields.keys()
    assert (warning.level, warning.event) == ("warning", "warning")
    assert "lcg" in warning.fields["message"]
    assert [(one.event, one.fields["sweep"]) for one in (begun, last)] == [
        ("checkpoint", 0),
        ("checkpoint", 5),
    ]
    assert (more[0].event, more[0].fields["ended"], more[0].fields["sweep"]) == (
        "end",
        "complete",
        5,
    )
    make_run(run, configs=2, rng="lcg")
    assert [one.event for one in entries(run)[len(shown) :]][:3] == [
        "session",
        "warning",
        "checkpoint",
    ]
    count = len(entries(run))
    make_run(run, configs=2, rng="lcg")  # is complete
    assert len(entries(run)) == count


def test_cautions_about_averages_are_logged(tmp_path):
    run = make_run(tmp_path / "run", measure=("plaquette",), configs=12, separation=1)
    said = [one.fields["message"] for one in entries(run) if one.event == "warning"]
    assert any("τ_int long" in one for one in said)
    assert all(words in call("status", run)[0].replace("\n", " ") for words in said)


@pytest.mark.slow
def test_the_log_says_how_a_session_ended(tmp_path):
    values = {"threads": 1, "output": str(tmp_path / "run"), "progress": False}

    def last():
        return entries(tmp_path / "run")[-1]

    def fail(chain):
        raise ValueError("not like this")

    generate(TINY, **values, on_update=lambda chain: chain.sweep == 3)
    assert (last().event, last().level, last().fields["ended"]) == ("end", "info", "on_update")
    with pytest.raises(ValueError, match="not like this"):
        generate(TINY, **values, on_update=fail)
    assert (last().event, last().level, last().fields["ended"]) == ("end", "error", "not like this")

    def interrupt(chain):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(TINY, **values, on_update=interrupt)
    assert (last().level, last().fields["ended"]) == ("warning", "interrupted")


def test_results_do_not_depend_on_the_log(tmp_path):
    usual = make_run(tmp_path / "usual", measure=("plaquette",))
    other = make_run(tmp_path / "other", measure=("plaquette",), configs=1)
    (other / LOG).unlink()
    (other / LOG).mkdir()  # so that it cannot be written
    make_run(other, measure=("plaquette",), configs=3)
    assert written(other) == written(usual)


def test_a_refused_run_leaves_no_log(tmp_path):
    with pytest.raises(UsageError):
        make_run(tmp_path / "run", start="nowhere")
    assert not list(tmp_path.iterdir())
    with Run(tmp_path / "run").locked():
        RunLog(tmp_path / "run").add("session")  # which fails before it has results
    assert not list(tmp_path.iterdir())


def test_measurements_on_a_run_are_logged_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run")
    before = len(entries(run))
    measure(run, "plaquette", threads=1, backend="cpu", progress=False)
    first, last = entries(run)[before:]
    assert first.fields["observable"] == "plaquette"
    assert (first.fields["table"], first.fields["configurations"]) == ("plaquette_configs.csv", 3)
    assert (last.event, last.fields["ended"]) == ("end", "complete")
    measure(run, "plaquette", threads=1, backend="cpu", progress=False)  # nothing is left
    assert len(entries(run)) == before + 2
    one = next(iter(Run(run).configs().values()))
    measure(one, "plaquette", threads=1, backend="cpu", progress=False)
    assert not (Path() / LOG).exists()
