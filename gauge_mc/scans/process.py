"""The process that carries out one run of a scan."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gauge_mc.domain.mpi import forget_launcher
from gauge_mc.errors import INTERRUPTED

SET_PARENT_DEATH_SIGNAL = 1
"""Value of PR_SET_PDEATHSIG in linux/prctl.h."""

PYTHON = (sys.executable, "-c")


@dataclass(frozen=True)
class Commands:
    """The commands of the children of a scan.

    Attributes
    ----------
    run : tuple of str
        Command that carries out a run, without the options of the run.
    batch : tuple of str
        Command that carries out several runs together. The values of `generate_together` are a JSON
        list on standard input.
    """

    run: tuple[str, ...] = (
        *PYTHON,
        "from gauge_mc.scans.process import child; child()",
        "generate",
        "--quiet",
    )
    batch: tuple[str, ...] = (
        *PYTHON,
        "from gauge_mc.scans.process import child_of_batch; child_of_batch()",
    )


PARENT = "GAUGE_MC_PARENT"
"""Environment variable of a child with the process ID of its scan."""


def environment() -> dict[str, str]:
    """Return the environment of a child of this process."""
    return {**os.environ, PARENT: str(os.getpid())}


def child() -> None:
    """Run the program as a child of a scan.

    If the parent process dies, the child writes a checkpoint and stops.
    """
    stop_with_parent(os.environ.pop(PARENT, ""))
    from gauge_mc.cli import main

    forget_launcher()
    main()


def child_of_batch() -> None:
    """Carry out several runs together as a child of a scan; see `child`."""
    stop_with_parent(os.environ.pop(PARENT, ""))
    from gauge_mc.cli import main

    forget_launcher()
    main(_batch)


def _batch() -> int:
    from gauge_mc.run.chains import generate_together

    results = generate_together(json.load(sys.stdin))
    return INTERRUPTED if any(one.stopped for one in results) else 0


def stop_with_parent(parent: str) -> None:
    """Let this process receive SIGTERM when its parent dies, or end now if it is already dead.

    A run that receives SIGTERM writes a checkpoint and stops.

    Parameters
    ----------
    parent : str
        Process ID of the parent.
    """
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if str(os.getppid()) != parent:  # it died before
        sys.exit(INTERRUPTED)


def job(values: Mapping[str, object]) -> None:
    """Carry out a run as a job of a batch system, in a single process."""
    from gauge_mc.run.generate import generate_from

    forget_launcher()
    generate_from(values)
