"""Wilson loops in space and along t against NumPy."""

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quantities.potential.observables import PlanarLoops
from tests.reference.fields import random_field, trace
from tests.reference.observables import transport

LATTICE = Lattice(8, 6, 4, 12)
TOLERANCE = {"single": 1e-6, "double": 1e-14}


def expected(links, plane, r, t):
    """Return the average over the loops along mu and nu, one after another."""
    pairs = {
        "space": [(mu, nu) for mu in range(3) for nu in range(3) if mu != nu],
        "time": [(mu, 3) for mu in range(3)],
    }[plane]
    found = []
    for mu, nu in pairs:
        path = [*r * [(mu, 1)], *t * [(nu, 1)], *r * [(mu, -1)], *t * [(nu, -1)]]
        found.append(trace(transport(links, path)).real.mean() / links.shape[-1])
    return np.mean(found)


def test_loops(group, precision, device):
    links = random_field(LATTICE.extents, group, np.random.default_rng(3))
    field = Field.from_slices(LATTICE, group, links, precision, device)
    loops = PlanarLoops.for_lattice(LATTICE)
    records = loops.measurer(field)(field)
    assert len(records) == loops.records == 4 + 2 * 6
    for plane, r, t, value in records:
        assert value == pytest.approx(expected(links, plane, r, t), abs=TOLERANCE[precision])
    again = loops.measurer(field)(field)
    assert again == records


@pytest.mark.parametrize(("r_max", "t_max", "name"), [(3, 6, "--r-max"), (2, 7, "--t-max")])
def test_loops_longer_than_half_the_lattice_are_refused(r_max, t_max, name):
    with pytest.raises(UsageError, match=f"{name} is .* half the lattice"):
        PlanarLoops(LATTICE, r_max, t_max)


def test_loops_are_one_on_a_cold_field():
    field = Field.cold(LATTICE, "su2", "single", CpuDevice(1))
    records = PlanarLoops(LATTICE, 1, 1).measurer(field)(field)
    assert [value for *_, value in records] == pytest.approx([1, 1])
