"""The on-disk cache of compiled kernels."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gauge_mc import process
from gauge_mc.devices import cache
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError, StoppedError
from gauge_mc.groups import GROUPS
from tests.patience import PATIENCE

GOOD, BAD = Kernel("plaquette"), Kernel("copy")
SU2 = Variant("single", (GROUPS["su2"].choice,))
SU3 = Variant("single", (GROUPS["su3"].choice,))


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """The kernels that were compiled, by a compiler that takes its time and knows one kernel."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    done = []

    def run_compiler(kernel, unit, command, output):
        time.sleep(0.05)
        done.append((kernel, threading.get_ident()))
        if kernel != GOOD.name:
            raise GaugeError("failed")
        output.write_bytes(b"object")
        return "printed"

    monkeypatch.setattr(cache, "run_compiler", run_compiler)
    return done


def test_a_kernel_is_compiled_once_however_many_want_it(compilations):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.compiled(GOOD, SU2, ["c"], "", ".so"), range(8)))
    assert len(compilations) == 1
    path = found[0][0]
    assert found == 8 * [(path, "printed")]
    assert path.read_bytes() == b"object"
    cache.compiled(GOOD, SU2, ["c", "-O1"], "", ".so")
    assert len(compilations) == 2


def test_a_kernel_that_fails_is_left_for_the_next_to_try(compilations):
    for _ in range(2):
        with pytest.raises(GaugeError, match="failed"):
            cache.compiled(BAD, SU2, ["c"], "", ".so")
    assert len(compilations) == 2


def test_a_kernel_is_compiled_anew_for_whatever_it_depends_on(compilations):
    ways = [
        (SU2, ["c"], "", ".so"),
        (SU3, ["c"], "", ".so"),
        (SU2, ["d"], "", ".so"),
        (SU2, ["c"], "another version", ".so"),
        (SU2, ["c"], "", ".cubin"),
        (SU2, ["c"], "", ".so", "Tile"),
    ]
    paths = [cache.compiled(GOOD, *way)[0] for way in ways for _ in range(2)]
    assert len(set(paths)) == len(compilations) == len(ways)


@pytest.mark.slow
def test_a_copy_of_the_package_has_the_same_objects(root, tmp_path):
    """So that another environment finds what has been compiled: by name, and the same bytes."""
    program = (
        "from gauge_mc.devices.cpu.device import CpuDevice\n"
        "from gauge_mc.devices.kernels import Kernel, Variant\n"
        "from gauge_mc.groups import GROUPS\n"
        "variant = Variant('single', (GROUPS['su3'].choice,))\n"
        "print(CpuDevice(threads=1)._compiled_file(Kernel('plaquette'), variant))"
    )
    for name in ("gauge_mc", "cuda_src"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    found = []
    for folder in (root, tmp_path):
        kernels = tmp_path / f"kernels-{len(found)}"
        environment = {**os.environ, "GAUGE_MC_CACHE": str(kernels), "PYTHONPATH": str(folder)}
        command = [sys.executable, "-c", program]
        printed = subprocess.check_output(command, cwd=folder, env=environment, text=True)
        found.append(kernels / Path(printed.strip()).name)
    assert found[0].name == found[1].name
    assert found[0].read_bytes() == found[1].read_bytes()


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "file"))
    with pytest.raises(GaugeError, match="name another folder in the environment variable"):
        cache.compiled(GOOD, SU2, ["c"], "", ".so")


