"""ARM processors, emulated: the bits of strict kernels are those of x86, and usual ones are right.

All other tests of kernels can be run on these processors as well; see the plugin `tests.qemu`.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.algorithms import ALGORITHMS, Tuning
from gauge_mc.defaults import CHAIN_VERSION
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.operators import Wilson
from gauge_mc.quarks.operators.wilson import PlainWilson
from gauge_mc.quarks.solvers import SOLVERS
from gauge_mc.quarks.vectors.storage import STORAGES
from tests.qemu import AVAILABLE, PROCESSORS, EmulatedDevice
from tests.reference import dirac as reference
from tests.reference.fields import random_field
from tests.strictness import digest, table_digests
from tests.test_strict import with_option

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AVAILABLE, reason="needs g++-aarch64-linux-gnu and qemu-user"),
]
PHASES = [1, 1, 1, -1]


def processors(*slow):
    """The processors that slow tests have; the others are marked `every`."""
    marks = {name: () if name in slow else pytest.mark.every for name in PROCESSORS}
    return pytest.mark.parametrize("name", [pytest.param(one, marks=marks[one]) for one in marks])


@pytest.fixture
def device(name):
    """A processor whose kernels are compiled sooner than with the usual level of optimisation."""
    one = PROCESSORS[name]
    device = EmulatedDevice(replace(one, compiler=f"{one.compiler} -O1"))
    yield device
    device.close()


@processors(*PROCESSORS)
def test_a_process_has_the_vectors_for_which_kernels_are_compiled(name, device):
    """And a processor with others is refused."""
    one = PROCESSORS[name]
    assert device.lanes("single") == one.register_bytes / 4
    with pytest.raises(AssertionError, match=f"Vectors have {one.vector_bytes} bytes"):
        EmulatedDevice(replace(one, vector_bytes=one.vector_bytes + 16))


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
    lattice = Lattice(8, 4, 4, 4)
    links = random_field(lattice.extents, "su3", rng)
    psi = reference.random_spinor(lattice.extents, 3, rng)
    expected = reference.wilson(links, psi, 0.1, PHASES)
    for precision, tolerance in (("double", 2e-14), ("single", 3e-6)):
        field = Field.from_slices(lattice, "su3", links, precision, device)
        found = PlainWilson(field, 0.1, PHASES).apply(psi)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    field = Field.from_slices(lattice, "su3", links, "double", device)
    for solver in SOLVERS:
        for inner in STORAGES:
            x = Wilson(field, 0.1).solve(psi, 1e-9, solver, inner=inner)
            rest = psi - reference.wilson(links, x, 0.1, PHASES)
            assert np.linalg.norm(rest) < 1.01e-9 * np.linalg.norm(psi)


@processors("sve512")
def test_registers_that_are_parts_of_vectors(device, rng):
    """Spinors in half precision have eight lanes on this lattice."""
    lattice = Lattice(4, 4, 4, 4)
    links = random_field(lattice.extents, "su2", rng)
    psi = reference.random_spinor(lattice.extents, 2, rng)
    field = Field.from_slices(lattice, "su2", links, "double", device)
    found = PlainWilson(field, 0.1, PHASES).apply(psi, precision="half")
    expected = reference.wilson(links, psi, 0.1, PHASES)
    assert np.abs(found - expected).max() < 3e-3 * np.abs(expected).max()
