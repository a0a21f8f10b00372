"""Live views in the terminal: what fits, and when they end."""

import io
import json
from contextlib import ExitStack
from dataclasses import replace

import pytest

from gauge_mc.benchmarks.over import SavedBenchmark
from gauge_mc.console import Console
from gauge_mc.run.directory import Run
from gauge_mc.run.log import LOG, LogEntry
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.carry_out import MemberState
from gauge_mc.watch import terminal
from gauge_mc.watch import terminal as follow
from gauge_mc.watch.snapshot import UNFIT_BENCH, LiveSeries, LiveSnapshot, RunSnapshot, Watcher
from tests.calls import call, make_run

WORDS = "averages of something with a long name"


def series(name=WORDS, main=False, values=(1.0, 2.0, 3.0, 2.0)):
    sweeps = tuple(range(len(values)))
    return LiveSeries("t.csv", "c", name, "c", "c", "", main, sweeps, values, 1, 4, 2.0, None)


def view(count=3, **more):
    entry = LogEntry("2026-11-26T01:02:03+00:00", "info", "checkpoint", {"sweep": 7, "more": WORDS})
    histories = tuple(series(f"{n}: {WORDS}", main=n == count - 1) for n in range(count))
    run = RunSnapshot(
        "runs/one",
        "one",
        state="running",
        warnings=(" ".join([WORDS] * 8),),
        log=(entry,) * 9,
        chain=", ".join([WORDS] * 3),
        sweep=50,
        sweeps=100,
        process=f"1 on {WORDS}",
        device=WORDS,
        physics="plaquette 0.5",
        configurations="3 of 10",
        checkpoint_sweep=40,
        checkpoint_seconds=30.0,
        links_per_s=2e6,
        remaining_seconds=3723.0,
        times={"update": 3.0, "measure": 1.0, "wait": 0.0},
        benched=0.25,
        acceptance=series("acceptance"),
        histories=histories,
    )
    run = replace(run, **more)
    facts = (run.state, run.done, run.links_per_s, run.remaining_seconds)
    return LiveSnapshot(run.path, False, 0.0, *facts, (), (run,), run.warnings, run.log)


def lines(snapshot, width=80, height=24, whole=False, encoding="utf-8"):
    out = io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace")
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=None)
    console.print(terminal.SnapshotView(snapshot, whole), soft_wrap=True)
    out.seek(0)
    return [line.rstrip() for line in out.read().splitlines()]


def test_everything_is_shown():
    text = "\n".join(lines(view(), 120, 40))
    for words in (
        "generating ━",
        "50 %  50/100 updates  ETA 1:02:03",
        "speed 2 Mlink/s, 500 ns per link update, 25% of the sweeps alone",
        "time: update 75%, measure 25%;",
        "now plaquette 0.5",
        "configurations 3 of 10",
        "checkpoint after update 40, 30.0 s ago",
        f"! {WORDS}",
        "▁▅█▅",
        "11-26 01:02:03 checkpoint sweep=7",
    ):
        assert words in text
    assert text.count("01:02:03 checkpoint") == terminal.LOG_SHOWN


def test_what_files_contain_does_not_control_the_terminal():
    evil = "\x1b[31mred\x07 [bold]b[/]"
    hostile = view(
        histories=(series(evil),),
        warnings=(evil,),
        log=(LogEntry(evil, "info", evil, {evil: evil}),),
        chain=evil,
        process=evil,
    )
    text = "\n".join(lines(replace(hostile, path=evil), 200, 40))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold]b[/]") >= 6


def test_a_scan_shows_the_runs_at_work():
    (run,) = view().runs
    states = ["running"] * 10 + ["complete", "failed"]
    members = tuple(
        MemberState(
            *(f"m{n}", n, "4x4x4x4", {}, 1, f"beta = {n}", None),
            **dict(state=state, sweep=5, sweeps=10, links_per_s=1e6 if n else None),
        )
        for n, state in enumerate(states)
    )
    whole = LiveSnapshot("s", True, 0.0, "running", 0.4, 2e6, 60.0, members, (run, run), (), ())
    text = "\n".join(lines(whole, 80, 60))
    assert "s: running" in text
    assert "40 %  ETA 0:01:00" in text
    assert "runs: 1 complete, 10 running, 1 failed; 2 Mlink/s" in text
    assert "beta = 0  5/10 updates  starting" in text
    assert "and 2 more at work" in text
    assert text.count(f"2: {WORDS[:4]}") == 2  # the main one of each run alone
    assert "1: averages" not in text


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", measure=("plaquette",), format="none")


def test_a_terminal_is_shown_a_complete_run_once_and_the_command_ends(run):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30)
    terminal.watch_in_terminal(Watcher(run), console)
    assert "plaquette" in out.getvalue()
    assert "complete" in out.getvalue()


