"""`bench` and `doctor` say what is so, as whole processes."""

import json
import os
import re
import subprocess
import sys

import pytest

from gauge_mc.devices.cuda_kernel import Sweep, Tile, best_tile
from gauge_mc.devices.nvcc import registers_of
from tests.calls import call


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "gauge_mc", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_bench_prints_one_json_object(tmp_path):
    options = ["--group", "su3", "--lattice", "4x4x4x4", "--backend", "cpu", "--threads", "1"]
    done = run("bench", *options, "--seconds", "0.05", "--json", "--save", str(tmp_path / "b"))
    result = json.loads(done.stdout)
    assert result == json.loads((tmp_path / "b").read_text())
    assert result["lattice"] == "4x4x4x4"
    assert result["copy_gb_per_s"] > 0.1
    kernels = {kernel["name"]: kernel for kernel in result["kernels"]}
    others = {"heatbath, lcg", "heatbath, ranlux"}
    assert set(kernels) == {"heatbath", "overrelaxation", "plaquette", "polyakov"} | others
    for kernel in kernels.values():
        assert kernel["links_per_s"] * kernel["ns_per_link"] == pytest.approx(1e9)
    assert kernels["heatbath"]["bytes_per_link"] == 9 * 12 * 4
    compared = run("bench", *options, "--seconds", "0.05", "--compare", str(tmp_path / "b"))
    assert "ratio" in compared.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bench", "--group", "su4"], 2, "group 'su4' is unknown"),
        (["bench", "--lattice", "5x4x4x4"], 2, "even extents"),
        (["bench", "--backend", "abacus"], 2, "backend 'abacus' is unknown"),
        (["bench", "--compare", "/nonexistent"], 2, "not a result of gauge-mc bench"),
        (["bench", "--threads", "0"], 2, "threads"),
    ],
)
def test_bad_input_ends_in_one_sentence(arguments, code, words):
    done = run(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_doctor_names_what_mends(tmp_path):
    done = run("doctor")
    assert done.returncode == 0
    assert "works   CPU" in done.stdout
    lame = run("doctor", PATH=str(tmp_path), CXX="", GAUGE_MC_CACHE=str(tmp_path))
    assert "C++ compiler: none found" in lame.stdout or "ziglang" in lame.stdout


def test_no_compiler_is_one_sentence(tmp_path):
    done = run("bench", "--backend", "cpu", PATH=str(tmp_path), CXX="")
    if "ziglang" not in done.stderr and done.returncode == 0:
        pytest.skip("the ziglang wheel is a compiler that needs no PATH")
    assert done.returncode == 1
    assert "no C++ compiler here" in done.stderr


def test_a_failing_compiler_is_one_sentence(tmp_path):
    broken = tmp_path / "c++"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "error: boom"; exit 1\n')
    broken.chmod(0o755)
    done = run("bench", "--backend", "cpu", CXX=str(broken), GAUGE_MC_CACHE=str(tmp_path / "k"))
    assert done.returncode == 1
    assert "error: boom" in done.stderr
    assert done.stderr.count("\n") == 1


def test_tiles_divide_the_lattice():
    for extents, slices, threads in [((48, 48, 48), 48, 128), ((4, 6, 8), 10, 256)]:
        tile = best_tile(extents, slices, threads)
        assert tile.threads <= threads
        assert (extents[0] // 2) % tile.half_x == extents[1] % tile.y == 0
        assert extents[2] % tile.z == 0
    for slices in 48, 46:
        assert best_tile((48, 48, 48), slices, 128) == Tile(8, 2, 2, 4)


def test_blocks_of_a_sweep_are_all_there_at_once():
    sweep = Sweep(None, registers=121, multiprocessors=10, arrived=None)
    assert [sweep.threads(sites) for sites in (64, 320, 321, 10**6)] == [32, 32, 64, 256]
    assert sweep.fits(20, 256)  # 2 * 256 * 128 registers
    assert not sweep.fits(21, 256)
    assert sweep.fits(50, 96)
    assert not sweep.fits(51, 96)


def test_register_report():
    report = """entry function 'step_sweep'
    0 bytes spill stores, 0 bytes spill loads\nptxas info : Used 80 registers, used 0
    entry function 'step'
    16 bytes spill stores, 20 bytes spill loads\nptxas info : Used 96 registers, used 0"""
    registers = registers_of(report, "step")
    assert registers is not None
    assert (registers.count, registers.spilled) == (96, 36)
    assert registers_of(report, "other") is None


def test_loops_are_timed_in_heatbath_sweeps():
    words = ("--backend", "cpu", "--lattice", "4x4x4x6", "--seconds", "0.05")
    shown, code = call("bench", "--loops", *words)
    assert code == 0
    assert re.search(r"R ≤ 2 and T ≤ 3 cost [\d.e+]+ heatbath sweeps", " ".join(shown.split()))
    found = json.loads(call("bench", "--loops", "--json", *words)[0])
    assert (found["r_max"], found["t_max"]) == (2, 3)
    assert min(found["loops"], found["iteration"], found["heatbath_s"]) > 0
