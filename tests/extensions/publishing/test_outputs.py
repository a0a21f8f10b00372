"""What ``publish`` and ``paper`` write under odd names, and leave if they are refused."""

import pytest

from tests.cli.outputs import CPU, cases_of, check_name, check_refusals, copy_of, write_inputs
from tests.extensions.publishing.scenarios import PAPER

pytestmark = pytest.mark.kernels

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


@pytest.mark.slow
@pytest.mark.parametrize(("output", "name"), cases_of(COMMANDS, ["paper"]))
def test_an_odd_name_of_an_output_works_or_is_refused(folder, output, name):
    check_name(folder, COMMANDS[output], name)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["@", "-7"])
@pytest.mark.parametrize("output", COMMANDS)
def test_what_is_refused_leaves_nothing(folder, output, value):
    check_refusals(folder, COMMANDS[output], value)