def test_a_run_is_followed_to_its_end_in_a_terminal(run, monkeypatch):
    """It is at work, killed, and continued by another process; then it is complete."""
    out, locks, seen = io.StringIO(), ExitStack(), []
    parameters = Run(run).read()[0]
    Run(run).write(replace(parameters, configs=5), [])
    locks.enter_context(Run(run).locked())

    def sleep(seconds):
        assert seconds >= terminal.SECONDS
        seen.append(out.getvalue())
        out.seek(0)
        out.truncate()
        if len(seen) == 1:
            locks.close()
        if len(seen) == 2:
            make_run(run, measure=("plaquette",), format="none", configs=5)

    monkeypatch.setattr(terminal.time, "sleep", sleep)
    console = Console(file=out, force_terminal=True, width=80, height=30)
    terminal.watch_in_terminal(Watcher(run), console)
    assert ["running" in one for one in seen] == [True, False]
    assert "stopped; it can be continued" in seen[1]
    assert "complete" in out.getvalue()


def test_ctrl_c_ends_the_view(tmp_path, monkeypatch):
    def sleep(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal.time, "sleep", sleep)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30)
    terminal.watch_in_terminal(Watcher(tmp_path / "later"), console)
    assert "later: waiting; it has not begun yet" in out.getvalue()


def test_without_a_terminal_the_command_shows_the_state_once(run, tmp_path):
    shown, code = call("watch", tmp_path / "later", "--wait")
    assert (shown.strip().endswith("later: waiting; it has not begun yet"), code) == (True, 0)
    shown, code = call("watch", run)
    assert (code, "11/11 updates" in shown, "plaquette" in shown) == (0, True, True)
    assert call("watch", run, "--port", 1)[1] == 2
    assert "result of gauge-mc bench" in call("watch", run, "--bench", run / "run.toml")[0]


def test_a_path_without_a_run_is_refused_in_every_view(run, tmp_path):
    """A mistyped name does not wait for ever, nor end as if all were well."""
    for more in ((), ("--serve",), ("--json",)):
        shown, code = call("watch", tmp_path / "rum", *more)
        assert f"There is no run {tmp_path / 'rum'}; did you mean '{run}'?" in shown
        assert (code, "add --wait" in shown) == (2, True), shown
    shown, code = call("watch", tmp_path)
    assert (f"name the run in it, such as {run}." in shown, code) == (True, 2)


def test_the_speed_is_compared_with_that_of_a_benchmark(run, tmp_path):
    parameters = Parameters.from_values({"group": "su2", "heatbath": 1, "overrelax": 3})
    kernels = [("heatbath", 5.0), ("overrelaxation", 1.0)]
    saved = {"device": "D", "group": "su2", "lattice": "4x4x4x4", "precision": "single"}
    saved |= {"kernels": [{"name": name, "ns_per_link": ns} for name, ns in kernels]}
    (tmp_path / "b.json").write_text(json.dumps({**saved, "random": "philox"}))
    bench = SavedBenchmark.read(tmp_path / "b.json")
    assert bench.ns_per_link(parameters, "D") == pytest.approx((5 + 3) / 4)
    for other in (
        {"precision": "double"},
        {"group": "su3"},
        {"rng": "ranlux"},
        {"algorithm": "hmc"},
        {"action": "symanzik"},
    ):
        values = {"group": "su2", **other}
        assert bench.ns_per_link(Parameters.from_values(values), "D") is None
    assert bench.ns_per_link(parameters, "E") is None
    with Run(run).locked() as lock:
        device = Run(run).read()[1][-1].device
        lock.record(rate=1.0)
        p = Run(run).read()[0]
        here = {**bench.words, "device": device}
        (one,) = Watcher(run, replace(bench, words=here)).snapshot().runs
        expected = bench.ns_per_link(p, "D") * p.links_per_update / 1e9
        assert one.benched == pytest.approx(expected)
        assert UNFIT_BENCH not in one.warnings
        (one,) = Watcher(run, bench).snapshot().runs
        assert one.benched is None
        assert UNFIT_BENCH in one.warnings


def test_new_entries_of_a_log_are_shown_until_the_run_ends(run):
    log = run / LOG
    with ExitStack() as stack:
        stack.enter_context(Run(run).locked())
        shown = follow.followed(run, seconds=0.001)
        for _ in range(4):
            next(shown)
        with log.open("a") as file:
            file.write('{"time": "t", "level": "info", "event": "checkpoint", "sweep": 99}\n')
        assert "sweep=99" in next(line for line in shown if line.startswith("t "))
    assert list(shown) == []
    assert len(list(follow.followed(run))) == len(log.read_text().splitlines())
    with log.open("a") as file:
        file.write('{"time": "t", "level": "info", "event": "session"}\n')
    assert list(follow.followed(run))[-1] == follow.KILLED


def test_status_follows_the_log(run):
    shown, code = call("status", run, "--follow")
    assert (code, shown.count("end ended=complete")) == (0, 1)
    assert "--json prints one object" in call("status", run, "--follow", "--json")[0]
