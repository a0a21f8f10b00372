"""Whatever a command writes: odd names for it, and what is left by requests that are refused."""

import os
import re
import shutil

import numpy as np
import pytest

from gauge_mc.cli import COMMANDS, load_command
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

CPU = ("--backend", "cpu", "--threads", "1", "--quiet")
RUN = ("--lattice", "2", "--thermalize", "0", "--configs", "1", "--separation", "1", *CPU)
PAPER = """
paper = "hep-lat/0000001"
title = "plaquette"
where = "table 1"
read = "here"

[ensembles.one]
beta = 2.3
lattice = "2x2x2x2"
thermalize = 0
configs = 20
separation = 1
format = "none"

[[entries]]
name = "plaquette"
ensemble = "one"
average = "plaquette"
published = 0.6
error = 10
"""
"""A card of a paper."""

COMMANDS_THAT_WRITE = {
    ("generate", "--output"): ("generate", *RUN, "--output", "OUT"),
    ("scan", "--output"): ("scan", "--beta", "2.3", *RUN, "--output", "OUT"),
    ("measure", "--output"): ("measure", "plaquette", "run", *CPU, "--output", "OUT"),
    ("fit", "--output"): ("fit", "potential", "loops", "--output", "OUT"),
    ("plot", "--output"): ("plot", "plaquette", "run", "--output", "OUT"),
    ("report", "--output"): ("report", "bare", "--output", "OUT"),
    ("card", "--out"): ("card", "--out", "OUT"),
    ("export", "out"): ("export", "run", "OUT"),
    ("convert", "--output"): ("convert", "run/configs", "--to", "nersc", "--output", "OUT"),
    ("convert", "paths"): ("convert", "run/configs/0000005.lime", "OUT", "--to", "nersc"),
    ("publish", "folder"): ("publish", "run", "OUT", "--author", "Plato"),
    ("regenerate", "--output"): (
        *("regenerate", "run", "--at", "6", "--backend", "cpu", "--threads", "1"),
        *("--output", "OUT"),
    ),
    ("paper", "--output"): (
        *("paper", "paper.toml", "--backend", "cpu", "--threads", "1", "--quiet"),
        *("--output", "OUT"),
    ),
    ("bench", "--save"): (
        *("bench", "--lattice", "4", "--seconds", "0.001", "--backend", "cpu", "--threads", "1"),
        *("--save", "OUT"),
    ),
    ("bench", "--plot"): (
        *("bench", "plaquette", "--lattice", "4", "--seconds", "0.05", "--backend", "cpu"),
        *("--over", "threads=1", "--plot", "OUT"),
    ),
}
"""Commands by what names their output, with the arguments that they need."""

READ = {
    ("generate", "--card"),
    ("scan", "--card"),
    ("card", "--output"),
    ("paper", "--cards"),
    ("watch", "--bench"),
    ("mcp", "folder"),
    ("bench", "--card"),
    ("bench", "--compare"),
}
"""Options of the same form that name what is only read, or printed."""

NAMES = ["", ".", "/", "file", "folder", "missing/new", "link", "x" * 300]
MORE_NAMES = ["./", "..", "../", "file/", "folder/", "folder/..", "new/", "file/new", "nowhere",
    "-", "/dev/null", "/dev/full", "run", "run/run.toml", "run/plaquette.csv", "run/configs",
    "run/checkpoint/latest",
]  # fmt: skip
"""Names for it. There are a file, a folder, a link to a file and one that leads nowhere."""