def truncated(data):
    return data[: len(data) // 2]


def changed(data):
    return data[:-1] + bytes([data[-1] ^ 1])


DAMAGE = {"empty": lambda data: b"", "truncated": truncated, "changed": changed, "gone": None}


@pytest.mark.parametrize("suffix", [".so", ".txt"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_kernel_is_compiled_anew(compilations, suffix, kind):
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    file, damage = path.with_suffix(suffix), DAMAGE[kind]
    if damage:
        file.write_bytes(damage(file.read_bytes()))
    else:
        file.unlink()
    assert cache.compiled(GOOD, SU2, ["c"], "", ".so") == (path, "printed")
    assert path.read_bytes() == b"object"
    assert len(compilations) == 2
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert len(compilations) == 2


def test_every_flipped_bit_is_noticed(compilations, tmp_path):
    """In an object, in its report, and in what else is kept, such as tuned launch bounds."""
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    for file in (path, path.with_suffix(".txt")):
        good = file.read_bytes()
        for bit in range(8 * len(good)):
            data = bytearray(good)
            data[bit // 8] ^= 1 << bit % 8
            file.write_bytes(data)
            assert cache._report(path) is None
        file.write_bytes(good)
    assert cache._report(path) == "printed"


def test_the_kernel_of_another_is_not_taken(compilations):
    """Two intact files that do not belong together."""
    first, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    first.write_bytes(b"another object")
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert first.read_bytes() == b"object"
    target = first.with_name("target")
    first.rename(target)
    first.symlink_to(target)
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert not first.is_symlink()
    assert len(compilations) == 3


def test_the_folder_of_kernels_is_private(compilations):
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert cache.cache_folder().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_to_which_others_may_write_is_refused(compilations, mode):
    """Also for a kernel that is already there, which others may have planted."""
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    cache.cache_folder().chmod(mode)
    for variant in (SU2, SU3):
        with pytest.raises(GaugeError, match="chmod 700") as caught:
            cache.compiled(GOOD, variant, ["c"], "", ".so")
        assert "GAUGE_MC_CACHE" in str(caught.value)
    assert cache.clear_cache()  # the way out


def test_a_folder_of_another_user_is_refused(compilations, monkeypatch):
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    os.chown(cache.cache_folder(), 4343, -1)
    with pytest.raises(GaugeError, match="belongs to another user"):
        cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert len(compilations) == 1


def test_a_planted_lock_overwrites_nothing(compilations, tmp_path):
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for file in cache.cache_folder().iterdir():
        file.unlink()
    path.with_suffix(".lock").symlink_to(victim)
    with pytest.raises(GaugeError, match="cannot be stored"):
        cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert victim.read_text() == "precious"


def test_what_killed_processes_have_left_is_cleared(compilations):
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    folder = cache.cache_folder()
    (folder / "tmpabc").mkdir()
    (folder / "tmpabc" / "half.so").write_bytes(b"half")
    (folder / f".{path.name}.0123456789abcdef.tmp").write_bytes(b"half")
    cache.clear_cache()
    assert not folder.exists()


def program(folder, text, name="strange"):
    """Make a program from a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def impatient(monkeypatch):
    """Compilers have half a second."""
    monkeypatch.setattr(cache, "limits", {"compile": 0.5, "version": 0.5})


HANGING = "sleep 1000 & sleep 1000"
"""Also a child that keeps the output open."""


def test_a_compiler_that_hangs_is_given_up(tmp_path, impatient):
    began = time.monotonic()
    hanging = program(tmp_path, HANGING)
    assert cache.version_of(hanging) is None
    with pytest.raises(GaugeError, match=r"had not finished the kernel 'k' within 0\.5 seconds"):
        cache.run_compiler("k", "", [hanging], tmp_path / "k.so")
    assert time.monotonic() - began < PATIENCE


def test_a_signal_ends_the_wait_for_a_compiler(tmp_path):
    hanging, began = program(tmp_path, HANGING), time.monotonic()
    timer = threading.Timer(0.3, process.note, ["SIGTERM"])
    timer.start()
    try:
        with pytest.raises(StoppedError, match="Stopped by SIGTERM while a kernel was compiled"):
            cache.run_compiler("k", "", [hanging], tmp_path / "k.so")
    finally:
        timer.join()
        process.forget()
    assert time.monotonic() - began < PATIENCE


def test_the_wait_for_another_process_ends_too(compilations):
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    path.unlink()
    process.note("SIGTERM")
    try:
        with path.with_suffix(".lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(StoppedError, match="another process was compiling"):
                cache.compiled(GOOD, SU2, ["c"], "", ".so")
    finally:
        process.forget()


def test_the_words_of_a_compiler_are_shown_whatever_they_are(tmp_path):
    latin = program(tmp_path, r"printf 'caf\351 1.0\n'")
    assert cache.version_of(latin) == "caf\\xe9 1.0\n"
    with pytest.raises(GaugeError, match=r"failed on the kernel 'k': caf\\xe9 1\.0\. Run"):
        cache.run_compiler("k", "", [latin], tmp_path / "k.so")
    silent = program(tmp_path, "exit 0", "silent")
    with pytest.raises(GaugeError, match="has written no file and no message"):
        cache.run_compiler("k", "", [silent], tmp_path / "k.so")


@pytest.mark.parametrize("named", ["no-such-compiler", "'", "false", "/", "a" * 5000, " x "])
def test_a_broken_choice_of_the_user_is_not_replaced(monkeypatch, named):
    compiler.find_compiler.cache_clear()
    monkeypatch.setenv("CXX", named)
    try:
        with pytest.raises(GaugeError, match="environment variable CXX names the compiler"):
            compiler.find_compiler()
    finally:
        compiler.find_compiler.cache_clear()


def test_a_choice_of_the_user_may_have_options_and_blanks(monkeypatch, tmp_path):
    (tmp_path / "a folder").mkdir()
    path = program(tmp_path / "a folder", 'test "$1" = -O1 && echo mine')
    compiler.find_compiler.cache_clear()
    monkeypatch.setenv("CXX", f"'{path}' -O1")
    try:
        found = compiler.find_compiler()
    finally:
        compiler.find_compiler.cache_clear()
    assert (found.words, found.version) == ([path, "-O1"], "mine\n")


def test_an_object_that_cannot_be_loaded_is_a_sentence(monkeypatch, tmp_path):
    """From a compiler that only seems to work."""
    strange = program(tmp_path, 'for last; do :; done; echo strange; echo junk > "$last"')
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    device = CpuDevice(threads=1)
    device.compiler = compiler.Compiler(strange, "strange")
    with pytest.raises(GaugeError, match="cannot be loaded"):
        device.kernel(Kernel("copy"), SU2)
