"""What differs from main, and which tests test it."""

import shutil
import subprocess
from itertools import chain, combinations
from pathlib import Path

import pytest

from gauge_mc.devices.cuda import compiler
from gauge_mc.devices.kernels import Kernel
from gauge_mc.registry import ours
from tests.tools import changes, checked, compile_cuda
from tests.tools.changes import CHECKOUT, changed_files, files_with_tests
from tests.tools.compile_cuda import CUDA, TOOLCHAINS, cover, variants


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("gauge_mc/quantities/flow/scales.py", {"tests/quantities/flow/analysis/test_scales.py"}),
        ("tests/test_quoting.py", {"tests/test_quoting.py"}),
        ("gauge_mc/updates/integrators.py", {"tests/updates/test_integrators.py"}),
        ("gauge_mc/updates/heatbath.py", {"tests/updates/test_heatbath.py"}),
        ("cuda_src/kernels/overrelaxation.cu", {"tests/updates/test_heatbath.py"}),
        ("cuda_src/arch/maths.h", {*changes.TESTS_OF_SOURCES}),
        (
            "cuda_src/group/su3.h",
            {*changes.TESTS_OF_SOURCES, *changes.TESTS_OF_FOLDERS["group"]},
        ),
        (
            "gauge_mc/extensions/quarks/cuda_src/dirac/transport.h",
            {*changes.TESTS_OF_SOURCES, *changes.TESTS_OF_FOLDERS["dirac"]},
        ),
        ("README.md", set()),
    ],
)
def test_files_with_tests_of_a_change(changed, expected):
    found = files_with_tests([CHECKOUT / changed])
    there = {one for one in expected if is_here(one)}
    assert {path.relative_to(CHECKOUT).as_posix() for path in found} == there


def is_here(name):
    """Whether a file is there, or must be, because it does not belong to an extension."""
    return (CHECKOUT / name).is_file() or "extensions/" not in name


def test_a_module_without_tests_of_its_name_is_tested_by_those_that_import_it():
    found = files_with_tests([CHECKOUT / "gauge_mc/devices/source.py"])
    assert CHECKOUT / "tests/devices/test_kernels.py" in found or found == {
        CHECKOUT / "tests/devices/test_source.py"
    }


@pytest.mark.slow
def test_tests_of_headers_are_there():
    sources = [CHECKOUT / "cuda_src", *CHECKOUT.glob("gauge_mc/extensions/*/cuda_src")]
    headers = {path.name for folder in sources for path in folder.iterdir() if path.is_dir()}
    tests = {name: [*filter(is_here, one)] for name, one in changes.TESTS_OF_FOLDERS.items()}
    assert {name for name in tests if tests[name]} | {"arch", "kernels"} == headers
    every = [*chain.from_iterable(tests.values()), *changes.TESTS_OF_SOURCES]
    assert [one for one in every if not (CHECKOUT / one).is_file()] == []


@pytest.mark.parametrize("group", sorted(ours().groups))
def test_modules_of_entry_points_have_tests(group):
    """Though no test imports them."""
    for entry in ours().select(group=group):
        place = CHECKOUT.joinpath(*entry.module.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        assert files_with_tests([path]), path


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_files_that_differ_from_main(tmp_path, monkeypatch):
    def git(*words):
        given = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *given, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(changes, "CHECKOUT", tmp_path)
    assert changed_files() is None  # no repository
    git("init", "--initial-branch=main")
    (tmp_path / "one").write_text("1")
    git("add", "one")
    git("commit", "-m", "one")
    assert changed_files() is None  # nothing differs on main itself
    (tmp_path / "new").write_text("1")
    assert changed_files() == {tmp_path / "new"}
    git("checkout", "-b", "branch")
    git("add", "new")
    git("commit", "-m", "new")
    assert changed_files() == {tmp_path / "new"}
    (tmp_path / "one").write_text("2")
    assert changed_files() == {tmp_path / "new", tmp_path / "one"}


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuda_src/group/su2.h", True),
        ("cuda_src/kernels/overrelaxation.cu", True),
        ("cuda_src/arch/gpu.h", True),
        ("cuda_src/arch/cpu.h", False),
        ("gauge_mc/extensions/quarks/cuda_src/dirac/transport.h", False),
        ("cuda_src/arch/hip.h", False),
        ("gauge_mc/devices/cuda/kernel.py", True),
        ("README.md", False),
    ],
)
def test_kernels_whose_sources_differ_are_compiled_again(name, expected, monkeypatch):
    """A file counts if the kernel depends on it on GPUs."""
    kernel = Kernel("overrelaxation")
    before = compile_cuda.digest_of_kernel(kernel)
    assert compile_cuda.digest_of_kernel(kernel) == before
    read = Path.read_bytes

    def changed(path):
        return read(path) + b"//" * (path == CHECKOUT / name)

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert (compile_cuda.digest_of_kernel(kernel) != before) is expected


