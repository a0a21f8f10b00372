"""The process that carries out one run of a scan."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

from gauge_mc.errors import INTERRUPTED

SET_PARENT_DEATH_SIGNAL = 1
"""Value of PR_SET_PDEATHSIG in linux/prctl.h."""

CHILD = (sys.executable, "-c", "from gauge_mc.cli.child import child; child()")
"""Command that carries out runs together, whose values are a JSON list on standard input.

The values are those of `generate_together`."""

LOOK_SECONDS = 1.0
"""Time in seconds between two looks at the parent, where the system sends no signal."""

PARENT = "GAUGE_MC_PARENT"
"""Environment variable of a child with the process ID of its scan."""


def environment() -> dict[str, str]:
    """Return the environment of a child of this process."""
    return {**os.environ, PARENT: str(os.getpid())}


def stop_with_parent() -> None:
    """Let this process receive SIGTERM when its parent dies, or end now if it is already dead.

    A run that receives SIGTERM writes a checkpoint and stops. The parent is named by the
    environment variable `PARENT`, which is removed.
    """
    parent = os.environ.pop(PARENT, "")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if str(os.getppid()) != parent:  # it died before
        sys.exit(INTERRUPTED)


def _watch(parent: str) -> None:
    """Send SIGTERM to this process when it has another parent, as Linux does by itself."""
    while str(os.getppid()) == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
