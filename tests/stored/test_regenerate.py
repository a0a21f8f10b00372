"""``gauge-mc regenerate``: configurations that were not kept, with the same bytes."""

import json
import shutil

import numpy as np
import pytest

from gauge_mc import measure, regenerate, thin
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from gauge_mc.stored.regenerate import StoredChain
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

ONE_CORE = ("--backend", "cpu", "--threads", "1")
HMC = "hmc:steps=3"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", configs=6)


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "every", configs=18, separation=1)


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def configs(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "configs").iterdir())}


def remove(run, *numbers):
    for number in numbers:
        Run(run).config(number, "ildg").unlink()


@pytest.fixture
def other_device(monkeypatch):
    """Let chains go on with other random numbers, as if a device computed otherwise."""
    taken_up = StoredChain.taken_up

    def otherwise(*args):
        chain = taken_up(*args)
        chain.random.step += 1
        return chain

    monkeypatch.setattr(StoredChain, "taken_up", otherwise)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"group": "su3", "precision": "double", "action": "symanzik"},
        {"rng": "lcg"},
        {"rng": "ranlux", "precision": "double"},
        {"sweeps": 2, "overrelax": 0, "start": "hot"},
        {"algorithm": HMC, "precision": "double", "thermalize": 8},
        {"algorithm": "hmc:acceptance=0.8", "precision": "double", "thermalize": 8},
    ],
    ids=lambda values: "-".join(map(str, values.values())) or "heatbath",
)
def test_the_bytes_are_those_of_the_run(tmp_path, values):
    run = make_run(tmp_path / "run", **{"configs": 5, **values})
    whole, numbers = configs(run), [*Run(run).configs()]
    remove(run, *numbers[1:3], numbers[4])
    found = regenerate(run, numbers, backend="cpu", threads=2, progress=False)
    assert (found.made, found.there) == (
        tuple(numbers[i] for i in (1, 2, 4)),
        (numbers[0], numbers[3]),
    )
    assert configs(run) == whole
    assert call("verify", run)[1] == 0


def test_updates_between_configurations(run, every, tmp_path):
    out = tmp_path / "some" / "more"
    shown, code = call("regenerate", run, "--at", "1,2,6:12:2,20", "--output", out, *ONE_CORE)
    assert (code, "made: 7 configurations" in shown) == (0, True), shown
    of_every = configs(every)
    numbers = [1, 2, 6, 8, 10, 12, 20]
    assert {path.name for path in out.iterdir()} == {f"{n:07d}.lime" for n in numbers}
    for number in (6, 8, 10, 12, 20):  # the others are part of the thermalisation there
        name = f"{number:07d}.lime"
        assert (out / name).read_bytes() == of_every[name]
    again = json.loads(call("regenerate", run, "--at", "2", "--output", out, "--json")[0])
    assert (again["made"], again["there"], again["updates"]) == ([], [2], 0)


def test_a_dry_run_says_what_it_takes(run):
    remove(run, 8, 11, 17)
    before = configs(run)
    shown, code = call("regenerate", run, "--at", "8:17:3", "--dry-run")
    assert code == 0
    assert shown.splitlines() == [
        "there already: 1 configuration (after updates 14)",
        "configuration 5: would be made again first",  # 5 updates, 6 to 11, and 3 to 17
        "would be made: 3 configurations, 14 updates (after updates 8, 11, 17)",
        f"{run}/configs",
    ]
    assert configs(run) == before


def test_nothing_is_written_if_other_links_are_made(run, tmp_path, other_device):
    remove(run, 11)
    before = configs(run)
    with pytest.raises(GaugeError, match=r"has other links than .*; the run was made on "):
        regenerate(run, 11, backend="cpu", threads=1)
    with pytest.raises(GaugeError, match="has other links than"):
        thin(run, 2)
    with pytest.raises(GaugeError, match="has other links than"):
        measure(run, "plaquette", at=11, progress=False)
    assert configs(run) == before
    assert not (run / "plaquette_at.csv").exists()
    assert thin(run, 2, unchecked=True).removed == (5, 17)


@pytest.mark.slow
def test_a_thinned_run_is_whole_again(run):
    whole = configs(run)
    assert call("thin", run, "--keep", "3", *ONE_CORE)[1] == 0
    assert [*Run(run).configs()] == [11, 20]
    regenerate(run, "5:20:3", progress=False)
    assert configs(run) == whole
    assert call("verify", run)[1] == 0


@pytest.mark.slow
def test_measurements_without_keeping(run, every):
    remove(run, 11)
    shown, code = call("measure", "plaquette", run, "--at", "6:20:2", *ONE_CORE)
    assert code == 0, shown
    found, known = read_table(run / "plaquette_at.csv"), read_table(every / "plaquette.csv")
    of_both = np.isin(known["sweep"], found["sweep"])
    for name in ("sweep", "plaquette"):
        np.testing.assert_allclose(found[name], known[name][of_both], rtol=1e-6)
    assert len(found) == 8
    assert [*Run(run).configs()] == [5, 8, 14, 17, 20]
    table = (run / "plaquette_at.csv").read_bytes()
    assert call("measure", "plaquette", run, "--at", "6:20:2", *ONE_CORE)[1] == 0
    assert (run / "plaquette_at.csv").read_bytes() == table
    assert "not equally spaced" in call("measure", "polyakov", run, "--at", "1,3,20")[0]
    assert call("verify", run / "plaquette_at.csv")[1] == 0


def test_a_run_that_keeps_no_configurations(every, tmp_path):
    run = make_run(tmp_path / "run", configs=6, format="none")
    with pytest.raises(UsageError, match="keeps no configurations, because its format is none"):
        regenerate(run, 8)
    shown = call("regenerate", run, "--at", "8", "--output", tmp_path / "out", *ONE_CORE)[0]
    assert "has no configuration with which this device could be compared" in shown
    file = tmp_path / "out" / "0000008.lime"
    assert file.read_bytes() == configs(every)["0000008.lime"]


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ("6", "keeps no configuration after update 6, but after every 3 updates from 5 on"),
        ("23", "has done 20 updates, so that update 23 cannot be made again"),
        ("0", "'0' is not a range of updates"),
        ("5:20", "'5:20' is not of the form FIRST:LAST:STEP"),
        ("5:20:4", "a whole number of steps"),
        ("20:5:3", "is not a range"),
        ("5:20:0", "is not a range"),
        ("1:99999999:1", "more than 1000000 updates"),
        ("a", "'a' is not a whole number. Give updates as in"),
        ("", "'' is not a whole number. Give updates as in"),
    ],
)
def test_updates_that_are_refused(made, at, sentence):
    shown, code = call("regenerate", made, "--at", at)
    assert (sentence in shown, code) == (True, 2), shown


def test_files_that_are_not_of_the_run(run, tmp_path):
    own = Run(run).config(8, "ildg")
    shutil.copy(own, Run(run).config(11, "ildg"))
    with pytest.raises(GaugeError, match="does not seem to be what the run has after update 11"):
        regenerate(run, "12", output=tmp_path / "out", progress=False)
    own.rename(own.with_name("0000009.lime"))
    assert 9 not in StoredChain.of(Run(run)).places


def test_runs_that_cannot_be_taken_up(run, tmp_path):
    with pytest.raises(UsageError, match="There is no run "):
        regenerate(tmp_path / "no", 5)
    assert (
        "give --output for others in nersc"
        in call("regenerate", run, "--at", "5", "--format", "nersc")[0]
    )
    (run / "checkpoint/latest").unlink()
    with pytest.raises(UsageError, match="has no checkpoint yet"):
        regenerate(run, 5)
