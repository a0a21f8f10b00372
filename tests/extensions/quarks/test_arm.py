"""Kernels of quarks on emulated ARM processors; see ``tests/qemu/test_arm.py``."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.algorithms import ALGORITHMS, Tuning
from gauge_mc.defaults import CHAIN_VERSION
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.operators import PlainWilson, Wilson
from gauge_mc.extensions.quarks.solvers import SOLVERS
from gauge_mc.extensions.quarks.vectors import STORAGES
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.extensions.quarks.test_strict import with_option
from tests.qemu.arm import NEEDS, open_processor, processors
from tests.reference.fields import random_field
from tests.strictness import digest, table_digests

pytestmark = NEEDS

PHASES = [1, 1, 1, -1]


@pytest.fixture
def device(name):
    with open_processor(name) as device:
        yield device


@processors("sve256", "sve512")
def test_hadrons_have_the_bits_of_all_machines(device):
    """Sweeps, clover terms, and solvers in single and half precision come before."""
    assert table_digests(device, "su2", "single", "csw") == with_option("csw")


def trajectory(device):
    """Digests of links and record after a trajectory with Wilson quarks in double precision."""
    device.strict = True
    field = Field.hot(Lattice(8, 4, 4, 2), "su2", "double", device, 5)
    quarks = "kappa=0.1:solver=bicgstab:inner=half"
    hmc = ALGORITHMS["hmc"].with_options(length=0.2, steps=2, quarks=quarks)
    random = Random.for_field(field, "philox", 7)
    update = hmc.prepare(field, [Coupling.of(2.0)], [random], CHAIN_VERSION, [Tuning(updates=1)])
    record = np.array(update()[0], float)
    assert np.isfinite(record).all()
    return digest(field.to_numpy()), digest(record)


@cache
def trajectory_here():
    device = CpuDevice(1)
    found = trajectory(device)
    device.close()
    return found


@processors("neon", "sve512")
def test_trajectories_with_quarks_have_the_bits_of_this_machine(device):
    assert trajectory(device) == trajectory_here()


@processors("sve128", "sve512")
def test_operators_and_solvers(device, rng):
    """Kernels that are not strict, against NumPy, with spinors in every storage."""
    links = random_field((8, 4, 4, 4), "su3", rng)
    psi = reference.random_spinor((8, 4, 4, 4), 3, rng)
    expected = reference.wilson(links, psi, 0.1, PHASES)
    for precision, tolerance in (("double", 2e-14), ("single", 3e-6)):
        found = PlainWilson(field_of(links, device, precision), 0.1, PHASES).apply(psi)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    field = field_of(links, device)
    for solver in SOLVERS:
        for inner in STORAGES:
            x = Wilson(field, 0.1).solve(psi, 1e-9, solver, inner=inner)
            rest = psi - reference.wilson(links, x, 0.1, PHASES)
            assert np.linalg.norm(rest) < 1.01e-9 * np.linalg.norm(psi)


@processors("sve512")
def test_registers_that_are_parts_of_vectors(device, rng):
    """Spinors in half precision have eight lanes on this lattice."""
    links = random_field((4, 4, 4, 4), "su2", rng)
    psi = reference.random_spinor((4, 4, 4, 4), 2, rng)
    found = PlainWilson(field_of(links, device), 0.1, PHASES).apply(psi, precision="half")
    expected = reference.wilson(links, psi, 0.1, PHASES)
    assert np.abs(found - expected).max() < 3e-3 * np.abs(expected).max()
