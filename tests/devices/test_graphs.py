"""Recorded launches that cannot begin early, with stand-ins for the driver and for a GPU.

Launches that are recorded, or repeated one by one, are in `test_hip_device.py`.
"""

import ctypes
from types import SimpleNamespace

import pytest

from gauge_mc.devices.cuda.graphs import (
    CUDA_NAMES,
    EARLY_NAMES,
    KERNEL,
    PROGRAMMATIC,
    EarlyStarts,
    GraphFunctions,
    RecordedLaunches,
)


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


USUAL, EARLY, COPY = (0, 0, 0), (PROGRAMMATIC, 0, PROGRAMMATIC), 1


class EarlyDriver:
    """A driver with a graph; what is named fails.

    Parameters
    ----------
    nodes : mapping of int to tuple
        Type and context of every node.
    edges : sequence of tuple
        Pairs of nodes, of which the second follows the first.
    failing : str
        The name of a function.
    """

    def __init__(self, nodes, edges, failing=""):
        self.nodes, self.edges, self.failing = nodes, dict.fromkeys(edges, USUAL), failing

    def __getattr__(self, name):
        if name not in EARLY_NAMES:
            raise AttributeError(name)
        return lambda *arguments: int(self._call(EARLY_NAMES.index(name), *arguments))

    def _call(self, number, *arguments):
        calls = (self._edges, self._type, self._parameters, self._remove, self._add)
        return EARLY_NAMES[number] == self.failing or calls[number](*arguments) or False

    def _edges(self, graph, begins, ends, kinds, count):
        if begins is None:
            count._obj.value = len(self.edges)
            return
        for n, ((begin, end), kind) in enumerate(self.edges.items()):
            begins[n], ends[n] = begin, end
            kinds[n].from_port, kinds[n].to_port, kinds[n].type = kind

    def _type(self, node, kind):
        kind._obj.value = self.nodes[node.value][0]

    def _parameters(self, node, found):
        kind, context = self.nodes[node.value]
        assert kind == KERNEL
        found._obj.context = context

    def _remove(self, graph, begin, end, kind, count):
        assert self.edges.pop((begin._obj.value, end._obj.value)) == _kind(kind)
        assert count.value == 1

    def _add(self, graph, begin, end, kind, count):
        if self.failing == "an early start" and _kind(kind) == EARLY:
            return True
        self.edges[begin._obj.value, end._obj.value] = _kind(kind)
        return False


def _kind(given):
    one = given._obj
    return one.from_port, one.to_port, one.type


def early(nodes, edges, failing=""):
    """The edges for launches that begin early; a graph that is used has all of its edges."""
    driver = EarlyDriver(nodes, edges, failing)
    used = EarlyStarts.of(driver, EARLY_NAMES)(ctypes.c_void_p(1))
    assert used == (failing not in (*EARLY_NAMES[3:], "an early start"))
    assert not used or sorted(driver.edges) == sorted(edges)
    return sorted(pair for pair, kind in driver.edges.items() if kind == EARLY)


def test_a_launch_begins_early_if_it_follows_one_launch_alone():
    nodes = dict.fromkeys(range(1, 6), (KERNEL, 7))
    assert early(nodes, [(1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]) == [(1, 2), (2, 3), (2, 4)]


def test_copies_and_launches_on_other_gpus_are_waited_for():
    nodes = {1: (KERNEL, 7), 2: (COPY, 0), 3: (KERNEL, 7), 4: (KERNEL, 8), 5: (KERNEL, 8)}
    assert early(nodes, [(1, 2), (2, 3), (3, 4), (4, 5)]) == [(4, 5)]


@pytest.mark.parametrize("failing", [*EARLY_NAMES, "an early start"])
def test_nothing_begins_early_where_the_driver_refuses(failing):
    nodes = dict.fromkeys((1, 2, 3), (KERNEL, 7))
    assert early(nodes, [(1, 2), (2, 3)], failing) == []


def test_a_graph_without_edges_stays_as_it_is():
    assert early({1: (KERNEL, 7)}, []) == []


def test_drivers_without_the_functions_have_no_early_starts():
    assert EarlyStarts.of(None, EARLY_NAMES) is None
    assert EarlyStarts.of(object(), EARLY_NAMES) is None
