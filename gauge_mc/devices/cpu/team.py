"""The threads that run kernels."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from gauge_mc.devices.cpu.topology import Claim, Core, claim_cores, in_order
from gauge_mc.devices.kernels import Library
from gauge_mc.devices.source import source_folder

TEAM = Library("cpu_team", source_folder() / "arch")
"""The code of teams, which is the same for all kernels."""


class Team:
    """Threads that wait for kernels to run; the thread that launches a kernel is one of them.

    Parameters
    ----------
    library : CDLL
        The compiled `TEAM`.
    threads : int
        Number of threads.
    cores : sequence of Core
        The core of every thread; the system moves the threads if there are none. The launching
        thread is brought to its core, but may leave it.
    """

    def __init__(self, library: ctypes.CDLL, threads: int, cores: Sequence[Core] = ()) -> None:
        self._make, self._end = library.make_team, library.end_team
        self._make.restype = ctypes.c_void_p
        self._end.argtypes = [ctypes.c_void_p]
        self._threads = threads
        self._begin([core.number for core in cores[:threads]])

    @property
    def address(self) -> ctypes.c_void_p:
        """The address of the C++ object."""
        if os.getpid() != self._process:  # a forked process has no threads, nor cores of its own
            self._finalizer.detach()
            self._begin([])
        return self._address

    def _begin(self, cores: Sequence[int]) -> None:
        numbers = (ctypes.c_int * self._threads)(*cores) if cores else None
        self._process = os.getpid()
        self._address = ctypes.c_void_p(self._make(self._threads, numbers))
        self._finalizer = weakref.finalize(self, _end, self._end, self._address, self._process)


def _end(end: Any, address: ctypes.c_void_p, process: int) -> None:
    if os.getpid() == process:
        end(address)


class Teams:
    """The teams of a device: one for every number of threads that has been used.

    Parameters
    ----------
    most : int
        The maximum number of threads, for which cores are claimed when the first team is made.
    load : callable
        Function that returns the compiled `TEAM`; it is called when the first team is made.
    """

    def __init__(self, most: int, load: Callable[[], ctypes.CDLL]) -> None:
        self._most = self._threads = most
        self._load = load
        self._claim: Claim | None = None
        self._teams: dict[int, Team] = {}

    def use(self, threads: int) -> None:
        """Choose the number of threads of later launches."""
        self._threads = threads

    def current(self) -> Team:
        """Return the team of the chosen size."""
        team = self._teams.get(self._threads)
        if team is None:
            team = Team(self._load(), self._threads, self.cores())
            self._teams[self._threads] = team
        return team

    def cores(self) -> list[Core]:
        """Return the core of every thread of the current team; none if they are not bound.

        Threads that follow each other share boundaries, so their cores share a cache if possible.
        """
        if self._claim is None:
            self._claim = claim_cores(self._most)
        return sorted(in_order(self._claim.cores)[: self._threads], key=lambda core: core.place)

    def close(self) -> None:
        """End all threads, and release their cores."""
        self._teams.clear()
        if self._claim is not None:
            self._claim.release()
            self._claim = None
