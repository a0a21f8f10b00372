"""Runs on several devices and processes: the same files, byte for byte, as on one."""

import contextlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gauge_mc as package
from gauge_mc.errors import INTERRUPTED
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from tests.calls import call, make_run
from tests.patience import PATIENCE
from tests.run.sessions import written

MPIEXEC = Path(sys.executable).with_name("mpiexec")
CHAIN = {
    "lattice": "4x4x4x12",
    "group": "su3",
    "precision": "double",
    "thermalize": 2,
    "configs": 3,
    "separation": 2,
}

PIPES = {
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "env": os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)},
}


def with_mpi(test):
    """Mark a test that needs MPI, which the environment of the quick tests lacks."""
    there = MPIEXEC.exists() and importlib.util.find_spec("mpi4py")
    reason = "there is no mpiexec beside Python, or no mpi4py"
    return pytest.mark.slow(pytest.mark.skipif(not there, reason=reason)(test))


def job(ranks, path, *words, **values):
    options = {"backend": "cpu", "threads": 1, "output": path, **CHAIN, **values}
    given = [
        str(word)
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    program = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "gauge_mc", "generate"]
    return subprocess.Popen([*program, *given, *words], **PIPES)


def ranks_of(path):
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            if words[0] == sys.executable.encode() and str(path).encode() in words:
                found.append(int(file.parent.name))
    return found


def finish(process, expect=0):
    """Wait for a job; return what it said."""
    shown, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == expect, complaint
    return shown + complaint


@pytest.mark.slow
@pytest.mark.parametrize("rng", ["philox", "lcg", "ranlux"])
def test_devices_do_not_change_a_bit(tmp_path, rng):
    whole = make_run(tmp_path / "whole", rng=rng, **CHAIN)
    for devices in ("cpu:2", "cpu:3", "cpu:4"):
        path = make_run(tmp_path / devices, rng=rng, devices=devices, **CHAIN)
        assert written(path) == written(whole)


@pytest.mark.slow
@pytest.mark.parametrize("rng", ["philox", "ranlux"])
def test_a_run_goes_on_with_other_devices(tmp_path, rng):
    whole = make_run(tmp_path / "whole", rng=rng, **CHAIN)
    path = tmp_path / "changed"
    for configs, devices in enumerate(("cpu:3", "cpu", "cpu:2"), 1):
        make_run(path, rng=rng, devices=devices, **(CHAIN | {"configs": configs}))
    assert written(path) == written(whole)


@pytest.mark.slow
def test_a_start_file_and_too_many_devices(tmp_path):
    first = make_run(tmp_path / "first", **CHAIN)
    start = str(next(iter(Run(first).configs().values())))
    one, two = (
        make_run(tmp_path / devices, start=start, devices=devices, **CHAIN)
        for devices in ("cpu", "cpu:2")
    )
    assert written(one) == written(two)
    said, code = call(
        "generate", "--lattice", "4x4x4x4", "--devices", "cpu:3", "--output", tmp_path / "none"
    )
    assert (code, "4 time slices, too few for 3 devices" in said) == (2, True), said
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "devices", ["cpu", "cpu:2", "cpu:3", pytest.param("1", marks=pytest.mark.gpu)]
)
def test_a_run_without_overrelaxation(tmp_path, devices, request):
    """In double precision, in which CPUs and GPUs agree up to rounding for a few updates."""
    values = {**CHAIN, "overrelax": 0, "start": "hot", "rng": "ranlux"}
    whole = make_run(tmp_path / "whole", **values)
    on_gpu = devices == "1"
    if on_gpu:
        gpu = request.getfixturevalue("gpu")
        gpu.close()
        values["backend"] = gpu.backend
    for configs in (1, 3):
        path = make_run(tmp_path / "other", devices=devices, **(values | {"configs": configs}))
    for name in ("plaquette", "polyakov"):
        ours, theirs = (read_table(Run(run).table(name)).columns for run in (whole, path))
        assert ours.keys() == theirs.keys()
        for column in ours:
            np.testing.assert_allclose(theirs[column], ours[column], rtol=0, atol=1e-10)
    assert on_gpu or written(path) == written(whole)
    assert Run(whole).read()[0].name.endswith("_ranlux_or0")


@pytest.mark.slow
@with_mpi
@pytest.mark.parametrize(("ranks", "devices"), [(2, "cpu"), (3, "cpu"), (2, "cpu:2")])
def test_processes_do_not_change_a_bit(tmp_path, ranks, devices):
    whole = make_run(tmp_path / "whole", rng="ranlux", **CHAIN)
    said = finish(job(ranks, tmp_path / "shared", rng="ranlux", devices=devices))
    assert said.count("to continue") == said.count("Traceback") == 0
    assert said.count("begins") == 1
    quiet = ("--json", "--quiet")
    again = finish(job(ranks, tmp_path / "shared", *quiet, rng="ranlux", devices=devices))
    assert (json.loads(again)["sweep"], json.loads(again)["stopped"]) == (8, None)
    assert written(tmp_path / "shared") == written(whole)
    start = str(next(iter(Run(whole).configs().values())))
    make_run(tmp_path / "one", start=start, **CHAIN)
    finish(job(ranks, tmp_path / "other", start=start))
    assert written(tmp_path / "other") == written(tmp_path / "one")


NOISE_REDUCTION = {
    "lattice": "4x4x4x16",
    "group": "su2",
    "thermalize": 1,
    "configs": 2,
    "measure": "polyakov-correlators:2:r-max=2:multihit:multilevel=4,2/2,2,"
    "wilson-loops:2:r-max=2:t-max=8:iterations=0,1:multihit:multilevel=4,2/2,2",
}
"""Averages over slabs of 4 and of 2 slices, which follow on other processes."""


