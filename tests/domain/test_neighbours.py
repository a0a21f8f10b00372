"""Signals between slabs of different processes, with threads as processes and devices that note."""

import queue
import random
import threading
import time
from types import SimpleNamespace

import pytest

from gauge_mc.devices.base import Offer
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.halo import ForeignNeighbours
from tests.patience import PATIENCE

TURNS = 200


class Wire:
    """Messages between threads."""

    def __init__(self, size):
        self.size = size
        self.queues = {}
        self.barrier = threading.Barrier(size)
        self.gathered = [None] * size
        self.lock = threading.Lock()

    def queue(self, *key):
        with self.lock:
            return self.queues.setdefault(key, queue.Queue())


class Thread:
    """What `ForeignNeighbours` needs of `Processes`, for one thread."""

    def __init__(self, wire, rank):
        self.wire, self.rank, self.size = wire, rank, wire.size

    def allgather(self, value):
        self.wire.gathered[self.rank] = value
        self.wire.barrier.wait(PATIENCE)
        values = list(self.wire.gathered)
        self.wire.barrier.wait(PATIENCE)
        return values

    def begin_send(self, data, to, tag):
        self.wire.queue(self.rank, to, tag).put(None)
        return SimpleNamespace(wait=lambda: None)

    def begin_receive(self, data, source, tag):
        messages = self.wire.queue(source, self.rank, tag)
        return SimpleNamespace(wait=lambda: messages.get(timeout=PATIENCE))


class NotingDevice(CpuDevice):
    """A device whose two events remember the turn in which they were last recorded."""

    recorded: dict = {}  # noqa: RUF012, shared like the memory of a host
    refuses = False

    def __init__(self, number):
        super().__init__(1)
        self.number, self.waited = number, []

    def share(self, buffer):
        def record(turn):
            self.recorded[self.number, turn % 2] = turn

        return SimpleNamespace(offer=Offer(bytes([self.number]), ()), record=record)

    def foreign(self, offer):
        owner = offer.memory[0]
        if self.refuses and owner == 0:
            return None
        return SimpleNamespace(
            address=1000 * owner, event=lambda turn: (owner, self.recorded[owner, turn % 2])
        )

    def wait(self, event):
        self.waited.append(event)


def ring(size, per_process):
    """Return all pairs of neighbouring slabs in a ring that belong to different processes."""
    count = size * per_process
    pairs = {(n, (n + step) % count) for n in range(count) for step in (1, -1)}
    return sorted(p for p in pairs if p[0] // per_process != p[1] // per_process)


def in_threads(size, per_process, work, refuses=False):
    """Let every thread work with its neighbours and its slabs."""
    wire, results = Wire(size), [None] * size
    pairs = ring(size, per_process)

    def run(rank):
        mine = range(rank * per_process, (rank + 1) * per_process)
        slabs = {n: SimpleNamespace(device=NotingDevice(n), buffer=None) for n in mine}
        for slab in slabs.values():
            slab.device.refuses = refuses
        devices = SimpleNamespace(
            processes=Thread(wire, rank), process_of=lambda slab: slab // per_process
        )
        found = ForeignNeighbours.find(devices, slabs, pairs, 7)
        results[rank] = work(rank, found, slabs)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return pairs, results


@pytest.mark.parametrize(("size", "per_process"), [(2, 1), (3, 1), (2, 2), (4, 1)])
def test_devices_wait_for_their_neighbours_in_every_turn(size, per_process):
    def work(rank, found, slabs):
        dice = random.Random(rank)
        for _ in range(TURNS):
            for number in slabs:
                found.signal(number)
                if dice.random() < 0.1:
                    time.sleep(dice.uniform(0, 2e-3))
            found.wait()
        return found, {n: slab.device.waited for n, slab in slabs.items()}

    pairs, results = in_threads(size, per_process, work)
    for found, waited in results:
        for mine, events in waited.items():
            others = [other for one, other in pairs if one == mine]
            expected = [(other, turn) for turn in range(TURNS) for other in others]
            assert sorted(events) == sorted(expected)
            assert all(found.address(mine, other) == 1000 * other for other in others)


def test_one_device_out_of_reach_is_enough():
    _, results = in_threads(3, 1, lambda rank, found, slabs: found, refuses=True)
    assert results == [None] * 3
