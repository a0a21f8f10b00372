"""Measurements that begin now and are evaluated later."""

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import BLOCK
from gauge_mc.observables import OBSERVABLES
from gauge_mc.updates.heatbath import heatbath

pytestmark = pytest.mark.kernels

LATTICE = Lattice(4, 4, 4, 12)
NAMES = ["plaquette", "polyakov"]


@pytest.fixture(params=[1, 3])
def devices(request, best_device):
    """One device, or three that work at the same time."""
    if request.param == 1:
        return DeviceGroup.of(best_device)
    return DeviceGroup(tuple(CpuDevice(1, worker=True) for _ in range(request.param)))


def chain(devices, updates):
    """Yield a field after each of some updates."""
    field = Field.hot(LATTICE, "su2", "single", devices, seed=5)
    random = Random.for_field(field, "philox", seed=6)
    for _ in range(updates):
        heatbath(field, 2.3, random)
        yield field


def records(found):
    """Return records as tuples of Python's floats."""
    return [[tuple(one) for one in measurement] for measurement in found.tolist()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("updates", [6, pytest.param(BLOCK + 10, marks=pytest.mark.slow)])
def test_records_are_those_of_the_field_when_they_were_begun(devices, name, updates):
    observable = OBSERVABLES[name].for_lattice(LATTICE)
    expected = [[observable.measure(field)] for field in chain(devices, updates)]
    recorder = None
    for field in chain(devices, updates):
        recorder = recorder or observable.recorder(field)
        with devices.measuring():
            recorder.begin()
    assert len({str(one) for one in expected}) == updates
    (found,) = recorder.fetch()
    assert records(found) == expected


@pytest.mark.slow
@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]])
def test_several_observables_are_measured_side_by_side(devices, names):
    """More often than their sums fit on the devices, so that they are also fetched on the way."""
    updates = BLOCK + 3
    observables = [OBSERVABLES[name].for_lattice(LATTICE) for name in names]
    expected = [[[one.measure(field)] for one in observables] for field in chain(devices, updates)]
    recorders = []
    for field in chain(devices, updates):
        recorders = recorders or [one.recorder(field) for one in observables]
        with devices.measuring():
            for recorder in recorders:
                recorder.begin()
    found = [records(recorder.fetch()[0]) for recorder in recorders]
    assert [list(one) for one in zip(*found, strict=True)] == expected
