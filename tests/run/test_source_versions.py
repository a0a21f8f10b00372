"""Tables know which version of an observable's sources made their rows."""

import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gauge_mc import measure
from gauge_mc.devices.source import source_folder
from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.table import read_table
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run import source_versions
from gauge_mc.run.functions import FunctionObservable
from gauge_mc.run.source_versions import rows_of_others, sources_of
from tests.calls import call, call_apart, make_run
from tests.toys.installed import TOYS

ONE_CORE = ("--backend", "cpu", "--threads", "1")
NAME = "own-trace"
SENTENCE = f"Another version of the sources of {NAME} has measured 3 of 3 configurations in the"
PACKAGE = Path(source_versions.__file__).parent.parent


def forget():
    """Let versions be read from the files again, as another process reads them."""
    source_versions._sources_of.cache_clear()
    source_versions._imports.cache_clear()


def write_package(folder):
    """Write a package with an observable, a helper, a kernel and a header, and return its folder.

    The observable is the toy, whose kernel has a factor in a header.
    """
    package = folder / "own_traces"
    package.mkdir(parents=True)
    module = (TOYS / "gauge_mc_toys" / "link_trace.py").read_text().replace("link-trace", NAME)
    helped = module.replace(
        "from gauge_mc.", "from own_traces.helper import FACTOR\nfrom gauge_mc.", 1
    )
    helped = helped.replace("(float(total)", "(FACTOR * float(total)")
    assert helped.count("FACTOR") == 2
    kernel = (TOYS / "gauge_mc_toys" / "link_trace.cu").read_text()
    scaled = kernel.replace("values[0] = sum;", "values[0] = sum * broadcast(WEIGHT);")
    assert scaled != kernel
    texts = {
        "__init__.py": "",
        "trace.py": helped,
        "helper.py": "FACTOR = 1\n",
        "other.py": "FACTOR = 3\n",
        "link_trace.cu": '#include "weight.h"\n' + scaled,
        "weight.h": "constexpr int WEIGHT = 1;\n",
    }
    for name, text in texts.items():
        (package / name).write_text(text)
    about = folder / "own_traces-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-traces\nVersion: 1.0\n")
    entry = f"[gauge_mc.observables]\n{NAME} = own_traces.trace:LinkTrace\n"
    (about / "entry_points.txt").write_text(entry)
    return package


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package of `write_package`, whose observable is registered as long as a test lasts."""
    folder = write_package(tmp_path / "site")
    monkeypatch.syspath_prepend(str(folder.parent))
    forget()
    OBSERVABLES.register(importlib.import_module("own_traces.trace").LinkTrace)
    yield folder
    OBSERVABLES.remove(NAME)
    for module in [one for one in sys.modules if one.partition(".")[0] == "own_traces"]:
        del sys.modules[module]
    forget()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run")


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """A copy of a run, in the folder in which the test works."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, "run"))


def add(file, text):
    file.write_text(file.read_text() + text)
    forget()


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("trace.py", "# a comment\n", True),
        ("helper.py", "FACTOR = 2\n", True),
        ("link_trace.cu", "// a comment\n", True),
        ("weight.h", "\n", True),
        ("other.py", "FACTOR = 2\n", False),
    ],
)
def test_the_version_of_a_plugin_is_that_of_its_own_files(package, name, text, counts):
    before = sources_of(OBSERVABLES[NAME], "su3")
    assert len(before) == source_versions.DIGITS
    add(package / name, text)
    assert (sources_of(OBSERVABLES[NAME], "su3") != before) == counts


