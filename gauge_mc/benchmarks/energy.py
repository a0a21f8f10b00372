"""Energy of work on devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.energy import EnergyMeter, EnergyUse

LEAST_SECONDS = 1.0
"""Minimum time in seconds over which the energy is measured.

The counter of a GPU advances every 20 to 100 ms."""

CHUNK_SECONDS = 0.02
"""Approximate time in seconds between two readings of the counters."""

LEAST_CHUNKS = 4
"""Minimum number of readings after the first one."""


def energy_of(
    devices: DeviceGroup, call: Callable[[int], object], seconds: float, once: float
) -> EnergyUse:
    """Return the energy per repetition. All processes must call this.

    Parameters
    ----------
    devices : DeviceGroup
        The devices whose energy is measured.
    call : callable
        Function that carries out a given number of repetitions. The devices should be busy with it
        before, so that their clock rates and power have settled.
    seconds : float
        Approximate total time in seconds.
    once : float
        Time of one repetition in seconds.
    """
    meter = EnergyMeter(devices)
    available = meter.total()
    if available.joules is None:
        return available
    if seconds < LEAST_SECONDS:
        return EnergyUse(None, f"--seconds must be at least {LEAST_SECONDS:g}")
    once = devices.processes.broadcast(once)
    times = max(1, round(CHUNK_SECONDS / once))
    readings = [dict(meter.joules)]
    for _ in range(max(LEAST_CHUNKS, math.ceil(seconds / (times * once)))):
        call(times)
        meter.read()  # which takes some milliseconds, while a GPU is busy
        devices.synchronize()
        readings.append(dict(meter.joules))
    each = {name: slope([one[name] for one in readings]) for name in meter.joules}
    return meter.combined({name: one and one / times for name, one in each.items()})


def slope(readings: Sequence[float]) -> float | None:
    """Return the mean increase of a counter from one reading to the next.

    Only the readings between its first and its last advance count, because it may stand still for
    several readings.

    Returns
    -------
    float or None
        None if it advances less than twice.
    """
    pairs = enumerate(pairwise(readings), 1)
    advances = [n for n, (before, after) in pairs if after > before]
    if len(advances) < 2:
        return None
    first, last = advances[0], advances[-1]
    return (readings[last] - readings[first]) / (last - first)
