"""Determinations from beginning to end, on tiny lattices."""

import json
import math
import os
import signal
import threading
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.determinations import (
    MOST_GROWTH,
    Look,
    beta_in_literature,
    extent_in_literature,
    goals,
    lattice_of,
    plan_of,
    relative_error,
)
from gauge_mc.errors import UsageError
from gauge_mc.files.table import read_table
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.quoted import Goal, QuotedNumber, quoted_number
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import parse_time
from gauge_mc.run.state import saved_updates
from tests.calls import call
from tests.patience import wait_for

pytestmark = pytest.mark.kernels

TINY = {"group": "su2", "beta": 2.2, "lattice": "4x4x4x4", "backend": "cpu", "threads": 1}
SHORT = {**TINY, "thermalize": 10, "progress": False}


@dataclass(frozen=True, repr=False)
class MeanResult(FitResult):
    """The mean plaquette."""

    mean: Estimate

    def values(self):
        return {"observable": "the plaquette", "units": "none", **asdict(self)}

    def report(self):
        return []

    def quoted(self):
        return [quoted_number("P (all)", self.mean, 1e-5)]


class MeanFit(Fit):
    """The mean plaquette, which takes no time."""

    name = "mean"
    summary = "the mean plaquette"
    columns = ("plaquette",)
    content = (MeanResult,)
    goals = tuple(
        Goal(name=name, summary="", symbols=(name.upper(),), measure="plaquette:2", separation=2)
        for name in "pq"
    )

    def carry_out(self, tables, **options):
        return MeanResult(estimate(read_table(tables[0])["plaquette"]))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with numbers that take no time, and no report, which takes longest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(FITS._registered, "mean", MeanFit())
    monkeypatch.setattr("gauge_mc.reports.page.report", lambda path: SimpleNamespace(file="page"))
    return tmp_path


def table(path):
    return (Path(path) / "plaquette.csv").read_bytes()


def ordinary(configs):
    sampling = {"measure": "plaquette:2", "separation": 2, "configs": configs, "format": "none"}
    return table(gauge_mc.generate(**SHORT, **sampling, output="ordinary"))


def test_an_error_is_reached_and_a_smaller_one_continues():
    """The run is the ordinary one of its length."""
    first = gauge_mc.determine("p", error=0.01, **SHORT)
    assert (first.reached, first.ended) == (True, "the wanted error is reached")
    assert first.error <= 0.01
    assert first.configurations[0] == 20
    assert first.path == "runs/determine_mean_su2_b2.2_4x4x4x4"
    again = gauge_mc.determine("p", error=0.01, **SHORT)
    assert (again.number, again.error) == (first.number, first.error)
    assert again.configurations == first.configurations[-1:]
    better = gauge_mc.determine("p", error="0.2%", **SHORT)
    configs = better.configurations
    assert (better.path, better.reached) == (first.path, True)
    assert configs[0] == first.configurations[-1] < configs[-1]
    assert all(b <= MOST_GROWTH * a for a, b in pairwise(configs))
    assert table(better.path) == ordinary(configs[-1])
    written = json.loads((Path(better.path) / "mean.json").read_text())["result"][0]
    assert written["value"] == better.number.value
    quoted = gauge_mc.fit("mean", better.path).result[0]
    assert (quoted, Look(0, quoted).error) == (better.number, better.error)


@pytest.mark.slow
def test_a_time_is_spent_and_no_more():
    found = gauge_mc.determine("p", time=4, error=5e-5, **SHORT)
    assert (found.ended, found.stopped, found.reached) == ("the time is spent", None, False)
    whole = ordinary(Run(Path(found.path)).read()[0].configs)
    rows = table(found.path).rpartition(b"# sha256")[0]
    assert whole.startswith(rows)
    assert len(rows) < len(whole.rpartition(b"# sha256")[0])  # it was stopped within a block
    assert found.remaining > 4
    assert "more to the goal" in str(found)


def test_a_signal_stops_in_order_and_the_same_call_continues():
    path = plan_of("p", 0.1, None, TINY).study().path

    def interrupt():
        wait_for(lambda: (path / "plaquette.csv").exists())
        os.kill(os.getpid(), signal.SIGINT)

    usual = signal.getsignal(signal.SIGINT)
    threading.Thread(target=interrupt).start()
    found = gauge_mc.determine("p", error=2e-5, **SHORT)
    assert (found.stopped, found.ended) == ("SIGINT", "stopped by SIGINT")
    assert signal.getsignal(signal.SIGINT) is usual
    stopped_at = saved_updates(Run(path))
    assert gauge_mc.determine("p", error=0.01, **SHORT).reached
    assert saved_updates(Run(path)) >= stopped_at
    assert table(path) == ordinary(Run(path).read()[0].configs)


def test_no_number_ends_a_determination_without_a_time():
    found = gauge_mc.determine("q", error=0.01, **SHORT)
    assert (found.number, found.reached, len(found.configurations)) == (None, False, 5)
    assert "result: none, 5 fits in succession have no number, because" in str(found)


def test_options_that_are_chosen_are_refused():
    with pytest.raises(UsageError, match="configs is chosen for p"):
        gauge_mc.determine("p", error=0.1, configs=5, **SHORT)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("t0",), "needs --error, --time or both"),
        (("r1", "--error", "1%"), "There is no number 'r1'"),
        (("t0", "--error", "1%", "--nt", 4), "There is no parameter 'nt'"),
        (("beta-c", "--error", "1%"), "beta-c needs --nt"),
        (("beta-c", "--error", "1%", "--nt", 4), "name a --beta near beta-c"),
    ],
)
def test_what_is_missing_or_wrong_is_refused(folder, words, sentence):
    shown, code = call("determine", *words)
    assert (code, sentence in shown) == (2, True), shown
    assert not (folder / "runs").exists()