def test_line_ends_do_not_count(package):
    before = sources_of(OBSERVABLES[NAME], "su3")
    for file in package.iterdir():
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    forget()
    assert sources_of(OBSERVABLES[NAME], "su3") == before


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("observable", "file", "counts"),
    [
        ("plaquette", source_folder() / "kernels" / "plaquette.cu", True),
        ("plaquette", source_folder() / "group" / "su3.h", True),
        ("plaquette", source_folder() / "lattice" / "links.h", True),
        ("plaquette", PACKAGE / "quantities/plaquette/observables/plaquette.py", True),
        ("plaquette", PACKAGE / "fields" / "sums.py", True),
        ("rectangles", PACKAGE / "quantities/plaquette/observables/plaquette.py", True),
        ("wilson-loops", source_folder() / "kernels" / "ape.cu", True),
        ("wilson-loops", PACKAGE / "smearing" / "hyp.py", True),
        ("wilson-loops", PACKAGE / "temporal_links" / "hyp2.py", True),
        ("wilson-loops", source_folder() / "kernels" / "slab_steps.cu", True),
        ("flow", source_folder() / "kernels" / "flow_stage.cu", True),
        ("flow", source_folder() / "action" / "wilson.h", True),
        ("mesons", source_folder() / "kernels" / "hop.cu", True),
        ("mesons", source_folder() / "dirac" / "clover.h", True),
        ("mesons", PACKAGE / "quarks" / "solvers" / "cg.py", True),
        ("plaquette", source_folder() / "kernels" / "heatbath.cu", False),
        ("plaquette", source_folder() / "group" / "su2.h", False),
        ("plaquette", source_folder() / "arch" / "launch.h", False),
        ("plaquette", PACKAGE / "quantities/polyakov/observables/polyakov.py", False),
        ("plaquette", PACKAGE / "fields" / "field.py", False),
    ],
)
def test_what_belongs_to_the_version_of_an_observable(observable, file, counts, monkeypatch):
    assert file.is_file()
    forget()
    before = sources_of(OBSERVABLES[observable], "su3")
    read = source_versions._read
    changed = {"cu": "//", "h": "//", "py": "#"}
    monkeypatch.setattr(
        source_versions,
        "_read",
        lambda path: read(path) + changed[path.suffix[1:]] * (path == file),
    )
    forget()
    assert (sources_of(OBSERVABLES[observable], "su3") != before) == counts
    forget()


@pytest.mark.parametrize("name", OBSERVABLES)
def test_all_kernels_that_an_observable_declares_are_covered(name):
    """Those that are compiled before a run begins."""
    kind = OBSERVABLES[name]
    modules = source_versions._modules(kind.__module__).values()
    found = {*source_versions._kernels(map(vars, (*modules, kind)))}
    try:
        declared = {*kind.for_lattice(Lattice(4, 4, 4, 8)).kernels}
    except Exception:  # it needs options
        pytest.skip("it has no default options")
    assert declared <= found


