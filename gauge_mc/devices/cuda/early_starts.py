"""Blocks of recorded launches that begin before the launch that they follow has ended.

Then the time that a launch takes overlaps with the launch before it. Kernels wait first of all
until that one has ended (`wait_for_launches` in ``arch/gpu_launch.h``), so that results are the
same. See "Programmatic Dependent Launch" in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass

from gauge_mc.devices.cuda.graphs import DriverFunctions, Function

LEAST_CAPABILITY = (9, 0)
"""Least compute capability of GPUs that can do this: Hopper, of 2022."""

KERNEL = 0
"""CU_GRAPH_NODE_TYPE_KERNEL."""

PROGRAMMATIC = 1
"""CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC."""

NAMES = (
    "cuGraphGetEdges_v2",
    "cuGraphNodeGetType",
    "cuGraphKernelNodeGetParams_v2",
    "cuGraphRemoveDependencies_v2",
    "cuGraphAddDependencies_v2",
)
"""Names of the functions of CUDA's driver, in the order of `EarlyStarts`."""


class Edge(ctypes.Structure):
    """How a node of a graph depends on another: the structure ``CUgraphEdgeData``."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


class KernelNode(ctypes.Structure):
    """A launch in a graph: the structure ``CUDA_KERNEL_NODE_PARAMS``."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("numbers", ctypes.c_uint * 7),
        ("arguments", ctypes.c_void_p * 2),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class EarlyStarts(DriverFunctions):
    """The functions of a driver with which blocks may begin early; they return 0 if they succeed.

    Call it with a graph whose nodes are to begin early where they are launches that follow one
    other launch on the same GPU alone.
    """

    edges: Function
    """Return the edges of a graph."""
    type: Function
    """Return the type of a node."""
    parameters: Function
    """Return the parameters of a launch."""
    remove: Function
    """Remove edges."""
    add: Function
    """Add edges."""

    def __call__(self, graph: ctypes.c_void_p) -> bool:
        """Let launches begin early; return whether the graph has still all of its edges."""
        count = ctypes.c_size_t(0)
        if self.edges(graph, None, None, None, ctypes.byref(count)):
            return True
        begins, ends = ((ctypes.c_void_p * count.value)() for _ in range(2))
        kinds = (Edge * count.value)()
        if count.value and self.edges(graph, begins, ends, kinds, ctypes.byref(count)):
            return True
        followed, early = Counter(ends), Edge(from_port=PROGRAMMATIC, type=PROGRAMMATIC)
        for begin, end, before in zip(begins, ends, kinds, strict=True):
            context = self._context(end)
            if followed[end] > 1 or context is None or context != self._context(begin):
                continue
            pair = ctypes.byref(ctypes.c_void_p(begin)), ctypes.byref(ctypes.c_void_p(end))
            one = ctypes.c_size_t(1)
            for change, kind in ((self.remove, before), (self.add, early)):
                if change(graph, *pair, ctypes.byref(kind), one):
                    return False
        return True

    def _context(self, node: int) -> int | None:
        """Return the context of a launch, or None if a node is something else."""
        kind, found = ctypes.c_int(0), KernelNode()
        if self.type(ctypes.c_void_p(node), ctypes.byref(kind)) or kind.value != KERNEL:
            return None
        if self.parameters(ctypes.c_void_p(node), ctypes.byref(found)):
            return None
        context: int | None = found.context
        return context
