"""The CUDA compilers nvcc and NVRTC: where they are found, and what is read from their reports."""

import shutil
import struct
import subprocess
import sys

import pytest

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cache import run_compiler
from gauge_mc.devices.cpu.compiler import find_compiler
from gauge_mc.devices.cuda import compiler
from gauge_mc.devices.cuda.compiler import CudaCompiler, find_cuda_compiler
from gauge_mc.devices.cuda.kernel import DEFAULT
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError, NoKernelsError
from tests.tools.compile_cuda import variants


def program(path, words="Cuda compilation tools, release 12.4, V12.4.131"):
    """Write a program that only states its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{words}'\n")
    path.chmod(0o755)
    return str(path)


LIBRARY = """
#include <cstring>
static const char REPORT[] = "ptxas info    : Compiling entry function";
extern "C" {
    int nvrtcVersion(int* major, int* minor) { *major = RELEASE, *minor = 1; return 0; }
    int nvrtcGetNumSupportedArchs(int* count) { *count = 2; return 0; }
    int nvrtcGetSupportedArchs(int* found) { found[0] = 75, found[1] = 90; return 0; }
    const char* nvrtcGetErrorString(int) { return "out of luck"; }
    int nvrtcCreateProgram(void** one, const char* text, const char*, int, void*, void*) {
        *one = strdup(text);
        return strstr(text, "unlucky") ? 1 : 0;
    }
    int nvrtcCompileProgram(const char* text, int, void*) { return strstr(text, "wrong") ? 6 : 0; }
    int nvrtcGetProgramLogSize(void*, size_t* size) { *size = sizeof REPORT; return 0; }
    int nvrtcGetProgramLog(void*, char* to) { memcpy(to, REPORT, sizeof REPORT); return 0; }
    int nvrtcGetCUBINSize(const char* text, size_t* size) { *size = strlen(text); return 0; }
    int nvrtcGetCUBIN(const char* text, char* to) { memcpy(to, text, strlen(text)); return 0; }
}
"""
"""A library with the functions of NVRTC, whose object code is the source."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Such libraries by release."""
    folder = tmp_path_factory.mktemp("libraries")
    source = folder / "nvrtc.cpp"
    source.write_text(LIBRARY)
    paths = {release: folder / f"libnvrtc.so.{release}" for release in (12, 13)}
    for release, path in paths.items():
        options = ["-shared", "-fPIC", f"-DRELEASE={release}", str(source), "-o", str(path)]
        subprocess.run([*find_compiler().words, *options], check=True)
    return paths


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No CUDA compiler at any of the usual places, and no driver."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gcc").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "USUAL_HOME", str(tmp_path / "usual"))
    monkeypatch.setattr(compiler, "wheel_folders", list)
    monkeypatch.setattr(compiler, "driver_release", lambda: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    return tmp_path


def found():
    one = find_cuda_compiler()
    return one and one.path


def empty(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


def test_where_compilers_are_found(nowhere, monkeypatch):
    """On PATH, in the toolkit that is named or else the usual one, beside Python, in wheels."""
    assert found() is None
    wheels = [nowhere / "cuda_nvrtc", nowhere / "cu13"]
    monkeypatch.setattr(compiler, "wheel_folders", lambda: wheels)
    wheel = program(nowhere / "cu13" / "bin" / "nvcc")
    assert found() == wheel
    older = empty(nowhere / "cuda_nvrtc" / "lib" / "libnvrtc.so.12")
    empty(nowhere / "cu13" / "lib" / "libnvrtc.alt.so.13")
    assert found() == older
    newer = empty(nowhere / "prefix" / "lib" / "libnvrtc.so.13")
    assert found() == newer
    usual = program(nowhere / "usual" / "bin" / "nvcc")
    assert found() == usual
    monkeypatch.setenv("CUDA_PATH", str(nowhere / "path"))
    assert found() == newer
    by_path = program(nowhere / "path" / "bin" / "nvcc")
    assert found() == by_path
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "home"))
    assert found() == by_path
    by_home = program(nowhere / "home" / "bin" / "nvcc")
    assert found() == by_home
    monkeypatch.setenv("PATH", f"{nowhere}:{nowhere / 'usual' / 'bin'}")
    assert found() == usual


def test_without_a_compiler_of_cpp_the_library_is_preferred(nowhere, monkeypatch):
    nvcc = program(nowhere / "usual" / "bin" / "nvcc")
    beside = empty(nowhere / "usual" / "lib64" / "libnvrtc.so.13")
    assert found() == nvcc
    (nowhere / "gcc").unlink()
    assert found() == beside
    monkeypatch.setenv("NVCC_CCBIN", "clang")
    assert found() == nvcc


def test_one_that_the_driver_understands_is_preferred(libraries, nowhere, monkeypatch):
    nvcc = program(nowhere / "usual" / "bin" / "nvcc", "release 13.0, V13.0.88")
    older = empty(nowhere / "prefix" / "lib" / "libnvrtc.so.12")
    shutil.copy(libraries[12], older)
    for release, expected in (((13, 0), nvcc), ((12, 8), older), ((11, 4), nvcc)):
        monkeypatch.setattr(compiler, "driver_release", lambda release=release: release)
        assert found() == expected


