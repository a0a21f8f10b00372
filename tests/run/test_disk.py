"""Disks that are too small, or full, for a run."""

import json
import shutil
from pathlib import Path
from unittest import mock

import pytest

from gauge_mc import generate, generate_chains
from gauge_mc.configurations import writing
from gauge_mc.errors import GaugeError
from gauge_mc.run import needs
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.needs import DiskNeeds, shortage
from gauge_mc.run.parameters import Parameters
from tests.calls import TINY, call

CONFIG = 4 * 4 * 4 * 6 * 4 * 8 * 4
"""Bytes of the links of a configuration."""

CHECKPOINT = CONFIG // 2
"""Bytes of the links in a checkpoint, four reals instead of eight."""

VALUES = {**TINY, "configs": 6, "threads": 1, "measure": "plaquette"}

WORDS = [f"--{name}={value}" for name, value in VALUES.items()]


def used(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def capacity(monkeypatch, tmp_path):
    """Return a function that sets the size of the disk on which the test works."""

    def be(count):
        monkeypatch.setattr(needs, "free_disk", lambda path: count - used(tmp_path))

    return be


def content(run):
    names = [path for path in run.rglob("*") if path.suffix in (".csv", ".lime")]
    return {path.relative_to(run): path.read_bytes() for path in names}


def test_a_run_is_refused_that_does_not_fit(tmp_path, capacity):
    run = tmp_path / "run"
    capacity(6 * CONFIG + 2 * CHECKPOINT)  # but for the table
    shown, code = call("generate", *WORDS, "--output", run)
    assert (code, f"The run {run} needs 3" in shown) == (1, True), shown
    assert "are free: 6 configurations of 49.2 kB, checkpoints and tables; free some" in shown
    assert not run.exists()
    capacity(6 * CONFIG + 2 * CHECKPOINT + 2**14)
    shown, code = call("generate", *WORDS, "--output", run, "--dry-run")
    assert code == 0


@pytest.mark.parametrize("json_too", [False, True])
def test_a_dry_run_says_so_too(tmp_path, capacity, json_too):
    capacity(6 * CONFIG)
    words = ("--dry-run", "--output", tmp_path / "run", *["--json"] * json_too)
    shown, code = call("generate", *WORDS, *words)
    assert (code, "are free: 6 configurations of 49.2 kB" in shown) == (1, True)
    if json_too:
        document, _ = json.JSONDecoder().raw_decode(shown)
        assert document["disk_bytes"] > document["configurations_left"] * document["config_bytes"]
    assert not (tmp_path / "run").exists()


def test_what_is_there_needs_no_more_space(tmp_path, capacity):
    run = tmp_path / "run"
    generate(VALUES, output=run, progress=False, on_update=lambda chain: chain.sweep == 8)
    p = Run(run).read()[0]
    needs = DiskNeeds.of(Run(run), p, {}, 8)
    assert (needs.configurations_left, needs.config_bytes) == (4, CONFIG)
    assert needs.checkpoint_bytes == CHECKPOINT
    assert 0 < Run(run).checkpoint.stat().st_size - CHECKPOINT < 4096
    assert needs.bytes == 4 * CONFIG + CHECKPOINT
    needs = DiskNeeds.of(Run(tmp_path), p, {}, 0)
    assert needs.bytes == 6 * CONFIG + 2 * CHECKPOINT
    capacity(used(tmp_path) + 4 * CONFIG)
    with pytest.raises(GaugeError, match="4 configurations"):
        generate(output=run, progress=False, backend="cpu")


def test_chains_share_the_disk(tmp_path, capacity):
    capacity(2 * (6 * CONFIG + 2 * CHECKPOINT))
    with pytest.raises(GaugeError, match=r"2 runs need .*: 12 configurations of"):
        generate_chains(VALUES, chains=2, output=tmp_path / "run", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_needs_are_added_for_every_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(needs, "free_disk", lambda path: 100)
    parts = [(tmp_path / "a" / "b", 60), (tmp_path, 40)]
    assert shortage(parts) is None
    assert shortage([*parts, (tmp_path / "c", 1)]) == (tmp_path / "a" / "b", 101, 100)
    assert shortage([(tmp_path, 60), (Path("/proc"), 60)]) is None


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 2])
def test_a_full_disk_leaves_a_checkpoint_of_what_was_done(tmp_path, capacity, chains):
    """Others fill the disk after the run has begun, so that it was not refused."""
    names = [f"run_chain{number + 1}" for number in range(chains)] if chains > 1 else ["run"]

    def begin(folder, **more):
        if chains > 1:
            return generate_chains(VALUES, chains=2, output=folder / "run", progress=False, **more)
        return generate(VALUES, output=folder / "run", progress=False, **more)

    begin(tmp_path / "whole")
    here, begun = tmp_path / "here", []
    # Too little for the sixth configuration, even if all others have been written in time.
    room = chains * (5 * CONFIG + 3 * needs.SLACK) + CHECKPOINT + needs.SLACK

    def free(path):
        begun.append(path)
        return room - used(here) if len(begun) > 1 else 10**9  # the start asks once

    here.mkdir()
    said = r"left, and what comes next needs .*a checkpoint of what was done was written"
    with mock.patch.object(needs, "free_disk", free), pytest.raises(GaugeError, match=said):
        begin(here)
    for name in names:
        run = Run(here / name)
        configs = sorted(run.configs())
        assert 2 <= len(configs) < VALUES["configs"]
        assert read_state(run.checkpoint).sweep == configs[-1] + 2  # just before the next one
        assert call("verify", run.path)[1] == 0
    begin(here)
    for name in names:
        assert content(here / name) == content(tmp_path / "whole" / name)


@pytest.mark.slow
@pytest.mark.parametrize("failing", [1, 3])
def test_what_could_not_be_written_at_once_is_written_again(tmp_path, failing):
    """A disk that was full for a moment, without being seen to be."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    generate(VALUES, output=whole, progress=False)
    write, calls = writing.write, []

    def once(path, *words):
        calls.append(path)
        if len(calls) == failing:
            raise GaugeError(f"{path} could not be written (No space left on device).")
        write(path, *words)

    with mock.patch.object(writing, "write", once), pytest.raises(GaugeError, match="No space"):
        generate(VALUES, output=run, progress=False)
    state = read_state(Run(run).checkpoint)
    assert state.sweep >= Parameters.from_values(VALUES).thermalize + 3 * failing
    generate(output=run, backend="cpu", progress=False)
    assert content(run) == content(whole)
    assert call("verify", run)[1] == 0


@pytest.mark.slow
def test_a_disk_that_stays_full_keeps_the_last_checkpoint(tmp_path):
    run = tmp_path / "run"
    generate(VALUES, output=run, progress=False, on_update=lambda chain: chain.sweep == 6)
    before = shutil.copytree(run, tmp_path / "before")

    def never(path, *words):
        raise GaugeError(f"{path} could not be written (Disk quota exceeded).")

    with mock.patch.object(writing, "write", never), pytest.raises(GaugeError, match="quota"):
        generate(output=run, progress=False, backend="cpu")
    assert Run(run).checkpoint.read_bytes() == Run(before).checkpoint.read_bytes()
    generate(output=run, progress=False, backend="cpu")
    assert len(Run(run).configs()) == VALUES["configs"]
