"""C++ compilers with options: for which processor and registers they compile."""

import ctypes
import shlex
import shutil
import sys

import pytest

from gauge_mc.devices.cache import run_compiler, version_of
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.compiler import Compiler
from gauge_mc.devices.cpu.device import TEAM
from gauge_mc.errors import NoKernelsError
from gauge_mc.fields.sums import ANY_VARIANT
from tests.children import run

SETS = {
    16: [],
    32: ["__AVX2__"],
    64: ["__AVX2__", "__AVX512F__", "__AVX512DQ__", "__AVX512BW__", "__AVX512VL__"],
}
"""Macros of compilers, by the size of registers in bytes."""

GCC = shutil.which("g++")


def saying(folder, *macros, bits=64, code=0):
    """A compiler that defines macros."""
    path = folder / "a compiler"
    values = (one if " " in one else f"{one} 1" for one in macros)
    lines = [f"#define __SIZEOF_POINTER__ {bits // 8}", *(f"#define {one}" for one in values)]
    text = "\n".join(lines)
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\nexit {code}\n")
    path.chmod(0o755)
    return Compiler(shlex.quote(str(path)), "1.0")


@pytest.fixture(params=[{"avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"}])
def instructions(request, monkeypatch):
    """The instruction sets of the processor."""
    known = "a processor", frozenset(request.param)
    monkeypatch.setattr(compiler, "processor", lambda: known)


@pytest.mark.parametrize("size", SETS)
def test_registers_are_those_for_which_the_compiler_compiles(size, instructions, tmp_path):
    """Whatever the processor has: `g++ -mno-avx512f` has registers of 32 bytes."""
    assert saying(tmp_path, *SETS[size]).register_bytes == size


def test_some_of_the_wide_instructions_are_not_enough(instructions, tmp_path):
    assert saying(tmp_path, "__AVX2__", "__AVX512F__", "__AVX512VL__").register_bytes == 32


@pytest.mark.parametrize("instructions", [{"avx2", "avx512f"}], indirect=True)
def test_code_that_this_processor_cannot_run_is_refused(instructions, tmp_path):
    sentence = "compiles for avx512dq, avx512bw and avx512vl, which this processor does not have"
    with pytest.raises(NoKernelsError, match=sentence):
        _ = saying(tmp_path, *SETS[64]).register_bytes


@pytest.mark.parametrize(("length", "size"), [(0, 16), (16, 16), (32, 32), (64, 64), (128, 16)])
def test_vectors_of_sve_are_registers_if_kernels_have_such(length, size, monkeypatch, tmp_path):
    """And compilers are told their length, unless the user tells them the processor or a length."""
    monkeypatch.setattr(compiler, "vector_bytes", lambda: length)
    macros = [f"__ARM_FEATURE_SVE_BITS {8 * length}"] if length else []
    assert saying(tmp_path, *macros).register_bytes == size
    told = [f"-msve-vector-bits={8 * length}"] if 0 < length <= 64 else []
    named = "-march=armv8-a", "-mcpu=neoverse-v1", "-msve-vector-bits=128"
    for options, expected in (("", told), *((one, []) for one in named)):
        flags = Compiler(f"g++ {options}", "1.0").flags
        assert [one for one in flags if "vector-bits" in one] == expected


def test_parts_of_vectors_of_sve_are_those_of_neon(monkeypatch):
    monkeypatch.setattr(compiler, "vector_bytes", lambda: 64)
    for options in ("", "-march=armv8.2-a+sve -msve-vector-bits=512"):
        made = Compiler(f"g++ {options}", "1.0")
        assert made.flags_for(64) == made.flags
        assert made.flags_for(32) == [*made.flags, "-msve-vector-bits=scalable"]
    named = Compiler("g++ -march=armv8-a", "1.0")
    assert named.flags_for(32) == named.flags


@pytest.mark.parametrize(
    ("length", "has"), [(0, "does not have them"), (32, "has 256"), (128, "has 1024")]
)
def test_vectors_of_sve_of_another_length_are_refused(length, has, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "vector_bytes", lambda: length)
    sentence = f"compiles for vectors of SVE of 512 bits, but this processor {has}: name another"
    with pytest.raises(NoKernelsError, match=sentence):
        _ = saying(tmp_path, "__ARM_FEATURE_SVE_BITS 512").register_bytes


def test_kernels_of_x86_and_arm_are_told_apart(monkeypatch):
    """Also where the command names a processor by a word that both have, and nothing else does."""
    monkeypatch.setattr(compiler, "processor", lambda: ("one", frozenset()))
    for command in ("zig c++ -mcpu=baseline", "g++"):
        identities = set()
        for machine in ("x86_64", "aarch64"):
            monkeypatch.setattr(compiler.platform, "machine", lambda machine=machine: machine)
            identities.add(Compiler(command, "1.0").identity)
        assert len(identities) == 2


