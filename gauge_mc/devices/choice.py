"""Which devices to use: what ``--devices``, ``--backend`` and ``--threads`` mean."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.devices.base import Backend, Device
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.registry import Registry, in_words

BACKENDS: Registry[Backend] = Registry("backend", "gauge_mc.devices", folders=True)

AUTOMATIC = "auto"
"""Instead of a backend: the one with the highest preference that works here."""

MAX_THREADS = 1024
"""Upper limit for the number of threads, against mistyped numbers."""


@dataclass(frozen=True)
class DeviceChoice:
    """A device to be opened by the thread that uses it.

    Attributes
    ----------
    backend : str
        The name of its backend.
    ordinal : int
        Its number; 0 for a backend whose devices are not numbered.
    threads : int, optional
        Threads of such a device; by default all that this process may use.
    """

    backend: str
    ordinal: int = 0
    threads: int | None = None

    @property
    def numbered(self) -> bool:
        """Whether it is chosen by its number."""
        return BACKENDS[self.backend].numbered

    @property
    def name(self) -> str:
        """What people call it, such as ``GPU 0``."""
        label = BACKENDS[self.backend].label
        return f"{label} {self.ordinal}" if self.numbered else label

    def open(self, worker: bool = False) -> Device:
        """Open it; errors as of `Backend.open`."""
        return BACKENDS[self.backend].open(self.ordinal, self.threads, worker)


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that is out of bounds.

    Raises
    ------
    UsageError
        If it is.
    """
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"threads must lie between 1 and {MAX_THREADS}, not {threads}.")


def choose_devices(
    devices: str | None = None,
    backend: str = AUTOMATIC,
    threads: int | None = None,
    all_by_default: bool = False,
) -> tuple[DeviceChoice, ...]:
    """Choose devices.

    Parameters
    ----------
    devices : str, optional
        For devices that are numbered, such as GPUs: how many, counted from the first; or their
        numbers with commas (``0,2`` or ``2,``); or ``all``. For others ``cpu``, or ``cpu:N`` for N
        equal parts, which share the threads, at least one each. By default one device of the
        backend.
    backend : str
        Its name, or `AUTOMATIC`.
    threads : int, optional
        Number of CPU threads, over all parts; by default as many as this process may run on.
    all_by_default : bool
        Whether the default is all numbered devices instead of one.

    Raises
    ------
    UsageError
        If there is no such backend, or `devices` is not of one of these forms or not of the
        backend.
    GaugeError
        If devices are wanted that are not here.
    """
    if backend != AUTOMATIC:
        BACKENDS.check(backend)
    check_threads(threads)
    if devices is None:
        one = _preferred() if backend == AUTOMATIC else BACKENDS[backend]
        if not one.numbered:
            return (DeviceChoice(one.name, threads=threads),)
        return _numbered(one, "all" if all_by_default else "1")
    name, colon, count = devices.partition(":")
    known = [one for one in BACKENDS.values() if backend in (AUTOMATIC, one.name)]
    for one in known:
        if one.name == name and not one.numbered:
            if colon and not (count.isdecimal() and int(count) >= 1):
                raise UsageError(
                    f"--devices {devices}: {name}:N takes a number from 1 on, such as {name}:2."
                )
            return _parts(one, int(count or 1), threads)
    words = devices.removesuffix(",").split(",")
    numbered = [one for one in known if one.numbered]
    if not numbered or not (devices == "all" or all(word.isdecimal() for word in words)):
        parts = in_words([f"{one.name}:N" for one in BACKENDS.values() if not one.numbered], "or")
        raise UsageError(
            f"--devices {devices} is not possible with --backend {backend}: it takes a number of "
            f"GPUs, their numbers with commas such as 0,2, all, or {parts}."
        )
    return _numbered(max(numbered, key=lambda one: one.preference), devices)


def hint() -> str | None:
    """Return why a device that is here is not used by default, and how to mend that, or None."""
    hints = (one.hint() for one in BACKENDS.values() if one.preference > _preferred().preference)
    return next((words for words in hints if words), None)


def open_device(backend: str = AUTOMATIC, threads: int | None = None) -> Device:
    """Open one device: by default a GPU if one works here, else the CPU.

    Parameters and errors as of `choose_devices` and `DeviceChoice.open`.
    """
    return choose_devices(None, backend, threads)[0].open()


def _preferred() -> Backend:
    """Return the backend with the highest preference that works here."""
    for one in sorted(BACKENDS.values(), key=lambda one: -one.preference):
        try:
            if one.count():
                return one
        except GaugeError:
            continue
    raise GaugeError("No device works here; run `gauge-mc doctor`.")


def _parts(backend: Backend, count: int, threads: int | None) -> tuple[DeviceChoice, ...]:
    """Divide a device into parts that share its threads."""
    check_threads(count)
    if count == 1:
        return (DeviceChoice(backend.name, threads=threads),)
    total = backend.available_threads() if threads is None else threads
    shares = (total // count + (part < total % count) for part in range(count))
    return tuple(DeviceChoice(backend.name, threads=max(1, share)) for share in shares)


def _numbered(backend: Backend, devices: str) -> tuple[DeviceChoice, ...]:
    """Return the numbered devices that are meant, and check that they are here."""
    here = backend.count()
    if devices == "all":
        wanted = list(range(here))
    elif "," in devices:
        wanted = [int(word) for word in devices.removesuffix(",").split(",")]
    else:
        wanted = list(range(min(int(devices), here + 1)))
    if not wanted or len(set(wanted)) < len(wanted):
        raise UsageError(f"--devices {devices} names no {backend.label}, or one twice.")
    if max(wanted) >= here:
        raise GaugeError(
            f"--devices {devices} needs {backend.label} {max(wanted)}, but there are {here}, "
            "numbered from 0."
        )
    return tuple(DeviceChoice(backend.name, ordinal) for ordinal in wanted)
