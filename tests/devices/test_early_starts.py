"""Launches that begin early, with a stand-in for the driver, and on a GPU."""

import ctypes

import numpy as np
import pytest

from gauge_mc.devices.cuda.early_starts import (
    KERNEL,
    LEAST_CAPABILITY,
    NAMES,
    PROGRAMMATIC,
    EarlyStarts,
)
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quarks.operators import Wilson
from gauge_mc.quarks.solvers import SolverParameters, solve
from gauge_mc.quarks.vectors.spinors import SpinorField

USUAL, EARLY, COPY = (0, 0, 0), (PROGRAMMATIC, 0, PROGRAMMATIC), 1


class Driver:
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
        if name not in NAMES:
            raise AttributeError(name)
        return lambda *arguments: int(self._call(NAMES.index(name), *arguments))

    def _call(self, number, *arguments):
        calls = (self._edges, self._type, self._parameters, self._remove, self._add)
        return NAMES[number] == self.failing or calls[number](*arguments) or False

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
    driver = Driver(nodes, edges, failing)
    used = EarlyStarts.of(driver, NAMES)(ctypes.c_void_p(1))
    assert used == (failing not in (*NAMES[3:], "an early start"))
    assert not used or sorted(driver.edges) == sorted(edges)
    return sorted(pair for pair, kind in driver.edges.items() if kind == EARLY)


def test_a_launch_begins_early_if_it_follows_one_launch_alone():
    nodes = dict.fromkeys(range(1, 6), (KERNEL, 7))
    assert early(nodes, [(1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]) == [(1, 2), (2, 3), (2, 4)]


def test_copies_and_launches_on_other_gpus_are_waited_for():
    nodes = {1: (KERNEL, 7), 2: (COPY, 0), 3: (KERNEL, 7), 4: (KERNEL, 8), 5: (KERNEL, 8)}
    assert early(nodes, [(1, 2), (2, 3), (3, 4), (4, 5)]) == [(4, 5)]


@pytest.mark.parametrize("failing", [*NAMES, "an early start"])
def test_nothing_begins_early_where_the_driver_refuses(failing):
    nodes = dict.fromkeys((1, 2, 3), (KERNEL, 7))
    assert early(nodes, [(1, 2), (2, 3)], failing) == []


def test_a_graph_without_edges_stays_as_it_is():
    assert early({1: (KERNEL, 7)}, []) == []


def test_drivers_without_the_functions_have_no_early_starts():
    assert EarlyStarts.of(None, NAMES) is None
    assert EarlyStarts.of(object(), NAMES) is None


@pytest.mark.gpu
def test_iterations_of_a_solver_begin_early_with_the_same_bytes(gpu, monkeypatch):
    kind, used = type(gpu), []

    def solution():
        field = Field.hot(Lattice(4, 6, 4, 8), "su3", "double", DeviceGroup([gpu]), seed=3)
        b = SpinorField.empty(field)
        values = np.random.default_rng(5).normal(size=(*b.to_numpy().shape, 2))
        b = SpinorField.from_numpy(field, values.view(complex)[..., 0])
        return solve(Wilson(field, 0.125), b, "cg", SolverParameters(1e-10)).x.to_numpy().tobytes()

    def noted(device, begin=kind._early_starts):
        early = begin(device)
        return early and (lambda graph: used.append(early(graph)) or used[-1])

    monkeypatch.setattr(kind, "_early_starts", noted)
    found = solution()
    monkeypatch.setattr(kind, "_early_starts", lambda device: None)
    assert solution() == found
    assert all(used)
    assert len(used) == (kind._graph_functions() is not None and is_able(gpu))


def is_able(gpu):
    """Whether blocks may begin early on a GPU."""
    return gpu.backend == "cuda" and gpu._device.compute_capability() >= LEAST_CAPABILITY
