"""Launches that are recorded once as a graph, and repeated in one call of the driver.

Blocks of recorded launches may begin before the launch that they follow has ended, so that the time
that a launch takes overlaps with the launch before it. Kernels wait first of all until that one has
ended (`wait_for_launches` in ``arch/gpu_launch.h``), so that results are the same. See
"Programmatic Dependent Launch" in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from gauge_mc.devices.base import Device

if TYPE_CHECKING:
    from gauge_mc.devices.cuda.device import CudaDevice

RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED: other threads may do what they like meanwhile."""

CUDA_NAMES = (
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphDestroy",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
)
"""Names of the functions of CUDA's driver, in the order of `GraphFunctions`."""

Function = Callable[..., int]


class DriverFunctions:
    """Functions of a driver, which return 0 if they succeed; a subclass declares them in order."""

    @classmethod
    def of(cls, library: Any, names: Sequence[str]) -> Self | None:
        """Return the functions of a library, or None if it is missing or lacks any."""
        try:
            return cls(*(getattr(library, name) for name in names))
        except AttributeError:
            return None


@dataclass(frozen=True)
class GraphFunctions(DriverFunctions):
    """The functions of a driver with which launches are recorded; they return 0 if they succeed."""

    begin: Function
    """Begin to record what is issued to a stream."""
    end: Function
    """End that, and make a graph."""
    instantiate: Function
    """Make an executable graph."""
    destroy: Function
    """Free a graph."""
    launch: Function
    """Launch an executable graph in a stream."""
    release: Function
    """Free an executable graph."""


@dataclass(eq=False)
class RecordedLaunches:
    """A call that repeats launches on one GPU or several; see `Device.recorded`.

    The first call launches them one by one, because the driver may have to load kernels, which
    cannot be recorded. If the driver has no graphs, or cannot record these, all calls do.

    Parameters
    ----------
    launches : callable
        Launches kernels.
    device : CudaDevice
        The first GPU.
    others : sequence of Device
        The other ones.
    error : type of Exception
        The exception that the driver raises if it cannot record something.
    functions : GraphFunctions or None
        Functions of the driver, if it has graphs.
    early : callable, optional
        Lets launches in a graph begin before those that they follow have ended, and returns whether
        the graph can be used.
    """

    _launches: Callable[[], object]
    _device: CudaDevice
    _others: Sequence[Device]
    _error: type[Exception]
    _functions: GraphFunctions | None
    _early: Callable[[ctypes.c_void_p], bool] | None = None
    _graph: ctypes.c_void_p | None = field(default=None, init=False)
    _is_first: bool = field(default=True, init=False)

    def __call__(self) -> None:
        """Repeat the launches."""
        if self._is_first or not self._functions:
            self._is_first = False
            self._launch_on_all()
            return
        if self._graph is None:
            self._graph = self._recorded(self._functions)
        self._device.activate()
        if self._graph is None or self._functions.launch(self._graph, self._stream):
            self._functions = self._graph = None
            self._launch_on_all()

    @property
    def _stream(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(int(self._device.stream.handle))

    def _recorded(self, driver: GraphFunctions) -> ctypes.c_void_p | None:
        """Record the launches; return an executable graph, or None if that fails."""
        graph, void_p = ctypes.c_void_p(), ctypes.c_void_p()
        self._device.activate()
        if driver.begin(self._stream, ctypes.c_int(RELAXED)):
            return None
        try:
            with _nothing_is_freed(), suppress(self._error):
                self._launch_on_all()
        finally:
            self._device.activate()
            failed = driver.end(self._stream, ctypes.byref(graph))
        if failed:
            return None
        usable = not self._early or self._early(graph)
        none = ctypes.c_ulonglong(0)
        failed = not usable or driver.instantiate(ctypes.byref(void_p), graph, none)
        driver.destroy(graph)
        if failed and self._early:
            self._early = None
            return self._recorded(driver)
        if failed:
            return None
        weakref.finalize(self, driver.release, void_p).atexit = False
        return void_p

    def _launch_on_all(self) -> None:
        """Launch between events that connect the streams of the other GPUs with the first one.

        A graph is in the stream of the first GPU alone: what is launched before it has to end on
        all of them, and what is launched after it must not begin on any.
        """
        begun = self._device.event()
        for device in self._others:
            device.wait(begun)
        self._launches()
        for device in self._others:
            self._device.wait(device.event())


@contextmanager
def _nothing_is_freed() -> Iterator[None]:
    """Let no memory of a GPU be freed, which would end a recording."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


EARLY_CAPABILITY = (9, 0)
"""Least compute capability of GPUs that can do this: Hopper, of 2022."""

KERNEL = 0
"""CU_GRAPH_NODE_TYPE_KERNEL."""

PROGRAMMATIC = 1
"""CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC."""

EARLY_NAMES = (
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
            size_t = ctypes.c_size_t(1)
            for change, kind in ((self.remove, before), (self.add, early)):
                if change(graph, *pair, ctypes.byref(kind), size_t):
                    return False
        return True

    def _context(self, node: int) -> int | None:
        """Return the context of a launch, or None if a node is something else."""
        kind, launch = ctypes.c_int(0), KernelNode()
        if self.type(ctypes.c_void_p(node), ctypes.byref(kind)) or kind.value != KERNEL:
            return None
        if self.parameters(ctypes.c_void_p(node), ctypes.byref(launch)):
            return None
        context: int | None = launch.context
        return context
