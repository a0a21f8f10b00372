"""Test the generators with dieharder, as the kernels draw from them.

    python tests/tools/random_quality.py --generators lcg ranlux:3 --tests 0 1 2

One number of every site of the lattice after the other, as a sweep draws them, then the sites'
next numbers, and so on; the leading 16 bits of each, two to a word of 32. A test takes what it
wants, up to some GB. Dieharder calls p-values below 0.005 or above 0.995 WEAK (one in a hundred
tests of good numbers), below 0.0000005 or above 0.9999995 FAILED. A test that is weak is done again
with other numbers, up to three times, and the last result counts.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gauge_mc.devices import Device, open_device
from gauge_mc.devices.source import LUXURY_PERIODS
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.random import Random

GENERATORS = ("philox", "lcg", *(f"ranlux:{level}" for level in range(len(LUXURY_PERIODS))))
TESTS = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "9",
    "10",
    "11",
    "12",
    "13",
    "15",
    "16",
    "17",
    "100",
    "101",
    "102",
    "200:3",
]
"""Diehard's and STS's, without those that dieharder itself calls suspect."""

ATTEMPTS = 3


def words(random: Random, order: str) -> Iterator[bytes]:
    """What all sites draw, for ever."""
    while True:
        random.step += 1
        for mu in range(4):
            by_site = random.numbers(mu)
            drawn = by_site.reshape(-1, by_site.shape[-1])
            leading = ((drawn.T if order == "sites" else drawn) * 2.0**16).astype(np.uint16)
            yield leading.tobytes()


@dataclass(frozen=True)
class Result:
    """What one or more tests of one number say, and how much they read."""

    names: str
    pvalues: list[float]
    assessments: list[str]
    gigabytes: float

    @property
    def worst(self) -> str:
        """FAILED, WEAK or PASSED."""
        return next((a for a in ("FAILED", "WEAK") if a in self.assessments), "PASSED")


def carry_out(test: str, random: Random, order: str) -> Result:
    """Feed a test until it has enough."""
    flags = "test_name", "ntuple", "pvalues", "assessment"
    number, _, ntuple = test.partition(":")
    command = ["dieharder", "-g", "200", "-d", number, "-n", ntuple or "0", "-c", ","]
    command += [word for flag in flags for word in ("-D", flag)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        written = 0
        try:
            for block in words(random, order):
                written += process.stdin.write(block)
        except BrokenPipeError:
            pass
        rows = [line.split(",") for line in process.stdout.read().decode().splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows if len(row) == 4]
    return Result(
        rows[0][0], [float(row[2]) for row in rows], [row[3] for row in rows], written / 1e9
    )


def settled(test: str, generator: str, lattice: Lattice, order: str, device: Device) -> Result:
    """The result of a test, the last of several where it is weak."""
    kind, _, level = generator.partition(":")
    field = Field.cold(lattice, "su2", "single", device)
    for attempt in range(ATTEMPTS):
        random = Random.for_field(field, kind, 20241 + attempt, int(level or 3))
        result = carry_out(test, random, order)
        if result.worst != "WEAK":
            break
    return result


def main() -> int:
    """Test all and print one line a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generators", nargs="+", choices=GENERATORS, default=GENERATORS)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="as dieharder -l")
    parser.add_argument("--order", choices=("sites", "links"), default="sites")
    parser.add_argument("--lattice", type=Lattice.parse, default=Lattice(16, 16, 16, 16))
    arguments = parser.parse_args()
    if shutil.which("dieharder") is None:
        print("dieharder is not here: apt install dieharder")
        return 1
    device = open_device("cpu", threads=1)
    for generator in arguments.generators:
        for test in arguments.tests:
            start = time.monotonic()
            result = settled(test, generator, arguments.lattice, arguments.order, device)
            extreme = min(result.pvalues, key=lambda p: min(p, 1 - p))
            print(
                f"{generator:9} {test:5} {result.names:24} {result.worst:7} p = {extreme:.8f} of "
                f"{len(result.pvalues):2}  {result.gigabytes:6.3f} GB "
                f"{time.monotonic() - start:5.0f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