@pytest.mark.slow
def test_the_command_line_tells_what_it_does(folder):
    options = {**TINY, "lattice": "6x6x6x6", "target": 0.05}
    words = [word for name, one in options.items() for word in (f"--{name}", str(one))]
    shown, code = call("determine", "t0", *words, "--error", "50%")
    assert code == 0, shown
    assert "the wanted error is reached" in shown.splitlines()[-1]
    shown, code = call("determine", "t0", *words, "--error", "0.2%", "--time", "1s", "--json")
    assert code == 0, shown
    document = json.loads(shown[shown.index("{") :])
    assert (document["name"], document["reached"], document["wanted"]) == ("t0", False, 2e-3)
    assert call("determine", "t0", *words, "--time", "1s", "--target", 50, "--quiet")[1] == 1


@pytest.mark.slow
def test_a_critical_coupling_is_determined():
    """beta_c = 1.8735(4) at N_t = 2 (J. Fingberg, U. Heller and F. Karsch, hep-lat/9208012)."""
    lattices = "4x4x4x2,6x6x6x2,8x8x8x2"
    values = {"group": "su2", "beta": 1.86, "lattice": lattices, "nt": 2, "backend": "cpu"}
    found = gauge_mc.determine("beta-c", error=0.03, progress=False, **values)
    assert found.reached
    assert found.number.name == "β_c"
    assert abs(found.number.value - 1.8735) < 4 * found.number.error


@pytest.mark.parametrize(
    ("text", "value"), [("0.5%", 0.005), ("0.005", 0.005), (0.02, 0.02), (" 3 %", 0.03)]
)
def test_relative_errors(text, value):
    assert relative_error(text) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90),
        (7.5, 7.5),
        ("90s", 90),
        ("10m", 600),
        ("1.5h", 5400),
        ("2d", 172800),
        ("00:10:00", 600),
        ("1 H", 3600),
    ],
)
def test_times(text, value):
    assert parse_time(text, "--time") == value


@pytest.mark.parametrize("text", ["", "%", "0", "0%", "-1%", "100%", "1", "nan", "1e999", "one"])
def test_impossible_errors_are_refused(text):
    with pytest.raises(UsageError, match="--error is"):
        relative_error(text)


@pytest.mark.parametrize("text", ["", "0", "-5", "10 minutes", "nan", "1e9", "m"])
def test_impossible_times_are_refused(text):
    with pytest.raises(UsageError, match="--time is"):
        parse_time(text, "--time")


def test_predicted_statistics_give_the_wanted_error():
    """The error of means of normal numbers, some with a constant error besides."""
    rng, n, mean = np.random.default_rng(3), 500, 4.0
    for systematic, error in ((None, 0.01), (0.02, 0.01), (0.03, 0.0101)):
        sample = mean + rng.normal(size=n)
        quoted = QuotedNumber("x", mean, float(sample.std(ddof=1)) / math.sqrt(n), systematic)
        growth = Look(n, quoted).growth(error)
        later = [rng.normal(size=round(n * growth)).mean() for _ in range(400)]
        measured = math.hypot(float(np.std(later)), systematic or 0.0) / mean
        assert measured == pytest.approx(error, rel=0.12)  # 0.035 from 400 samples, 0.03 from n
    assert Look(n, QuotedNumber("x", 4.0, 0.1, 0.041)).growth(0.01) == math.inf
    assert Look(n, QuotedNumber("x", -4.0, 0.03, 0.04)).error == pytest.approx(0.0125)


def test_lattices_for_known_lengths():
    """r0/a = 5.368(33) at beta = 6.0 (hep-lat/0108008, table 1), so that 3.2 r0 is 17.2."""
    _, goal = goals()["r0"]
    extent, why = extent_in_literature(goal, Parameters(group="su3", beta=6.0))
    assert extent == pytest.approx(3.2 * 5.368, rel=0.01)
    assert "hep-lat/0108008" in why
    assert str(lattice_of(extent)) == "20x20x20x20"
    assert str(lattice_of(12.0)) == "12x12x12x12"
    assert str(lattice_of(9.1, 2.0)) == "12x12x12x20"
    assert str(lattice_of(1.0)) == "8x8x8x8"
    assert extent_in_literature(goal, Parameters(group="su2", beta=2.4)) is None
    assert extent_in_literature(goal, Parameters(group="su3", beta=6.0, action="iwasaki")) is None


def test_known_lengths_place_the_transition():
    """Critical couplings of SU(3), arXiv:1503.05652 and hep-lat/9602007."""
    _, goal = goals()["beta-c"]
    for extent, critical in ((4, 5.6925), (6, 5.8941), (8, 6.0609), (12, 6.3384)):
        beta = beta_in_literature(goal, Parameters(group="su3"), extent)
        assert beta == pytest.approx(critical, rel=0.01)
    assert beta_in_literature(goal, Parameters(group="su3"), 100) is None
    assert beta_in_literature(goal, Parameters(group="su2"), 4) is None


def test_goals_are_found_among_quoted_numbers():
    _, goal = goals()["beta-c"]
    known = QuotedNumber("β_χ (12x12x12x4)", 2.3, 0.1)
    better = QuotedNumber("β_c", 2.29, 0.1)
    unknown = QuotedNumber("β_c", math.nan, 0.1)
    others = [QuotedNumber("T_c r₀", 0.7, 0.1), QuotedNumber("β_c2", 1.0, 0.1)]
    assert goal.number([*others, known, better]) is better
    assert goal.number([unknown, known]) is known
    assert goal.number(others) is None
