"""What commands work on: runs, chains, scans, folders; and what is taken if nothing is named."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import UsageError
from gauge_mc.files.table import read_table
from gauge_mc.quantities.transition.thermal_runs import lacking_action
from gauge_mc.registry import in_words
from gauge_mc.run.chain import Batch
from gauge_mc.run.directory import chains_of
from gauge_mc.run.parameters import Parameters
from gauge_mc.stored import runs_of
from tests.calls import call, call_apart

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]  # a scan and three chains

HERE = ("--backend=cpu", "--threads=1")
SMALL = ("--lattice=4x4x4x4", "--thermalize=2", "--separation=2", "--backend=cpu", "--threads=1")
CHAINS = [Path(f"runs/su2_b2.5_4x4x4x4_chain{number}") for number in (1, 2, 10)]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Three chains of one ensemble, one of which has another number, and a scan of two runs."""
    folder = tmp_path_factory.mktemp("targets")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        scan = ("--beta=2.2,2.3", "--quiet", "--configs=2", "--output=grid")
        assert call_apart("scan", *SMALL, *scan)[2] == 0
        assert call_apart("generate", *SMALL, "--chains=3", "--configs=3", "--quiet")[2] == 0
        Path("runs/su2_b2.5_4x4x4x4_chain3").rename(CHAINS[2])
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")


def tables(name="plaquette_configs.csv"):
    return sorted(str(path.parent) for path in Path().rglob(name))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], CHAINS),
        (["runs"], CHAINS),
        (CHAINS[:2], CHAINS[:2]),
        (["grid", CHAINS[0]], ["grid/b2.2_4x4x4x4_chain1", "grid/b2.3_4x4x4x4_chain1", CHAINS[0]]),
    ],
)
def test_measure_takes_runs_chains_and_scans(words, expected):
    out, code = call("measure", "plaquette", *words, "--backend=cpu", "--threads=1")
    assert code == 0
    assert tables() == sorted(map(str, expected))
    assert all(f"{one}/plaquette_configs.csv" in out for one in map(str, expected))


@pytest.fixture
def folders(here):
    """Two folders of configurations, of which the first also has notes."""
    shutil.copytree(CHAINS[0] / "configs", "one")
    shutil.copytree(CHAINS[1] / "configs", "two/configs")
    Path("one/notes.txt").write_text("not a configuration")
    return Path("one"), Path("two/configs")


OVER = "passed over in one, not configurations: notes.txt"


def test_measure_names_tables_after_folders_of_configurations(folders):
    out, code = call("measure", "plaquette", *folders, "--backend=cpu")
    assert (code, out.count(OVER)) == (0, 1)
    for name in ("one", "two"):
        assert read_table(Path(f"plaquette_{name}.csv"))["sweep"].tolist() == [4, 6, 8]
    shutil.copytree("one", "other/one")
    _, refusals, code = call_apart("measure", "plaquette", "one", "other/one", *HERE)
    assert (code, "would both have the table plaquette_one.csv" in refusals) == (1, True)
    assert call("measure", "plaquette", "other/one", "--backend=cpu", "--output=c.csv")[1] == 0
    Path("one/0000006.lime").write_bytes(Path("one/0000006.lime").read_bytes()[:1000])
    assert "0000006.lime is damaged" in call("measure", "plaquette", "one", "--output=b.csv")[0]


def test_other_commands_take_folders_of_configurations(folders):
    shown = call("info", "one")[0]
    assert f"passed_over          {OVER}" in shown
    assert json.loads(call("info", "one", "--json")[0])["configurations"] == 3
    assert "file                 one/0000008.lime" in shown
    checked, code = call("verify", *folders)
    assert (code, OVER in checked, checked.count("plaquette 0.")) == (0, True, 6)
    complaint = call_apart("convert", *folders[:1], "--to=nersc", "--output=new")[1]
    assert complaint.count(OVER) == 1
    assert len([*Path("new").glob("*.nersc")]) == 3
    Path("one/0000006.lime").write_bytes(bytes(1000))  # one by its name still
    assert "Could not be checked here: 1 of 4 files, one/0000006.lime" in call("verify", "one")[0]
    runs = json.loads(call("info", "runs", "--json")[0])
    assert (runs["runs"], runs["configurations"]) == ([*map(str, CHAINS)], 0)


def test_the_configurations_of_a_run_stand_for_it():
    configs = CHAINS[0] / "configs"
    for command in ("info", "verify"):
        assert call(command, configs) == call(command, CHAINS[0])
    assert call("measure", "plaquette", configs, "--backend=cpu", "--every=2")[1] == 0
    assert tables() == [str(CHAINS[0])]
    assert call("convert", "grid", "--to=nersc", "--output=new")[1] == 2  # equal names of runs
    assert call("convert", configs, "--to=nersc", "--output=new")[1] == 0


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--every=2"], [6]),
        (["--skip=4"], [6, 8]),
        (["--skip=4", "--every-config=2"], [8]),
        (["--every=4"], "--skip 0 --every 4 leaves none of the 3 configurations"),
        (["--every=0.5"], "'0.5' is not a whole number"),
        (["--every=0"], "leaves none"),
        (["--skip=4", "--at=6"], "choose stored configurations, and --at updates"),
    ],
)
def test_stored_configurations_are_chosen(words, numbers):
    out, code = call("measure", "plaquette", CHAINS[0], *words, "--backend=cpu")
    if isinstance(numbers, str):
        assert (code, numbers in out) == (2, True)
    else:
        assert read_table(CHAINS[0] / "plaquette_configs.csv")["sweep"].tolist() == numbers


