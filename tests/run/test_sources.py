"""Tables say by which sources their rows were made."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from gauge_mc.files.table import Table, read_table
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run import sources
from gauge_mc.run.directory import Run
from gauge_mc.run.sources import made_by_others, sources_of
from tests.calls import call, make_run

ON_CPU = ("--backend", "cpu", "--threads", "1")


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    """Sources are read once per process."""
    sources._digest_of.cache_clear()
    yield
    sources._digest_of.cache_clear()


@pytest.fixture
def changing(monkeypatch):
    """Let a file have another content, as if it had been edited."""
    read = Path.read_bytes

    def change(name, function):
        def changed(path):
            return function(read(path)) if path.as_posix().endswith(name) else read(path)

        monkeypatch.setattr(Path, "read_bytes", changed)
        sources._digest_of.cache_clear()

    return change


@pytest.mark.parametrize(
    ("observable", "name", "counts"),
    [
        ("plaquette", "kernels/plaquette.cu", True),
        ("plaquette", "group/su3.h", True),
        ("plaquette", "gauge_mc/observables/plaquette.py", True),
        ("plaquette", "gauge_mc/fields/sums.py", True),
        ("plaquette", "kernels/polyakov.cu", False),
        ("plaquette", "arch/cpu.h", False),
        ("plaquette", "gauge_mc/fields/field.py", False),
        ("wilson-loops", "gauge_mc/smearing/hyp.py", True),
        ("wilson-loops", "kernels/ape.cu", True),
        ("flow", "kernels/flow_stage.cu", True),
        ("flow", "gauge_mc/quarks/gamma.py", False),
        ("mesons", "kernels/hop.cu", True),
        ("mesons", "gauge_mc/quarks/solvers/cg.py", True),
    ],
)
def test_what_an_observable_depends_on(observable, name, counts, changing):
    before = sources_of(OBSERVABLES[observable])
    assert re.fullmatch("[0-9a-f]{16}", before)
    changing(name, lambda content: content + b"//")
    assert (sources_of(OBSERVABLES[observable]) != before) is counts


def test_ends_of_lines_do_not_count(changing):
    before = sources_of(OBSERVABLES["plaquette"])
    changing(".cu", lambda content: content.replace(b"\n", b"\r\n"))
    assert sources_of(OBSERVABLES["plaquette"]) == before


def test_an_observable_without_a_file_has_sources(monkeypatch):
    """Such as that of a session of Python."""
    monkeypatch.delattr(sys.modules["gauge_mc.observables.plaquette"], "__file__")
    assert len(sources_of(OBSERVABLES["plaquette"])) == 16


def test_rows_of_other_sources_follow_a_line_that_says_so(tmp_path):
    one, two = "1" * 16, "2" * 16
    path, words = tmp_path / "table.csv", ({"observable": "plaquette"}, ("sweep", "plaquette"))
    with Table(path, *words, one) as table:
        table.append([(1, 0.5)])
        table.append([(2, 0.5)])
    assert path.read_text().count("# sources") == 1
    with Table(path, *words, two) as table:
        table.append_numbers([3], [[0.5]])
        table.append([(4, 0.5)])
    lines = path.read_text().splitlines()
    assert lines[2:-1] == [
        f"# sources {one}", "1,0.5", "2,0.5", f"# sources {two}", "3,0.5", "4,0.5",
    ]  # fmt: skip
    found = read_table(path)
    assert found.sources == (one, two)
    assert found["sweep"].tolist() == [1, 2, 3, 4]
    assert made_by_others(found)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_rows_that_are_written_again_have_the_same_bytes(after, tmp_path):
    """As after a kill, wherever the sources have changed."""
    path, words = tmp_path / "table.csv", ({"observable": "plaquette"}, ("sweep", "plaquette"))

    def append(first):
        for sources_then, sweeps in (("1" * 16, (1, 2)), ("2" * 16, (3, 4))):
            if left := [(n, 0.5) for n in sweeps if n > first]:
                table = Table(path, *words, sources_then)
                table.truncate(
                    after=max(first, left[0][0] - 1), expected=max(first, left[0][0] - 1)
                )
                table.append(left)
                table.seal()

    append(0)
    whole = path.read_bytes()
    append(after)
    assert path.read_bytes() == whole


def test_a_measurement_with_a_changed_kernel_is_named(toys, changing, tmp_path):
    """And the command that is advised works as it is printed."""
    run = make_run(tmp_path / "a run")
    shown, code = call("measure", "link-trace", run, *ON_CPU)
    assert code == 0
    assert "sources" not in shown
    table = Run(run).path / "link_trace.csv"
    assert read_table(table).sources == (sources_of(OBSERVABLES["link-trace"]),)
    assert "other sources" not in call("measure", "link-trace", run, *ON_CPU)[0]
    changing("link_trace.cu", lambda content: content + b"//")
    before = table.read_bytes()
    shown, code = call("measure", "link-trace", run, *ON_CPU)
    assert code == 0
    assert f"rows of {table} were made by other sources of link-trace than those of now" in shown
    assert table.read_bytes() == before
    words = shlex.split(re.search(r"repeat the command with (.*), which", shown)[1])
    shown, code = call("measure", "link-trace", run, *ON_CPU, *words)
    assert (code, "other sources" in shown) == (0, False)
    assert read_table(words[1])["trace"].tolist() == read_table(table)["trace"].tolist()
    for command in ("verify", "info"):
        shown, code = call(command, run)
        assert code == 0
        assert shown.count("made by other sources of the observable") == 1, shown


def test_a_table_without_sources_is_not_named(tmp_path):
    """Those of earlier versions have none."""
    run = make_run(tmp_path / "run")
    path = run / "plaquette.csv"
    lines = path.read_text().splitlines(keepends=True)[:-1]
    path.write_text("".join(line for line in lines if not line.startswith("# sources")))
    assert not made_by_others(read_table(path))
    assert "other sources" not in call("verify", run)[0]
