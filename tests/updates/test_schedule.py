"""The schedule of a sweep as tables: who does what in which order, and when halos are exchanged."""

import pytest

from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.devices.base import split_steps
from gauge_mc.devices.cpu.device import CpuDevice, TaskEvent
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.updates.heatbath import overrelaxation_sweep
from gauge_mc.updates.schedule import (
    Exchange,
    Wavefront,
    exchange_of,
    order_between_exchanges,
    order_of_sweep,
    schedule,
)

WILSON = ACTIONS["wilson"]
LATTICE = Lattice(2, 2, 2, 10)


# Tables


def links_of(mu, parity):
    """Name the links of an update set."""
    return f"{'xyzt'[mu]} {('even', 'odd')[parity]}"


def in_words(work):
    """Return an update set and the time slices on which it is updated."""
    times = [str(work.t_begin + n * work.t_step) for n in range(work.slices)]
    return f"{links_of(work.mu, work.parity)} {' '.join(times)}"


def rows(stages):
    """Return a row for each stage: the main work, what is sent, and the side work."""
    for stage in stages:
        main, side = ("; ".join(map(in_words, one)) for one in (stage.main, stage.side))
        sends = f"send {links_of(stage.sends.mu, stage.sends.parity)}" if stage.sends else ""
        yield " | ".join(column for column in (main, sends, side) if column)


def lines(table):
    return [line.strip() for line in table.strip().splitlines()]


@pytest.fixture(autouse=True)
def _no_check(monkeypatch):
    """These devices carry out nothing, so that the action cannot be tried."""
    monkeypatch.setattr("gauge_mc.updates.heatbath.check_independence", lambda *_: None)


@pytest.fixture
def slabs():
    """Slabs of 6 and of 4 time slices, whose devices' caches hold all of them."""
    devices = tuple(CpuDevice(1, 1) for _ in range(2))
    for device in devices:
        device.cache_bytes = 2**30
    return Field.cold(LATTICE, "su2", "single", DeviceGroup(devices, slices=(6, 4))).slabs


def whole():
    """Return one slab with all time slices."""
    device = CpuDevice(1, 1)
    device.cache_bytes = 2**30
    return Field.cold(LATTICE, "su2", "single", device).slabs[0]


def test_a_single_slab_updates_one_set_after_the_other():
    stages = schedule(whole(), WILSON, Exchange.NONE)
    assert [in_words(work) for stage in stages for work in stage.main] == lines(
        """
        x even 0 1 2 3 4 5 6 7 8 9
        x odd 0 1 2 3 4 5 6 7 8 9
        y even 0 1 2 3 4 5 6 7 8 9
        y odd 0 1 2 3 4 5 6 7 8 9
        z even 0 1 2 3 4 5 6 7 8 9
        z odd 0 1 2 3 4 5 6 7 8 9
        t even 0 1 2 3 4 5 6 7 8 9
        t odd 0 1 2 3 4 5 6 7 8 9
        """
    )
    assert len(stages) == 1
    assert stages[0].sends is None
    assert stages[0].side == ()


def test_beside_the_exchange_a_slab_updates_its_interior(slabs):
    assert list(rows(schedule(slabs[0], WILSON, Exchange.BESIDE))) == lines(
        """
        x even 0 5 | send x even | x even 1 2 3 4
        x odd 0 5 | send x odd | x odd 1 2 3 4
        y even 0 5 | send y even | y even 1 2 3 4
        y odd 0 5 | send y odd | y odd 1 2 3 4
        z even 0 5 | send z even | z even 1 2 3 4
        z odd 0 5 | send z odd | z odd 1 2 3 4
        t even 0 5 | send t even | t even 1 2 3 4
        t odd 0 5 | send t odd | t odd 1 2 3 4
        """
    )


def test_a_slab_of_two_slices_has_no_interior():
    devices = tuple(CpuDevice(1, 1) for _ in range(2))
    field = Field.cold(LATTICE, "su2", "single", DeviceGroup(devices, slices=(2, 8)))
    first, *_ = rows(schedule(field.slabs[0], WILSON, Exchange.BESIDE))
    assert first == "x even 0 1 | send x even"


@pytest.mark.parametrize("exchange", [Exchange.STORE, Exchange.AFTER])
def test_a_slab_is_updated_before_its_boundary_is_sent_or_while_it_is_stored(slabs, exchange):
    assert list(rows(schedule(slabs[1], WILSON, exchange))) == lines(
        """
        x even 0 1 2 3 | send x even
        x odd 0 1 2 3 | send x odd
        y even 0 1 2 3 | send y even
        y odd 0 1 2 3 | send y odd
        z even 0 1 2 3 | send z even
        z odd 0 1 2 3 | send z odd
        t even 0 1 2 3 | send t even
        t odd 0 1 2 3 | send t odd
        """
    )


def test_updates_follow_each_other_if_the_cache_is_small(slabs):
    """Of two updates the second leaves out the first and the last slice until halos are new."""
    slab = slabs[0]
    slab.device.cache_bytes = 5 * slab.slice_bytes
    found = list(rows(schedule(slab, WILSON, Exchange.AFTER)))
    assert found[:2] == lines(
        """
        x even 0; x even 1; x even 2; x odd 1; x even 3; x odd 2; x even 4; x odd 3; \
x even 5; x odd 4 | send x even
        x odd 0; x odd 5 | send x odd
        """
    )
    sets, wavefront = WILSON.update_sets(LATTICE), Wavefront(2, 2)
    order = order_between_exchanges(slab, sets, wavefront)
    for stage, works in zip(schedule(slab, WILSON, Exchange.AFTER), order, strict=True):
        assert list(map(bytes, stage.main)) == list(map(bytes, works))
    one = whole()
    one.device.cache_bytes = 5 * one.slice_bytes
    (stage,) = schedule(one, WILSON, Exchange.NONE)
    works = order_of_sweep(one, sets, wavefront)
    assert list(map(bytes, stage.main)) == list(map(bytes, works))