def test_arm_processors_are_known_by_their_numbers(monkeypatch, tmp_path):
    cores = "\n".join(
        f"processor\t: {n}\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
        for n in range(2)
    )
    (tmp_path / "cpuinfo").write_text(cores)
    monkeypatch.setattr(compiler, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(compiler.platform, "machine", lambda: "aarch64")
    found = compiler.processor.__wrapped__()
    assert found == ("aarch64, implementer 0x41, part 0xd40", frozenset({"fp", "asimd", "sve"}))


def test_code_of_another_size_is_refused(tmp_path):
    with pytest.raises(NoKernelsError, match="compiles for 32 bits, but Python has 64: name"):
        _ = saying(tmp_path, bits=32).register_bytes


def test_options_that_the_compiler_does_not_have_are_named(tmp_path):
    for made in (saying(tmp_path, code=1), Compiler("/bin/echo", "1.0")):
        with pytest.raises(NoKernelsError, match="does not take the options of kernels"):
            _ = made.register_bytes


@pytest.mark.skipif(not GCC, reason="there is no GCC")
@pytest.mark.parametrize("option", ["-mno-such", "-march=no-such"])
def test_what_gcc_says_is_shown(option):
    with pytest.raises(NoKernelsError, match=r"kernels \(.*no-such.*\): name another"):
        _ = Compiler(f"g++ {option}", "1.0").register_bytes


def test_the_processor_that_the_user_names_counts():
    """And so does the level of optimisation: of two such options the last, ours, would count."""
    assert "-march=native" in Compiler("g++ -O1", "1.0").flags
    assert "-O3" not in Compiler("g++ -O1", "1.0").flags
    assert "-O3" in Compiler("g++ -mno-avx512f", "1.0").flags
    assert "-march=native" in Compiler("ccache g++ -mno-avx512f", "1.0").flags
    for command in ("g++ -march=x86-64", "ccache 'a g++' -mcpu=neoverse-n1"):
        assert "-march=native" not in Compiler(command, "1.0").flags


@pytest.mark.parametrize(
    ("options", "here"),
    [
        ("", True),
        ("-mno-avx512f", True),
        ("-march=native", True),
        ("-march=x86-64-v3 -mtune=native", True),
        ("-march=x86-64-v3", False),
        ("-mcpu=neoverse-n1", False),
    ],
)
def test_kernels_depend_on_this_processor_unless_another_one_is_named(options, here, monkeypatch):
    """So that those of an image are found on every host."""
    made = Compiler(f"g++ {options}", "1.0")
    identities = set()
    for sets in ({"avx2"}, {"avx2", "avx512f"}):
        monkeypatch.setattr(compiler, "processor", lambda sets=sets: ("one", frozenset(sets)))
        identities.add(made.identity)
    assert len(identities) == 1 + here


def test_lanes_follow_from_the_registers(monkeypatch, tmp_path):
    """Those of kernels, too, so that nothing is compiled for others."""
    monkeypatch.setattr(compiler, "find_compiler", lambda: saying(tmp_path))
    from gauge_mc.devices import open_device

    device = open_device("cpu")
    assert [device.lanes(one) for one in ("single", "double")] == [4, 2]


@pytest.mark.slow
@pytest.mark.skipif(not GCC, reason="there is no GCC")
@pytest.mark.parametrize("strict", [False, True])
def test_kernels_are_compiled_with_the_options_of_the_user(strict, tmp_path):
    """What `doctor` says is true of a run."""
    command = "g++ -mno-avx2"
    shown = run("doctor", CXX=command)
    assert f"works   C++ compiler {command}: " in shown.stdout
    assert "registers of 128 bits\n" in shown.stdout
    assert "works   CPU: " in shown.stdout
    words = ["--lattice", "4x4x4x4", "--beta", "2", "--group", "su2", "--configs", "1"]
    more = ["--strict"] if strict else []
    done = run("generate", *words, "--output", str(tmp_path / "run"), *more, CXX=command)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_zig_links_no_library_of_cpp(tmp_path):
    """Not even for the threads, whose symbols would be missing when they are loaded."""
    pytest.importorskip("ziglang")
    words = (sys.executable, compiler.ZIG)
    assert "clang" in version_of(*words)
    command = [*words, *compiler.FLAGS]
    run_compiler("team", TEAM.translation_unit(ANY_VARIANT), command, tmp_path / "team.so")
    assert ctypes.CDLL(str(tmp_path / "team.so")).make_team
    with pytest.raises(NoKernelsError, match="error: a type specifier is required"):
        run_compiler("team", "wrong;", command, tmp_path / "other.so")
