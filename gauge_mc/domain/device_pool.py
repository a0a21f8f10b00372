"""Pools of devices that work in parallel on independent items."""

from __future__ import annotations

import itertools
import platform
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from gauge_mc.devices import Device, describe_devices
from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError

Item = TypeVar("Item")
Result = TypeVar("Result")

Devices = Device | DeviceGroup
"""A single device, or a group of devices that share a lattice."""

Job = Callable[[Devices, Sequence[Item]], Generator[Result, None, None]]
"""A generator function that yields the result of each item, in order.

Nothing else uses the memory that it allocates on the device.
"""

AHEAD = 2
"""Maximum number of results per device that wait to be taken: one finished, one in progress."""


class CancelledError(Exception):
    """Raised in a job whose results are no longer needed; never reaches the caller of the pool."""


class CancellableDevice:
    """A device that raises `CancelledError` when it is used after `cancelled` has been set."""

    def __init__(self, device: Device, cancelled: threading.Event) -> None:
        self._device, self._cancelled = device, cancelled

    def __getattr__(self, name: str) -> Any:
        if self._cancelled.is_set():
            raise CancelledError
        return getattr(self._device, name)


@dataclass(frozen=True)
class DevicePool:
    """Open devices, made by `device_pool`.

    A single device works in the calling thread; several devices work in one thread each.
    """

    devices: tuple[Devices, ...]
    """Devices that carry out the jobs, each one job at a time."""
    threads: tuple[Executor, ...]
    """One thread per device; empty if there is only one device."""
    cleanup: ExitStack
    """Callbacks that run before the devices are closed."""

    @property
    def name(self) -> str:
        """The names of the devices, as shown to the user."""
        return describe_devices(device.name for device in self.devices)

    def results(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        """Carry out a job on all devices."""
        return (self._side_by_side if self.threads else self._alone)(job, items)

    def _alone(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        results = job(self.devices[0], items)
        self.cleanup.callback(results.close)
        for _ in items:
            yield _next_result(results)

    def _side_by_side(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        count, cancelled = len(self.devices), threading.Event()
        devices = [
            cast(Device, CancellableDevice(cast(Device, device), cancelled))
            for device in self.devices
        ]
        jobs = [job(device, items[n::count]) for n, device in enumerate(devices)]
        pairs = list(zip(self.threads, jobs, strict=True))
        ahead: deque[Future[Result]] = deque()

        def cancel() -> None:
            """End all jobs, finished or not, so that their own threads free their memory."""
            cancelled.set()
            for future in ahead:
                future.cancel()
            wait([thread.submit(_abandon, job) for thread, job in pairs])

        self.cleanup.callback(cancel)
        for thread, results in itertools.islice(itertools.cycle(pairs), len(items)):
            if len(ahead) == AHEAD * count:
                yield ahead.popleft().result()
            ahead.append(thread.submit(_next_result, results))
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def device_pool(openers: Sequence[Callable[[], Devices]]) -> Iterator[DevicePool]:
    """Open devices for a `with` block, and close each in the thread that used it."""
    if len(openers) == 1:
        with closing(openers[0]()) as device, ExitStack() as cleanup:
            yield DevicePool((device,), (), cleanup)
        return
    with ExitStack() as stack:
        threads = tuple(stack.enter_context(ThreadPoolExecutor(1)) for _ in openers)
        openings = [thread.submit(opener) for thread, opener in zip(threads, openers, strict=True)]
        for thread, opening in zip(threads, openings, strict=True):
            stack.callback(thread.submit, _close, opening)
        devices = tuple(opening.result() for opening in openings)
        yield DevicePool(devices, threads, stack.enter_context(ExitStack()))


def _next_result(job: Generator[Result, None, None]) -> Result:
    try:
        return next(job)
    except (GaugeError, CancelledError) as error:
        # The frames in the traceback refer to device memory, which must be freed in this thread.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        raise
    except Exception as error:  # of a user's function, whose traceback must remain
        _clear_frames(error)
        raise


def _clear_frames(error: BaseException | None) -> None:
    """Remove the local variables from the tracebacks of an error and of its causes."""
    while error:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _abandon(job: Generator[Result, None, None]) -> None:
    """End a job and free its memory, which ``close()`` of Python 3.12 may keep alive."""
    with suppress(CancelledError):
        job.throw(CancelledError())


def _close(opening: Future[Devices]) -> None:
    """Close a device if it was opened."""
    if not opening.exception():
        opening.result().close()


@dataclass(frozen=True)
class EnergyUse:
    """The energy that the devices of all processes have used."""

    joules: float | None
    """Energy in joules; None if it is not available."""
    source: str
    """Where the counters were read, such as ``RAPL`` or ``NVML``; or the reason why the energy is
    not available.
    """

    def share(self, count: int) -> EnergyUse:
        """Return the energy of one of several runs that are carried out together."""
        return EnergyUse(None if self.joules is None else self.joules / count, self.source)

    def nj_per_link(self, links: int) -> float | None:
        """Return the energy in nJ per link update, for a number of link updates."""
        return None if self.joules is None or not links else self.joules / links * 1e9


class EnergyMeter:
    """A meter of the energy that the devices of this process use from now on.

    A counter belongs to a GPU or to a whole processor, and counts what other programs do there as
    well. It is counted once if several devices or processes share it.

    Parameters
    ----------
    devices : DeviceGroup
        The devices that share the lattice.

    Attributes
    ----------
    joules : dict of str to float
        Energy in joules of every part of this host up to the last reading, by name.
    """

    def __init__(self, devices: DeviceGroup) -> None:
        self.joules: dict[str, float] = {}
        self._processes = devices.processes
        self._counters: dict[str, EnergyCounter] = {}
        self._last: dict[str, float] = {}
        self._missing = ""
        try:
            for device in devices.devices:
                self._counters |= {c.name: c for c in device.energy_counters()}
            self._last = {name: c.read() for name, c in self._counters.items()}
        except GaugeError as error:
            self._missing = str(error)
        self.joules = dict.fromkeys(self._counters, 0.0)

    def read(self) -> float | None:
        """Read the counters of this process, and return the energy of its devices in joules.

        Some counters start again from zero after a quarter of an hour, and must be read more often
        than that.
        """
        try:
            for name, counter in self._counters.items() if not self._missing else ():
                now = counter.read()
                self.joules[name] += counter.difference(self._last[name], now)
                self._last[name] = now
        except GaugeError as error:
            self._missing = str(error)
        return None if self._missing else sum(self.joules.values())

    def total(self) -> EnergyUse:
        """Return the energy of the devices of all processes, which must all call this."""
        self.read()
        return self.combined(self.joules)

    def combined(self, joules: Mapping[str, float | None]) -> EnergyUse:
        """Add up energies over the processes, which must all call this."""
        source = " + ".join(sorted({c.source for c in self._counters.values()}))
        energies: dict[tuple[str, str], float] = {}
        everyone = self._processes.allgather((platform.node(), dict(joules), source, self._missing))
        for host, parts, _, missing in everyone:
            if missing:
                return EnergyUse(None, missing)
            for name, spent in parts.items():
                if spent is None:
                    return EnergyUse(None, "the energy counters do not advance")
                energies[host, name] = max(spent, energies.get((host, name), 0.0))
        return EnergyUse(sum(energies.values()), everyone[0][2])
