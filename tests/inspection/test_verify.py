"""``gauge-mc verify``: all is good, or just what is damaged is named."""

import re
import shutil
import tracemalloc

import numpy as np
import pytest

from gauge_mc import generate
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UNCHECKED, UsageError
from gauge_mc.files.table import SEAL
from gauge_mc.inspection.verify import carry_out, checks_of
from gauge_mc.observables import OBSERVABLES
from tests.calls import TINY, call, make_run

FILES = [
    "run.toml",
    "checkpoint/latest",
    "plaquette.csv",
    "polyakov.csv",
    "configs/0000005.lime",
    "configs/0000008.lime",
    "configs/0000011.lime",
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run that nothing happened to, and others to take strange files from."""
    folder = tmp_path_factory.mktemp("verify")
    make_run(folder / "other", beta=2.2)
    make_run(folder / "su3", group="su3", precision="double")
    return make_run(folder / "run")


@pytest.fixture
def run(good, tmp_path):
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


def bad(path):
    """Return the files that are damaged, with what is said of them; all can be checked."""
    verdicts = [carry_out(check, lambda share: None) for check in checks_of(path)]
    assert None not in {one.sound for one in verdicts}, verdicts
    return {str(one.path.relative_to(path)): one.words for one in verdicts if not one.sound}


def flip(path, place, bit=3):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def truncate(path, count):
    path.write_bytes(path.read_bytes()[:-count])


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def unseal(path):
    """Remove the checksum of a table, as if the run were still at work, and return its path."""
    data = path.read_bytes()
    content, mark, _ = data.rpartition(SEAL)
    assert mark
    path.write_bytes(content)
    return path


def test_a_good_run(good):
    assert [str(check.path.relative_to(good)) for check in checks_of(good)] == FILES
    assert bad(good) == {}
    shown, code = call("verify", good)
    assert code == 0
    assert shown.count("good  ") == len(FILES)
    assert shown.count(", as in the table") == 3
    assert "All 7 files are good." in shown


@pytest.mark.slow
def test_runs_of_any_kind_are_good(tmp_path):
    kinds = {
        "su3": {"group": "su3", "precision": "double", "measure": "plaquette:2,polyakov:5"},
        "nersc": {"format": "nersc", "start": "hot"},
        "openqcd": {"group": "su3", "precision": "double", "format": "openqcd"},
        "hdf5": {"group": "su4", "format": "hdf5"},
        "unmeasured": {"measure": "none", "rng": "lcg"},
        "thermalising": {"configs": 0},
    }
    for name, values in kinds.items():
        assert bad(make_run(tmp_path / name, **values)) == {}, name


@pytest.mark.slow
def test_observables_of_a_users_own_are_verified_too(tmp_path):
    lattice = Lattice(4, 4, 4, 6)

    def corners(field):
        return field.to_numpy()[0, 0, :2, 0, 0, 0, 0].real

    loops = OBSERVABLES["wilson-loops"].for_lattice(lattice, r_max=1, t_max=2, smear="none")
    values = {**TINY, "threads": 1, "output": tmp_path / "run"}
    generate(values, observables=[corners, (loops, 2)], progress=False)
    run = tmp_path / "run"
    assert bad(run) == {}
    for name, row in (("corners", "4,1,"), ("wilson_loops", "8,0,100,1,2,")):
        table = unseal(run / f"{name}.csv")
        text = table.read_text()
        assert text.count(f"\n{row}") == 1
        table.write_text(re.sub(f"(?<=\n){row}.*\n", "", text))
    found = bad(run)
    assert found.keys() == {"corners.csv", "wilson_loops.csv"}
    assert "row 4 belongs to update 5 instead of 4" in found["corners.csv"]
    assert "row 6 belongs to update 10 instead of 8" in found["wilson_loops.csv"]


DAMAGE = {
    "bit of a link": (lambda run: flip(run / FILES[5], -2000), {FILES[5]: "is damaged"}),
    "short configuration": (lambda run: truncate(run / FILES[5], 8), {FILES[5]: "damaged"}),
    "exchanged configurations": (
        lambda run: [
            (run / "configs" / "x").unlink(missing_ok=True),
            (run / FILES[4]).rename(run / "configs" / "x"),
            (run / FILES[5]).rename(run / FILES[4]),
            (run / "configs" / "x").rename(run / FILES[5]),
        ],
        {FILES[4]: "in the table", FILES[5]: "in the table"},
    ),
    "missing configuration": (lambda run: (run / FILES[6]).unlink(), {FILES[6]: "is missing"}),
    "configuration of another run": (
        lambda run: shutil.copy(run.parent / "other" / FILES[4], run / FILES[4]),
        {FILES[4]: "in the table"},
    ),
    "configuration of another group": (
        lambda run: shutil.copy(run.parent / "su3" / FILES[4], run / FILES[4]),
        {FILES[4]: "its group is su3"},
    ),
    "digit of a table": (
        lambda run: replace(unseal(run / "plaquette.csv"), "\n7,0.", "\n7,1."),
        {"plaquette.csv": "update 7 contradict"},
    ),
    "number of a table": (
        lambda run: replace(unseal(run / "polyakov.csv"), "\n7,", "\n7,nan,1,1\n7,"),
        {"polyakov.csv": "row 5 contains nan for re"},
    ),
    "no numbers": (
        lambda run: (run / "plaquette.csv").write_text(
            "sweep,plaquette,spatial,temporal\n" + "".join(f"{i},x,y,z\n" for i in range(3, 12))
        ),
        {"plaquette.csv": "no number for plaquette"},
    ),
    "row of a table": (
        lambda run: replace(unseal(run / "plaquette.csv"), "\n6,", "\n#6,"),
        {"plaquette.csv": "sweep is not a number"},
    ),
    "end of a table": (
        lambda run: truncate(unseal(run / "polyakov.csv"), 9),
        {"polyakov.csv": "ends after 8 of 9 rows"},
    ),
    "end of a sealed table": (
        lambda run: truncate(run / "polyakov.csv", 100),
        {"polyakov.csv": "ends after 8 of 9 rows"},
    ),
    "bit of a sealed table": (
        lambda run: flip(run / "polyakov.csv", -100),
        {"polyakov.csv": "its checksum is not that of its last line"},
    ),
    "header of a sealed table": (
        lambda run: replace(run / "plaquette.csv", "units", "UNITS"),
        {"plaquette.csv": "its checksum is not that of its last line"},
    ),
    "columns of a table": (
        lambda run: replace(unseal(run / "plaquette.csv"), "\nsweep,plaq", "\nstep,plaq"),
        {"plaquette.csv": "has the columns step,plaquette,spatial,temporal"},
    ),
    "table of another run": (
        lambda run: shutil.copy(run.parent / "other" / "polyakov.csv", run / "polyakov.csv"),
        {"polyakov.csv": "its beta is 2.2"},
    ),
    "missing table": (lambda run: (run / "polyakov.csv").unlink(), {"polyakov.csv": "is missing"}),
    "record": (
        lambda run: replace(run / "run.toml", "beta = ", "beta = -"),
        {"run.toml": "is damaged"},
    ),
    "record and more": (
        lambda run: [
            replace(run / "run.toml", "beta", "bet"),
            flip(run / FILES[4], -2000),
            replace(unseal(run / "polyakov.csv"), "\n5,", "\n5,5,"),
        ],
        {"run.toml": "damaged", FILES[4]: "is damaged", "polyakov.csv": "Line"},
    ),
    "checkpoint": (
        lambda run: flip(run / "checkpoint" / "latest", -1000),
        {"checkpoint/latest": "checksum is wrong"},
    ),
    "checkpoint of another run": (
        lambda run: shutil.copy(run.parent / "other" / FILES[1], run / FILES[1]),
        {"checkpoint/latest": "other parameters"},
    ),
    "missing checkpoint": (
        lambda run: (run / "checkpoint" / "latest").unlink(),
        {"checkpoint/latest": "No such file"},
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_only_what_is_damaged_is_named(good, run, kind):
    for name in ("other", "su3"):
        (run.parent / name).symlink_to(good.parent / name)
    damage, expected = DAMAGE[kind]
    damage(run)
    found = bad(run)
    assert found.keys() == expected.keys()
    for name, words in expected.items():
        assert words in found[name]
        assert str(run) in found[name]
        assert "\n" not in found[name]


@pytest.mark.slow
def test_two_configurations_of_one_number(run):
    """They are an error wherever configurations are read, and do not disturb what continues."""
    first, second = (run / "configs" / f"0000008{ending}" for ending in (".lime", ".nersc"))
    call("convert", first, second, "--to", "nersc")
    sentence = (
        f"{first} and {second} both have the number 8, which must identify a configuration; "
        "move one of them out of the run."
    )
    assert bad(run) == {"configs/0000008.nersc": sentence}
    assert call("measure", "plaquette", run) == (f"gauge-mc: {sentence}\n", 1)
    shown, code = call("info", run)
    assert (sentence in shown, code) == (True, 1)
    assert "sessions" in shown
    make_run(run, configs=4)
    assert (run / "configs" / "0000014.lime").exists()
    first.unlink()
    assert bad(run) == {}


def test_damage_ends_in_exit_code_1(run):
    flip(run / FILES[4], -2000)
    (run / FILES[6]).unlink()
    shown, code = call("verify", run)
    assert code == 1
    assert shown.count("good  ") == 5
    assert shown.count("BAD   ") == 2
    assert f"Damaged or missing: 2 of 7 files, {run / FILES[4]}, {run / FILES[6]}." in shown


def test_single_files(good, run):
    flip(run / FILES[4], -2000)
    assert call("verify", *(good / name for name in FILES[4:]))[1] == 0
    shown, code = call("verify", good / FILES[5], run / FILES[4])
    assert (code, f"Damaged or missing: 1 of 2 files, {run / FILES[4]}." in shown) == (1, True)


def test_single_tables(good, run, tmp_path):
    shown, code = call("verify", good / "plaquette.csv", good / "polyakov.csv", good / FILES[4])
    assert code == 0
    assert shown.count("  records: 9\n") == 2
    assert "All 3 files are good." in shown
    lone = {}
    for name in ("lone.csv", "loops.txt"):  # the latter is recognised by its first bytes
        lone[name] = shutil.copy(good / "polyakov.csv", tmp_path / name)
    assert call("verify", *lone.values())[1] == 0
    for path in (*lone.values(), run / "polyakov.csv"):
        flip(path, -100)
        shown, code = call("verify", path)
        assert code == 1
        assert f"BAD   The table {path} is damaged: its checksum is not that of" in shown
        assert f"Damaged or missing: 1 of 1 files, {path}." in shown
    replace(unseal(run / "plaquette.csv"), "\n7,0.", "\n7,1.")
    assert "update 7 contradict" in call("verify", run / "plaquette.csv")[0]
    truncate(run / "plaquette.csv", 100)
    assert "is damaged: it ends after 7 of 9 rows" in call("verify", run / "plaquette.csv")[0]
    (tmp_path / "lone.csv").write_text("")
    assert "is not a table" in call("verify", tmp_path / "lone.csv")[0]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [unseal, lambda path: truncate(path, 9)])
def test_a_finished_table_without_its_checksum_is_noted(run, damage):
    damage(run / "plaquette.csv")
    note = "plaquette.csv  records: 9, caution: the last line, with the checksum, is missing"
    for path in (run, run / "plaquette.csv"):
        shown, code = call("verify", path)
        assert code == 0
        assert shown.count("caution") == 1
        assert note in shown
    make_run(run, configs=4)
    assert "caution" not in call("verify", run)[0]


def test_nothing_to_verify(tmp_path):
    for path, sentence in ((tmp_path, "no run in"), (tmp_path / "none", "no file or directory")):
        with pytest.raises(UsageError, match=sentence):
            checks_of(path)
        assert call("verify", path)[1] == 2


@pytest.mark.slow
def test_a_run_that_was_stopped(run):
    """What lies beyond the checkpoint is no damage: it will be written again."""
    stopped = make_run(run.parent / "stopped", configs=1)
    before = (stopped / "checkpoint" / "latest").read_bytes()
    make_run(stopped, configs=3)
    (stopped / "checkpoint" / "latest").write_bytes(before)
    with unseal(stopped / "plaquette.csv").open("a") as table:
        table.write("12,0.")
    assert bad(stopped) == {}
    assert "caution" not in call("verify", stopped)[0]  # it is not finished
    truncate(stopped / "polyakov.csv", 9)  # a kill while the checksum was written
    assert bad(stopped) == {}


def test_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    make_run(tmp_path / "run")
    monkeypatch.setattr("gauge_mc.devices.cpu.device.free_memory", lambda: 0)
    shown, code = call("verify", tmp_path / "run")
    assert code == UNCHECKED
    assert shown.count("cannot be checked here: ") == 3
    assert shown.count("cannot be allocated") == 3
    assert "BAD" not in shown
    assert "Could not be checked here: 3 of 7 files, " in shown


@pytest.mark.slow
@pytest.mark.parametrize("format", ["ildg", "nersc", "openqcd"])
def test_memory_does_not_grow_with_time(tmp_path, format):
    def peak(extent):
        lattice = Lattice(8, 8, 8, extent)
        path = tmp_path / f"{extent}"
        one = np.broadcast_to(np.eye(3, dtype=complex), (8, 8, 8, 4, 3, 3)).copy()
        write_configuration(path, (one for _ in range(extent)), lattice, "su3", "double", format)
        (check,) = checks_of(path)
        tracemalloc.start()
        try:
            check.carry_out(lambda share: None)
            return tracemalloc.get_traced_memory()[1] / one.nbytes
        finally:
            tracemalloc.stop()

    peak(4)
    short, long = peak(8), peak(32)
    assert long < 11
    assert long < 1.1 * short
