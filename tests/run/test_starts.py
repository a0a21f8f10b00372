"""Chains from different starts: how they begin, and from where they agree."""

import json
import tomllib

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import SampledChain, agreement
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import start_of_chain
from gauge_mc.run.thermalisation import compared_starts, found_thermalisation
from gauge_mc.scans.scan import Scan
from tests.analysis.synthetic_loops import autoregressive
from tests.calls import call, call_apart
from tests.reports.pages import write_columns, write_run
from tests.run.sessions import written

TINY = {
    "lattice": "4x4x4x4",
    "thermalize": 0,
    "configs": 5,
    "separation": 10,
    "format": "none",
    "backend": "cpu",
    "threads": 1,
    "progress": False,
}


def of(values, every=1, first=1):
    return SampledChain(first + every * np.arange(len(values)), np.asarray(values, dtype=float))


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 9 / 11])
def test_stationary_chains_agree_from_the_start(rho):
    chains = autoregressive(np.random.default_rng(1), 1000, 400, rho).T
    found = [
        agreement(of(one), of(two)) for one, two in zip(chains[::2], chains[1::2], strict=True)
    ]
    assert np.mean([one.update > 0 for one in found]) < 0.02
    assert np.mean([not one.reached for one in found]) < 0.01


@pytest.mark.parametrize(("size", "time"), [(20, 20), (5, 100)])
def test_chains_agree_after_an_exponential_approach(size, time):
    """The rest of the approach moves averages by hardly more than their error."""
    chains = autoregressive(np.random.default_rng(2), 2000, 100, 9 / 11).T
    decay = size * np.exp(-np.arange(2000) / time)
    pairs = zip(chains[::2], chains[1::2], strict=True)
    found = [agreement(of(one + decay), of(two - decay)) for one, two in pairs]
    assert all(one.reached for one in found)
    ends = np.array([one.update for one in found])
    for end in set(ends.tolist()):
        assert decay[end:].mean() < 1.2 * np.sqrt(2 * 5 / (2000 - end))
    assert np.all(ends < 2000 / 4)


def test_chains_in_different_states_never_agree():
    one, two = autoregressive(np.random.default_rng(3), 400, 2, 0.5).T
    assert agreement(of(one + 1), of(two)) == (400, False)


def test_short_or_broken_series_tell_nothing():
    (x,) = autoregressive(np.random.default_rng(4), 40, 1, 0.0).T
    assert agreement(of(x), of(x[::-1])) == (0, True)
    for other in (x[:38], [], x + np.where(np.arange(40) == 39, np.nan, 0)):
        assert agreement(of(x), of(other)) is None
    assert agreement(of(x, first=100), of(x)) is None  # not at the same updates


def test_only_updates_that_both_have_done_are_compared():
    one, two = autoregressive(np.random.default_rng(5), 400, 2, 0.0).T
    longer = np.append(two, np.full(300, 9.0))
    assert agreement(of(one), of(longer)) == agreement(of(one), of(two))
    halved = agreement(of(one + 50 * (np.arange(400) < 80)), of(two[::2], every=2))
    assert halved == (99, True)  # of the 399 updates that both have done


@pytest.mark.slow
@pytest.mark.kernels
def test_chains_begin_from_the_starts_of_a_list_in_turn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = gauge_mc.generate_chains(chains=3, start="hot, cold", output="x", **TINY)
    assert [one.parameters.start for one in made] == ["hot", "cold", "hot"]
    starts = [tomllib.loads((one.path / "run.toml").read_text())["start"] for one in made]
    assert starts == ["hot", "cold", "hot"]
    alone = gauge_mc.generate(output="alone", start="cold", seed=2, **TINY)
    assert written(alone.path) == written(made[1].path)
    longer = {**TINY, "configs": 6}
    assert [one.sweep for one in gauge_mc.generate_chains(chains=3, output="x", **longer)] == [
        60
    ] * 3


