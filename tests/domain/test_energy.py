"""Energy of device groups: every part of a machine is counted once, over all processes."""

import math

import pytest

from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.domain import device_pool
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import EnergyMeter, EnergyUse
from gauge_mc.domain.mpi import Processes
from gauge_mc.errors import GaugeError


class Part:
    """A part of a machine whose counter the test sets."""

    def __init__(self, name, limit=math.inf):
        self.joules, self.failure = 0.0, None
        self.counter = EnergyCounter(name, "METER", self.read, limit)

    def read(self):
        if self.failure:
            raise GaugeError(self.failure)
        return self.joules


class Processor:
    """As much of a device as a meter uses."""

    backend, packet_bytes = "some", 0

    def __init__(self, *parts):
        self.parts = parts

    def lanes(self, precision):
        return 1

    def energy_counters(self):
        for part in self.parts:
            part.read()
        return [part.counter for part in self.parts]


class Several(Processes):
    """Processes of which only this one exists; the others' messages are given."""

    def __init__(self, *others):
        self.others = others

    def allgather(self, value):
        if isinstance(value, tuple):
            return [value, *self.others]
        return [value]


def test_a_shared_part_is_counted_once():
    one, two = Part("one"), Part("two")
    meter = EnergyMeter(DeviceGroup((Processor(one), Processor(one), Processor(two))))
    assert meter.read() == 0.0
    one.joules, two.joules = 3.0, 5.0
    assert meter.read() == 8.0
    one.joules = 4.0
    assert meter.total() == EnergyUse(9.0, "METER")


def test_a_counter_may_start_again_between_readings():
    part = Part("one", limit=100.0)
    part.joules = 90.0
    meter = EnergyMeter(DeviceGroup((Processor(part),)))
    for joules in (99.0, 20.0, 80.0, 10.0):
        part.joules = joules
        meter.read()
    assert meter.total().joules == pytest.approx(9 + 21 + 60 + 30)


def test_processes_of_a_host_share_its_parts(monkeypatch):
    monkeypatch.setattr(device_pool.platform, "node", lambda: "a")
    one, two = Part("one"), Part("two")
    others = [("a", {"two": 6.0, "three": 1.0}, "METER", ""), ("b", {"one": 10.0}, "METER", "")]
    group = DeviceGroup((Processor(one, two),), Several(*others))
    meter = EnergyMeter(group)
    one.joules, two.joules = 3.0, 5.0
    assert meter.total() == EnergyUse(3 + 6 + 1 + 10, "METER")
    assert meter.read() == 8.0


def test_a_process_without_counters_makes_the_sum_unavailable():
    part = Part("one")
    missing = ("b", {}, "", "nothing here")
    meter = EnergyMeter(DeviceGroup((Processor(part),), Several(missing)))
    assert meter.total() == EnergyUse(None, "nothing here")


@pytest.mark.parametrize("late", [False, True])
def test_a_counter_that_fails(late):
    part = Part("one")
    part.failure = None if late else "it is broken"
    meter = EnergyMeter(DeviceGroup((Processor(part),)))
    part.failure = "it is broken"
    assert meter.read() is None
    part.failure, part.joules = None, 5.0
    assert meter.total() == EnergyUse(None, "it is broken")


def test_energy_per_link_update():
    assert EnergyUse(2.0, "METER").nj_per_link(1000) == pytest.approx(2e6)
    assert EnergyUse(2.0, "METER").nj_per_link(0) is None
    assert EnergyUse(None, "why").nj_per_link(1000) is None
