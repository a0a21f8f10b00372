"""The process of one run of a scan."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Mapping

from gauge_mc.domain.mpi import forget_launcher

SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""

COMMAND = (
    sys.executable,
    "-c",
    "from gauge_mc.scans.process import child; child()",
    "generate",
    "--quiet",
)
"""The command that carries out a run as a child of a scan; options follow."""


def child() -> None:
    """Run the program as a child of a scan. It saves and stops if its parent dies."""
    from gauge_mc.cli import main

    stop_with_parent()
    forget_launcher()
    main()


def stop_with_parent() -> None:
    """Let this process receive SIGTERM, upon which a run saves and stops, if its parent dies."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def job(values: Mapping[str, object]) -> None:
    """Carry out a run as a job of a batch system, with no other process."""
    from gauge_mc.run.generate import generate_from

    forget_launcher()
    generate_from(values)
