"""What ``publish`` and ``paper`` write under odd names, and how they refuse what is wrong."""

import pytest

from tests.calls import make_run
from tests.cli.bad_parameters import check
from tests.cli.outputs import CPU, cases_of, check_name, check_refusals, copy_of, write_inputs
from tests.extensions.publishing.scenarios import PAPER

pytestmark = pytest.mark.kernels

OUTPUTS = {
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
@pytest.mark.parametrize(("output", "name"), cases_of(OUTPUTS, ["paper"]))
def test_an_odd_name_of_an_output_works_or_is_refused(folder, output, name):
    check_name(folder, OUTPUTS[output], name)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["@", "-7"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_what_is_refused_leaves_nothing(folder, output, value):
    check_refusals(folder, OUTPUTS[output], value)


COMMANDS = {
    "publish": ("publish --author Doe", ("RUN", "OUT")),
    "paper": ("paper --kept", ("OUT",)),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("bad") / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [12, pytest.param(100000, marks=pytest.mark.faults)], ids=["some", "all"]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_parameters_are_one_sentence(tmp_path, monkeypatch, run, name, count):
    monkeypatch.chdir(tmp_path)
    check(COMMANDS[name], tmp_path, run, count)
