"""Compile every CUDA kernel variant and show registers and spills; needs nvcc, but no GPU.

python tests/tools/compile_cuda.py [--architecture sm_90]
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from gauge_mc.devices.bounds import USUAL
from gauge_mc.devices.nvcc import find_nvcc, nvcc_command, registers_of
from gauge_mc.devices.source import GENERATORS, Variant, run_compiler, source_folder
from gauge_mc.errors import GaugeError


def variants(kernel: str) -> list[Variant]:
    """All that a kernel can be compiled for; most do not draw random numbers."""
    text = (source_folder() / "kernels" / f"{kernel}.cu").read_text()
    generators = GENERATORS if "RANDOM" in text else ["philox"]
    choices = product(("su2", "su3"), ("single", "double"), generators, (False, True))
    return [Variant(g, p, random=r, large=large) for g, p, r, large in choices]


def report(job: tuple[str, Variant], nvcc: str, architecture: str, folder: Path) -> str:
    """One line on one variant."""
    kernel, variant = job
    command = nvcc_command(nvcc, architecture, variant, USUAL[variant.group, variant.precision])
    printed = run_compiler(kernel, command, folder / f"{kernel}{hash(job)}.cubin")
    registers = registers_of(printed, kernel)
    name = f"{kernel:16}{variant.group} {variant.precision:7}{variant.random:7}"
    size = "large" if variant.large else "     "
    return f"{name}{size} {registers.count:4} registers {registers.spilled:4} bytes spilled"


def main() -> int:
    """Compile all; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", default="sm_90")
    architecture = parser.parse_args().architecture
    nvcc = find_nvcc()
    if nvcc is None:
        print("nvcc is not on this machine: no CUDA kernel was compiled")
        return 0
    kernels = sorted(path.stem for path in (source_folder() / "kernels").glob("*.cu"))
    jobs = [(kernel, variant) for kernel in kernels for variant in variants(kernel)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        try:
            for line in pool.map(lambda j: report(j, nvcc, architecture, Path(folder)), jobs):
                print(line)
        except GaugeError as error:
            print(error)
            return 1
    print(f"{len(jobs)} variants of {len(kernels)} kernels compiled for {architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
