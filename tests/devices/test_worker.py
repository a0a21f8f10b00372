"""Workers carry out tasks in order, and tell when one has failed."""

import pytest

from gauge_mc.devices.cpu.device import CpuDevice, Worker


def test_two_workers_wait_for_each_other():
    one, two, done = Worker(), Worker(), []
    for number in range(50):
        first, second = (one, two) if number % 2 else (two, one)
        first.do(lambda number=number: done.append(number))
        second.do(first.event().synchronize)
    one.synchronize()
    two.synchronize()
    assert done == list(range(50))


def test_a_failure_is_raised_and_stops_nobody():
    worker, other, done = Worker(), Worker(), []
    worker.do(lambda: 1 / 0)
    event = worker.event()
    other.do(event.synchronize)
    other.do(lambda: done.append("other"))
    other.synchronize()
    assert event.query()
    assert done == ["other"]
    with pytest.raises(ZeroDivisionError):
        worker.synchronize()
    worker.close()
    worker.event().synchronize()  # nobody is left to wait for


def test_a_failure_reaches_whoever_reads():
    device = CpuDevice(1, worker=True)
    buffer = device.allocate(64)
    device._worker.do(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        device.read(buffer, 0, 64)
