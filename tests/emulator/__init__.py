"""GPUs emulated on the CPU, so that tests marked `gpu` run on machines without a GPU.

`pytest --emulate-gpu` puts this folder first on the search paths for Python modules and programs,
also for child processes. Then `pycuda/driver.py` replaces PyCUDA's driver, and `nvcc` replaces the
CUDA compiler.

All code for GPUs is run: kernels as compiled with ``__CUDACC__``, the tiles and threads of
``arch/gpu_launch.h``, the layout in packets of 16 bytes, barriers, and the calls of the driver. The
threads of a launch run one after the other, in an order that changes from launch to launch. Work in
streams is delayed until something waits for it. It is then done in a random order among those that
streams and events allow, so that missing synchronisation leads to wrong results. Extreme orders,
such as all work of one GPU before that of the others, can be chosen instead; see
`pycuda/driver.py`. New memory is filled with a nonzero value and ends at a page that cannot be
accessed. It is freed at once, and work that still accesses it fails. A GPU's memory cannot be
accessed by other GPUs unless they enable peer access.

The following is not emulated: warps, caches, shared memory across a grid barrier, timing, the
number of registers, PTX and machine code. Fast intrinsics and subnormal numbers are rounded as on a
CPU. A grid barrier at which a block never arrives hangs, as on a GPU.
"""

import os
import sys
from pathlib import Path
from typing import Any

from gauge_mc.devices.cache import cache_folder

FOLDER = Path(__file__).resolve().parent

NVCC = FOLDER / "nvcc"
"""The emulated CUDA compiler."""

HIPCC = FOLDER / "hipcc"
"""The same for AMD GPUs."""

CACHE = "emulated"
"""Name of the cache folder for emulated kernels, within the folder of all others."""


def enable() -> None:
    """Emulate GPUs in this process and its children."""
    loaded = sys.modules.get("pycuda")
    if loaded and not str(loaded.__file__).startswith(str(FOLDER)):
        raise RuntimeError(f"GPUs cannot be emulated: {loaded.__file__} is already loaded.")
    os.environ.update(environment())
    sys.path.insert(0, str(FOLDER))


def enable_hip() -> None:
    """Emulate AMD GPUs in this process, in which there are then no others."""
    from gauge_mc.devices.hip import bindings as loader
    from tests.emulator.hip import Library

    os.environ.update(environment() | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    library = Library()
    loader.hip_library = lambda: library


def driver() -> Any:
    """Return the driver of the GPUs that are emulated in this process, or None."""
    for name in ("pycuda.driver", "tests.emulator.pycuda.driver"):
        if hasattr(sys.modules.get(name), "_schedule"):
            return sys.modules[name]
    return None


def environment() -> dict[str, str]:
    """Return the environment variables that give a child process emulated GPUs."""
    cache = cache_folder()
    found = {"GAUGE_MC_CACHE": str(cache if cache.name == CACHE else cache / CACHE)}
    for name in ("PATH", "PYTHONPATH"):
        before = os.environ.get(name, "").split(os.pathsep)
        others = [folder for folder in before if folder not in ("", str(FOLDER))]
        found[name] = os.pathsep.join([str(FOLDER), *others])
    return found
