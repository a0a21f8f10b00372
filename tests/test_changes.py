"""What differs from main, and which tests test it."""

import pytest

from gauge_mc.devices.kernels import Kernel
from tests.tools import changes
from tests.tools.changes import CHECKOUT, files_with_tests
from tests.tools.compile_cuda import TOOLCHAINS, sources_of


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("gauge_mc/quantities/flow/scales.py", {"tests/quantities/flow/test_scales.py"}),
        ("tests/test_quoting.py", {"tests/test_quoting.py"}),
        ("gauge_mc/updates/integrators.py", {"tests/updates/test_integrators.py"}),
        ("gauge_mc/updates/heatbath.py", {"tests/updates/test_heatbath.py"}),
        ("cuda_src/kernels/overrelaxation.cu", {"tests/updates/test_heatbath.py"}),
        ("cuda_src/arch/maths.h", {*changes.TESTS_OF_SOURCES}),
        ("cuda_src/group/su3.h", {*changes.TESTS_OF_SOURCES, *changes.TESTS_OF_FOLDERS["group"]}),
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
        ("README.md", False),
    ],
)
def test_sources_of_a_kernel_on_gpus(name, expected):
    sources = sources_of(Kernel("overrelaxation"), TOOLCHAINS["cuda"])
    assert (CHECKOUT / name in sources) is expected


def test_instructions_that_differ_between_machines_are_found():
    strict = "    fma.rn.f32 %f1, %f2, %f3, %f4;\n@%p1 mul.rn.f64 %a, %b, %c;\n"
    strict += "sqrt.rn.f32 %f1, %f2;\n"
    others = "    mul.f32 %f1, %f2, %f3;\n@!%p2 rsqrt.approx.ftz.f32 %f1, %f2;\nadd.f32 a, b, c;\n"
    assert TOOLCHAINS["cuda"].loose(strict) == []
    assert TOOLCHAINS["cuda"].loose(strict + others) == [
        "add.f32",
        "mul.f32",
        "rsqrt.approx.ftz.f32",
    ]


@pytest.mark.parametrize("early", ["ld.global.f32 %f1, [%rd1];", "@!%p1 st.shared.f64 [a], %fd1;"])
def test_kernels_that_need_the_memory_before_they_wait_are_found(early):
    wait = f"ld.param.u64 %rd1, [k_param_0];\n{TOOLCHAINS['cuda'].wait};\n{early}\n"
    good = f".version 9.0\n.visible .entry one(\n.param .u64 a)\n{{\n{wait}}}\n"
    assert TOOLCHAINS["cuda"].hasty(good + good.replace("one", "two")) == []
    assert TOOLCHAINS["cuda"].hasty(
        good + good.replace("one", "two").replace(wait, early + wait)
    ) == ["two"]
    assert TOOLCHAINS["cuda"].hasty(good.replace(TOOLCHAINS["cuda"].wait, "")) == ["one"]


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
