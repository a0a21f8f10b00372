"""Instructions of kernels per site, on emulated processors.

python -m tests.qemu.instructions [PRECISION [PROCESSOR …]]

Prints, for kernels of SU(3), how many instructions a site takes, or a link that is updated: those
of arithmetic on registers of numbers, loads, stores and prefetches, others, and all together. Of
x86 processors, on one of which this runs, the kinds are not told apart, and QEMU has no AVX-512.
It needs Debian's g++-aarch64-linux-gnu and qemu-user, and takes half a minute for a processor.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from gauge_mc import Field, Lattice, Random, heatbath, measure, overrelax
from tests.qemu import LEVEL, PROCESSORS, EmulatedDevice, Processor
from tests.samples import all_of

LATTICE = Lattice(16, 16, 16, 2)
KERNELS = ("heatbath", "overrelaxation", "plaquette")
X86 = {"avx2": Processor(f"g++ {LEVEL} -march=x86-64-v3", ("qemu-x86_64", "-cpu", "max"), 0, 32)}


class CountingDevice(EmulatedDevice):
    """A device that adds up the instructions of launches, and the sites, by kernel."""

    def __init__(self, processor, folder):
        self._counts, self.instructions, self.sites = folder / "counts", {}, Counter()
        source, plugin = Path(__file__).with_name("count.c"), folder / "count.so"
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", plugin], check=True)
        runs = (*processor.runs, "-plugin", f"{plugin},to={self._counts}")
        super().__init__(replace(processor, runs=runs))

    def run(self, name, steps):
        kernel, before = name.rpartition("_")[0], self._total()
        super().run(name, steps)
        self.instructions[kernel] = self.instructions.get(kernel, 0) + self._total() - before
        self.sites[kernel] += sum(map(sites_of, steps))

    def _total(self):
        return np.array(self._counts.read_text().splitlines()[-1].split(), float)


def sites_of(step):
    """Return the number of sites on which a kernel works."""
    work, (x, y, z, _) = step.work, step.geometry.full
    part = (work.slots or step.geometry.slots) / step.geometry.slots
    return work.slices * (1 if work.parity < 2 else 2) * x * y * z // 2 * part


def counts(processor, precision):
    """Return the instructions of every kind, and their sum, of each kernel per site."""
    with tempfile.TemporaryDirectory() as folder:
        device = CountingDevice(processor, Path(folder))
        field = Field.hot(LATTICE, "su3", precision, device, 5)
        heatbath(field, 5.7, Random.for_field(field, "philox", 7), sweeps=1)
        overrelax(field, sweeps=1)
        measure(field, "plaquette", progress=False)
        for launch in all_of("launch_counted", "kernel_choices"):
            launch(field)
        device.close()
    kernels = (*KERNELS, *chain(*all_of("COUNTED", "kernel_choices")))
    found = {kernel: device.instructions[kernel] / device.sites[kernel] for kernel in kernels}
    return {kernel: [*kinds, sum(kinds)] for kernel, kinds in found.items()}


def main(precision="single", *names):
    """Print the instructions on some processors, or on all."""
    processors = {**PROCESSORS, **X86}
    for name in names or processors:
        for kernel, kinds in counts(processors[name], precision).items():
            numbers = "".join(f"{one:8.0f}" for one in kinds)
            print(f"{name:8} {kernel:16}{numbers}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
