"""Strict runs with quarks have the same bits on all machines."""

import math

import numpy as np
import pytest

from gauge_mc import Field
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Multiply
from tests.calls import call
from tests.strictness import LATTICE, table_digests
from tests.test_strict import CPU, OF_TABLES, SMALL


def with_option(option):
    """Stored digests of the links and of tables with an option, for the smallest group."""
    tables = OF_TABLES[SMALL]
    return {name: tables[name] for name in tables if name == "links" or f" {option}=" in name}


@pytest.mark.slow
def test_hadrons_are_those_of_all_machines():
    """Those of clover quarks; all others are among the tables."""
    device = CpuDevice(2, 4)
    assert table_digests(device, *SMALL.split(), "csw") == with_option("csw")
    device.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--measure=mesons:10:quark=overlap;rho=1.4;m=0.5"],
            "--strict does not hold for mesons with --quark overlap yet; leave that out",
        ),
        (
            ["--measure=overlap-spectrum:1"],
            "--strict does not hold for 'overlap-spectrum' yet, but for baryons, ",
        ),
    ],
)
def test_what_is_not_the_same_everywhere_is_refused(words, message, tmp_path):
    out, code = call(
        "generate", "--strict", "--lattice=4", *words, *CPU, "--output", tmp_path / "run"
    )
    assert code == 2
    assert message in out
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 16])
def test_sums_of_values_of_any_size_are_exact(lanes):
    """Squares from 1e-30 to 1e12, of which each order of magnitude is a vector of its own."""
    device = CpuDevice(1, lanes)
    device.strict = True
    field = Field.cold(LATTICE, "su2", "double", device)
    random = np.random.default_rng(1)
    sizes = 10.0 ** np.arange(-15, 9, 3)
    shape = (len(sizes), *LATTICE.extents[::-1], 4, 2)
    numbers = random.uniform(0.5, 1, shape) * sizes.reshape(-1, *[1] * 6)
    found = Multiply(SpinorField.from_numpy(field, numbers + 0j))().norm2
    per_site = np.zeros(shape[:-2])
    for colour, spin in np.ndindex(2, 4):  # in the order of the kernel
        per_site += numbers[..., spin, colour] * numbers[..., spin, colour]
    exact = [math.fsum(one.ravel().tolist()) for one in per_site]
    assert np.abs(found / exact - 1).max() <= 4 * 2.0**-53  # 4 slices, added one after the other
    device.close()
