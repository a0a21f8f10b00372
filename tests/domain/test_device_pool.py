"""Groups of devices, and devices side by side: order of results, threads, interruptions."""

import itertools
import threading
import time
import traceback

import pytest

from gauge_mc.devices import DeviceChoice
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.device_pool import CancelledError, device_pool
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from tests.calls import call
from tests.patience import PATIENCE

COUNTS = (1, 2, 3)


class Device:
    """A device that notes the threads that use it."""

    def __init__(self, name):
        self.name = name
        self.threads = [threading.get_ident()]
        self.closed = False
        self.held = 0

    def allocate(self):
        return Memory(self)

    def close(self):
        assert not self.held
        self.threads.append(threading.get_ident())
        self.closed = True


class Memory:
    """Memory of a device, to be freed before the device is closed, by the device's thread."""

    def __init__(self, device):
        self.device = device
        device.held += 1

    def __del__(self):
        self.device.held -= 1
        self.device.threads.append(threading.get_ident())


class Choice:
    """A choice of a device, or of one that cannot be opened."""

    def __init__(self, name="device", error=None):
        self.name, self.error, self.device = name, error, None

    def open(self):
        if self.error:
            raise self.error
        self.device = Device(self.name)
        return self.device


def choices_of(count):
    return [Choice(f"device {n}") for n in range(count)]


def damaged(item, memory):
    try:
        memory / 2
    except TypeError as error:
        raise GaugeError(f"{item} is damaged.") from error


def squares(device, items):
    """Yield squares, slowly for some items, and hold memory meanwhile."""
    long = device.allocate()
    for item in items:
        short = device.allocate()
        time.sleep(0.002 * (item % 4))
        if item == 11:
            [damaged(item, long) for _ in range(1)]  # its frame holds the memory
        del short
        yield item**2
    del long


def openers(choices):
    return [choice.open for choice in choices]


def check_devices(choices):
    """Check that each device had one thread, of its own if there are several, and is closed."""
    threads = [set(choice.device.threads) for choice in choices]
    assert all(len(one) == 1 for one in threads)
    assert len(set().union(*threads)) == len(choices)
    assert (threading.get_ident() in threads[0]) == (len(choices) == 1)
    assert all(choice.device.closed and not choice.device.held for choice in choices)
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("items", [0, 1, 2, 7, 10])
def test_results_come_in_order(count, items):
    choices = choices_of(count)
    with device_pool(openers(choices)) as pool:
        assert list(pool.results(squares, range(items))) == [n**2 for n in range(items)]
        assert pool.name == " + ".join(f"device {n}" for n in range(count))
    check_devices(choices)


@pytest.mark.parametrize("count", COUNTS)
def test_an_error_comes_in_its_turn(count):
    choices = choices_of(count)
    found = []
    with pytest.raises(GaugeError, match="11 is damaged"), device_pool(openers(choices)) as pool:
        found.extend(pool.results(squares, range(3, 40)))
    assert found == [n**2 for n in range(3, 11)]
    check_devices(choices)


@pytest.mark.parametrize("count", COUNTS)
def test_an_error_of_a_users_function_keeps_its_traceback_but_no_memory(count):
    def fails(memory):
        try:
            return memory / 2
        except TypeError as error:
            raise LookupError("it failed") from error

    def job(device, items):
        for item in items:
            yield fails(device.allocate()) if item == 4 else item

    choices, found = choices_of(count), []
    with pytest.raises(LookupError) as caught, device_pool(openers(choices)) as pool:
        found.extend(pool.results(job, range(9)))
    assert found == [0, 1, 2, 3]
    for error in (caught.value, caught.value.__cause__):
        assert traceback.extract_tb(error.__traceback__)[-1].name == "fails"
    check_devices(choices)


@pytest.mark.parametrize("count", [2, 3])
def test_an_interruption_cancels_what_is_at_work(count):
    cancelled, all_at_work = [], threading.Barrier(count + 1, timeout=PATIENCE)

    def endless(device, items):
        memory = device.allocate()
        yield items[0]
        all_at_work.wait()
        try:
            while memory:
                time.sleep(0.001)
                device.allocate()
        except CancelledError:
            cancelled.append(items[0])
            raise

    def take(taken):
        if taken == count - 1:
            all_at_work.wait()
            raise KeyboardInterrupt

    choices = choices_of(count)
    with pytest.raises(KeyboardInterrupt), device_pool(openers(choices)) as pool:
        list(map(take, pool.results(endless, range(100))))
    assert sorted(cancelled) == list(range(count))
    check_devices(choices)


def test_a_device_that_cannot_be_opened():
    choices = choices_of(2)
    broken = Choice(error=GaugeError("There is no GPU."))
    with (
        pytest.raises(GaugeError, match="There is no GPU"),
        device_pool(openers([*choices, broken])),
    ):
        pass
    check_devices(choices)


def test_devices_of_one_name():
    with device_pool(openers([Choice("CPU"), Choice("CPU"), Choice("GPU")])) as pool:
        assert pool.name == "2 x CPU + GPU"


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