def test_a_file_that_cannot_be_run_is_not_nvcc(nowhere):
    program(nowhere / "usual" / "bin" / "nvcc")
    (nowhere / "usual" / "bin" / "nvcc").chmod(0o644)
    assert found() is None
    with pytest.raises(GaugeError, match="neither the library NVRTC nor the program nvcc"):
        compiler.usable_compiler()


def test_the_release(nowhere):
    one = CudaCompiler(program(nowhere / "a" / "nvcc"))
    assert one.release == (12, 4)
    assert str(one) == f"Cuda compilation tools, release 12.4, V12.4.131, {one.path}"
    odd = CudaCompiler(program(nowhere / "b" / "nvcc", "something else"))
    assert odd.release is None
    assert str(odd) == f"unknown release, {odd.path}"


def test_architectures(nowhere):
    one = CudaCompiler(program(nowhere / "nvcc", "sm_75\nsm_90"))
    assert [one.compiles_for(name) for name in ("sm_70", "sm_75", "sm_9")] == [False, True, False]
    silent = nowhere / "silent"
    silent.write_text("#!/bin/sh\necho no such option\nexit 1\n")
    silent.chmod(0o755)
    assert CudaCompiler(str(silent)).compiles_for("sm_70")


def test_the_library_compiles_as_a_program(libraries, tmp_path):
    one = CudaCompiler(str(libraries[13]))
    assert one.is_library
    assert (one.release, str(one)) == ((13, 1), f"NVRTC, release 13.1, {one.path}")
    assert (one.compiles_for("sm_90"), one.compiles_for("sm_70")) == (True, False)
    command = one.command("sm_90", Variant("single"), DEFAULT)
    printed = run_compiler("tiny", "right", command, tmp_path / "tiny.cubin")
    assert printed == "ptxas info    : Compiling entry function\n"
    assert (tmp_path / "tiny.cubin").read_bytes() == b"right"
    for text, reason in (("wrong", "Compiling entry"), ("unlucky", "out of luck")):
        with pytest.raises(NoKernelsError, match=reason):
            run_compiler("tiny", text, command, tmp_path / "other.cubin")
    assert not (tmp_path / "other.cubin").exists()


def test_a_library_that_does_not_load_is_an_error(tmp_path):
    one = CudaCompiler(empty(tmp_path / "libnvrtc.so.13"))
    assert (one.release, one.identity) == (None, "")
    command = one.command("sm_90", Variant("single"), DEFAULT)
    with pytest.raises(NoKernelsError, match=r"error: .*file too short"):
        run_compiler("tiny", "right", command, tmp_path / "tiny.cubin")


NVCC, NVRTC = (
    next((one for one in map(CudaCompiler, compiler._paths()) if one.is_library is library), None)
    for library in (False, True)
)


@pytest.mark.slow
@pytest.mark.skipif(NVRTC is None, reason="The library NVRTC is not on this machine.")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["plaquette", "hot", "polyakov", "momenta"])
def test_the_library_makes_the_machine_code_of_nvcc(tmp_path, name, strict):
    """With ``cstddef`` and ``cstring`` among the headers, and structures checked."""
    kernel = Kernel(name)
    variant = next(one for one in variants(kernel) if one.strict is strict)
    made = {}
    for one in filter(None, (NVCC, NVRTC)):
        target = tmp_path / one.path.strip("/").replace("/", "-") / f"{name}.cubin"
        target.parent.mkdir()
        command = one.command("sm_90", variant, DEFAULT)
        report = run_compiler(name, kernel.translation_unit(variant, "Tile"), command, target)
        made[one] = machine_code(target.read_bytes())
        assert made[one]
        assert CudaCompiler.registers_of(report, name).count > 0
    if NVCC and NVCC.release == NVRTC.release:
        assert made[NVCC] == made[NVRTC]


def machine_code(data):
    """Return the code of the functions of an object file by the names of its sections (ELF 64)."""
    start, names = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3E)[0]
    count = struct.unpack_from("<H", data, 0x3C)[0]
    sections = [struct.unpack_from("<IIQQQQ", data, start + 64 * n) for n in range(count)]
    words = {data[sections[names][4] + one[0] :].partition(b"\0")[0]: one for one in sections}
    return {
        word: data[one[4] : one[4] + one[5]]
        for word, one in words.items()
        if word.startswith(b".text")
    }


def test_register_report():
    report = """entry function 'step_sweep'
    0 bytes spill stores, 0 bytes spill loads\nptxas info : Used 80 registers, used 0
    entry function 'step'
    16 bytes spill stores, 20 bytes spill loads\nptxas info : Used 96 registers, used 0"""
    assert CudaCompiler.registers_of(report, "step") == Registers(96, 36)
    assert CudaCompiler.registers_of(report, "step_sweep") == Registers(80, 0)
    assert CudaCompiler.registers_of(report, "other") is None
