"""``gauge-mc doctor``: what works here, what mends the rest, and where compiled kernels are."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.cpu import INSTALL
from gauge_mc.domain.slab import split_lanes
from gauge_mc.inspection import doctor
from tests.calls import call
from tests.children import run, without_modules
from tests.patience import PATIENCE


def missing(shown):
    found = re.findall(r"^missing ([^:]+): .*\n {10}(.+)$", shown, re.MULTILINE)
    return dict(found)


@pytest.mark.slow
def test_a_machine_on_which_a_device_works(usual_compiler):
    shown, code = call("doctor")
    assert code == 0
    assert re.search(r"^works   CPU: .+ threads?$", shown, re.MULTILINE)
    assert re.search(r"^works   C\+\+ compiler c\+\+: ", shown, re.MULTILINE)
    assert shown.count("\nmissing ") == len(missing("\n" + shown))


@pytest.mark.slow
def test_a_machine_without_compilers_names_what_mends_it(tmp_path):
    modules = without_modules(tmp_path / "modules", "ziglang", "pycuda")
    done = run("doctor", PATH=str(tmp_path), CXX="", GAUGE_MC_CACHE=str(tmp_path), **modules)
    assert (done.returncode, done.stderr) == (1, "")
    assert "missing C++ compiler: none found\n" in done.stdout
    assert "missing CPU: No C++ compiler was found" in done.stdout
    found = missing(done.stdout)
    assert found["C++ compiler"] == found["CPU"] == INSTALL
    assert "GPU" in found


@pytest.mark.slow
def test_a_compiler_that_does_not_run_is_named(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    done = run("doctor", CXX=str(broken))
    assert (done.returncode, done.stderr) == (1, "")  # no other one is tried
    assert missing(done.stdout)[f"C++ compiler {broken}"] == INSTALL
    assert f"CXX names the compiler '{broken}'" in done.stdout


IMPATIENT = """
from gauge_mc.devices import cache
cache.limits["version"] = 2.0
from gauge_mc.cli import main
main()
"""
"""The program, which waits for two seconds for the version of a compiler."""


@pytest.mark.slow
def test_doctor_does_not_wait_for_a_compiler_that_hangs(tmp_path):
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nsleep 1000\n")
    hanging.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "CXX": str(hanging)},
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert f"C++ compiler {hanging}: does not run, or does not end" in done.stdout


@pytest.mark.slow
def test_the_cache_is_named_and_emptied(tmp_path):
    cache = {"GAUGE_MC_CACHE": str(tmp_path / "kernels")}
    shown = run("doctor", **cache).stdout
    (line,) = [line for line in shown.splitlines() if "kernel cache" in line]
    assert line.startswith(f"works   kernel cache: {tmp_path / 'kernels'}, ")
    assert line.endswith("gauge-mc doctor --clear-cache removes them")
    # That has compiled a kernel to try the CPU.
    assert "works   CPU" in shown
    files = [path.name for path in (tmp_path / "kernels").iterdir()]
    compiled = [name for name in files if name.endswith((".so", ".cubin"))]
    assert any(name.startswith("hot-") for name in compiled)
    counted = run("doctor", **cache).stdout
    assert f"{tmp_path / 'kernels'}, {len(compiled)} kernels; " in counted
    (tmp_path / "kernels" / "notes.txt").write_text("mine")
    for count in (3 * len(compiled), 0):  # the object, its report and its lock
        cleared = run("doctor", "--clear-cache", **cache)
        assert cleared.returncode == 0
        assert cleared.stdout == f"{tmp_path / 'kernels'}: {count} files removed\n"
        assert [path.name for path in (tmp_path / "kernels").iterdir()] == ["notes.txt"]
    (tmp_path / "kernels" / "notes.txt").unlink()
    run("doctor", "--clear-cache", **cache)
    assert not (tmp_path / "kernels").exists()


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_mended_by_another(tmp_path):
    Path(tmp_path / "file").touch()
    done = run("doctor", GAUGE_MC_CACHE=str(tmp_path / "file"))
    assert done.returncode == 1
    assert missing(done.stdout)["kernel cache"] == "export GAUGE_MC_CACHE=FOLDER"


def test_a_device_that_computes_wrong_numbers_does_not_work(monkeypatch):
    """In either precision, and in all lanes of the widest registers."""
    assert math.prod(split_lanes(doctor.SAMPLE, 16)) == 16
    right, seen = doctor.loop_averages, []

    def wrong(field, loops):
        seen.append(field.precision)
        return right(field, loops) + (1e-3 if field.precision == "double" else 0)

    monkeypatch.setattr(doctor, "loop_averages", wrong)
    (found,) = doctor._devices(BACKENDS["cpu"])
    assert (found.works, found.detail) == (False, "the plaquette in double precision is wrong")
    assert seen == ["single", "double"]