@pytest.mark.slow
def test_versions_do_not_depend_on_what_has_been_imported():
    script = (
        "from gauge_mc.observables import OBSERVABLES\n"
        "from gauge_mc.run.source_versions import sources_of\n"
        "for name in sorted(OBSERVABLES, reverse=True):\n"
        "    print(name, sources_of(OBSERVABLES[name], 'su3'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    forget()
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found == {name: sources_of(one, "su3") for name, one in OBSERVABLES.items()}
    assert len({*found.values()}) == len(found)


def test_the_records_of_updates_have_no_version(run):
    hmc = make_run(Path("hmc"), algorithm="hmc", precision="double", configs=1)
    assert read_table(hmc / "hmc.csv").sources == {}
    assert list(read_table(run / "plaquette.csv").sources) == [0]


@pytest.mark.slow
def test_measure_says_that_another_version_has_measured(package, run):
    """And the command that it prints measures again, keeping what there was."""
    table = run / "own_trace.csv"
    assert call("measure", NAME, run, *ONE_CORE)[1] == 0
    before = table.read_bytes()
    first = sources_of(OBSERVABLES[NAME], "su2")
    assert before.count(b"# sources: ") == 1
    assert f"# sources: {first}\n# configuration 5: ".encode() in before
    for words in (("measure", NAME, run, *ONE_CORE), ("verify", run), ("info", run)):
        assert "another version" not in call(*words)[0].lower()

    add(package / "link_trace.cu", "// another version\n")
    shown, code = call("measure", NAME, run, *ONE_CORE)
    assert (code, table.read_bytes()) == (0, before)
    assert f"{SENTENCE} table run/own_trace.csv; this measures them again and keeps" in shown
    printed = shown.partition("the new one: ")[2].partition("\n")[0]
    checked, code = call("verify", run)
    assert code == 0
    others = "3 of them by another version of the observable's sources"
    assert f"good  run/own_trace.csv  records: 3, {others}" in checked
    assert checked.count("another version") == 1
    assert "trace; 3 by another version of the observable's sources" in call("info", run)[0]
    document = json.loads(call("measure", NAME, run, *ONE_CORE, "--json")[0])
    assert document["records_of_others"] == 3

    program, *words = shlex.split(printed)
    assert (program, words[-1]) == ("gauge-mc", "--again")
    shown, code = call(*words)
    assert code == 0
    assert "The table of before is kept as run/own_trace.csv.1." in shown
    assert (run / "own_trace.csv.1").read_bytes() == before
    second = sources_of(OBSERVABLES[NAME], "su2")
    assert table.read_bytes().count(f"# sources: {second}\n".encode()) == 1
    assert first.encode() not in table.read_bytes()
    after = table.read_bytes()
    for more in ((), ("--again",)):  # there is nothing left to measure again
        assert "nother version" not in call("measure", NAME, run, *ONE_CORE, *more)[0]
    assert table.read_bytes() == after
    assert call("verify", run / "own_trace.csv.1")[1] == 0
    assert sorted(one.name for one in run.glob("own_trace*")) == [
        "own_trace.csv",
        "own_trace.csv.1",
    ]

    add(package / "helper.py", "FACTOR = 2\n")
    assert call(*words)[1] == 0
    assert (run / "own_trace.csv.1").read_bytes() == before
    assert (run / "own_trace.csv.2").read_bytes() == after


@pytest.mark.slow
def test_new_configurations_are_measured_by_the_present_version(package, run):
    table = run / "own_trace.csv"
    assert call("measure", NAME, run, *ONE_CORE)[1] == 0
    first = sources_of(OBSERVABLES[NAME], "su2")
    add(package / "weight.h", "// another version\n")
    second = sources_of(OBSERVABLES[NAME], "su2")
    assert call("generate", "--output", run, "--configs", "5", "--quiet", *ONE_CORE)[1] == 0
    shown, code = call("measure", NAME, run, *ONE_CORE)
    assert code == 0
    assert SENTENCE in shown  # three had been measured before
    found = read_table(table)
    assert (found.sources, len(found)) == ({0: first, 3: second}, 5)
    assert rows_of_others(table, found) == 3
    whole = table.read_bytes()
    line = f"# sources: {second}\n".encode()
    begin = whole.index(line)
    for cut in (begin, begin + 5, begin + len(line), begin + len(line) + 20, len(whole) - 3):
        table.write_bytes(whole[:cut])  # as a kill leaves it
        assert call("measure", NAME, run, *ONE_CORE)[1] == 0
        assert table.read_bytes() == whole


@pytest.mark.slow
def test_tables_without_versions_are_read_and_continued_in_silence(package, run):
    table = run / "own_trace.csv"
    assert call("measure", NAME, run, *ONE_CORE)[1] == 0
    lines = table.read_text().splitlines(keepends=True)
    old = "".join(one for one in lines if not one.startswith(("# sources", "# sha256")))
    table.write_text(old)
    add(package / "weight.h", "// another version\n")
    assert call("generate", "--output", run, "--configs", "4", "--quiet", *ONE_CORE)[1] == 0
    for words in (("measure", NAME, run, *ONE_CORE), ("verify", run), ("info", run)):
        assert "nother version" not in call(*words)[0]
    assert table.read_text().startswith(old)
    assert read_table(table).sources == {3: sources_of(OBSERVABLES[NAME], "su2")}
    shown = call("measure", NAME, run, *ONE_CORE, "--again")[0]
    assert "is kept as run/own_trace.csv.1" in shown  # which version measured is not known


@pytest.mark.slow
def test_configurations_that_are_made_again_are_measured_again(package, run):
    words = ("measure", NAME, run, "--at", "6:10:2", *ONE_CORE)
    assert call(*words)[1] == 0
    table = run / "own_trace_at.csv"
    before = table.read_bytes()
    assert not call(*words)[0].startswith("\n")
    add(package / "trace.py", "# another version\n")
    shown, code = call(*words)
    assert code == 0
    assert f"{SENTENCE} table run/own_trace_at.csv" in shown
    assert table.read_bytes() == before
    shown, code = call(*shlex.split(shown.partition("the new one: ")[2].partition("\n")[0])[1:])
    assert code == 0
    assert (run / "own_trace_at.csv.1").read_bytes() == before
    assert [*read_table(table).sources.values()] == [sources_of(OBSERVABLES[NAME], "su2")]
    assert read_table(table)["sweep"].tolist() == [6, 8, 10]


@pytest.mark.slow
def test_a_run_that_measures_along_the_way_goes_on_with_another_version(package, tmp_path):
    run = make_run(tmp_path / "along", measure=f"plaquette,{NAME}")
    first = sources_of(OBSERVABLES[NAME], "su2")
    add(package / "trace.py", "# another version\n")
    assert call("generate", "--output", run, "--configs", "4", "--quiet", *ONE_CORE)[1] == 0
    second = sources_of(OBSERVABLES[NAME], "su2")
    assert read_table(run / "own_trace.csv").sources == {0: first, 9: second}
    assert [*read_table(run / "plaquette.csv").sources] == [0]
    checked, code = call("verify", run)
    assert code == 0
    assert "own_trace.csv  records: 12, 9 of them by another version" in checked


@pytest.mark.slow
def test_secondary_tables_have_versions_and_are_kept_together(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", lattice="2x2x2x4", configs=1)
    words = ("measure", "mesons", run, "--kappa", "0.1", *ONE_CORE)
    assert call(*words)[1] == 0
    tables = sorted(run.glob("mesons*.csv"))
    assert len(tables) == 2
    before = [one.read_bytes() for one in tables]
    version = sources_of(OBSERVABLES["mesons"], "su2")
    assert [read_table(one).sources for one in tables] == [{0: version}] * 2
    read = source_versions._read
    monkeypatch.setattr(source_versions, "_read", lambda path: read(path) + "#")
    forget()
    assert call("verify", run)[0].count("by another version of the observable's sources") == 4
    assert call(*words, "--again")[1] == 0
    assert [one.with_name(f"{one.name}.1").read_bytes() for one in tables] == before
    assert version not in [*read_table(tables[0]).sources.values()]
    forget()


@pytest.mark.slow
def test_secondary_tables_along_the_way_have_versions(tmp_path):
    how = {"lattice": "2x2x2x4", "configs": 1, "measure": "mesons:3:kappa=0.1"}
    tables = sorted(make_run(tmp_path / "run", **how).glob("mesons*.csv"))
    version = sources_of(OBSERVABLES["mesons"], "su2")
    assert [read_table(one).sources for one in tables] == [{0: version}] * 2


def test_the_version_of_a_function_is_its_text(run, monkeypatch, capsys):
    def trace(field):
        return field.mean_link_trace

    def other(field):
        return field.mean_link_trace

    found = FunctionObservable(trace)
    assert sources_of(found, "su2") != sources_of(FunctionObservable(other), "su2")
    assert sources_of(FunctionObservable(len), "su2") == ""  # which is not written in Python
    assert "return" in found.text


@pytest.mark.slow
def test_python_is_told_how_to_measure_again(package, run, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script.py"])
    how = {"backend": "cpu", "threads": 1}
    measure(run, NAME, progress=False, **how)
    add(package / "trace.py", "# another version\n")
    measure(run, NAME, **how)
    assert "measure(..., again=True)" in capsys.readouterr().out
    assert [*measure(run, NAME, again=True, **how).sources] == [0]
    assert (run / "own_trace.csv.1").exists()


@pytest.mark.slow
def test_a_changed_kernel_gives_its_own_numbers_in_another_process(tmp_path, run):
    folder = write_package(tmp_path / "site")

    def start(*words):
        paths = [str(folder.parent), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-m", "gauge_mc", *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    start("measure", NAME, run, *ONE_CORE)
    before = read_table(run / "own_trace.csv")["trace"]
    (folder / "weight.h").write_text("constexpr int WEIGHT = 2;\n")
    printed = start("measure", NAME, run, *ONE_CORE).partition("the new one: ")[2]
    program, *words = shlex.split(printed.partition("\n")[0])
    assert program == "gauge-mc"
    start(*words)
    assert read_table(run / "own_trace.csv")["trace"].tolist() == (2 * before).tolist()


@pytest.mark.slow
def test_a_complaint_about_sources_is_none(package, run):
    """Sources that cannot be read have no version, and nothing is said about them."""
    assert call("measure", NAME, run, *ONE_CORE)[1] == 0
    (package / "helper.py").unlink()
    forget()
    out, complaint, code = call_apart("verify", run)
    assert (complaint, code) == ("", 0)
    assert "another version" not in out
