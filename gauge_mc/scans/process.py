"""The process that carries out one run of a scan."""

from __future__ import annotations

import ctypes
import json
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


def child() -> None:
    """Run the program as a child of a scan.

    If the parent process dies, the child writes a checkpoint and stops.
    """
    from gauge_mc.cli import main

    stop_with_parent()
    forget_launcher()
    main()


def child_of_batch() -> None:
    """Carry out several runs together as a child of a scan; see `child`."""
    from gauge_mc.cli import report_errors

    stop_with_parent()
    forget_launcher()
    sys.exit(report_errors(_batch))


def _batch() -> int:
    from gauge_mc.run.chains import generate_together

    results = generate_together(json.load(sys.stdin))
    return INTERRUPTED if any(one.stopped for one in results) else 0


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
