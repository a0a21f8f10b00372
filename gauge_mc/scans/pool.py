"""Pool of child processes. Each runs in a slot, which is a device or a share of a device."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO

from gauge_mc.devices import BACKENDS, DeviceChoice
from gauge_mc.devices.base import Backend
from gauge_mc.devices.choice import AUTOMATIC, MAX_THREADS, Place
from gauge_mc.domain.mpi import forget_launcher
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.libraries import PYTHON
from gauge_mc.scans.scan import Member

SET_PARENT_DEATH_SIGNAL = 1
"""Value of PR_SET_PDEATHSIG in linux/prctl.h."""

CHILD = (*PYTHON, "-c", "from gauge_mc.cli import child; child()")
"""Command that carries out runs together, whose values are a JSON list on standard input.

The values are those of a `RunRequest`."""

LOOK_SECONDS = 1.0
"""Time in seconds between two looks at the parent, where the system sends no signal."""

PARENT = "GAUGE_MC_PARENT"
"""Environment variable of a child with the process ID of its scan."""


def begin_child() -> None:
    """Let this process receive SIGTERM when its parent dies, or end now if it is already dead.

    A run that receives SIGTERM writes a checkpoint and stops. The parent is named by the
    environment variable `PARENT`, which is removed, as are those of a launcher.
    """
    forget_launcher()
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


@dataclass(frozen=True)
class Slot:
    """A device, or a share of a device, that runs one child at a time."""

    device: str
    """Name of the device for the user."""
    place: Place
    """The device."""
    share: int = 0
    """Number of the slot among the slots of the device, from 1; 0 if it is the only one."""

    @property
    def name(self) -> str:
        """Name of the slot for the user."""
        return f"{self.device} ({self.share})" if self.share else self.device


def make_slots(choices: Sequence[DeviceChoice], per_device: int | None = None) -> list[Slot]:
    """Divide devices into slots."""
    if per_device is not None and not 1 <= per_device <= MAX_THREADS:
        raise UsageError(f"--per-device must lie between 1 and {MAX_THREADS}, not {per_device}.")
    number = per_device or 1
    if choices[0].numbered:
        places = {choice.name: Place(f"{choice.ordinal},") for choice in choices}
    else:
        if len(choices) > 1:
            raise UsageError(
                "Each run of a scan uses one device, which cannot be divided by --devices; choose "
                "--per-device N to carry out runs in N processes."
            )
        backend: Backend = BACKENDS[choices[0].backend]
        cores = backend.available_threads()
        threads = choices[0].threads or max(1, cores // (per_device or cores))
        number = per_device or max(1, cores // threads)
        places = {choices[0].name: Place(None, choices[0].backend, threads)}
    shares = range(1, number + 1) if number > 1 else (0,)
    return [Slot(*device, share) for share in shares for device in places.items()]


@dataclass(frozen=True)
class Child:
    """A child process that carries out a run, or several runs together."""

    members: tuple[Member, ...]
    """The runs."""
    slot: Slot
    """The device that the child uses."""
    process: subprocess.Popen[bytes]
    """The process."""
    complaint: IO[bytes]
    """File with the standard error of the process."""

    def failure(self) -> str | None:
        """Return the reason why the child failed, in one sentence, or None."""
        code = self.process.returncode
        if code in (None, 0, INTERRUPTED, -signal.SIGTERM):
            return None
        self.complaint.seek(0)
        lines = self.complaint.read().decode(errors="replace").split("\n")
        message = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if code < 0:
            return f"The process was killed by {signal.Signals(-code).name}."
        return message.removeprefix("gauge-mc: ") or f"The process ended with exit code {code}."


class Pool:
    """A pool of child processes, used as a context manager. Leaving the context ends all children.

    Every child has its own process session, so that signals from the terminal reach it only through
    the pool.

    Parameters
    ----------
    slots : sequence of Slot
        Devices, or shares of devices, for one child each.

    Attributes
    ----------
    free : list of Slot
        Free slots.
    children : list of Child
        Running children.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.free = list(slots)
        self.children: list[Child] = []

    def start(
        self, members: tuple[Member, ...], command: Sequence[str], runs: Iterable[dict[str, object]]
    ) -> None:
        """Start a child for one or several runs in the first free slot."""
        slot = self.free.pop(0)
        place = {name: x for name, x in slot.place._asdict().items() if x not in (None, AUTOMATIC)}
        task = [values | place for values in runs]
        # A file, because a pipe would have to be written while the child reads.
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the child has its own descriptor
        file.write(json.dumps(task).encode())
        file.seek(0)
        complaint = tempfile.TemporaryFile()  # noqa: SIM115 - read after the child has ended
        process = subprocess.Popen(
            command,
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=complaint,
            env={**os.environ, PARENT: str(os.getpid())},
            start_new_session=True,
        )
        file.close()
        self.children.append(Child(members, slot, process, complaint))

    def ended(self) -> list[Child]:
        """Return the children that have ended since the last call, and free their slots."""
        ended = [child for child in self.children if child.process.poll() is not None]
        self.children = [child for child in self.children if child not in ended]
        self.free += [child.slot for child in ended]
        return ended

    def terminate(self) -> None:
        """Tell all children to write a checkpoint and stop."""
        for child in self.children:
            child.process.terminate()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for child in self.children:
            (child.process.kill if kind is KeyboardInterrupt else child.process.terminate)()
        for child in self.children:
            child.process.wait()
