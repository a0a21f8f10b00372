"""The process that carries out one run of a scan."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Mapping

from gauge_mc.domain.mpi import forget_launcher

SET_PARENT_DEATH_SIGNAL = 1
"""Value of PR_SET_PDEATHSIG in linux/prctl.h."""

COMMAND = (
    sys.executable,
    "-c",
    "from gauge_mc.scans.process import child; child()",
    "generate",
    "--quiet",
)
"""Command that carries out a run as a child of a scan, without the options of the run."""


def child() -> None:
    """Run the program as a child of a scan.

    If the parent process dies, the child writes a checkpoint and stops.
    """
    from gauge_mc.cli import main

    stop_with_parent()
    forget_launcher()
    main()


def stop_with_parent() -> None:
    """Let this process receive SIGTERM when its parent dies.

    A run that receives SIGTERM writes a checkpoint and stops.
    """
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def job(values: Mapping[str, object]) -> None:
    """Carry out a run as a job of a batch system, in a single process."""
    from gauge_mc.run.generate import generate_from

    forget_launcher()
    generate_from(values)
