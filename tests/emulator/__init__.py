"""GPUs emulated on the CPU, so that tests marked `gpu` run where there is none.

`pytest --emulate-gpu` puts this folder before all others on the paths of Python and of programs:
`pycuda/driver.py` is then PyCUDA's driver and `nvcc` the CUDA compiler, for child processes too.

What runs is all of the GPU's own code: kernels as compiled with ``__CUDACC__``, the tiles and
threads of ``arch/gpu_launch.h``, the layout in packets of 16 bytes, barriers and the driver's
calls. Threads run one after the other in an order that differs from launch to launch. Work in
streams is done late, when something waits for it, in a random order that streams and events allow,
so that what is not waited for goes wrong. Memory is new with no zeros in it, and ends at a page
that cannot be accessed; that of a GPU is out of reach of others, unless they enable peer access.

Not emulated: warps, caches, shared memory across a grid barrier, time, the number of registers,
PTX and machine code. Fast intrinsics and subnormal numbers are rounded as on a CPU. A barrier of
the grid that never opens hangs, as on a GPU.
"""

import os
import sys
from pathlib import Path

from gauge_mc.devices.cache import cache_folder

FOLDER = Path(__file__).resolve().parent

NVCC = FOLDER / "nvcc"
"""The emulated CUDA compiler."""

CACHE = "emulated"
"""The folder for its kernels, within that for all others."""


def enable() -> None:
    """Emulate GPUs in this process and its children."""
    loaded = sys.modules.get("pycuda")
    if loaded and not str(loaded.__file__).startswith(str(FOLDER)):
        raise RuntimeError(f"GPUs cannot be emulated: {loaded.__file__} is already loaded.")
    os.environ.update(environment())
    sys.path.insert(0, str(FOLDER))


def environment() -> dict[str, str]:
    """Return the environment variables of a child process that is to have emulated GPUs."""
    cache = cache_folder()
    found = {"GAUGE_MC_CACHE": str(cache if cache.name == CACHE else cache / CACHE)}
    for name in ("PATH", "PYTHONPATH"):
        before = os.environ.get(name, "").split(os.pathsep)
        others = [folder for folder in before if folder not in ("", str(FOLDER))]
        found[name] = os.pathsep.join([str(FOLDER), *others])
    return found
