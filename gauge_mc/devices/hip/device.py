"""The device of the HIP backend: an AMD GPU."""

from __future__ import annotations

from typing import Any

from gauge_mc.devices.cuda.device import Contexts, CudaDevice
from gauge_mc.devices.cuda.graphs import GraphFunctions
from gauge_mc.devices.energy import amd_counter
from gauge_mc.devices.hip import bindings
from gauge_mc.devices.hip.compiler import HipCompiler, usable_compiler, wave_of
from gauge_mc.devices.hip.driver import INSTALL, load_driver

HIP_NAMES = (
    "hipStreamBeginCapture",
    "hipStreamEndCapture",
    "hipGraphInstantiateWithFlags",
    "hipGraphDestroy",
    "hipGraphLaunch",
    "hipGraphExecDestroy",
)
"""Names of the functions of HIP's library, in the order of `GraphFunctions`."""


class HipDevice(CudaDevice):
    """One AMD GPU, which works as an NVIDIA GPU does but for its driver and its compiler.

    Whole sweeps are not run in one launch, because blocks that wait for each other must all be
    resident, and how many are has never been tried.

    Parameters
    ----------
    ordinal : int
        HIP's number of the GPU.

    Raises
    ------
    GaugeError
        If HIP's library or a compiler are missing, or the GPU does not exist or does not work.
    """

    backend = "hip"
    interface = "HIP"
    monitor = "rocm-smi"
    install_command = INSTALL
    object_suffix = ".hsaco"
    runs_whole_sweeps = False
    counter = staticmethod(amd_counter)
    _contexts = Contexts()

    def __init__(self, ordinal: int = 0):
        super().__init__(ordinal)
        self.warp = wave_of(self.architecture)

    @staticmethod
    def _find_driver() -> Any:
        return load_driver()

    @staticmethod
    def _find_compiler() -> HipCompiler:
        return usable_compiler()

    @staticmethod
    def _graph_functions() -> GraphFunctions | None:
        return GraphFunctions.of(bindings.hip_library(), HIP_NAMES)

    def _early_starts(self) -> None:
        return None

    @staticmethod
    def _architecture_of(device: Any, ordinal: int) -> str:
        return str(device.architecture())