@pytest.mark.slow
@with_mpi
@pytest.mark.parametrize(("ranks", "devices"), [(2, "cpu"), (4, "cpu"), (2, "cpu:2")])
def test_processes_do_not_change_averages_over_slabs(tmp_path, ranks, devices):
    """Lines and operators of multilevel averages are exchanged between processes as well."""
    options = CHAIN | NOISE_REDUCTION
    whole = make_run(tmp_path / "whole", **options)
    finish(job(ranks, tmp_path / "shared", devices=devices, **NOISE_REDUCTION))
    tables = [Run(whole).table(name) for name in ("polyakov_correlators", "wilson_loops")]
    assert [len(read_table(one)) for one in tables] == [
        2,
        8,
    ]  # R = 2, and T = 4 and 8 at two levels
    assert written(tmp_path / "shared") == written(whole)


@pytest.mark.slow
@with_mpi
def test_a_killed_process_ends_the_job_which_goes_on_later(tmp_path):
    long = {"configs": 200, "checkpoint_every": 0.0002}
    whole = make_run(tmp_path / "whole", **(CHAIN | long))
    path, dice = tmp_path / "broken", random.Random(4)
    table = Run(path).table("plaquette")
    killed = 0
    for _ in range(3):
        before = len(read_table(table).columns["sweep"]) if table.exists() else 0
        process = job(2, path, **long)
        while process.poll() is None and not (
            table.exists() and table.stat().st_size > 60 * before
        ):
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.2))
        ranks = ranks_of(path)
        if ranks:
            os.kill(dice.choice(ranks), signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        if process.returncode == 0:
            break
        killed += 1
    finish(job(2, path, **long))
    assert killed
    assert written(path) == written(whole)


@pytest.mark.slow
@with_mpi
def test_failures_and_signals_end_all_processes(tmp_path):
    said = finish(job(2, tmp_path / "bad", beta=-1), expect=2)
    assert said.count("gauge-mc: --beta is -1") == 1
    assert "Traceback" not in said
    process = job(2, tmp_path / "long", configs=10000)
    while not Run(tmp_path / "long").table("plaquette").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    said = finish(process, expect=INTERRUPTED)
    assert said.count("Stopped by SIGTERM; to continue") == 1


PROGRAM = """
import sys
from gauge_mc import generate
from gauge_mc.quantities.plaquette import plaquette

def energy(field):
    return 1 - plaquette(field)

def stop(chain):
    return chain.sweep == int(sys.argv[2])

how = {"observables": [energy], "on_update": stop, "progress": False}
result = generate(lattice="4x4x4x12", thermalize=2, configs=3, separation=2, backend="cpu",
                  threads=1, output=sys.argv[1], **how)
print(result)
"""


@pytest.mark.slow
@with_mpi
def test_functions_are_measured_by_several_processes(tmp_path):
    def work(ranks, path, stop):
        words = [MPIEXEC, "-n", str(ranks), sys.executable, "-c", PROGRAM, path, str(stop)]
        return finish(subprocess.Popen(words, **PIPES))

    assert "complete, 8 of 8" in work(1, tmp_path / "one", 0)
    for stop in (5, 8):
        said = work(2, tmp_path / "two", stop)
        assert said.count("stopped by on_update, 5 of 8") == 2 * (stop == 5)
        assert said.count("complete, 8 of 8") == 2 * (stop == 8)
    assert written(tmp_path / "two") == written(tmp_path / "one")
    assert len(read_table(Run(tmp_path / "two").table("energy"))) == 6
    said = finish(job(2, tmp_path / "two"), expect=2)
    assert "group = su2, not su3" in said


REACHING = """
import sys
from gauge_mc import Field, Lattice, Random, heatbath, open_device_group, overrelax
from gauge_mc.domain.mpi import find_processes

devices = open_device_group(None, sys.argv[2], processes=find_processes(), share_gpus=True)
field = Field.hot(Lattice(4, 8, 4, 12), "su3", device=devices, seed=1)
random = Random.for_field(field, "philox", seed=1)
for _ in range(20):
    heatbath(field, beta=5.7, random=random, sweeps=2)
    overrelax(field, 3)
reached = field.halo().targets is not None
field.save(sys.argv[1])
if devices.root:
    print("stored directly" if reached else "sent")
"""


@pytest.mark.gpu
@with_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_store_in_the_memory_of_others(tmp_path, gpu, ranks, request):
    """Also where they share a GPU, as here if there are fewer GPUs than processes."""
    if any(map(request.config.getoption, ("--emulate-gpu", "--emulate-hip"))):
        pytest.skip("emulated memory belongs to one process")
    gpu.close()
    assert fields_of_processes(tmp_path, ranks, REACHING, gpu.backend) == ["stored directly"] * 2


def fields_of_processes(folder, ranks, program, backend):
    """Return what one process and several say; they must leave the same bytes."""
    files, said = [], []
    for count in (1, ranks):
        path = folder / str(count) / "field.lime"
        path.parent.mkdir()
        files.append(path)
        words = [MPIEXEC, "-n", str(count), sys.executable, "-c", program, path, backend]
        said.append(finish(subprocess.Popen(words, **PIPES)).strip())
    assert files[0].read_bytes() == files[1].read_bytes()
    return said


EMULATED = "from tests import emulator\nemulator.enable_hip()\n"


@with_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_with_amd_gpus_give_the_same_bytes(tmp_path, ranks):
    """The GPUs of every process are emulated, so that none reaches the memory of another one."""
    said = fields_of_processes(tmp_path, ranks, EMULATED + REACHING, "hip")
    assert said == ["stored directly", "sent"]
