"""Run directories: the run lock, run.toml, checkpoints."""

import dataclasses
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gauge_mc as package
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.run import checkpoint, lock
from gauge_mc.run.chain import Chain
from gauge_mc.run.checkpoint import ChainState
from gauge_mc.run.directory import Run, SessionRecord, newest
from gauge_mc.run.parameters import Parameters
from tests.calls import call

STATE = ChainState(7, 35, {"group": "su3", "action": "wilson", "beta": 5.7, "seed": 3})

HOLD = """
import sys, time
from pathlib import Path
from gauge_mc.run.directory import Run
with Run(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    time.sleep(60)
"""


def begin(run):
    with run.locked():
        run.write(Parameters(), [])
        run.checkpoint.write_bytes(b"")


def environment():
    """Let another process import what the tests import, installed or not."""
    return os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}


@pytest.fixture
def other(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "run"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_only_one_process_holds_a_run_and_a_dead_one_does_not(tmp_path, other):
    run = Run(tmp_path / "run")
    holder, at_work = run.holder()
    assert at_work
    assert holder.process == other.pid
    with pytest.raises(GaugeError, match=f"in use by process {other.pid}"), run.locked():
        pass
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert not run.holder()[1]
    begin(run)
    with run.locked() as lock:
        progress = {"sweep": 12, "rate": 0.5, "joules": 8.5, "physics": "plaquette 0.5"}
        lock.record(**progress)
    assert dataclasses.astuple(run.holder()[0])[1:] == (
        os.getpid(),
        lock.holder.since,
        12,
        0.5,
        {},
        8.5,
        "plaquette 0.5",
    )


def temporary(path):
    """Return a temporary file for a path, as a killed process leaves it."""
    found = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    found.write_bytes(b"half")
    return found


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    run = Run(tmp_path / "run")
    begin(run)
    files = (run.toml, run.table("plaquette"), run.config(100, "ildg"), run.checkpoint)
    leftovers = [temporary(file) for file in files]
    (tmp_path / "link").symlink_to(run.path)
    with Run(tmp_path / "link").locked():
        assert [one for one in leftovers if one.exists()] == []


def test_what_is_not_the_runs_own_is_left(tmp_path):
    """Files that another command is writing, other files, and whatever is behind links."""
    run, elsewhere = Run(tmp_path / "run"), tmp_path / "elsewhere"
    begin(run)
    run.table("plaquette").write_bytes(b"")
    elsewhere.mkdir()
    (run.path / "notes").mkdir()
    kept = [run.path / "configs" / ".0000100.lime.tmp", run.path / ".draft.tmp"]
    for path in kept:
        path.write_bytes(b"mine")
    kept += [temporary(one) for one in (run.path / "paper.tex", run.path / "notes" / "1.csv")]
    kept += [temporary(run.path / "configs" / "notes.txt"), temporary(elsewhere / "latest")]
    victim = temporary(elsewhere / "0000100.lime")
    (run.path / "configs" / ".0000101.lime.0123456789abcdef.tmp").symlink_to(victim)
    run.checkpoint.unlink()
    run.checkpoint.parent.rmdir()
    run.checkpoint.parent.symlink_to(elsewhere)
    with replacing(run.table("other")) as file:
        with run.locked():
            pass
        file.write(b"whole")
    assert run.table("other").read_bytes() == b"whole"
    assert [one for one in [*kept, victim] if not one.exists()] == []
    assert (run.path / "configs" / ".0000101.lime.0123456789abcdef.tmp").is_symlink()


def test_a_run_without_any_work_leaves_nothing(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("new", "mine"):
        run = Run(tmp_path / name)
        with run.locked():
            run.write(Parameters(), [])
            assert run.exists()
    assert os.listdir(tmp_path) == ["mine"]
    assert os.listdir(tmp_path / "mine") == []


@pytest.mark.parametrize(
    "text", ["beta = -1", "beta = ", "[[session]]\nfoo = 1", "\xff", "overelax = 4"]
)
def test_damaged_run_toml(tmp_path, text):
    (tmp_path / "run.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(GaugeError, match=r"run\.toml is damaged"):
        Run(tmp_path).read()


@pytest.mark.parametrize(
    ("name", "wrong"), [("joules", "'a lot'"), ("sweep", "0.5"), ("host", "1")]
)
def test_a_session_with_a_value_of_another_type_is_damage(tmp_path, name, wrong):
    run = Run(tmp_path)
    run.write(Parameters(), [dataclasses.replace(SessionRecord.begin(0, "d"), joules=2.0)])
    lines = run.toml.read_text().splitlines()
    assert sum(line.startswith(f"{name} = ") for line in lines) == 1
    changed = (f"{name} = {wrong}" if line.startswith(f"{name} = ") else line for line in lines)
    run.toml.write_text("\n".join(changed))
    with pytest.raises(GaugeError, match=r"run\.toml is damaged: a value is not of type"):
        run.read()


def test_directories_without_a_run(tmp_path):
    with pytest.raises(UsageError, match="no run"):
        Run(tmp_path).read()
    file = tmp_path / "file"
    file.write_text("something")
    with pytest.raises(UsageError, match="is a file"), Run(file).locked():
        pass
    with pytest.raises(UsageError, match="not empty"), Run(tmp_path).locked():
        pass
    run = Run(tmp_path / "run")
    begin(run)
    run.toml.unlink()
    with pytest.raises(UsageError, match=r"no run\.toml"), run.locked():
        pass
    assert run.checkpoint.exists()


def test_newest_run_beside_links_that_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="There are no runs and no scans in runs; name one"):
        newest("run", "scan")
    for name, age in (("a", 100), ("b", 10), ("c", 1000)):
        run = Run(Path("runs", name))
        run.path.mkdir(parents=True)
        run.write(Parameters(), [])
        os.utime(run.toml, (time.time() - age,) * 2)
    for link in ("runs/b/gone", "runs/two"):
        Path(link).symlink_to("nowhere")
    assert newest("run") == Path("runs/b")


def arrays():
    rng = np.random.default_rng(3)
    links = [rng.normal(size=(8, 6, 4, 4, 12)).astype(np.float32) for _ in range(3)]
    return [*links, rng.integers(0, 2**32, (8, 6, 4, 1), np.uint32), np.zeros(0)]


@pytest.mark.parametrize("measured", [True, False])
def test_checkpoint_round_trip_is_exact(tmp_path, measured):
    path = tmp_path / "latest"
    saved = dataclasses.replace(STATE, measured=measured)
    checkpoint.save(path, saved, arrays())
    state, found = checkpoint.load(path)
    assert state == checkpoint.read_state(path) == saved
    for mine, theirs in zip(arrays(), found, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


def test_any_damage_to_a_checkpoint_is_found(tmp_path):
    path = tmp_path / "latest"
    checkpoint.save(path, STATE, arrays())
    whole = path.read_bytes()
    rng = np.random.default_rng(4)
    for place in [0, 64, 65, 70, len(whole) - 1, *rng.integers(0, len(whole), 50)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(GaugeError, match="damaged"):
            checkpoint.load(path)
    for cut in [0, 10, 65, 100, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(GaugeError, match="damaged"):
            checkpoint.load(path)


def test_a_failed_checkpoint_leaves_the_one_before(tmp_path):
    path = tmp_path / "latest"
    checkpoint.save(path, STATE, arrays())

    def broken():
        yield arrays()[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(GaugeError, match="No space left"):
        checkpoint.save(path, dataclasses.replace(STATE, sweep=8), broken())
    assert checkpoint.load(path)[0] == STATE
    assert os.listdir(tmp_path) == ["latest"]


def test_a_run_is_locked_within_its_process_too(tmp_path, monkeypatch):
    """Although the system would let a process lock a file twice, and forget both locks at once."""
    run = Run(tmp_path / "run")
    begin(run)
    monkeypatch.chdir(tmp_path)
    same = Run(Path("run"))
    with run.locked() as lock:
        lock.record(sweep=3)
        assert same.holder() == (lock.holder, True)
        with pytest.raises(GaugeError, match=f"in use by process {os.getpid()}"), same.locked():
            pass
        code = "import sys; from pathlib import Path; from gauge_mc.run.lock import is_locked\n"
        code += "sys.exit(is_locked(Path('run/lock')))"
        elsewhere = subprocess.run([sys.executable, "-c", code], env=environment())
        assert elsewhere.returncode == 1
    assert not same.holder()[1]
    with same.locked():
        pass


def test_a_lock_file_that_is_removed_before_it_is_locked_does_not_count(tmp_path, monkeypatch):
    """The process that held it may end, and leave nothing, between the two."""
    run, lockf = Run(tmp_path / "run"), lock.fcntl.lockf
    begin(run)

    def slow(*words):
        (run.path / "lock").unlink()
        (run.path / "lock").touch()  # by a third process, which can lock it
        lockf(*words)

    monkeypatch.setattr(lock.fcntl, "lockf", slow)
    with pytest.raises(GaugeError, match="in use"), run.locked():
        pass
    monkeypatch.setattr(lock.fcntl, "lockf", lockf)
    with run.locked():
        assert run.holder()[1]


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.mark.parametrize("make", [os.symlink, os.link, lambda victim, path: os.mkfifo(path)])
def test_a_lock_that_others_have_planted_is_refused(tmp_path, victim, make):
    """Else the record of the holder would be written to another file."""
    path = tmp_path / "lock"
    make(victim, path)
    with pytest.raises(GaugeError, match="is not a lock file of gauge-mc") as caught:
        lock.RunLock(path)
    assert str(path) in str(caught.value)
    assert victim.read_text() == "precious"
    assert not lock.is_locked(path)


def test_a_file_that_is_too_long_for_a_lock_is_not_overwritten(tmp_path):
    path = tmp_path / "lock"
    path.write_bytes(bytes(lock.RECORD_BYTES + 1))
    with pytest.raises(GaugeError, match="is not a lock file of gauge-mc"):
        lock.RunLock(path)
    assert path.read_bytes() == bytes(lock.RECORD_BYTES + 1)


RECORD = {"host": "h", "process": 7, "since": "s", "sweep": 1, "rate": 0.5, "times": {"write": 1.0}}
WRONG = {
    "host": [None, 1, ["h"]],
    "process": ["7", -1, 0.5, True, 10**400, None],
    "since": [None, 3, {}],
    "sweep": ["1", -1, 2**63, None],
    "rate": ["1", -1.0, float("nan"), float("inf"), 10**300],
    "joules": ["1", -1.0, True, 1e300],
    "times": [None, [], {"write": "1"}, {"write": -1.0}, {"write": float("nan")}],
}


@pytest.mark.parametrize(
    "text",
    [
        *(json.dumps({**RECORD, key: one}) for key, wrong in WRONG.items() for one in wrong),
        json.dumps({**RECORD, "more": 1}),
        "",
        "\0" * 512,
        "[" * 50000,
        "9" * 5000,
        "[]",
        "7",
        "{",
        "x" * 70000,
    ],
)
def test_a_damaged_record_of_a_holder_is_said_to_be_unreadable(tmp_path, text, monkeypatch):
    path = tmp_path / "lock"
    path.write_text(text)
    holder = lock.read_holder(path)
    assert holder == lock.Holder()
    assert "is in use by another process, whose record" in str(lock._in_use(path, holder))


def npy(kind, shape, fortran=False):
    """Return the header of an array in a file, with Python expressions for its type and shape."""
    text = f"{{'descr': {kind}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


HEADERS = {
    "version": b"\x93NUMPY\x02\x00",
    "magic": b"NUMPY\x93\x01\x00",
    "object": npy("'|O'", "(4,)"),
    "negative": npy("'<f4'", "(-4,)"),
    "huge": npy("'<f4'", "(10000000000,)"),
    "many": npy("'<f4'", "(" + "1," * 100 + ")"),
    "fortran": npy("'<f4'", "(4, 2)", fortran=True),
    "nested": npy("[" * 5000, "(4,)"),
    "code": npy("__import__('os').abort()", "(4,)"),
    "type": npy("'<f8'", "(512,)"),
    "size": npy("'<f4'", "(4,)"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_checkpoint_with_wrong_arrays_and_a_right_checksum_is_refused(tmp_path, case):
    """Whoever computes the checksum of a damaged file, or writes one on purpose."""
    path = tmp_path / "latest"
    parameters = Parameters(lattice=Lattice(4, 4, 4, 4))
    state = {"sweep": 3, "step": 3, "chain": parameters.fixed()}
    body = json.dumps(state).encode() + b"\n" + HEADERS[case] + bytes(4096)
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    assert checkpoint.read_state(path).sweep == 3
    with pytest.raises(GaugeError, match="is damaged") as caught:
        Chain.resume(parameters, CpuDevice(threads=1), path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["v0_2/finished", "scan"])
def test_what_may_not_be_read_is_not_called_damaged(root, monkeypatch, name):
    """As another user's files, or an administrator without all rights."""
    path = root / "tests" / "pins" / name
    really = os.open

    def refuse(file, *args, **more):
        if str(file).endswith((".toml", "plaquette.csv")):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return really(file, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
    for command in ("status", "info"):
        shown, code = call(command, path)
        assert (code, "Permission denied" in shown, "damaged" in shown) == (1, True, False), shown


def test_run_toml_round_trip(tmp_path):
    run = Run(tmp_path)
    parameters = Parameters.from_values({"group": "su3", "lattice": "4x6x8x10", "seed": 9})
    sessions = [SessionRecord.begin(0, "a device"), SessionRecord.begin(40, 'another "device"')]
    run.write(parameters, sessions)
    assert run.read() == (parameters, sessions)
