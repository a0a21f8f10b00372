"""The threads that run kernels."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any


class Team:
    """Threads that wait for kernels to run; the thread that launches a kernel is one of them.

    If they are as many as the cores that this process may use, every thread stays on its core.
    Otherwise the system chooses, because other processes may share the cores.

    Parameters
    ----------
    library : CDLL
        Any kernel's library, which contains the code.
    threads : int
        Number of threads.
    """

    def __init__(self, library: ctypes.CDLL, threads: int) -> None:
        self._make, self._end = library.make_team, library.end_team
        self._make.restype = ctypes.c_void_p
        self._end.argtypes = [ctypes.c_void_p]
        self._threads = threads
        self._begin()

    @property
    def address(self) -> ctypes.c_void_p:
        """The address of the C++ object."""
        if os.getpid() != self._process:  # a forked process has no threads
            self._finalizer.detach()
            self._begin()
        return self._address

    def _begin(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        pinned = (ctypes.c_int * len(cores))(*cores) if len(cores) == self._threads else None
        self._process = os.getpid()
        self._address = ctypes.c_void_p(self._make(self._threads, pinned))
        self._finalizer = weakref.finalize(self, _end, self._end, self._address, self._process)


def _end(end: Any, address: ctypes.c_void_p, process: int) -> None:
    if os.getpid() == process:
        end(address)
