"""What commands write under odd names, and leave if they are refused."""

import os
import re
import shutil

import numpy as np
import pytest

from gauge_mc.cli import load_command
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call, make_run

CPU = ("--backend", "cpu", "--threads", "1", "--quiet")
NAMES = ["", ".", "/", "file", "folder", "missing/new", "link", "x" * 300]
MORE_NAMES = ["./", "..", "../", "file/", "folder/", "folder/..", "new/", "file/new", "nowhere",
    "-", "/dev/null", "/dev/full", "run", "run/run.toml", "run/plaquette.csv", "run/configs",
    "run/checkpoint/latest",
]  # fmt: skip
"""Names for it. There are a file, a folder, a link to a file and one that leads nowhere."""


def cases_of(outputs, never_in_root):
    """Return the instances of a test for every name of every output.

    Some commands would write into the root of the file system, if they may, and do not get its
    name.
    """
    return [
        pytest.param(
            output,
            name,
            id=f"{'-'.join(output)} {name[:20]}",
            marks=[pytest.mark.slow] if output[0] == "scan" or name in MORE_NAMES else [],
        )
        for output in outputs
        for name in (*NAMES, *MORE_NAMES)
        if not (name == "/" and output[0] in never_in_root)
    ]


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


def options_of(words):
    """The options of a command that have a value, without those that name files."""
    command = load_command(words[0])
    if words[0] in ("measure", "fit", "plot"):
        command = command.subcommand(words[1])
    for one in command.params:
        flag = one.opts[0]
        if flag.startswith("--") and not one.is_flag and not is_path(one):
            yield flag


def write_inputs(folder):
    """Write a run, tables, and files and folders that no command may change; return the folder."""
    make_run(folder / "run", configs=2)
    (folder / "loops").mkdir()
    write_loops(folder / "loops/wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
    (folder / "bare").mkdir()
    shutil.copy(folder / "run/run.toml", folder / "bare")
    (folder / "file").write_text("precious")
    (folder / "folder").mkdir()
    (folder / "folder/precious").write_text("precious")
    (folder / "link").symlink_to("file")
    (folder / "nowhere").symlink_to("missing")
    return folder


def copy_of(made, tmp_path, monkeypatch):
    """Copy a folder of inputs to a place two folders deep, in which the test then works."""
    folder = shutil.copytree(made, tmp_path / "a" / "b", symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def check_name(folder, command, name):
    """Check that a name of an output works or is refused, and what was there is there still.

    It is refused in one sentence, which `call` checks.
    """
    words = [name if word == "OUT" else word for word in command]
    before, roots = content(folder.parents[1]), {*os.listdir("/")}
    said, code = call(*words)
    after = content(folder.parents[1])
    log = folder / "run/run.log"
    assert {path for path in before if before[path] != after.get(path)} <= {log}
    assert {*os.listdir("/")} == roots
    if code:
        assert after.keys() == before.keys(), said
        assert said


def check_refusals(folder, command, value):
    """Give every option of a command a value that hardly any of them has; nothing is left."""
    words = ["new/one" if word == "OUT" else word for word in command]
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
