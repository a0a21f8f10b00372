"""Whatever is given to ``publish`` and ``paper`` ends in one sentence, and changes no run."""

import pytest

from tests.calls import make_run
from tests.cli.bad_parameters import check

pytestmark = pytest.mark.kernels

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
