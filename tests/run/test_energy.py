"""Energy of runs, with a processor that takes a constant power."""

import json
import time

import pytest

from gauge_mc import generate, generate_chains
from gauge_mc.devices.cpu import device as cpu_device
from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.errors import GaugeError
from gauge_mc.run import session
from gauge_mc.run.directory import Run
from gauge_mc.run.state import energy_text
from tests.calls import TINY, call, make_run

WATTS = 40


@pytest.fixture
def constant(monkeypatch):
    counters = [EnergyCounter("package-0", "RAPL", lambda: WATTS * time.monotonic())]
    monkeypatch.setattr(cpu_device, "package_counters", lambda: counters)


@pytest.fixture
def none(monkeypatch):
    def fail():
        raise GaugeError("there is none")

    monkeypatch.setattr(cpu_device, "package_counters", fail)


def options(path, **values):
    given = {**TINY, "threads": 1, "output": path, **values}
    return [f"--{name}={value}" for name, value in given.items()]


def test_the_summary_states_the_energy_of_the_session(constant, tmp_path):
    result = generate(output=tmp_path / "run", progress=False, **TINY)
    assert 0.01 * WATTS * result.seconds < result.joules < WATTS * result.seconds
    links = result.parameters.updates * result.parameters.links_per_update
    assert result.nj_per_link == pytest.approx(1e9 * result.joules / links)
    (record,) = Run(result.path).read()[1]
    assert record.joules == result.joules
    shown = call("generate", *options(tmp_path / "another"))[0]
    (line,) = [line for line in shown.splitlines() if line.startswith("energy")]
    assert " J by RAPL, " in line
    assert line.rstrip().endswith(" nJ per link update")


@pytest.mark.slow
def test_a_run_of_two_sessions(constant, tmp_path):
    path = tmp_path / "run"
    first = generate(output=path, progress=False, **{**TINY, "configs": 2})
    second = json.loads(call("generate", *options(path), "--json")[0])
    assert second["energy_source"] == "RAPL"
    assert second["nj_per_link"] > 0
    assert [one.joules for one in Run(path).read()[1]] == [first.joules, second["joules"]]
    total = energy_text(first.joules + second["joules"])
    assert f" {total} in 2 of 2 sessions\n" in call("status", path)[0]
    found = json.loads(call("info", path, "--json")[0])
    assert [one["joules"] for one in found["sessions"]] == [first.joules, second["joules"]]
    complete = json.loads(call("generate", "--output", path, "--json")[0])
    assert (complete["joules"], complete["energy_source"]) == (None, None)
    assert len(Run(path).read()[1]) == 2


def test_a_machine_without_counters(none, tmp_path):
    shown = call("generate", *options(tmp_path / "run"))[0]
    assert "energy" not in shown  # which doctor explains, once
    result = json.loads(call("generate", *options(tmp_path / "one"), "--json")[0])
    assert (result["joules"], result["nj_per_link"]) == (None, None)
    assert result["energy_source"] == "there is none"
    assert "joules" not in (tmp_path / "run" / "run.toml").read_text()
    assert "energy" not in call("status", tmp_path / "run")[0]


@pytest.mark.slow
def test_status_shows_the_energy_so_far(constant, tmp_path, monkeypatch):
    """The session at work is counted once: by the lock file, and at last by run.toml."""
    monkeypatch.setattr(session, "RECORD_SECONDS", 0.0)
    shown = []

    def look(chain):
        holder = Run(tmp_path).holder()[0]
        if holder.joules:
            shown.append((holder.joules, call("status", tmp_path)[0]))

    generate(output=tmp_path, progress=False, on_update=look, **TINY)
    assert len(shown) > 5
    assert [joules for joules, _ in shown] == sorted(joules for joules, _ in shown)
    for joules, text in shown:
        assert f" {energy_text(joules)}\n" in text


@pytest.mark.slow
def test_runs_that_are_updated_together_share_the_energy(constant, tmp_path):
    results = generate_chains(chains=3, output=tmp_path / "run", progress=False, **TINY)
    seconds, total = results[0].seconds, sum(one.joules for one in results)
    assert 0.01 * WATTS * seconds < total < WATTS * seconds
    assert len({(one.joules, one.nj_per_link, one.energy_source) for one in results}) == 1
    for one in results:
        assert [record.joules for record in Run(one.path).read()[1]] == [one.joules]
    links = 3 * results[0].parameters.updates * results[0].parameters.links_per_update
    assert results[0].nj_per_link == pytest.approx(1e9 * total / links)
    shown = call("generate", *options(tmp_path / "another"), "--chains=3")[0]
    assert " J by RAPL, " in shown


def test_a_session_that_was_killed_is_not_counted(constant, none, tmp_path):
    make_run(tmp_path / "run", configs=2)
    run = Run(tmp_path / "run")
    parameters, sessions = run.read()
    assert [one.joules for one in sessions] == [None]
    run.write(parameters, [*sessions, type(sessions[0])(**{**vars(sessions[0]), "joules": 50.0})])
    assert " 50 J in 1 of 2 sessions\n" in call("status", run.path)[0]
