"""Files in a run that are not its own are neither removed nor overwritten."""

import json
import os
import shutil
import time

import pytest

from gauge_mc.run.directory import Run
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

STRANGERS = {
    "of another seed": ("0000008.lime", "other/configs/0000008.lime"),
    "of another update": ("0000008.lime", "run/configs/0000005.lime"),
    "that is not due": ("0000009.lime", "full/configs/0000008.lime"),
    "after the end": ("0000999.lime", "full/configs/0000008.lime"),
    "in another format": ("0000008.nersc", "full/configs/0000008.lime"),
    "that is no configuration": ("0000008.lime", "run/run.toml"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Make a run of one configuration, the same of two, and another of two."""
    folder = tmp_path_factory.mktemp("strangers")
    make_run(folder / "run", configs=1)
    make_run(folder / "full", configs=2)
    make_run(folder / "other", configs=2, seed=2)
    return folder


@pytest.fixture
def copy(runs, tmp_path):
    return shutil.copytree(runs, tmp_path / "runs")


@pytest.mark.first_quick
@pytest.mark.parametrize("case", STRANGERS)
def test_a_configuration_of_somebody_else_is_left(copy, case):
    name, origin = STRANGERS[case]
    stranger = copy / "run" / "configs" / name
    shutil.copy(copy / origin, stranger)
    content = stranger.read_bytes()
    shown, code = call("generate", "--output", copy / "run", "--configs", 2)
    assert code == 1
    assert f"{stranger} is later than the checkpoint and does not seem to be" in shown
    assert stranger.read_bytes() == content
    stranger.unlink()
    call("generate", "--output", copy / "run", "--configs", 2)
    again = copy / "run" / "configs" / "0000008.lime"
    assert again.read_bytes() == (copy / "full" / "configs" / "0000008.lime").read_bytes()


def test_updates_that_a_killed_process_had_done_are_counted(copy):
    run = Run(copy / "run")
    shutil.copy(copy / "full" / "lock", run.lock)
    with run.locked():  # another process, such as one that thins the run, changes nothing about it
        pass
    words = "; at least 3 updates to be repeated\n"
    shown = call("status", run.path)[0]
    assert "checkpoint      after update 5, " in shown
    assert f" ago{words}" in shown
    assert json.loads(call("status", run.path, "--json")[0])["updates_again"] == 3
    shown = call("generate", "--output", run.path, "--configs", 2)[0]
    assert f"{run.path} continues after update 5 of 8{words}" in shown
    assert "again" not in call("status", run.path)[0]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["ildg", "nersc"])
def test_a_configuration_that_a_killed_run_has_left_is_written_again(tmp_path, format):
    run = make_run(tmp_path / "run", configs=1, format=format)
    full = make_run(tmp_path / "full", configs=2, format=format)
    (last,) = full.glob("configs/0000008.*")
    shutil.copy(last, run / "configs")
    call("generate", "--output", run, "--configs", 2)
    assert (run / "configs" / last.name).read_bytes() == last.read_bytes()


def test_a_link_that_leads_nowhere_is_not_replaced(copy):
    out = copy / "out"
    out.symlink_to("nowhere")
    shown, code = call("convert", copy / "run/configs/0000005.lime", out, "--to", "nersc")
    assert (code, "already exists" in shown) == (2, True)
    assert out.is_symlink()


def test_the_age_of_a_checkpoint_is_never_negative(copy):
    """The clock may be set back."""
    future = time.time() + 1000
    os.utime(Run(copy / "run").checkpoint, (future, future))
    assert "0.0 s ago" in call("status", copy / "run")[0]
