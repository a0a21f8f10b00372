"""`--skip auto`: what it leaves out of series, tables, fits, plots and scans."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.analysis.timeseries import thermalisation, transient
from gauge_mc.errors import UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.quantities.transition.thermal_runs import read_thermal_runs
from gauge_mc.run.thermalisation import AUTO, found_thermalisation, last_skipped, series_of
from tests.analysis.synthetic_loops import autoregressive
from tests.calls import call, call_apart
from tests.quantities.test_hmc import write_trajectories
from tests.quantities.transition.synthetic import LATTICES, two_phase_chain
from tests.quantities.transition.test_transition import write_run

RHO = 9 / 11
"""Correlation of neighbours for tau_int = 5."""


def with_transient(chain, size, time):
    return chain + size * np.exp(-np.arange(chain.size) / time)


@pytest.mark.parametrize(("rho", "size", "time"), [(0.0, 5, 20), (RHO, 5, 20), (0.0, 1, 100)])
def test_averages_after_a_transient_are_unbiased(rho, size, time):
    """The last transient is below the noise of single samples, so that only bins show it."""
    tau = (1 + rho) / (1 - rho) / 2
    pulls, plain = [], []
    for chain in autoregressive(np.random.default_rng(2), 1000, 100, rho).T:
        series = with_transient(chain, size, time)
        for found, count in ((pulls, thermalisation(series)), (plain, transient(series))):
            rest = series[count:]
            found.append(rest.mean() / math.sqrt(2 * tau / rest.size))
    assert np.mean(pulls) < (1.0 if time == 100 else 0.3)
    assert np.std(pulls) < 1.4
    assert np.mean(pulls) < np.mean(plain)


@pytest.mark.parametrize("rho", [0.0, RHO, 39 / 41])
def test_a_stationary_series_loses_little(rho):
    chains = autoregressive(np.random.default_rng(3), 1000, 100, rho).T
    counts = [thermalisation(chain) for chain in chains]
    assert np.mean(counts) < 0.03 * 1000
    assert np.median(counts) == 0


def test_short_constant_and_broken_series_lose_nothing():
    for series in ([], [1.0, 2.0], np.ones(500), [*range(100), math.nan]):
        assert thermalisation(series) == 0
    assert 0 < thermalisation(np.linspace(0, 1, 1000)) <= 500


def write_plaquettes(folder, values, start=1, name="plaquette"):
    folder.mkdir(exist_ok=True, parents=True)
    rows = [(start + 2 * n, v, v, v) for n, v in enumerate(values.tolist())]
    header = {"observable": name, "group": "su3", "beta": "6.0", "lattice": "4x4x4x8"}
    names = ("sweep", "plaquette", "spatial", "temporal")
    write_table(folder / f"{name}.csv", header, names, rows)
    return folder


def test_the_slowest_series_of_a_run_decides(tmp_path):
    one, two = autoregressive(np.random.default_rng(4), 600, 2, 0.5).T
    run = write_plaquettes(tmp_path / "run", with_transient(one, 5, 10))
    alone = found_thermalisation(run)
    assert 20 < alone.update < 200
    assert alone.update % 2 == 1  # that of a measurement
    assert alone.series.endswith("in plaquette.csv")
    slow = with_transient(two, 5, 40)
    header = {"observable": "mine"}
    write_table(run / "mine.csv", header, ("sweep", "value"), enumerate(slow.tolist()))
    both = found_thermalisation(run)  # and the table has not been taken from memory
    assert both.series == "value in mine.csv"
    assert both.update == thermalisation(slow) - 1 > 60
    assert both.thermalised
    assert both.cautions == []
    (run / "mine.csv").write_text("damaged")
    assert found_thermalisation(run) == alone
    assert (last_skipped(run, AUTO), last_skipped(run, 7)) == (alone.update, 7)


def test_a_run_that_has_not_thermalised_says_so(tmp_path):
    (noise,) = autoregressive(np.random.default_rng(5), 400, 1, 0.5).T
    run = write_plaquettes(tmp_path, noise + np.linspace(30, 0, 400))
    found = found_thermalisation(run)
    assert not found.thermalised
    assert "make it longer" in found.cautions[0]


def test_a_run_that_is_too_short_does_not_say_that_it_is_stationary(tmp_path):
    (noise,) = autoregressive(np.random.default_rng(5), 20, 1, 0.0).T
    known = found_thermalisation(write_plaquettes(tmp_path / "known", noise))
    assert known.thermalised is True
    assert "stationary from the start" in known.sentence
    short = found_thermalisation(write_plaquettes(tmp_path / "short", noise[:-1]))
    assert (short.update, short.thermalised, short.cautions) == (0, None, [])
    assert "too short to tell" in short.sentence


def test_rows_of_one_measurement_are_averaged(tmp_path):
    rows = [(n, t, 10.0 * n + t) for n in (5, 6, 9) for t in (0.5, 1.0, 3.0)]
    write_table(tmp_path / "flow.csv", {"observable": "mine"}, ("sweep", "time", "e"), rows)
    found = {
        name: (n.tolist(), x.tolist())
        for name, n, x in series_of(read_table(tmp_path / "flow.csv"))
    }
    assert found["mean e"] == ([5, 6, 9], [51.5, 61.5, 91.5])
    assert found["e, last row"] == ([5, 6, 9], [53.0, 63.0, 93.0])


def report_of(result):
    console = Console(width=200, file=io.StringIO())
    console.print(*result.whole_report(), sep="\n")
    return console.file.getvalue()


@pytest.mark.slow
def test_a_fit_skips_and_says_what(tmp_path):
    run = write_trajectories(tmp_path / "run", thermal=300)
    text = (run / "hmc.csv").read_text()
    (run / "hmc.csv").write_text(f"# observable: hmc\n{text}")
    auto = gauge_mc.fit("hmc", run, skip="auto")
    (found,) = auto.thermalisation
    assert 300 <= found.update - 10 < 800
    assert found.series.endswith("in hmc.csv")
    content = json.loads((run / "hmc.json").read_text())
    assert content["thermalisation"] == [
        {"run": str(run), "update": found.update, "series": found.series, "thermalised": True}
        | {"starts": None}
    ]
    assert f"Updates up to {found.update} of {run} are left out" in report_of(auto)
    number = gauge_mc.fit("hmc", run, skip=found.update)
    assert (
        number.values() == auto.values() == gauge_mc.fit("hmc", run / "hmc.csv", skip=AUTO).values()
    )
    assert number.values() != gauge_mc.fit("hmc", run).values()
    assert "thermalisation" not in json.loads((run / "hmc.json").read_text())
    shown, code = call("fit", "hmc", run, "--skip", "AUTO", "--json")
    assert (code, json.loads(shown)["thermalisation"][0]["update"]) == (0, found.update)
    assert "--skip': 'hot' is not a whole number or auto" in call(
        "fit", "hmc", run, "--skip", "hot"
    )[0].replace("\n", " ")
    with pytest.raises(UsageError, match="give a whole number or auto"):
        gauge_mc.fit("hmc", run, skip="hot")


def test_a_fit_of_runs_skips_each_by_itself(tmp_path):
    dice = np.random.default_rng(6)
    cuts = {}
    for beta, spoilt in ((5.69, 0), (5.70, 200)):
        chain = two_phase_chain(dice, beta, LATTICES[0], 1500)
        run = write_run(tmp_path / f"b{beta}", chain, LATTICES[0])
        table = read_table(run / "plaquette.csv")
        values = table["plaquette"] - 0.5 * (np.arange(1500) < spoilt)
        rows = zip(table["sweep"].tolist(), *[values.tolist()] * 3, strict=True)
        names = ("sweep", "plaquette", "spatial", "temporal")
        write_table(run / "plaquette.csv", table.header, names, rows)
        cuts[run] = found_thermalisation(run).update
        assert spoilt <= cuts[run] <= spoilt + 400
    runs = read_thermal_runs(tmp_path, AUTO)
    (chains,) = runs.chains.values()
    assert [one.sweeps[0] > cut for one, cut in zip(chains, cuts.values(), strict=True)] == [
        True
    ] * 2
    assert len({one.sweeps[0] for one in chains}) == 2
    result = gauge_mc.fit("transition", tmp_path, skip=AUTO, bootstrap=5)
    assert {one.run: one.update for one in result.thermalisation} == {
        str(run): cut for run, cut in cuts.items()
    }
    chosen = json.loads((tmp_path / "transition.json").read_text())["thermalisation"]
    assert [one["update"] for one in chosen] == list(cuts.values())


@pytest.mark.slow
def test_a_plot_skips_and_says_what(tmp_path):
    chains = autoregressive(np.random.default_rng(7), 500, 2, 0.5).T
    runs = [
        write_plaquettes(tmp_path / f"run{n}", with_transient(chain, 20, time))
        for n, (chain, time) in enumerate(zip(chains, (10, 30), strict=True))
    ]
    cuts = [found_thermalisation(run).update for run in runs]
    assert cuts[1] > cuts[0] > 0
    words = ("plaquette-beta", *runs, "--skip", "auto", "--output", tmp_path / "b.svg")
    shown, said, code = call_apart("plot", *words, "--json")
    assert code == 0
    assert f"gauge-mc: Updates up to {cuts[0]} of {runs[0]} are left out" in said
    (point,) = json.loads(shown)["points"]
    kept = [
        read_table(run / "plaquette.csv").after(n, "")["plaquette"]
        for run, n in zip(runs, cuts, strict=True)
    ]
    assert point["average"]["value"] == pytest.approx(np.concatenate(kept).mean(), rel=1e-12)
