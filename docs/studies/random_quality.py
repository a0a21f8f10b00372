"""Test the random number generators with dieharder, as used by the kernels.

    python docs/studies/random_quality.py --generators lcg ranlux:3 --tests 0 201:3

In the order `sites`, the first numbers of all sites come first, then the second numbers of all
sites, and so on, as in a sweep over the lattice. In the order `streams`, all numbers that a site
draws in 16 sweeps are consecutive, one site after the other. Only those bits of a number are
tested that are random for every generator. In single precision these are the leading 16 bits, two
numbers per word of 32 bits. In double precision they are the leading 48 bits, which are two whole
numbers of RANLUX, but for the LCG, which has 31 bits, only the leading 16. Dieharder continues a
test with a weak result (p < 0.005 or p > 0.995, by chance one in a hundred) until p is no longer
weak, or until p is below 1e-6 or above 1 - 1e-6, in which case the test fails.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS

LEVELS = {
    f"{name}:{level}" if generator.levels else name: (name, level)
    for name, generator in GENERATORS.items()
    for level in range(max(1, len(generator.levels)))
}
"""Name and quality level of each generator, by its name on the command line of this script."""

SWEEPS = {"sites": 1, "streams": 16}
"""Number of sweeps per block of numbers, by order."""

DIEHARD, STS, DAB = (*range(5), *range(8, 14), 15, 16), range(100, 103), (205, 206, 208, 209)
TUPLES = ("200:3", "201:2", "201:3", "201:5", "202:5", "203:1")
TESTS = (*map(str, (*DIEHARD, *STS, *DAB)), *TUPLES)
"""Dieharder's numbers of the tests, with n for tests of n-tuples.

Tests that dieharder calls suspect and slow tests are omitted."""


@dataclass(frozen=True)
class Result:
    """The result of one test.

    Attributes
    ----------
    name : str
        Name of the test.
    assessment : str
        The worst assessment of its p-values.
    p : float
        The p-value farthest from 1/2.
    values : int
        The number of p-values.
    weak : int
        Number of times that dieharder continued because of a weak p-value.
    """

    name: str
    assessment: str
    p: float
    values: int
    weak: int


def leading_bits(random: Random, mu: int) -> NDArray[np.uint16]:
    """Return the leading bits of the numbers of all links along `mu`.

    The shape is (sites, numbers, parts of 16 bits).
    """
    by_site = random.numbers(mu)
    drawn = by_site.reshape(-1, by_site.shape[-1], 1)
    if drawn.dtype == np.float32 or random.generator.name == "lcg":
        return (drawn * 2.0**16).astype("<u2")
    return (drawn * 2.0**48).astype("<u8").view("<u2")[..., :3]


def blocks(random: Random, order: str) -> Iterator[bytes]:
    """Yield blocks of random numbers, without end."""
    while True:
        drawn = []
        for _ in range(SWEEPS[order]):
            random.step += 1
            drawn += [leading_bits(random, mu) for mu in range(4)]
        by_site = np.concatenate(drawn, axis=1)
        yield (by_site.swapaxes(0, 1) if order == "sites" else by_site).tobytes()


def carry_out(test: str, random: Random, order: str) -> Result:
    """Carry out a test, with as many numbers as it needs."""
    number, _, n = test.partition(":")
    command = ["dieharder", "-g", "200", "-d", number, "-n", n or "0"]
    command += ["-k", "2", "-Y", "1", "-c", ","]
    for column in ("test_name", "psamples", "pvalues", "assessment"):
        command += ["-D", column]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for block in blocks(random, order):
                process.stdin.write(block)
        except BrokenPipeError:
            pass
        lines = process.stdout.read().decode().splitlines()
    cells = [[cell.strip() for cell in line.split(",")] for line in lines]
    every = [row for row in cells if len(row) == 4]
    stages = sorted({int(row[1]) for row in every})
    rows = [row for row in every if int(row[1]) == stages[-1]]
    assessments = {row[3] for row in rows}
    return Result(
        rows[0][0] + f" {n}" * bool(n),
        next((a for a in ("FAILED", "WEAK") if a in assessments), "PASSED"),
        min((float(row[2]) for row in rows), key=lambda p: min(p, 1 - p)),
        len(rows),
        len(stages) - 1,
    )


def report(tests: list[str], generator: str, field: Field, order: str, seed: int) -> str:
    """Print a line about each test of a generator, and return a summary line."""
    name, level = LEVELS[generator]
    results = []
    for test in tests:
        start = time.monotonic()
        random = Random.for_field(field, name, seed, level)
        r = carry_out(test, random, order)
        results.append(r)
        print(
            f"{generator:9} {order:7} {field.precision} {test:6} {r.name:22} {r.assessment:6} "
            f"p = {r.p:.8f} of {r.values:2}, weak {r.weak} {time.monotonic() - start:4.0f} s",
            flush=True,
        )
    passed = sum(r.assessment == "PASSED" for r in results)
    weak = sum(r.weak > 0 and r.assessment == "PASSED" for r in results)
    failed = ", ".join(r.name for r in results if r.assessment != "PASSED")
    return (
        f"{generator}, {order}, {field.precision}: {passed} of {len(results)} tests passed, "
        f"{weak} of them after a weak result; failed: {failed or 'none'}"
    )


def main() -> int:
    """Carry out all tests and print the results; return 1 if they cannot be carried out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generators", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, help="numbers of tests, as listed by dieharder -l"
    )
    parser.add_argument("--orders", nargs="+", choices=SWEEPS, default=list(SWEEPS))
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--lattice", type=Lattice.parse, default=Lattice(16, 16, 16, 16))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("dieharder") is None:
        print("dieharder was not found: run apt install dieharder")
        return 1
    precision, summary = arguments.precision, []
    try:
        field = Field.cold(arguments.lattice, "su2", precision, open_device("cpu", threads=1))
        for generator in arguments.generators:
            for order in arguments.orders:
                summary.append(report(arguments.tests, generator, field, order, arguments.seed))
    except GaugeError as error:
        print(error)
        return 1
    print(*summary, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
