"""Test the generators with dieharder, as the kernels draw from them.

    python tests/tools/random_quality.py --generators lcg ranlux:3 --tests 0 201:3

In the order of `sites`, one number of every site of the lattice after the other and then their next
ones; in that of `links`, the twelve numbers that a link draws after each other, link after link.
The leading 16 bits of each number are fed, two numbers to a word of 32 bits. Dieharder repeats a
test of weak result till the p-value passes or is below 5e-7 (or above 1 - 5e-7), which fails.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from gauge_mc.devices import open_device
from gauge_mc.devices.source import DEFAULT_LUXURY, LUXURY_PERIODS
from gauge_mc.errors import GaugeError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.random import Random

GENERATORS = ("philox", "lcg", *(f"ranlux:{level}" for level in range(len(LUXURY_PERIODS))))
ORDERS = ("sites", "links")

DIEHARD, STS, DAB = (*range(5), *range(8, 14), 15, 16), range(100, 103), range(205, 210)
TUPLES = ("200:3", "201:2", "201:3", "201:4", "201:5", "202:5", "203:1")
TESTS = (*map(str, (*DIEHARD, *STS, *DAB)), *TUPLES)
"""By dieharder's numbers, and the n of n-tuples; not those that it calls suspect or slow."""


def numbers(random: Random, order: str) -> Iterator[bytes]:
    """What links draw, for ever."""
    while True:
        random.step += 1
        for mu in range(4):
            by_site = random.numbers(mu)
            drawn = by_site.reshape(-1, by_site.shape[-1])
            leading = ((drawn.T if order == "sites" else drawn) * 2.0**16).astype(np.uint16)
            yield leading.tobytes()


def carry_out(test: str, blocks: Iterator[bytes]) -> tuple[list[list[str]], int]:
    """Rows of name, p-value and assessment, and the bytes that the test took."""
    number, _, n = test.partition(":")
    command = ["dieharder", "-g", "200", "-d", number, "-n", n or "0", "-Y", "1", "-c", ","]
    command += [word for flag in ("test_name", "pvalues", "assessment") for word in ("-D", flag)]
    written = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for block in blocks:
                written += process.stdin.write(block)
        except BrokenPipeError:
            pass
        lines = process.stdout.read().decode().splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    return [row for row in rows if len(row) == 3], written


def report(test: str, generator: str, field: Field, order: str) -> str:
    """One line on one test of one generator."""
    start = time.monotonic()
    kind, _, level = generator.partition(":")
    random = Random.for_field(field, kind, 1, int(level or DEFAULT_LUXURY))
    rows, taken = carry_out(test, numbers(random, order))
    assessments = [row[2] for row in rows]
    worst = next((a for a in ("FAILED", "WEAK") if a in assessments), "PASSED")
    extreme = min((float(row[1]) for row in rows), key=lambda p: min(p, 1 - p))
    return (
        f"{generator:9} {order} {test:6} {rows[0][0]:21} {worst:6} p = {extreme:.8f} of "
        f"{len(rows):2}  {taken / 1e9:6.2f} GB {time.monotonic() - start:5.0f} s"
    )


def main() -> int:
    """Carry out all tests and print a line on each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generators", nargs="+", choices=GENERATORS, default=GENERATORS)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="numbers as in dieharder -l")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    parser.add_argument("--lattice", type=Lattice.parse, default=Lattice(16, 16, 16, 16))
    arguments = parser.parse_args()
    if shutil.which("dieharder") is None:
        print("dieharder is not here: apt install dieharder")
        return 1
    try:
        field = Field.cold(arguments.lattice, "su2", "single", open_device("cpu", threads=1))
    except GaugeError as error:
        print(error)
        return 1
    for generator in arguments.generators:
        for order in arguments.orders:
            for test in arguments.tests:
                print(report(test, generator, field, order), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
