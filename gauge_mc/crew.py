"""Devices at work side by side, on items that have nothing to do with each other."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from gauge_mc.devices import Device, in_words
from gauge_mc.errors import GaugeError
from gauge_mc.ring import Ring

Item = TypeVar("Item")
Result = TypeVar("Result")

DeviceOrRing = Device | Ring
"""A device, or several that share a lattice."""

Job = Callable[[DeviceOrRing, Sequence[Item]], Generator[Result, None, None]]
"""Yields the result of each item, in order. What it allocates on the device is its own alone."""

AHEAD = 2
"""Items of a device whose results nobody has taken yet: one that is done, one at work."""


class Stopped(Exception):  # noqa: N818
    """Ends a job whose results are no longer wanted; seen by nobody."""


class Watched:
    """A device that raises `Stopped` at its next use when it is told to stop."""

    def __init__(self, device: Device, stop: threading.Event) -> None:
        self._device, self._stop = device, stop

    def __getattr__(self, name: str) -> Any:
        if self._stop.is_set():
            raise Stopped
        return getattr(self._device, name)


@dataclass(frozen=True)
class Crew:
    """Devices, open: the only one is for the calling thread, of several each is for its own.

    Made by `crew_of`.

    Attributes
    ----------
    devices : tuple of Device or Ring
    threads : tuple of Executor
        Of one thread each, as many as devices; none if there is one device.
    leaving : ExitStack
        What is done before the devices are closed.
    """

    devices: tuple[DeviceOrRing, ...]
    threads: tuple[Executor, ...]
    leaving: ExitStack

    @property
    def name(self) -> str:
        """What the devices are, in words."""
        return in_words(device.name for device in self.devices)

    def results(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do a job, item by item, on all devices.

        Parameters
        ----------
        job : Job
            An error that it raises is raised here in its item's turn, after the results of the
            items before.
        items : sequence
            Dealt out to the devices in turn.

        Returns
        -------
        iterator
            The results in the order of the items, whatever the number of devices.
        """
        return (self._side_by_side if self.threads else self._alone)(job, items)

    def _alone(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        one = job(self.devices[0], items)
        self.leaving.callback(one.close)
        for _ in items:
            yield _step(one)

    def _side_by_side(self, job: Job[Item, Result], items: Sequence[Item]) -> Iterator[Result]:
        count, stop = len(self.devices), threading.Event()
        watched = [cast(Device, Watched(cast(Device, device), stop)) for device in self.devices]
        jobs = [job(device, items[n::count]) for n, device in enumerate(watched)]
        pairs = list(zip(self.threads, jobs, strict=True))
        ahead: deque[Future[Result]] = deque()
        self.leaving.callback(_end, stop, ahead, pairs)
        for thread, one in itertools.islice(itertools.cycle(pairs), len(items)):
            if len(ahead) == AHEAD * count:
                yield ahead.popleft().result()
            ahead.append(thread.submit(_step, one))
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def crew_of(openers: Sequence[Callable[[], DeviceOrRing]]) -> Iterator[Crew]:
    """Open devices, and close them in the end, each in the thread that uses it.

    Parameters
    ----------
    openers : sequence of callable
        Each opens one.

    Raises
    ------
    UsageError, GaugeError
        As the openers do.
    """
    if len(openers) == 1:
        with closing(openers[0]()) as device, ExitStack() as leaving:
            yield Crew((device,), (), leaving)
        return
    with ExitStack() as stack:
        threads = tuple(stack.enter_context(ThreadPoolExecutor(1)) for _ in openers)
        openings = [thread.submit(one) for thread, one in zip(threads, openers, strict=True)]
        for thread, opening in zip(threads, openings, strict=True):
            stack.callback(thread.submit, _close, opening)
        devices = tuple(opening.result() for opening in openings)
        yield Crew(devices, threads, stack.enter_context(ExitStack()))


def _step(job: Generator[Result, None, None]) -> Result:
    """Return the next result of a job."""
    try:
        return next(job)
    except (GaugeError, Stopped) as error:
        # The frames that it has left hold memory of the device, to be freed here and now.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        raise


def _end(
    stop: threading.Event,
    ahead: Iterable[Future[Result]],
    pairs: Iterable[tuple[Executor, Generator[Result, None, None]]],
) -> None:
    """End jobs, finished or not, which frees their memory in their threads."""
    stop.set()
    for future in ahead:
        future.cancel()
    wait([thread.submit(_abandon, job) for thread, job in pairs])


def _abandon(job: Generator[Result, None, None]) -> None:
    """End a job, and free here and now what it holds, which Python 3.12's close() may keep."""
    with suppress(Stopped):
        job.throw(Stopped())


def _close(opening: Future[DeviceOrRing]) -> None:
    """Close a device if it was opened."""
    if not opening.exception():
        opening.result().close()
