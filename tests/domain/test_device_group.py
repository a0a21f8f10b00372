"""How a device group divides lattices into slabs."""

import itertools

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError

LATTICE = Lattice(4, 8, 4, 12)


def test_slabs_are_as_equal_as_possible():
    devices = tuple(CpuDevice(1) for _ in range(3))
    for extent, count in itertools.product(range(2, 40, 2), range(1, 4)):
        lattice = Lattice(2, 2, 2, extent)
        group = DeviceGroup(devices[:count])
        if extent < 2 * count:
            with pytest.raises(UsageError, match="use at most"):
                group.slabs(lattice)
            continue
        slabs = group.slabs(lattice)
        assert [t for slab in slabs for t in slab] == list(range(extent))
        sizes = [len(slab) for slab in slabs]
        assert len(slabs) == count
        assert max(sizes) - min(sizes) <= 2


@pytest.mark.parametrize("slices", [(6, 6), (1, 5, 6), (4, 4, 6)])
def test_slabs_that_do_not_fit_the_lattice_are_refused(slices):
    devices = tuple(CpuDevice(1) for _ in range(3))
    with pytest.raises(UsageError, match="do not make up the lattice"):
        DeviceGroup(devices, slices=slices).slabs(LATTICE)


def test_devices_of_different_kinds_are_refused():
    with pytest.raises(GaugeError, match="processors of one kind"):
        DeviceGroup((CpuDevice(1, 1), CpuDevice(1, 4)))
