"""Whatever is given on the command line ends in one sentence, and changes nothing on disk."""

import pytest

from tests.calls import make_run
from tests.cli.bad_parameters import check

pytestmark = pytest.mark.kernels


COMMANDS = {
    "generate": ("generate --lattice 4 --thermalize 1 --configs 1 --separation 1 --quiet", ()),
    "scan": ("scan --collect --quiet", ()),
    "status": ("status", ("RUN",)),
    "measure": ("measure wilson-loops", ("RUN",)),
    "fit": ("fit potential", ("RUN",)),
    "plot": ("plot plaquette", ("RUN",)),
    "export": ("export", ("RUN", "OUT")),
    "info": ("info", ("RUN",)),
    "verify": ("verify", ("RUN",)),
    "regenerate": ("regenerate --at 5 --dry-run", ("RUN",)),
    "thin": ("thin --keep 2 --dry-run", ("RUN",)),
    "convert": ("convert", ("CONFIG", "OUT")),
    "bench": ("bench --lattice 4 --seconds 0.05", ()),
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
