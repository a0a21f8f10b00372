"""What sets a process apart that carries out a run of a scan, and nothing else."""

from __future__ import annotations

import ctypes
import os
import signal

SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""


def stop_with_parent() -> None:
    """Have this process hear SIGTERM, upon which a run saves and stops, if its parent dies."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def leave_mpi() -> None:
    """Forget the launcher that has started the scan or the job: a run of a scan is alone."""
    from gauge_mc.ring.mpi import RANK, SIZES

    for name in (*SIZES, RANK):
        os.environ.pop(name, None)
