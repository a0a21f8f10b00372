"""Choice of devices: the meaning of ``--devices``, ``--backend`` and ``--threads``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from gauge_mc.devices.base import Backend, Device
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.registry import Registry, in_words
from gauge_mc.signatures import checks_types

BACKENDS: Registry[Backend] = Registry("backend", "gauge_mc.devices", Backend)

AUTOMATIC = "auto"
"""Value of ``--backend`` that selects the usable backend with the highest preference."""

MAX_THREADS = 1024
"""Upper limit for the number of threads, to catch typing errors."""


@dataclass(frozen=True)
class DeviceChoice:
    """The description of a device, to be opened by the thread that uses it."""

    backend: str
    """Name of the backend."""
    ordinal: int = 0
    """Number of the device; 0 if the backend's devices are not numbered."""
    threads: int | None = None
    """Number of threads, if the devices are not numbered; by default all threads that this process
    may use.
    """

    @property
    def numbered(self) -> bool:
        """Whether the device is chosen by its number."""
        return BACKENDS[self.backend].numbered

    @property
    def name(self) -> str:
        """Name of the device for the user, such as ``GPU 0``."""
        label = BACKENDS[self.backend].label
        return f"{label} {self.ordinal}" if self.numbered else label

    def open(self, worker: bool = False) -> Device:
        """Open the device; see `Backend.open`."""
        return BACKENDS[self.backend].open(self.ordinal, self.threads, worker)


class Place(NamedTuple):
    """Where something is computed; see `choose_devices` and the options of the same names."""

    devices: str | None = None
    backend: str = AUTOMATIC
    threads: int | None = None

    def hint(self) -> str | None:
        """Explain why a preferred backend is not used by default, and what to do about it."""
        if self.backend != AUTOMATIC or self.devices:
            return None
        hints = (x.hint() for x in BACKENDS.values() if x.preference > _preferred().preference)
        return next((words for words in hints if words), None)


def check_threads(threads: int | None) -> None:
    """Check a number of threads, if one is given."""
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"--threads is {threads}; give a whole number from 1 to {MAX_THREADS}.")


def choose_devices(
    devices: str | None = None,
    backend: str = AUTOMATIC,
    threads: int | None = None,
    all_by_default: bool = False,
) -> tuple[DeviceChoice, ...]:
    """Choose the devices to use."""
    if backend != AUTOMATIC:
        BACKENDS.check(backend)
    check_threads(threads)
    if devices is None:
        candidate = _preferred() if backend == AUTOMATIC else BACKENDS[backend]
        if not candidate.numbered:
            return (DeviceChoice(candidate.name, threads=threads),)
        return _numbered(candidate, "all" if all_by_default else "1")
    name, colon, count = devices.partition(":")
    backends = [x for x in BACKENDS.values() if backend in (AUTOMATIC, x.name)]
    for candidate in backends:
        if candidate.name == name and not candidate.numbered:
            plain = re.fullmatch("[0-9]{1,9}", count)
            if colon and not (plain and 1 <= int(count) <= MAX_THREADS):
                raise UsageError(
                    f"--devices {devices} is invalid: N in {name}:N must lie between 1 and "
                    f"{MAX_THREADS}."
                )
            return _parts(candidate, int(count or 1), threads)
    words = devices.removesuffix(",").split(",")
    numbered = [x for x in backends if x.numbered]
    numbers = all(re.fullmatch("[0-9]{1,9}", word) for word in words)
    if not numbered or not (devices == "all" or numbers):
        parts = in_words([f"{x.name}:N" for x in BACKENDS.values() if not x.numbered], "or")
        raise UsageError(
            f"--devices {devices} is not possible with --backend {backend}: give a number of GPUs, "
            f"a list of GPUs such as 0,2, all, or {parts}."
        )
    usual = max(numbered, key=lambda x: x.preference)  # which says why it is not usable
    return _numbered(_preferred_of(numbered) or usual, devices)


@checks_types
def open_device(backend: str = AUTOMATIC, threads: int | None = None) -> Device:
    """Open one device: by default a GPU if one is usable, otherwise the CPU.

    For the parameters and errors see `choose_devices` and `DeviceChoice.open`.
    """
    return choose_devices(None, backend, threads)[0].open()


_HOST_THREADS: ContextVar[int | None] = ContextVar("host threads", default=None)
"""Number of threads of devices that `open_host` opens in a thread; by default all."""


@contextmanager
def host_threads(threads: int | None) -> Iterator[None]:
    """Let `open_host` open devices with this number of threads, in this thread of Python."""
    before = _HOST_THREADS.set(threads)
    try:
        yield
    finally:
        _HOST_THREADS.reset(before)


def available_threads() -> int:
    """Return the number of threads of the host that this process may use at a time."""
    return _host().available_threads()


def _host() -> Backend:
    """Return the backend whose devices work in the memory of the host."""
    return next(x for x in BACKENDS.values() if not x.numbered)


def open_host() -> Device:
    """Open a device that works in the memory of the host, with the threads of `host_threads`."""
    return DeviceChoice(_host().name, threads=_HOST_THREADS.get()).open()


def _preferred() -> Backend:
    """Return the usable backend with the highest preference."""
    preferred = _preferred_of(BACKENDS.values())
    if preferred is None:
        raise GaugeError("No device is usable; run `gauge-mc doctor` to see why.")
    return preferred


def _preferred_of(backends: Iterable[Backend]) -> Backend | None:
    """Return the usable one of some backends with the highest preference; None if none is."""
    for backend in sorted(backends, key=lambda b: -b.preference):
        with suppress(GaugeError):
            if backend.count():
                return backend
    return None


def _parts(backend: Backend, count: int, threads: int | None) -> tuple[DeviceChoice, ...]:
    """Divide a device into parts that share its threads."""
    if count == 1:
        return (DeviceChoice(backend.name, threads=threads),)
    total = backend.available_threads() if threads is None else threads
    shares = (total // count + (part < total % count) for part in range(count))
    return tuple(DeviceChoice(backend.name, threads=max(1, share)) for share in shares)


def _numbered(backend: Backend, devices: str) -> tuple[DeviceChoice, ...]:
    """Return the numbered devices that `devices` names, and check that they exist."""
    count = backend.count()
    if devices == "all":
        ordinals = list(range(count))
    elif "," in devices:
        ordinals = [int(word) for word in devices.removesuffix(",").split(",")]
    else:
        ordinals = list(range(min(int(devices), count + 1)))
    if not ordinals:
        raise UsageError(
            f"--devices {devices} means no {backend.label} at all; give how many to take, such as "
            "1, or numbers with a comma, such as 0, for the first one alone."
        )
    if len(set(ordinals)) < len(ordinals):
        raise UsageError(
            f"--devices {devices} names a {backend.label} twice; give each number once."
        )
    if max(ordinals) >= count:
        raise GaugeError(
            f"--devices {devices} needs {backend.label} {max(ordinals)}, but there are {count}, "
            "numbered from 0."
        )
    return tuple(DeviceChoice(backend.name, ordinal) for ordinal in ordinals)
