"""Tables know which version made their rows, and another one measures them again if it is asked."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gauge_mc import __version__
from gauge_mc.files.table import read_table
from gauge_mc.run import parameters
from gauge_mc.stored.measurement_table import rows_of_others
from tests.calls import call, make_run
from tests.toys.installed import TOYS

pytestmark = pytest.mark.kernels

ONE_CORE = ("--backend", "cpu", "--threads", "1")
OLD, NEW = f"gauge-mc {__version__}", "gauge-mc 99.0"
SENTENCE = "Another version has measured polyakov on 3 of 3 configurations in the table"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", measure="plaquette")


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, "run"))


@pytest.fixture
def upgrade(monkeypatch):
    return lambda: monkeypatch.setattr(parameters, "__version__", "99.0")


def test_measure_says_that_another_version_has_measured(run, upgrade):
    """And the command that it prints measures again, keeping what there was."""
    table = run / "polyakov.csv"
    words = ("measure", "polyakov", run, *ONE_CORE)
    assert call(*words)[1] == 0
    before = table.read_bytes()
    assert f"# version: {OLD}\n".encode() in before
    assert b"# made by" not in before
    for more in (words, ("verify", run), ("info", run)):
        assert "another version" not in call(*more)[0].lower()

    upgrade()
    shown, code = call(*words)
    assert (code, table.read_bytes()) == (0, before)
    assert f"{SENTENCE} run/polyakov.csv; this measures them again and keeps" in shown
    printed = shown.partition("the new one: ")[2].partition("\n")[0]
    checked, code = call("verify", run)
    assert code == 0
    assert "good  run/polyakov.csv  records: 3, 3 of them by another version" in checked
    assert "; 3 by another version" in call("info", run)[0]
    document = json.loads(call(*words, "--json")[0])
    assert document["records_of_others"] == 3

    program, *words = shlex.split(printed)
    assert (program, words[-1]) == ("gauge-mc", "--again")
    shown, code = call(*words)
    assert (code, "The previous table is kept as run/polyakov.csv.1." in shown) == (0, True), shown
    assert (run / "polyakov.csv.1").read_bytes() == before
    after = table.read_bytes()
    assert f"# version: {NEW}\n".encode() in after
    assert OLD.encode() not in after
    for more in ((), ("--again",)):  # there is nothing left to measure again
        assert "nother version" not in call("measure", "polyakov", run, *ONE_CORE, *more)[0]
    assert table.read_bytes() == after
    assert call("verify", run / "polyakov.csv.1")[1] == 0
    assert sorted(one.name for one in run.glob("polyakov*")) == ["polyakov.csv", "polyakov.csv.1"]


def test_tables_of_before_are_never_replaced(run, upgrade, monkeypatch):
    words = ("measure", "polyakov", run, *ONE_CORE, "--again")
    contents = []
    for number in ("99.0", "99.1", "99.2"):
        monkeypatch.setattr(parameters, "__version__", number)
        assert call(*words)[1] == 0
        contents.append((run / "polyakov.csv").read_bytes())
    assert len({*contents}) == 3
    names = ("polyakov.csv.1", "polyakov.csv.2", "polyakov.csv")
    assert [(run / name).read_bytes() for name in names] == contents


@pytest.mark.slow
def test_new_configurations_are_measured_by_the_present_version(run, upgrade):
    table, words = run / "polyakov.csv", ("measure", "polyakov", run, *ONE_CORE)
    assert call(*words)[1] == 0
    upgrade()
    assert call("generate", "--output", run, "--configs", "5", "--quiet", *ONE_CORE)[1] == 0
    shown, code = call(*words)
    assert code == 0
    assert SENTENCE in shown  # three had been measured before
    found = read_table(table)
    assert (found.makers, len(found)) == ({0: OLD, 3: NEW}, 5)
    assert rows_of_others(table, found) == 3
    whole = table.read_bytes()
    line = f"# made by: {NEW}\n".encode()
    begin = whole.index(line)
    for cut in (begin, begin + 5, begin + len(line), begin + len(line) + 20, len(whole) - 3):
        table.write_bytes(whole[:cut])  # as a kill leaves it
        assert call(*words)[1] == 0
        assert table.read_bytes() == whole


def test_tables_with_digests_of_sources_are_measured_on(run):
    """Earlier versions wrote them."""
    table, words = run / "polyakov.csv", ("measure", "polyakov", run, *ONE_CORE)
    assert call(*words)[1] == 0
    text = table.read_text()[: table.read_text().index("# sha256")]
    old = text.replace("# configuration 5:", "# sources: 0123456789abcdef\n# configuration 5:")
    assert old != text
    table.write_text(old)
    shown, code = call(*words)
    assert (code, "nother version" in shown) == (0, False)
    assert call("verify", run)[1] == 0
    assert len(read_table(table)) == 3


@pytest.mark.slow
def test_configurations_that_are_made_again_are_measured_again(run, upgrade):
    words = ("measure", "polyakov", run, "--at", "6:10:2", *ONE_CORE)
    assert call(*words)[1] == 0
    table = run / "polyakov_at.csv"
    before = table.read_bytes()
    upgrade()
    shown, code = call(*words)
    assert (code, f"{SENTENCE} run/polyakov_at.csv" in shown) == (0, True), shown
    assert table.read_bytes() == before
    shown, code = call(*shlex.split(shown.partition("the new one: ")[2].partition("\n")[0])[1:])
    assert code == 0
    assert (run / "polyakov_at.csv.1").read_bytes() == before
    assert read_table(table).makers == {0: NEW}
    assert read_table(table)["sweep"].tolist() == [6, 8, 10]


@pytest.mark.slow
def test_a_run_that_measures_along_the_way_goes_on_with_another_version(tmp_path, upgrade):
    run = make_run(tmp_path / "along", measure="plaquette", algorithm="hmc", precision="double")
    upgrade()
    assert call("generate", "--output", run, "--configs", "4", "--quiet", *ONE_CORE)[1] == 0
    for name in ("plaquette", "hmc"):
        assert [*read_table(run / f"{name}.csv").makers.values()] == [OLD, NEW]
    assert read_table(run / "plaquette.csv").makers == {0: OLD, 9: NEW}
    checked, code = call("verify", run)
    assert code == 0
    assert "plaquette.csv  records: 12, 9 of them by another version" in checked


def write_package(folder):
    """Write a package with the toy observable; return the file that states its version."""
    package = folder / "own_traces"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    module = (TOYS / "gauge_mc_toys" / "link_trace.py").read_text()
    (package / "trace.py").write_text(module.replace("link-trace", "own-trace"))
    shutil.copy(TOYS / "gauge_mc_toys" / "link_trace.cu", package)
    about = folder / "own_traces-1.0.dist-info"
    about.mkdir()
    entry = "[gauge_mc.observables]\nown-trace = own_traces.trace:LinkTrace\n"
    (about / "entry_points.txt").write_text(entry)
    return about / "METADATA"


@pytest.mark.slow
def test_another_version_of_a_package_measures_again(run, tmp_path):
    """In other processes, which read what is installed."""
    site = tmp_path / "site"
    about = write_package(site)

    def start(number, *words):
        about.write_text(f"Metadata-Version: 2.1\nName: own-traces\nVersion: {number}\n")
        root = Path(parameters.__file__).parents[2]
        paths = [str(site), str(root), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-m", "gauge_mc", *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    words = ("measure", "own-trace", run, *ONE_CORE)
    start("1.0", *words)
    table = run / "own_trace.csv"
    assert read_table(table).makers == {0: f"{OLD}, own-traces 1.0"}
    assert "nother version" not in start("1.0", *words)
    printed = start("1.1", *words).partition("the new one: ")[2]
    program, *again = shlex.split(printed.partition("\n")[0])
    assert program == "gauge-mc"
    start("1.1", *again)
    assert read_table(table).makers == {0: f"{OLD}, own-traces 1.1"}
    assert read_table(run / "own_trace.csv.1").makers == {0: f"{OLD}, own-traces 1.0"}


@pytest.mark.slow
def test_tables_that_state_no_version_are_read_and_continued_in_silence(run, upgrade):
    table, words = run / "polyakov.csv", ("measure", "polyakov", run, *ONE_CORE)
    assert call(*words)[1] == 0
    lines = table.read_text().splitlines(keepends=True)
    old = "".join(one for one in lines if not one.startswith(("# version", "# sha256")))
    table.write_text(old)
    upgrade()
    assert call("generate", "--output", run, "--configs", "4", "--quiet", *ONE_CORE)[1] == 0
    for more in (words, ("verify", table), ("info", table)):
        assert "nother version" not in call(*more)[0]
    assert table.read_text().startswith(old)
    assert read_table(table).makers == {3: NEW}
    shown = call(*words, "--again")[0]
    assert "is kept as run/polyakov.csv.1" in shown  # which version measured is not known