def test_kernels_are_compiled_again_with_other_options(monkeypatch):
    kernel = Kernel("overrelaxation")
    before = compile_cuda.digest_of_kernel(kernel)
    monkeypatch.setattr(compiler, "STRICT", [])
    assert compile_cuda.digest_of_kernel(kernel) != before


def test_what_has_passed_is_recorded(tmp_path):
    record = tmp_path / "record"
    assert checked.recorded(record) == {}
    checked.add({"one stage": "1", "two": "2"}, record)
    checked.add({"two": "3"}, record)
    assert checked.recorded(record) == {"one stage": "1", "two": "3"}


def test_stages_depend_on_files_that_exist():
    assert all(len(checked.digest_of_stage(stage)) == 24 for stage in checked.STAGES)


@pytest.mark.slow
def test_a_cover_of_variants_has_each_choice_of_a_kernel_and_all_pairs_of_choices():
    kernels = [Kernel(name) for name in ("copy", "heatbath", "hop", "kick")]
    jobs = [(kernel, variant) for kernel in kernels for variant in variants(kernel)]
    chosen = cover(jobs)
    assert len(chosen) < len(jobs) / 5
    assert set(chosen) <= set(jobs)
    assert pairs_of(chosen) == pairs_of(jobs)
    assert cover(chosen[:1]) == chosen[:1]


def pairs_of(jobs):
    together = [
        (kernel.name, variant.precision, f"large={variant.large}", *variant.choices)
        for kernel, variant in jobs
    ]
    return {frozenset(pair) for one in together for pair in combinations(one, 2)}


def test_instructions_that_differ_between_machines_are_found():
    strict = "    fma.rn.f32 %f1, %f2, %f3, %f4;\n@%p1 mul.rn.f64 %a, %b, %c;\n"
    strict += "sqrt.rn.f32 %f1, %f2;\n"
    others = "    mul.f32 %f1, %f2, %f3;\n@!%p2 rsqrt.approx.ftz.f32 %f1, %f2;\nadd.f32 a, b, c;\n"
    assert CUDA.loose(strict) == []
    assert CUDA.loose(strict + others) == ["add.f32", "mul.f32", "rsqrt.approx.ftz.f32"]


@pytest.mark.parametrize("early", ["ld.global.f32 %f1, [%rd1];", "@!%p1 st.shared.f64 [a], %fd1;"])
def test_kernels_that_need_the_memory_before_they_wait_are_found(early):
    wait = f"ld.param.u64 %rd1, [k_param_0];\n{CUDA.wait};\n{early}\n"
    good = f".version 9.0\n.visible .entry one(\n.param .u64 a)\n{{\n{wait}}}\n"
    assert CUDA.hasty(good + good.replace("one", "two")) == []
    assert CUDA.hasty(good + good.replace("one", "two").replace(wait, early + wait)) == ["two"]
    assert CUDA.hasty(good.replace(CUDA.wait, "")) == ["one"]


def test_strict_variants_of_every_kernel_of_links_are_compiled():
    kernel = Kernel("flow_stage")
    found = cover([(kernel, one) for one in variants(kernel)])
    assert {one.strict for _, one in found} == {False, True}


@pytest.mark.parametrize(
    "line",
    [
        "%1 = fmul contract float %2, %3",
        "%1 = fadd nsz contract double %2, %3",
        "%1 = fdiv float %2, %3, !fpmath !4",
        "%1 = tail call float @llvm.fmuladd.f32(float %2, float %3, float %4)",
        "%1 = call float @llvm.log.f32(float %2)",
        'attributes #0 = { "denormal-fp-math-f32"="preserve-sign,preserve-sign" }',
    ],
)
def test_what_llvm_may_compute_differently_is_found(line):
    strict = "%1 = fmul float %2, %3\n%4 = tail call float @llvm.fma.f32(float %1, float %2)\n"
    strict += "%5 = fcmp olt float %1, %2\n%6 = call double @llvm.amdgcn.rsq.f64(double %7)\n"
    assert TOOLCHAINS["hip"].loose(strict) == []
    assert len(TOOLCHAINS["hip"].loose(strict + line)) == 1


def test_kernels_for_amd_gpus_are_compiled_again_if_their_header_or_their_compiler_differs(
    monkeypatch,
):
    kernel, tools, read = Kernel("overrelaxation"), TOOLCHAINS["hip"], Path.read_bytes
    before = compile_cuda.digest_of_kernel(kernel, tools)
    for name in ("cuda_src/arch/hip.h", "gauge_mc/devices/hip/compiler.py"):
        changed = CHECKOUT / name
        monkeypatch.setattr(
            Path, "read_bytes", lambda one, it=changed: read(one) + b"/" * (one == it)
        )
        assert compile_cuda.digest_of_kernel(kernel, tools) != before
