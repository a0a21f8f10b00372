"""Recorded launches, with stand-ins for the driver and for GPUs."""

from types import SimpleNamespace

import pytest

from gauge_mc.devices.cuda.graphs import CUDA_NAMES, GraphFunctions, RecordedLaunches


class DriverError(Exception):
    """A call of the driver failed."""


class Driver:
    """A driver that notes its calls; those that are named fail."""

    def __init__(self, *failing):
        self.calls, self.failing, self.records = [], failing, False

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name in ("cuStreamBeginCapture_v2", "cuStreamEndCapture"):
                self.records = "Begin" in name and name not in self.failing
            if name == "cuGraphInstantiateWithFlags" and name not in self.failing:
                arguments[0]._obj.value = 7
            return int(name in self.failing)

        return call


class Gpu:
    """A GPU whose stream has a number, and which notes events and waits for them."""

    def __init__(self, number, noted):
        self.stream, self.number, self.noted = SimpleNamespace(handle=number), number, noted

    def activate(self):
        """Nothing needs to be done."""

    def event(self):
        """An event with the GPU's number."""
        self.noted.append(f"event of {self.number}")
        return self.number

    def wait(self, event):
        """Wait for an event."""
        self.noted.append(f"{self.number} waits for {event}")


def recorded(driver, noted, others=0, fails=False, early=None):
    """Launches that note whether they are recorded."""

    def launch():
        records = driver is not None and driver.records
        noted.append("recorded" if records else "launched")
        if records and fails:
            raise DriverError

    gpus = [Gpu(n, noted) for n in range(1, others + 2)]
    functions = GraphFunctions.of(driver, CUDA_NAMES)
    return RecordedLaunches(launch, gpus[0], gpus[1:], DriverError, functions, early)


@pytest.mark.parametrize(
    "failing",
    [
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "a launch",
        "the driver",
    ],
)
def test_launches_are_repeated_one_by_one_where_there_are_no_graphs(failing):
    driver, noted = Driver(failing), []
    if failing == "a launch":
        driver.failing = ("cuStreamEndCapture",)
    given = None if failing == "the driver" else driver
    call = recorded(given, noted, fails=failing == "a launch")
    for _ in range(3):
        call()
    assert noted.count("launched") == 3
    assert driver.calls.count("cuStreamBeginCapture_v2") == (failing != "the driver")
    assert not driver.records


@pytest.mark.parametrize("refuses", ["nobody", "the graph", "the driver"])
def test_a_graph_whose_launches_cannot_begin_early_is_recorded_again(refuses):
    driver, noted = Driver(), []

    def early(graph):
        noted.append("early")
        driver.failing = ("cuGraphInstantiateWithFlags",) if refuses == "the driver" else ()
        return refuses != "the graph"

    def destroyed(graph, destroy=driver.cuGraphDestroy):
        driver.failing = ()
        return destroy(graph)

    driver.cuGraphDestroy = destroyed
    call = recorded(driver, noted, early=early)
    for _ in range(3):
        call()
    again = [] if refuses == "nobody" else ["event of 1", "recorded"]
    assert noted == ["event of 1", "launched", "event of 1", "recorded", "early", *again]
    assert driver.calls.count("cuGraphLaunch") == 2
    assert driver.calls.count("cuGraphDestroy") == 1 + bool(again)
