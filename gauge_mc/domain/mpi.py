"""Processes that communicate through MPI."""

from __future__ import annotations

import ctypes
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError

T = TypeVar("T")


class Request(Protocol):
    """A message that is being sent or received."""

    def wait(self) -> object:
        """Wait until the array of the message can be used again."""


class Processes:
    """Processes that execute the same program and share lattices, by default only this one.

    They are numbered from 0. Process 0 is the root, which reads and writes files.
    """

    rank: int = 0
    """The number of this process."""
    size: int = 1
    """The number of processes."""
    device_memory: bool = False
    """Whether messages can be sent from and received in GPU memory."""

    def allgather(self, value: T) -> list[T]:
        """Return the values that all processes pass, in every process.

        All processes must call this.

        Parameters
        ----------
        value : object
            The value of this process.

        Returns
        -------
        list
            One value per process, in the order of their ranks.
        """
        return [value]

    def broadcast(self, value: T) -> T:
        """Return the root's value in every process."""
        return value

    def aborting(self) -> AbstractContextManager[None]:
        """Return a context manager that ends all processes if one of them fails."""
        return nullcontext()

    def send(self, value: Any, to: int) -> None:
        """Send a value, for which the other process must call `receive`."""
        raise AssertionError(ALONE)

    def receive(self, source: int) -> Any:
        """Return the next value that process `source` sends."""
        raise AssertionError(ALONE)

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Start to send bytes without waiting."""
        raise AssertionError(ALONE)

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Start to receive bytes that are sent with the same tag, without waiting."""
        raise AssertionError(ALONE)


ALONE = "There is no other process."

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
"""Environment variables in which MPI launchers give the number of processes."""

RANK = "PMIX_RANK"
"""Environment variable of launchers that give the rank, but not the number of processes."""

CUDA_AWARE = ("MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA")
"""Environment variables that enable GPU addresses in MPI calls (Cray MPICH, MVAPICH2)."""

GRACE = 1.0
"""Seconds that other processes wait before reporting a failure, so that the root is first."""


def find_processes() -> Processes:
    """Return all processes that an MPI launcher has started, this one included."""
    sizes = {os.environ.get(name, "1") for name in SIZES}
    if RANK in os.environ:
        sizes.add(os.environ.get("SLURM_STEP_NUM_TASKS", "unknown"))
    if sizes == {"1"}:
        return Processes()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise GaugeError(_remedy(error)) from error
    return MpiProcesses(MPI) if MPI.COMM_WORLD.size > 1 else Processes()


def _remedy(error: Exception) -> str:
    """Return what to do if mpi4py cannot be used, in one sentence."""
    if not find_spec("mpi4py"):
        return "mpi4py is missing: run `pip install 'gauge-mc[mpi]'`, or start without mpirun."
    return (
        f"mpi4py finds no MPI library that it can load ({error}): load the module of the MPI whose "
        "mpirun is used, or run `pip install mpich` and use the mpirun of that package; or start "
        "without mpirun."
    )


def forget_launcher() -> None:
    """Remove the launcher's environment variables, so that this process runs on its own."""
    for name in (*SIZES, RANK):
        os.environ.pop(name, None)


class MpiProcesses(Processes):
    """All processes of an MPI job.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        # A separate communicator keeps our messages apart from those of other libraries.
        self._world = mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._world.rank, self._world.size
        # Whether the MPI library declares that it accepts addresses in GPU memory.
        query = getattr(ctypes.CDLL(mpi.__file__), "MPIX_Query_cuda_support", lambda: 0)
        self.device_memory = any(os.environ.get(x) == "1" for x in CUDA_AWARE) or bool(query())

    def allgather(self, value: T) -> list[T]:
        """Return the values of all processes; see `Processes.allgather`."""
        values: list[T] = self._world.allgather(value)
        return values

    def broadcast(self, value: T) -> T:
        """Return the root's value in every process."""
        shared: T = self._world.bcast(value)
        return shared

    def send(self, value: Any, to: int) -> None:
        """Send a value, for which the other process must call `receive`."""
        self._world.send(value, to)

    def receive(self, source: int) -> Any:
        """Return the next value that process `source` sends."""
        return self._world.recv(source=source)

    def begin_send(self, data: NDArray[np.uint8], to: int, tag: int) -> Request:
        """Start to send bytes without waiting."""
        request: Request = self._world.Isend([data, self._mpi.BYTE], to, tag + 1)
        return request

    def begin_receive(self, data: NDArray[np.uint8], source: int, tag: int) -> Request:
        """Start to receive bytes that are sent with the same tag, without waiting."""
        request: Request = self._world.Irecv([data, self._mpi.BYTE], source, tag + 1)
        return request

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """Print the error of a failing process and end all processes."""
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
