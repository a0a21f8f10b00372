"""Devices that work side by side on independent items."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from gauge_mc.devices import Device, describe_devices
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError

Item = TypeVar("Item")
Result = TypeVar("Result")

Devices = Device | DeviceGroup
"""One device, or several that share a lattice."""

Job = Callable[[Devices, Sequence[Item]], Generator[Result, None, None]]
"""Yields the result of each item, in order. What it allocates on the device belongs to it alone."""

AHEAD = 2
"""Items of a device whose results are not taken yet: one that is done, and one at work."""


class Cancelled(Exception):  # noqa: N818
    """Ends a job whose results are no longer wanted. Callers never see it."""


class CancellableDevice:
    """A device that raises `Cancelled` when it is used after the event is set."""

    def __init__(self, device: Device, cancelled: threading.Event) -> None:
        self._device, self._cancelled = device, cancelled

    def __getattr__(self, name: str) -> Any:
        if self._cancelled.is_set():
            raise Cancelled
        return getattr(self._device, name)


@dataclass(frozen=True)
class DevicePool:
    """Open devices. A single one works in the calling thread, several work in a thread each.

    Made by `device_pool`.

    Attributes
    ----------
    devices : tuple of Device or DeviceGroup
    threads : tuple of Executor
        One thread each, as many as devices; empty if there is one device.
    cleanup : ExitStack
        What is done before the devices are closed.
    """

    devices: tuple[Devices, ...]
    threads: tuple[Executor, ...]
    cleanup: ExitStack

    @property
    def name(self) -> str:
        """The names of the devices, for people."""
        return describe_devices(device.name for device in self.devices)

    def results(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do a job, item by item, on all devices.

        Parameters
        ----------
        job : Job
            Its error is raised here in its item's turn, after the results of the items before.
        items : sequence
            Distributed over the devices in turn.

        Returns
        -------
        iterator
            The results in the order of the items, whatever the number of devices.
        """
        return (self._side_by_side if self.threads else self._alone)(job, items)

    def _alone(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        one = job(self.devices[0], items)
        self.cleanup.callback(one.close)
        for _ in items:
            yield _next_result(one)

    def _side_by_side(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        count, cancelled = len(self.devices), threading.Event()
        devices = [
            cast(Device, CancellableDevice(cast(Device, device), cancelled))
            for device in self.devices
        ]
        jobs = [job(device, items[n::count]) for n, device in enumerate(devices)]
        pairs = list(zip(self.threads, jobs, strict=True))
        ahead: deque[Future[Result]] = deque()
        self.cleanup.callback(_cancel, cancelled, ahead, pairs)
        for thread, one in itertools.islice(itertools.cycle(pairs), len(items)):
            if len(ahead) == AHEAD * count:
                yield ahead.popleft().result()
            ahead.append(thread.submit(_next_result, one))
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def device_pool(openers: Sequence[Callable[[], Devices]]) -> Iterator[DevicePool]:
    """Open devices, and close each in the end in the thread that uses it.

    Parameters
    ----------
    openers : sequence of callable
        Each opens one device or device group.

    Raises
    ------
    UsageError, GaugeError
        As the openers do.
    """
    if len(openers) == 1:
        with closing(openers[0]()) as device, ExitStack() as cleanup:
            yield DevicePool((device,), (), cleanup)
        return
    with ExitStack() as stack:
        threads = tuple(stack.enter_context(ThreadPoolExecutor(1)) for _ in openers)
        openings = [thread.submit(one) for thread, one in zip(threads, openers, strict=True)]
        for thread, opening in zip(threads, openings, strict=True):
            stack.callback(thread.submit, _close, opening)
        devices = tuple(opening.result() for opening in openings)
        yield DevicePool(devices, threads, stack.enter_context(ExitStack()))


def _next_result(job: Generator[Result, None, None]) -> Result:
    """Return the next result of a job."""
    try:
        return next(job)
    except (GaugeError, Cancelled) as error:
        # The frames that it has left hold memory of the device, which must be freed in this thread.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        raise


def _cancel(
    cancelled: threading.Event,
    ahead: Iterable[Future[Result]],
    pairs: Iterable[tuple[Executor, Generator[Result, None, None]]],
) -> None:
    """End jobs, finished or not, which frees their memory in their threads."""
    cancelled.set()
    for future in ahead:
        future.cancel()
    wait([thread.submit(_abandon, job) for thread, job in pairs])


def _abandon(job: Generator[Result, None, None]) -> None:
    """End a job and free what it holds, which close() of Python 3.12 may keep alive."""
    with suppress(Cancelled):
        job.throw(Cancelled())


def _close(opening: Future[Devices]) -> None:
    """Close a device if it was opened."""
    if not opening.exception():
        opening.result().close()