@pytest.mark.parametrize(("at", "more"), [("3:8:1", 3), ("4,8", 0)])
def test_only_what_is_not_stored_is_made(at, more, monkeypatch):
    updates = []
    update = Batch.update
    monkeypatch.setattr(Batch, "update", lambda self: updates.append(self.sweep) or update(self))
    out, complaint, code = call_apart("measure", "plaquette", CHAINS[0], "--at", at, *HERE)
    assert (code, f"read, {more} to be made" in out + complaint) == (0, True)
    assert bool(updates) == bool(more)
    table = read_table(CHAINS[0] / "plaquette_at.csv")
    along = read_table(CHAINS[0] / "plaquette.csv")
    numbers = [*range(3, 9)] if more else [4, 8]
    assert table["sweep"].tolist() == numbers
    np.testing.assert_allclose(table["plaquette"], along["plaquette"][[n - 3 for n in numbers]])


def test_one_refusal_does_not_lose_the_measurements_of_other_runs():
    shutil.rmtree(CHAINS[0] / "configs")
    out, complaint, code = call_apart("measure", "plaquette", "runs", "--json", "--backend=cpu")
    found = json.loads(out)
    assert code == 1
    assert len(found["tables"]) == len(tables()) == 2
    assert found["failures"][0] in complaint
    assert "1 of 3 ensembles could not be measured" in complaint


def test_other_commands_take_all_chains_too():
    assert call("measure", "wilson-loops", "--backend=cpu")[1] == 0
    assert call("fit", "creutz")[1] == 0
    assert tables("creutz*.json") == [str(CHAINS[0])]  # of all chains
    assert call("fit", "creutz", "--separate")[1] == 0
    assert tables("creutz*.json") == sorted(map(str, [CHAINS[0], *CHAINS]))
    checked = call("verify")[0]
    assert all(f"{one}/run.toml" in checked for one in map(str, CHAINS))
    assert (
        checked == f"taken, the newest: {in_words(map(str, CHAINS))}\n{call('verify', 'runs')[0]}"
    )


@pytest.mark.parametrize("command", ["status", "info", "watch"])
def test_commands_for_one_run_say_that_it_is_one_of_several_chains(command):
    newest = "su2_b2.5_4x4x4x4_chain"
    assert "is one of 3 chains; name another, such as runs/" in call_apart(command, "--json")[1]
    assert newest in call_apart(command, "--json")[0]


def test_python_asks_for_one_of_the_chains():
    for function in (gauge_mc.open_run, lambda: gauge_mc.measure(None, "plaquette")):
        with pytest.raises(UsageError, match=r"one of 3 chains, .*chain1 to .*chain10; name one"):
            function()
    with pytest.raises(UsageError, match="consists of 3 runs or ensembles; fit them one by one"):
        gauge_mc.fit("creutz")
    with pytest.raises(UsageError, match="runs consists of 3 runs or ensembles"):
        gauge_mc.fit("creutz", "runs")


def test_runs_with_other_parameters_are_no_chains_of_the_ensemble():
    toml = CHAINS[1] / "run.toml"
    toml.write_text(toml.read_text().replace("overrelax = 4", "overrelax = 3"))
    assert chains_of(CHAINS[0]) == [CHAINS[0], CHAINS[2]]
    assert chains_of(CHAINS[1]) == [CHAINS[1]]
    assert runs_of([Path("runs")]) == CHAINS


def test_what_is_wrong_with_every_run_is_said_once():
    said = call_apart("measure", "wilson-loops", "grid", "--r-max=9", "--backend=cpu")[1]
    first, last = said.splitlines()
    assert "--r-max is 9; on" in first
    assert re.fullmatch(r"gauge-mc: (\d) of \1 ensembles could not be measured; see above\.", last)


def test_a_scan_measures_the_loops_of_its_action():
    """So that its value is known; before, a long scan was lost for the fits of scans."""
    usual = Parameters.from_values({"group": "su3", "action": "luscher-weisz", "u0": 0.9})
    names = [item.observable for item in usual.measure]
    assert names == ["parallelograms", "plaquette", "polyakov", "rectangles"]
    assert [item.observable for item in Parameters().measure] == ["plaquette", "polyakov"]
    assert lacking_action(usual) is None
    only = Parameters.from_values({"measure": "polyakov:2", "action": "symanzik"})
    assert "with --measure plaquette:2,polyakov:2,rectangles:2" in str(lacking_action(only))
    assert lacking_action(Parameters.from_values({"measure": "none"})) is None