CASES = [
    pytest.param(
        output,
        name,
        id=f"{'-'.join(output)} {name[:20]}",
        marks=[pytest.mark.slow] if output[0] == "scan" or name in MORE_NAMES else [],
    )
    for output in COMMANDS_THAT_WRITE
    for name in (*NAMES, *MORE_NAMES)
    if not (name == "/" and output[0] in ("regenerate", "paper"))  # which write there, if they may
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    make_run(folder / "run", configs=2)
    (folder / "loops").mkdir()
    write_loops(folder / "loops/wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
    (folder / "bare").mkdir()
    shutil.copy(folder / "run/run.toml", folder / "bare")
    (folder / "file").write_text("precious")
    (folder / "paper.toml").write_text(PAPER)
    (folder / "folder").mkdir()
    (folder / "folder/precious").write_text("precious")
    (folder / "link").symlink_to("file")
    (folder / "nowhere").symlink_to("missing")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    folder = shutil.copytree(made, tmp_path / "a" / "b", symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def content(folder):
    """What is below a folder: the bytes of files, and where links lead."""
    found = {}
    for path in folder.rglob("*"):
        linked = path.is_symlink()
        found[path] = os.readlink(path) if linked else path.is_file() and path.read_bytes()
    return found


def is_path(parameter):
    return bool(
        re.fullmatch(r"FILE|FOLDER|PATH|(CONFIG )?OUT(\|CONFIG)?|DIR", str(parameter.metavar))
    )


def test_every_output_is_tried():
    named = {
        (name, one.opts[0])
        for name in COMMANDS
        for one in load_command(name).params
        if is_path(one)
    }
    assert named == COMMANDS_THAT_WRITE.keys() | READ


@pytest.mark.slow
@pytest.mark.parametrize(("output", "name"), CASES)
def test_an_odd_name_of_an_output_works_or_is_refused(folder, output, name):
    """In one sentence, which `call` checks; and what was there is there still."""
    words = [name if word == "OUT" else word for word in COMMANDS_THAT_WRITE[output]]
    before, roots = content(folder.parents[1]), {*os.listdir("/")}
    said, code = call(*words)
    after = content(folder.parents[1])
    log = folder / "run/run.log"
    assert {path for path in before if before[path] != after.get(path)} <= {log}
    assert {*os.listdir("/")} == roots
    if code:
        assert after.keys() == before.keys(), said
        assert said


REFUSED = {
    **{name: words for (name, _), words in COMMANDS_THAT_WRITE.items()},
    "measure mesons": ("measure", "mesons", "run", "--kappa", "0.1", *CPU, "--output", "OUT"),
    "card": ("card",),
    "status": ("status", "run"),
    "watch": ("watch", "run"),
    "info": ("info", "run"),
    "verify": ("verify", "run"),
    "thin": ("thin", "run", "--keep", "2"),
    "doctor": ("doctor",),
    "mcp": ("mcp", "--json"),
}
"""Arguments of every command, and of one with many options."""


def options_of(words):
    """The options of a command that have a value, without those that name files."""
    command = load_command(words[0])
    if words[0] in ("measure", "fit", "plot"):
        command = command.subcommand(words[1])
    for one in command.params:
        flag = one.opts[0]
        if flag.startswith("--") and not one.is_flag and not is_path(one):
            yield flag


@pytest.mark.slow
@pytest.mark.parametrize("value", ["@", pytest.param("-7", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing(folder, name, value):
    """Every option of every command with a value that hardly any of them has."""
    words = ["new/one" if word == "OUT" else word for word in REFUSED[name]]
    before, refused = {*folder.rglob("*")}, 0
    flags = [*options_of(words)]
    for flag in flags:
        said, code = call(*words, flag, value)
        if code:
            refused += 1
            assert {*folder.rglob("*")} == before, (flag, said)
        else:
            shutil.rmtree(folder / "new", ignore_errors=True)
    assert refused or not flags


def test_every_command_is_refused_something():
    assert {name.split()[0] for name in REFUSED} == COMMANDS.keys()


@pytest.mark.parametrize(("number", "left"), [(5, False), (8, True)])
def test_a_table_without_results_is_not_left(folder, number, left):
    """By a measurement that fails at the first configuration; what is measured stays."""
    path = folder / f"run/configs/{number:07}.lime"
    data = bytearray(path.read_bytes())
    data[-2000] ^= 1
    path.write_bytes(data)
    before = {*folder.rglob("*")}
    assert call("measure", "polyakov", "run", *CPU)[1] == 1
    new = {folder / "run/polyakov_configs.csv"} if left else {*()}
    assert {*folder.rglob("*")} == before | new