@pytest.mark.slow
@pytest.mark.kernels
def test_a_card_and_a_scan_take_a_list_of_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.toml").write_text(
        "start = 'hot,cold'\nlattice = '4x4x4x4'\nthermalize = 0\nconfigs = 1\nseparation = 2\n"
        "format = 'none'\nbackend = 'cpu'\nthreads = 1\n"
    )
    assert call("generate", "--card", "card.toml", "--chains", "2", "--group", "su2")[1] == 0
    names = sorted(one.name for one in (tmp_path / "runs").iterdir())
    assert [name.partition("4x4x4x4_")[2] for name in names] == [
        "hot-cold_chain1",
        "hot-cold_chain2",
    ]
    words = ["scan", "--card", "card.toml", "--beta", "2.3,2.4", "--output", "s"]
    said, code = call(*words)
    assert code == 2
    assert "--start hot,cold names the starts of 2 chains; add --chains 2" in said
    assert not (tmp_path / "s").exists()
    assert call(*words, "--chains", "2")[1] == 0
    found = {
        one.name: Run(one.run.path).read()[0].start for one in Scan.read(tmp_path / "s").members()
    }
    assert {name[-6:]: start for name, start in found.items()} == {
        "chain1": "hot",
        "chain2": "cold",
    }
    assert len(found) == 4


def test_starts_of_a_list_may_be_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert Parameters.from_values({"start": " a,hot, b"}).start == f"{a},hot,{b}"
    assert [start_of_chain(f"{a},hot,{b}", chain) for chain in range(4)] == [a, "hot", b, a]
    (tmp_path / "a,hot").touch()
    assert Parameters.from_values({"start": "a,hot"}).start == f"{a},hot"
    assert start_of_chain(f"{a},hot", 1) == f"{a},hot"
    said, code = call("generate", "--start", "c,hot", "--chains", "2", "--output", "x")
    assert (code, f"There is no start file {tmp_path / 'c'};" in said) == (2, True), said


def write_pair(folder, shift=0.0, samples=400):
    """Write a hot and a cold chain; the hot one is shifted by standard deviations of plaquettes."""
    hot, cold = (folder / f"x_chain{n}" for n in (1, 2))
    write_run(cold, samples=samples, seed=2)
    write_run(hot, samples=samples, seed=1, start="hot")
    table = read_table(hot / "plaquette.csv")
    names = ("plaquette", "spatial", "temporal")
    moved = 0.55 + 0.01 * shift - (table["plaquette"] - 0.55)
    (hot / "plaquette.csv").unlink()
    write_columns(hot / "plaquette.csv", dict.fromkeys(names, moved), table.header)
    return hot, cold


@pytest.mark.slow
def test_where_hot_and_cold_agree_is_said_everywhere(tmp_path):
    hot, cold = write_pair(tmp_path)
    found = compared_starts(hot)
    assert found.agree
    assert 12 <= found.update <= 50
    assert "plaquette.csv" in found.series
    there = compared_starts(cold)
    assert (there.update, there.other, there.other_start) == (found.update, str(hot), "hot")
    assert found_thermalisation(hot).update >= found.update
    words = f"agree within errors after update {found.update}"
    said, code = call("status", hot)
    assert code == 0
    assert words in said.replace("\n", " ").replace("  ", " ")
    assert json.loads(call("status", hot, "--json")[0])["starts"]["update"] == found.update
    gauge_mc.report([hot, cold], tmp_path / "r.html")
    assert words in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_chains_that_disagree_are_cautioned_about(tmp_path):
    hot, cold = write_pair(tmp_path, shift=2.0)
    found = found_thermalisation(cold)
    assert (found.thermalised, found.starts.agree) == (False, False)
    assert found.cautions == [found.starts.sentence]
    assert "disagree even in the last half of their updates" in found.starts.sentence
    said = call_apart("plot", "plaquette", hot, "--skip", "50", "--output", tmp_path / "p.svg")[1]
    assert "disagree even in the last half" in said
    short_hot, _ = write_pair(tmp_path / "short", samples=30)
    assert compared_starts(short_hot).agree is None
    assert "too short to tell" in found_thermalisation(short_hot).sentence


def test_only_chains_with_the_same_parameters_are_compared(tmp_path):
    hot, cold = write_pair(tmp_path)
    run = Run(cold)
    parameters, sessions = run.read()
    assert compared_starts(hot)
    for other in ({"beta": 5.8}, {"start": "hot"}):
        run.write(type(parameters).from_run({**parameters.values(), **other}), sessions)
        assert compared_starts(hot) is None
    (cold / "run.toml").write_text("damaged")
    assert compared_starts(hot) is None
    assert compared_starts(tmp_path) is None
