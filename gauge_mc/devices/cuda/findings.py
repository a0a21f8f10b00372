"""Checks of GPUs that work: their energy counters, and copies between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from gauge_mc.devices.base import Backend, Finding
from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.errors import GaugeError


def findings_of_gpus(
    backend: Backend, driver: Any, counter: Callable[[str], EnergyCounter], remedy: str
) -> Iterator[Finding]:
    """Check energy counters and copies of all GPUs of a backend.

    Parameters
    ----------
    backend : Backend
        The backend, whose GPUs work.
    driver : module
        ``pycuda.driver``, or what has its form.
    counter : callable
        Returns the energy counter of the GPU at a PCI bus address.
    remedy : str
        A command that lets the energy be read.
    """
    count = backend.count()
    yield _energy(backend, count, counter, remedy)
    if count > 1:
        yield _peers(driver, count)


def _energy(
    backend: Backend, count: int, counter: Callable[[str], EnergyCounter], remedy: str
) -> Finding:
    """Check whether the energy of all GPUs can be read."""
    subject = f"energy of the {backend.label}s"
    try:
        counters = [counter(backend.identity(ordinal)) for ordinal in range(count)]
    except GaugeError as error:
        return Finding(subject, False, f"not available: {error}", remedy)
    return Finding(subject, True, ", ".join(sorted({one.source for one in counters})))


def _peers(driver: Any, count: int) -> Finding:
    """Check which pairs of GPUs can copy to each other directly."""
    gpus = [driver.Device(ordinal) for ordinal in range(count)]
    pairs = list(permutations(range(count), 2))
    through_host = [f"{a}→{b}" for a, b in pairs if not gpus[a].can_access_peer(gpus[b])]
    detail = "all GPUs copy to each other directly"
    if through_host:
        detail = f"copies go through host memory for {', '.join(through_host)}"
    return Finding("copies between GPUs", True, detail)
