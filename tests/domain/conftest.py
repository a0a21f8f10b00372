"""Groups of devices that divide a lattice in several ways."""

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from tests.conftest import gpus

LATTICE = Lattice(4, 8, 4, 12)
DIVISIONS = [(12,), (6, 6), (2, 10), (4, 3, 5), (2, 2, 2, 6)]
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("cpu-1", "cpu-1w")]
GPUS = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("cuda", "cuda-sent")]


def open_group(kind: str, slices: tuple[int, ...]) -> DeviceGroup:
    """Open a group of devices of a kind: different GPUs where there are as many.

    CPU devices of the kind ``cpu-1w`` have a cache so small that sweeps are blocked in wavefronts.
    GPUs store their boundaries in the halos of their neighbours, those of the kind ``cuda-sent``
    copy them.
    """
    if kind.startswith("cpu"):
        lanes, worker = int(kind[4:].rstrip("w")), len(slices) > 1
        cpus = tuple(CpuDevice(1, lanes, worker) for _ in slices)
        for cpu in cpus:
            cpu.cache_bytes = 100_000 if kind.endswith("w") else 2**30
        return DeviceGroup(cpus, slices=slices)
    try:
        backend = gpus()
        count = backend.count()
        opened = tuple(backend.open(n % count) for n in range(len(slices)))
    except GaugeError as error:
        pytest.skip(str(error))
    for gpu in opened if kind.endswith("sent") else ():
        gpu.reaches = lambda other: False
    return DeviceGroup(opened, slices=slices)


@pytest.fixture(params=[pytest.param("su2", marks=pytest.mark.slow), "su3"])
def group(request: pytest.FixtureRequest) -> str:
    """Both groups; the larger one in quick tests."""
    return request.param


@pytest.fixture(params=[*SLOW, "cpu-16", *GPUS])
def device_groups(request: pytest.FixtureRequest) -> list[DeviceGroup]:
    """Groups of devices that divide `LATTICE` in several ways; the first has one device."""
    return [open_group(request.param, slices) for slices in DIVISIONS]