def test_how_halos_are_exchanged_depends_on_the_devices():
    def exchange(count, side_stream, reaches):
        devices = tuple(CpuDevice(1, 1) for _ in range(count))
        for device in devices:
            device.has_side_stream = side_stream
            device.reaches = lambda other: reaches
        return exchange_of(Field.cold(LATTICE, "su2", "single", DeviceGroup(devices)), WILSON)

    assert exchange(1, True, True) is Exchange.NONE
    assert exchange(2, True, True) is Exchange.STORE
    assert exchange(2, True, False) is Exchange.BESIDE
    assert exchange(2, False, False) is Exchange.AFTER


@pytest.mark.gpu
def test_gpus_store_their_boundaries_where_they_reach_the_neighbours(gpu, monkeypatch):
    group = DeviceGroup((gpu, gpu))
    assert exchange_of(Field.cold(LATTICE, "su2", "single", group), WILSON) is Exchange.STORE
    monkeypatch.setattr(gpu, "reaches", lambda other: False)
    assert exchange_of(Field.cold(LATTICE, "su2", "single", group), WILSON) is Exchange.BESIDE


# The calls by which a sweep carries out its schedule


class RecordingDevice(CpuDevice):
    """A device that notes in a log what it is told, and updates nothing."""

    def __init__(self, number, log, side_stream, reaches):
        super().__init__(1, 1)
        self.cache_bytes = 2**30
        self.has_side_stream = side_stream
        self._number, self._log, self._reaches = number, log, reaches

    def note(self, words):
        self._log.append(f"{self._number} {words}")

    def kernel(self, kernel, variant):
        return RecordingKernel(self)

    def fork(self):
        self.note("fork")

    def join(self):
        self.note("join")

    def reaches(self, other):
        return self._reaches

    def prepare_copies(self, copies, nbytes):
        to = " ".join(str(copy.target._number) for copy in copies)

        def issue():
            self.note(f"send to {to}" if to else "signal")
            return RecordedEvent(self._number)

        return issue

    def wait(self, event):
        self.note(f"wait for {event.number}")


class RecordedEvent(TaskEvent):
    """The point at which a device's copies have arrived."""

    def __init__(self, number):
        super().__init__()
        self.number = number


class RecordingKernel:
    """A kernel that notes its launches."""

    def __init__(self, device):
        self._device = device

    def launches(self, steps, lengths, side=False):
        for part in split_steps(steps, lengths):
            yield lambda part=part: self._note(part, "side" if side else "main")

    def __call__(self, steps):
        self._note(steps, "main")

    def _note(self, steps, stream):
        for step in steps:
            self._device.note(f"{stream} {in_words(step.work)}")


def calls(slices, sweeps, side_stream=False, reaches=False):
    """Return the log of overrelaxation sweeps."""
    log = []
    devices = tuple(RecordingDevice(n, log, side_stream, reaches) for n in range(len(slices)))
    group = DeviceGroup(devices, slices=slices)
    field = Field.empty(Lattice(2, 2, 2, sum(slices)), "su2", "single", group)
    log.clear()
    overrelaxation_sweep(field, [Coupling.of(1.0)])(sweeps)
    return log


def test_calls_on_one_device():
    log = calls((4,), 2)
    assert log[:3] == ["0 main x even 0 1 2 3", "0 main x odd 0 1 2 3", "0 main y even 0 1 2 3"]
    assert len(log) == 16
    assert log[8:] == log[:8]


BESIDE = """
0 fork
0 main x even 0 3
0 send to 1 1
0 side x even 1 2
0 join
1 fork
1 main x even 0 5
1 send to 0 0
1 side x even 1 2 3 4
1 join
1 wait for 0
0 wait for 1
"""

STORE = """
0 main x even 0 1 2 3
0 signal
1 main x even 0 1 2 3 4 5
1 signal
1 wait for 0
0 wait for 1
"""

AFTER = """
0 main x even 0 1 2 3
0 send to 1 1
1 main x even 0 1 2 3 4 5
1 send to 0 0
1 wait for 0
0 wait for 1
"""


@pytest.mark.parametrize(
    ("side_stream", "reaches", "first_stage"),
    [(True, False, BESIDE), (True, True, STORE), (False, False, AFTER)],
    ids=["beside", "store", "after"],
)
def test_calls_on_two_devices(side_stream, reaches, first_stage):
    """All slabs carry out a stage before the next; the other stages are like the first."""
    log, stage = calls((4, 6), 2, side_stream, reaches), lines(first_stage)
    expected = [
        line.replace("x even", links_of(one.mu, one.parity))
        for one in 2 * WILSON.update_sets(LATTICE)
        for line in stage
    ]
    assert log == expected


def test_a_middle_slab_sends_to_both_neighbours():
    log = calls((2, 4, 4), 1, side_stream=True)
    assert [line for line in log if "send" in line][:3] == [
        "0 send to 1 2",
        "1 send to 0 2",
        "2 send to 0 1",
    ]
    assert sorted(line for line in log[: len(log) // 8] if "wait" in line) == [
        f"{receiver} wait for {sender}"
        for receiver in range(3)
        for sender in range(3)
        if receiver != sender
    ]
