"""The Snakefile of a publication: its commands are those of the program, and it makes all again."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc
from gauge_mc import publish
from gauge_mc.cli import COMMANDS, load_command
from gauge_mc.publication.workflow import workflow_text
from gauge_mc.run.directory import Run
from gauge_mc.run.log import SESSION, RunLog
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

VALUES = {"group": "su3", "lattice": "4x4x4x4", "configs": 12, "measure": "plaquette,polyakov"}
LOOPS = ("--r-max", 2, "--t-max", 2, "--smear", "ape:0.5x5")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a table of Wilson loops, whose measurement its log has, a fit and a figure."""
    path = make_run(tmp_path_factory.mktemp("made") / "run", **VALUES)
    assert call("measure", "wilson-loops", path, *LOOPS, "--backend", "cpu", "--quiet")[1] == 0
    assert call("fit", "creutz", path, "--skip", 5)[1] == 0
    (path / "plaquette.pdf").write_bytes(b"%PDF-")
    (path / "nothing.pdf").write_bytes(b"%PDF-")
    return path


def rules(text):
    """Return inputs, output and commands of the rules of a Snakefile, by name."""
    found = {}
    for name, body in re.findall(r"^rule (\w+):\n((?:    .*\n)+)", text, re.M):
        parts = dict(re.findall(r"^    (\w+):(.*\n(?:        .*\n)*)", body, re.M))
        words = {key: re.findall(r"'((?:[^'\\]|\\.)*)'", part) for key, part in parts.items()}
        lines = "".join(eval(f"'{one}'") for one in words.get("shell", []))
        found[name] = (words["input"], words.get("output", []), lines.format().splitlines())
    return found


def commands(text):
    """Return the words of all calls of the program in a Snakefile."""
    lines = [line for *_, shell in rules(text).values() for line in shell]
    return [words[1:] for words in map(shlex.split, lines) if words[0] == "gauge-mc"]


def test_every_command_is_one_of_the_program(run):
    found = commands(workflow_text(Run(run), 12))
    assert {words[0] for words in found} == {"generate", "measure", "fit", "plot", "verify"}
    for name, *words in found:
        assert name in COMMANDS
        assert load_command(name).make_context(name, words).params
    assert ["measure", "wilson-loops", "again/run", *map(str, LOOPS)] in found
    assert ["fit", "creutz", "again/run", "--skip", "5"] in found
    assert [words[1] for words in found if words[0] == "plot"] == ["plaquette"]


def test_every_file_that_a_rule_needs_is_published_or_made(run, tmp_path):
    publish(run, tmp_path / "data", authors=["Doe, Jane"])
    found = rules((tmp_path / "data" / "Snakefile").read_text())
    made = {one for _, out, _ in found.values() for one in out}
    for needs, *_ in found.values():
        for one in needs:
            assert one in made or (tmp_path / "data" / one).is_file()
    assert {*found["all"][0]} == made
    compared = [shlex.split(one)[1] for one in found["compare"][2] if one.startswith("cmp ")]
    assert sorted(compared) == ["creutz.json", "plaquette.csv", "polyakov.csv", "wilson_loops.csv"]
    assert json.loads((tmp_path / "data" / "creutz.json").read_text())["options"] == {"skip": 5}


@pytest.mark.parametrize(
    ("command", "repeated"),
    [
        ("gauge-mc measure wilson-loops x --threads 2 --json --output y", []),
        ("gauge-mc measure Wilson-Loops --at 5,8 /a/b", ["--at", "5,8"]),
        ("program.py measure wilson-loops run", None),
        ("gauge-mc generate --measure wilson-loops", None),
        ("gauge-mc measure nothing run", None),
        ("gauge-mc measure wilson-loops run --nothing 3", None),
        ("gauge-mc measure wilson-loops 'run", None),
        ("gauge-mc measure wilson-loops run --help", None),
        ("gauge-mc measure", None),
        ("", None),
    ],
)
def test_what_is_repeated_of_a_measurement(run, tmp_path, command, repeated):
    shutil.copytree(run, tmp_path / "run")
    RunLog(tmp_path / "run").add(SESSION, command=command, table="wilson_loops.csv")
    found = [one for one in commands(workflow_text(Run(tmp_path / "run"), 0)) if "measure" in one]
    assert found == (
        [] if repeated is None else [["measure", "wilson-loops", "again/run", *repeated]]
    )


def test_what_python_has_measured_is_not_compared(run, tmp_path):
    """Nor are the fits of it, since nothing makes its table again."""
    shutil.copytree(run, tmp_path / "run")
    RunLog(tmp_path / "run").add(SESSION, command="program.py", table="wilson_loops.csv")
    found = rules(workflow_text(Run(tmp_path / "run"), 0))
    compared = [shlex.split(one)[1] for one in found["compare"][2] if one.startswith("cmp ")]
    assert sorted(compared) == ["plaquette.csv", "polyakov.csv"]
    assert not [name for name in found if name.startswith(("measure", "fit"))]


def test_words_of_a_log_cannot_begin_other_commands(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    bad = "a; {rm} 'b' \"$(c)\" \\"
    command = shlex.join(["gauge-mc", "measure", "wilson-loops", "run", "--smear", bad])
    RunLog(tmp_path / "run").add(SESSION, command=command, table="wilson_loops.csv")
    found = [one for one in commands(workflow_text(Run(tmp_path / "run"), 0)) if "measure" in one]
    assert found in ([], [["measure", "wilson-loops", "again/run", "--smear", bad]])


def test_an_unfinished_run_has_none(tmp_path):
    path = make_run(tmp_path / "run", **{**VALUES, "configs": 2})
    text = (path / "run.toml").read_text().replace("configs = 2", "configs = 3")
    (path / "run.toml").write_text(text)
    report = publish(path, tmp_path / "data", authors=["Doe, Jane"])
    assert not (tmp_path / "data" / "Snakefile").exists()
    assert any("The folder has no Snakefile" in one for one in report.notes)


@pytest.mark.slow
def test_snakemake_makes_everything_again(run, tmp_path, monkeypatch):
    snakemake = shutil.which("snakemake")
    if not snakemake:
        pytest.skip("Snakemake is not installed")
    program = tmp_path / "bin" / "gauge-mc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gauge_mc "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(Path(gauge_mc.__file__).parent.parent))
    publish(run, tmp_path / "data", authors=["Doe, Jane"])

    def carried_out(folder, *words):
        return subprocess.run([snakemake, *words], cwd=folder, capture_output=True, text=True)

    shutil.copytree(tmp_path / "data", tmp_path / "changed")
    assert carried_out(tmp_path / "data", "-n").returncode == 0
    done = carried_out(tmp_path / "data", "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "again" / "plaquette.pdf").stat().st_size > 1000
    table = tmp_path / "changed" / "polyakov.csv"
    data = bytearray(table.read_bytes())
    data[-100] ^= 1
    table.write_bytes(data)
    done = carried_out(tmp_path / "changed", "--cores", "2", "--keep-going")
    assert done.returncode == 1
    assert "polyakov.csv again/run/polyakov.csv differ" in done.stdout + done.stderr
