"""Which devices to use: what ``--devices``, ``--backend`` and ``--threads`` mean."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.devices.base import Device
from gauge_mc.devices.cpu import CpuDevice, cores
from gauge_mc.errors import GaugeError, UsageError

BACKENDS = ("auto", "cuda", "cpu")


@dataclass(frozen=True)
class DeviceChoice:
    """A device that is to be opened, by the thread that is to use it.

    Attributes
    ----------
    backend : str
        ``cuda`` or ``cpu``.
    ordinal : int
        The number of a GPU, as CUDA counts; 0 for a CPU.
    threads : int, optional
        Of a CPU; by default all that this process may use.
    """

    backend: str
    ordinal: int = 0
    threads: int | None = None

    def open(self) -> Device:
        """Open it.

        Raises
        ------
        UsageError
            If the number of threads is not possible.
        GaugeError
            If the device cannot be used: no such GPU, no PyCUDA, no compiler.
        """
        if self.backend == "cpu":
            return CpuDevice(self.threads)
        from gauge_mc.devices.cuda import CudaDevice

        return CudaDevice(self.ordinal)


def choose_devices(
    devices: str | None = None,
    backend: str = "auto",
    threads: int | None = None,
    every_gpu: bool = False,
) -> tuple[DeviceChoice, ...]:
    """Choose devices.

    Parameters
    ----------
    devices : str, optional
        A number: so many GPUs, the first ones. Numbers with commas (``0,2`` or ``2,``): these
        GPUs. ``all``: all GPUs. ``cpu``: the CPU. ``cpu:N``: N parts of it, with equal shares of
        the threads, one at least. By default one device, a GPU if the backend is not ``cpu`` and
        one works here, else the CPU.
    backend : str
        One of `BACKENDS`.
    threads : int, optional
        Of the CPU, in all; by default as many as this process may run on.
    every_gpu : bool
        Whether it is all GPUs by default, not one.

    Raises
    ------
    UsageError
        If there is no such backend, or `devices` is not of one of these forms or not of the
        backend.
    GaugeError
        If GPUs are wanted and none works here, or not so many.
    """
    if backend not in BACKENDS:
        raise UsageError(f"The backend '{backend}' is unknown; there are {', '.join(BACKENDS)}.")
    if devices is None:
        one = _one(backend, threads)
        if one.backend == "cpu" or not every_gpu:
            return (one,)
        devices = "all"
    name, colon, count = devices.partition(":")
    if name == "cpu" and backend != "cuda":
        if colon and not (count.isdecimal() and int(count) >= 1):
            raise UsageError(f"--devices {devices}: cpu:N takes a number from 1 on, such as cpu:2.")
        return _parts_of_cpu(int(count or 1), threads)
    words = devices.removesuffix(",").split(",")
    if backend == "cpu" or not (devices == "all" or all(word.isdecimal() for word in words)):
        raise UsageError(
            f"--devices {devices} is not possible with --backend {backend}: it takes a number of "
            "GPUs, their numbers with commas such as 0,2, all, or cpu:N."
        )
    return tuple(DeviceChoice("cuda", ordinal) for ordinal in _ordinals(devices, words))


def _one(backend: str, threads: int | None) -> DeviceChoice:
    if backend == "auto":
        from gauge_mc.devices.cuda import gpu_count
        from gauge_mc.devices.nvcc import find_nvcc

        try:
            backend = "cuda" if gpu_count() and find_nvcc() else "cpu"
        except GaugeError:
            backend = "cpu"
    return DeviceChoice(backend, threads=threads)


def _parts_of_cpu(count: int, threads: int | None) -> tuple[DeviceChoice, ...]:
    if count == 1:
        return (DeviceChoice("cpu", threads=threads),)
    total = cores() if threads is None else threads
    if total < 1:
        raise UsageError(f"The number of threads is {total}; it must be at least 1.")
    shares = (total // count + (part < total % count) for part in range(count))
    return tuple(DeviceChoice("cpu", threads=max(1, share)) for share in shares)


def _ordinals(devices: str, words: list[str]) -> list[int]:
    """Return the GPUs that are meant, and check that they are here."""
    from gauge_mc.devices.cuda import gpu_count

    here = gpu_count()
    if devices == "all":
        wanted = list(range(here))
    elif "," in devices:
        wanted = [int(word) for word in words]
    else:
        wanted = list(range(int(devices)))
    if not wanted or len(set(wanted)) < len(wanted):
        raise UsageError(f"--devices {devices} names no GPU, or one twice.")
    if max(wanted) >= here:
        raise GaugeError(
            f"--devices {devices} needs GPU {max(wanted)}, but CUDA sees {here}, numbered from 0."
        )
    return wanted
