"""macOS: what can be seen without it, by a compiler for it and without what only Linux has."""

import dataclasses
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from gauge_mc.devices import host
from gauge_mc.devices.cache import run_compiler
from gauge_mc.devices.cpu import compiler, topology
from gauge_mc.devices.cpu.device import TEAM
from gauge_mc.devices.kernels import REAL_BYTES, Kernel
from gauge_mc.fields.sums import ANY_VARIANT
from tests.patience import PATIENCE
from tests.tools.compile_cuda import variants

ZIG = [sys.executable, "-m", "ziglang", "c++"]
TARGETS = {"aarch64-macos": ("apple_m1", 16), "x86_64-macos": ("haswell", 32)}
"""Processor, and bytes of a SIMD register."""


@pytest.fixture(scope="module", params=TARGETS)
def build(request, tmp_path_factory):
    """Compile a kernel for a Mac, and return the kind of the file."""
    pytest.importorskip("ziglang")
    cpu, register = TARGETS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    replaced = (compiler.NATIVE, compiler.OPTIMISED)
    flags = [one for one in compiler.FLAGS if one not in replaced]
    words = [*ZIG, "-target", request.param, f"-mcpu={cpu}", "-O1", *flags]

    def made(kernel, variant):
        lanes = register // REAL_BYTES[variant.precision]
        variant = kernel.narrowed(dataclasses.replace(variant, lanes=lanes))
        command = [*words, compiler.CONTRACTIONS[variant.strict], *variant.definitions]
        printed = run_compiler(
            kernel.name, kernel.translation_unit(variant), command, folder / f"{kernel.name}.so"
        )
        assert "warning" not in printed
        return (folder / f"{kernel.name}.so").read_bytes()[:4]

    return made


MACH_O = bytes.fromhex("cffaedfe")
"""How libraries for macOS begin."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plaquette", "overrelaxation", "heatbath"])
def test_kernels_are_compiled_for_macos(build, name):
    kernel = Kernel(name)
    assert build(kernel, next(iter(variants(kernel)))) == MACH_O


@pytest.mark.slow
def test_teams_of_threads_are_compiled_for_macos(build):
    assert build(TEAM, ANY_VARIANT) == MACH_O


def test_without_masks_of_cores_all_are_used_and_none_is_bound(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    assert host.allowed_cores() == frozenset(range(10))
    assert topology.usable_cores() >= 1
    assert topology.claim_cores(2).cores == []


def test_memory_without_the_files_of_linux(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "MEMORY", tmp_path / "none")
    memory = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=2**30))
    monkeypatch.setitem(sys.modules, "psutil", memory)
    assert host.free_memory() == 2**30


PARENT = """
import os, subprocess, sys
own = {{**os.environ, "GAUGE_MC_PARENT": str(os.getpid())}}
subprocess.Popen([sys.executable, "-c", {child!r}], env=own)
sys.stdin.read()
"""
CHILD = f"""
import signal, sys, time
sys.platform = "darwin"
from gauge_mc.scans import pool as process
process.LOOK_SECONDS = 0.02
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
process.begin_child()
print("begun", flush=True)
time.sleep({10 * PATIENCE})
"""


def test_a_run_stops_when_its_scan_is_killed():
    """Where the system sends no signal."""
    words = [sys.executable, "-c", PARENT.format(child=CHILD)]
    parent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "begun\n"
    began = time.monotonic()
    parent.kill()
    parent.wait()
    assert parent.stdout.read() == ""  # when the child has ended, who has the other end
    assert time.monotonic() - began < PATIENCE
    parent.stdin.close()
    parent.stdout.close()
