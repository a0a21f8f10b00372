"""The choice of GPUs, with times that are given."""

import numpy as np
import pytest

from gauge_mc.algorithms import parse
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import NoMemoryError
from gauge_mc.extensions.quarks.dynamical import flavours as module
from gauge_mc.extensions.quarks.dynamical.flavours import solver_seconds

QUARKS = parse("hmc:quarks=kappa=0.13")


def links(*extents):
    return Lattice(*extents or (4, 4, 4, 8)), "su3", "double"


class Gpu(CpuDevice):
    """A CPU in the place of a GPU, whose memory is said to be its own."""

    in_host_memory = False


def group(count, kind=Gpu, **given):
    return DeviceGroup(tuple(kind(1) for _ in range(count)), **given)


@pytest.fixture
def times(monkeypatch):
    """Seconds by the number of GPUs, which a test sets, and the numbers that were tried."""
    found, tried = {}, []

    def seconds(devices, *links):
        tried.append(len(devices.devices))
        return found[len(devices.devices)]

    monkeypatch.setattr(module, "solver_seconds", seconds)
    return found, tried


def test_the_fastest_number_is_taken(times):
    times[0].update({1: 3e-3, 2: 1e-3, 4: 2e-3, 6: 4e-3})
    devices = group(6)
    chosen, reason = QUARKS.fastest_devices(devices, *links(4, 4, 4, 12))
    assert chosen.devices == devices.devices[:2]
    assert times[1] == [1, 2, 4, 6]
    assert reason == (
        "On this lattice quarks are fastest on 2 of the 6 GPUs: 500 iterations for them take "
        "1 ms there, and 4 ms on all. The others are not used."
    )
    times[0][6] = 1e-4
    assert QUARKS.fastest_devices(devices, *links(4, 4, 4, 12)) == (devices, "")


@pytest.mark.parametrize(
    ("devices", "algorithm", "links"),
    [
        (lambda: group(1), QUARKS, links()),
        (lambda: group(2, CpuDevice), QUARKS, links()),
        (lambda: group(2, slices=(4, 4)), QUARKS, links()),
        (lambda: group(2), parse("heatbath"), links()),
        (lambda: group(2), QUARKS, links(64, 32, 32, 32)),
    ],
    ids=["one", "cpu", "divided", "glue", "large"],
)
def test_nothing_is_tried_where_there_is_no_choice(times, devices, algorithm, links):
    given = devices()
    assert algorithm.fastest_devices(given, *links) == (given, "")
    assert times[1] == []


def test_gpus_with_too_little_memory_are_not_taken(monkeypatch):
    def refused(operator, request):
        raise NoMemoryError("too little")

    monkeypatch.setattr(module, "QuarkSystem", refused)
    assert solver_seconds(group(1), *links()) == np.inf
    assert QUARKS.fastest_devices(devices := group(2), *links()) == (devices, "")
