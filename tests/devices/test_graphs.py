"""Recorded launches that cannot begin early, with stand-ins for the driver and for a GPU.

Launches that are recorded, or repeated one by one, are in `test_hip_device.py`.
"""

from types import SimpleNamespace

import pytest

from gauge_mc.devices.cuda.graphs import CUDA_NAMES, GraphFunctions, RecordedLaunches


class Driver:
    """A driver that notes its calls; those that are named fail."""

    def __init__(self):
        self.calls, self.failing, self.records = [], (), False

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name in ("cuStreamBeginCapture_v2", "cuStreamEndCapture"):
                self.records = "Begin" in name
            if name == "cuGraphInstantiateWithFlags" and name not in self.failing:
                arguments[0]._obj.value = 7
            return int(name in self.failing)

        return call


@pytest.mark.parametrize("refuses", ["nobody", "the graph", "the driver"])
def test_the_graph_is_recorded_again(refuses):
    driver, noted = Driver(), []
    gpu = SimpleNamespace(stream=SimpleNamespace(handle=1), activate=lambda: None)
    gpu.event = lambda: noted.append("event")

    def early(graph):
        noted.append("early")
        driver.failing = ("cuGraphInstantiateWithFlags",) if refuses == "the driver" else ()
        return refuses != "the graph"

    def destroyed(graph, destroy=driver.cuGraphDestroy):
        driver.failing = ()
        return destroy(graph)

    driver.cuGraphDestroy = destroyed
    functions = GraphFunctions.of(driver, CUDA_NAMES)

    def launch():
        noted.append("recorded" if driver.records else "launched")

    call = RecordedLaunches(launch, gpu, [], RuntimeError, functions, early)
    for _ in range(3):
        call()
    again = [] if refuses == "nobody" else ["event", "recorded"]
    assert noted == ["event", "launched", "event", "recorded", "early", *again]
    assert driver.calls.count("cuGraphLaunch") == 2
    assert driver.calls.count("cuGraphDestroy") == 1 + bool(again)
