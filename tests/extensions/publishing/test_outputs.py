"""What ``publish`` and ``paper`` write under odd names, and leave if they are refused."""

import pytest

from gauge_mc.cli import load_command
from tests.cli.outputs import (
    CPU,
    cases_of,
    check_name,
    check_refusals,
    copy_of,
    is_path,
    write_inputs,
)

pytestmark = pytest.mark.kernels

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

COMMANDS = {
    ("publish", "folder"): ("publish", "run", "OUT", "--author", "Plato"),
    ("paper", "--output"): ("paper", "paper.toml", *CPU, "--output", "OUT"),
}
"""Commands by what names their output, with the arguments that they need."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = write_inputs(tmp_path_factory.mktemp("made"))
    (folder / "paper.toml").write_text(PAPER)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    return copy_of(made, tmp_path, monkeypatch)


def test_every_output_is_tried():
    named = {
        (name, one.opts[0])
        for name, _ in COMMANDS
        for one in load_command(name).params
        if is_path(one)
    }
    assert named == {*COMMANDS, ("paper", "--cards")}  # which is only read


@pytest.mark.slow
@pytest.mark.parametrize(("output", "name"), cases_of(COMMANDS, ["paper"]))
def test_an_odd_name_of_an_output_works_or_is_refused(folder, output, name):
    check_name(folder, COMMANDS[output], name)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["@", pytest.param("-7", marks=pytest.mark.slow)])
@pytest.mark.parametrize("output", COMMANDS)
def test_what_is_refused_leaves_nothing(folder, output, value):
    check_refusals(folder, COMMANDS[output], value)
