"""How the halos of slabs are exchanged."""

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.updates.schedule import Exchange, exchange_of


def exchange(*devices):
    field = Field.cold(Lattice(2, 2, 2, 10), "su2", "single", DeviceGroup(devices))
    return exchange_of(field, ACTIONS["wilson"])


@pytest.mark.parametrize(
    ("count", "side_stream", "reaches", "expected"),
    [
        (1, True, True, Exchange.NONE),
        (2, True, True, Exchange.STORE),
        (2, True, False, Exchange.BESIDE),
        (2, False, False, Exchange.AFTER),
    ],
)
def test_it_depends_on_the_devices(count, side_stream, reaches, expected):
    devices = [CpuDevice(1, 1) for _ in range(count)]
    for device in devices:
        device.has_side_stream, device.reaches = side_stream, lambda other: reaches
    assert exchange(*devices) is expected


@pytest.mark.gpu
def test_gpus_store_their_boundaries_where_they_reach_the_neighbours(gpu, monkeypatch):
    assert exchange(gpu, gpu) is Exchange.STORE
    monkeypatch.setattr(gpu, "reaches", lambda other: False)
    assert exchange(gpu, gpu) is Exchange.BESIDE
