"""How a device group divides lattices into slabs."""

import itertools

import pytest

from gauge_mc.devices import DeviceChoice
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from tests.calls import call

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


def test_too_many_devices_are_refused_before_any_is_opened(monkeypatch):
    """A thousand parts of a CPU would be thousands of threads."""

    def opened(self, worker=False):
        raise AssertionError("a device was opened")

    monkeypatch.setattr(DeviceChoice, "open", opened)
    with pytest.raises(UsageError, match="too few for 1000 devices"):
        open_device_group("cpu:1000", lattice=Lattice(4, 4, 4, 8))
    for words in ("generate", "generate --dry-run", "bench"):
        shown, code = call(*words.split(), "--devices", "cpu:1000", "--lattice", "4x4x4x8")
        assert (code, shown.count("too few for 1000 devices")) == (2, 1)
