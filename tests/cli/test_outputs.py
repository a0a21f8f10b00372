"""Whatever a command writes: odd names for it, and what is left by requests that are refused."""

import pytest

from gauge_mc.cli import OWN, load_command
from tests.calls import call
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

RUN = ("--lattice", "2", "--thermalize", "0", "--configs", "1", "--separation", "1", *CPU)
COMMANDS_THAT_WRITE = {
    ("generate", "--output"): ("generate", *RUN, "--output", "OUT"),
    ("scan", "--output"): ("scan", "--beta", "2.3", *RUN, "--output", "OUT"),
    ("determine", "--output"): (
        *("determine", "t0", "--beta", "2.2", "--lattice", "6", "--target", "0.05"),
        *("--error", "0.9", *CPU, "--output", "OUT"),
    ),
    ("measure", "--output"): ("measure", "plaquette", "run", *CPU, "--output", "OUT"),
    ("fit", "--output"): ("fit", "potential", "loops", "--output", "OUT"),
    ("plot", "--output"): ("plot", "plaquette", "run", "--output", "OUT"),
    ("report", "--output"): ("report", "bare", "--output", "OUT"),
    ("card", "--out"): ("card", "--out", "OUT"),
    ("export", "out"): ("export", "run", "OUT"),
    ("convert", "--output"): ("convert", "run/configs", "--to", "nersc", "--output", "OUT"),
    ("convert", "paths"): ("convert", "run/configs/0000005.lime", "OUT", "--to", "nersc"),
    ("regenerate", "--output"): (
        *("regenerate", "run", "--at", "6", "--backend", "cpu", "--threads", "1"),
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
    ("watch", "--bench"),
    ("bench", "--card"),
    ("bench", "--compare"),
}
"""Options of the same form that name what is only read, or printed."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("made"))


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    return copy_of(made, tmp_path, monkeypatch)


def test_every_output_is_tried():
    named = {
        (name, one.opts[0]) for name in OWN for one in load_command(name).params if is_path(one)
    }
    assert named == COMMANDS_THAT_WRITE.keys() | READ


@pytest.mark.slow
@pytest.mark.parametrize(("output", "name"), cases_of(COMMANDS_THAT_WRITE, ["regenerate"]))
def test_an_odd_name_of_an_output_works_or_is_refused(folder, output, name):
    check_name(folder, COMMANDS_THAT_WRITE[output], name)


REFUSED = {
    **{name: words for (name, _), words in COMMANDS_THAT_WRITE.items()},
    "measure wilson-loops": ("measure", "wilson-loops", "run", *CPU, "--output", "OUT"),
    "card": ("card",),
    "status": ("status", "run"),
    "watch": ("watch", "run"),
    "info": ("info", "run"),
    "verify": ("verify", "run"),
    "thin": ("thin", "run", "--keep", "2"),
    "doctor": ("doctor",),
}
"""Arguments of every command, and of one with many options."""


@pytest.mark.slow
@pytest.mark.parametrize("value", ["@", pytest.param("-7", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing(folder, name, value):
    check_refusals(folder, REFUSED[name], value)


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
