"""Processes joined by MPI."""

from __future__ import annotations

import ctypes
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.processes import OneProcess, Processes, Request
from gauge_mc.errors import GaugeError

T = TypeVar("T")

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
"""Environment variables in which MPI launchers state how many processes they have started."""

RANK = "PMIX_RANK"
"""A variable of launchers that state the rank, but not how many processes there are."""

CUDA_AWARE = ("MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA")
"""Variables that let MPI libraries use addresses in GPU memory (Cray MPICH, MVAPICH2)."""

GRACE = 1.0
"""Seconds for which other processes wait, so that the root states the common failure."""


def find_processes() -> Processes:
    """Return the processes that an MPI launcher has started together with this one.

    Raises
    ------
    GaugeError
        If there are several and mpi4py is missing.
    """
    sizes = {os.environ.get(name, "1") for name in SIZES}
    if RANK in os.environ:
        sizes.add(os.environ.get("SLURM_STEP_NUM_TASKS", "unknown"))
    if sizes == {"1"}:
        return OneProcess()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise GaugeError(
            f"mpi4py is missing or does not work here ({error}): `pip install 'gauge-mc[mpi]'`, "
            "or run without mpirun."
        ) from error
    return MpiProcesses(MPI) if MPI.COMM_WORLD.size > 1 else OneProcess()


def forget_launcher() -> None:
    """Forget the launcher that has started this process, so that it is alone from here on."""
    for name in (*SIZES, RANK):
        os.environ.pop(name, None)


def _is_cuda_aware(mpi: Any) -> bool:
    """Return whether the MPI library says that it uses addresses in GPU memory."""
    if any(os.environ.get(name) == "1" for name in CUDA_AWARE):
        return True
    query = getattr(ctypes.CDLL(mpi.__file__), "MPIX_Query_cuda_support", None)
    return bool(query and query())


class MpiProcesses:
    """All processes of an MPI job.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        # A communicator of our own, so that messages of other libraries do not mix with ours.
        self._world = mpi.COMM_WORLD.Dup()
        self.rank: int = self._world.rank
        self.size: int = self._world.size
        self.device_memory = _is_cuda_aware(mpi)

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in all of them."""
        values: list[T] = self._world.allgather(value)
        return values

    def broadcast(self, value: T) -> T:
        """Return the root's value, in all processes."""
        shared: T = self._world.bcast(value)
        return shared

    def send(self, value: Any, to: int) -> None:
        """Send a value that another process is to `receive`."""
        self._world.send(value, to)

    def receive(self, source: int) -> Any:
        """Return the next value that another process sends."""
        return self._world.recv(source=source)

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Send bytes while work goes on."""
        request: Request = self._world.Isend([data, self._mpi.BYTE], to, tag + 1)
        return request

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Receive bytes that are sent with the same tag while work goes on."""
        request: Request = self._world.Irecv([data, self._mpi.BYTE], source, tag + 1)
        return request

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """End all processes if one fails, with its sentence."""
        try:
            yield
        except BaseException as error:
            if self.rank > 0:
                time.sleep(GRACE)
            if isinstance(error, GaugeError):
                print(f"gauge-mc: {error}", file=sys.stderr, flush=True)
            else:
                traceback.print_exc()
            self._world.Abort(getattr(error, "exit_code", 1))
