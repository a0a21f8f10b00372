"""The compiler of kernels for AMD GPUs: where it is, its options and its reports."""

import ctypes
import re

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.base import Registers
from gauge_mc.devices.cache import run_compiler
from gauge_mc.devices.cuda.kernel import Bounds, default_bounds, tile_structure
from gauge_mc.devices.hip import compiler
from gauge_mc.devices.hip.compiler import HipCompiler, Resources, resources_of, wave_of
from gauge_mc.devices.kernels import Kernel, Variant, _arguments
from gauge_mc.devices.source import source_folders
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.updates.sweep import norms_of

SU3 = GROUPS["su3"].choice

REPORT = """x.cu:44:1: remark: Function Name: step [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     SGPRs: 82 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     VGPRs: 66 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     AGPRs: 4 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     ScratchSize [bytes/lane]: 16 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     Occupancy [waves/SIMD]: 7 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     VGPRs Spill: 3 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     LDS Size [bytes/block]: 512 [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark: Function Name: step_sweep [-Rpass-analysis=kernel-resource-usage]
x.cu:44:1: remark:     VGPRs: 98 [-Rpass-analysis=kernel-resource-usage]
"""


def test_a_report_is_read():
    assert resources_of(REPORT, "step") == Resources(70, 16, 512, 7)
    assert HipCompiler.registers_of(REPORT, "step") == Registers(70, 16)
    assert HipCompiler.registers_of(REPORT, "step_sweep") is None  # it is cut off
    assert HipCompiler.registers_of(REPORT, "other") is None


@pytest.mark.parametrize("strict", [False, True])
def test_strict_kernels_are_rounded_as_ieee_754_says(strict):
    command = HipCompiler("hipcc").command(
        "gfx90a", Variant("single", strict=strict), Bounds(128, 4)
    )
    assert command[:3] == ["env", "HIP_PLATFORM=amd", "hipcc"]
    assert "--offload-arch=gfx90a" in command
    assert {"-DMAX_THREADS=128", "-DMIN_BLOCKS=4"} <= {*command}
    assert ("-ffp-contract=off" in command) is strict
    assert ("-fgpu-flush-denormals-to-zero" in command) is not strict
    assert ("-fno-hip-fp32-correctly-rounded-divide-sqrt" in command) is not strict


def test_the_compiler_is_on_the_path_or_in_the_folder_of_rocm(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.delenv("HIP_PATH", raising=False)
    with pytest.raises(GaugeError, match=r"No compiler of kernels for AMD GPUs was found: install"):
        compiler.usable_compiler()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "hipcc"
    program.write_text("#!/bin/sh\necho HIP version: 6.1.2-$HIP_PLATFORM\n")
    program.chmod(0o755)
    assert str(compiler.usable_compiler()) == f"HIP version: 6.1.2-amd, {program}"
    monkeypatch.setattr(compiler.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert compiler.usable_compiler() == HipCompiler("/usr/bin/hipcc")


def test_no_kernel_depends_on_the_width_of_a_wave():
    """Waves have 64 threads or 32; the emulator runs one thread after the other."""
    words = r"\bwarpSize\b|__shfl|__ballot|__any|__all\(|__syncwarp|__activemask|cooperative_groups"
    paths = [
        path for one in source_folders() for path in one.rglob("*") if path.suffix in (".h", ".cu")
    ]
    assert len(paths) > 100
    assert [path.name for path in paths if re.search(words, path.read_text())] == []


needs_hipcc = pytest.mark.skipif(
    compiler.find_hip_compiler() is None, reason="hipcc is not installed"
)


def compiled(folder, kernel, variant, bounds, architecture, *instead):
    """Return what hipcc writes and what it reports, with other options than for an object."""
    command = compiler.usable_compiler().command(architecture, variant, bounds)
    words = [new for word in command for new in (instead if instead and word == "-c" else [word])]
    output = folder / "output"
    report = run_compiler(kernel.name, kernel.translation_unit(variant, "Tile"), words, output)
    return output.read_bytes().decode(errors="replace"), report


@pytest.mark.slow
@needs_hipcc
@pytest.mark.parametrize(("architecture", "wave"), [("gfx90a", 64), ("gfx1030", 32)])
def test_parameters_of_kernels_are_where_launches_put_them(tmp_path, architecture, wave):
    """One after the other; and blocks and waves are as long as Python takes them to be."""
    kernel, variant, bounds = Kernel("plaquette"), Variant("double", (SU3,)), Bounds(64, 2)
    text, _ = compiled(tmp_path, kernel, variant, bounds, architecture, "-S")
    metadata = text.partition(".amdgpu_metadata")[2]
    found = re.findall(r"\.offset: +(\d+)\n +\.size: +(\d+)\n +\.value_kind: +by_value", metadata)
    first, second = (ctypes.sizeof(one) for one in (_arguments(kernel, variant), tile_structure()))
    assert found == [("0", str(first)), (str(first), str(second))]
    assert f".max_flat_workgroup_size: {bounds.threads}\n" in metadata
    assert f".wavefront_size: {wave}\n" in metadata
    assert wave_of(architecture) == wave


@pytest.mark.slow
@needs_hipcc
@pytest.mark.parametrize(
    ("name", "group", "further"),
    [
        ("overrelaxation", "su2", [*ACTIONS["iwasaki"].choices, norms_of("single")]),
        ("wilson_loops", "su3", []),
    ],
)
def test_arguments_are_not_copied_into_scratch_memory(tmp_path, name, group, further):
    """Nor does a kernel whose bounds are its own spill registers."""
    check_nothing_spills(tmp_path, name, group, further)


def check_nothing_spills(tmp_path, name, group, further):
    """Compile a kernel, and check that it needs no scratch memory."""
    variant = Variant("single", (GROUPS[group].choice, *further))
    bounds = default_bounds(variant)
    _, report = compiled(tmp_path, Kernel(name), variant, bounds, "gfx90a")
    assert resources_of(report, name).spilled == 0
