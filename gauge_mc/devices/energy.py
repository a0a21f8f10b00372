"""Counters of the energy that devices use."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyCounter:
    """A counter of the energy that a part of a machine uses, whichever process causes it."""

    name: str
    """Name of the part. Devices of a host that share the part give the same name."""
    source: str
    """Name of the interface through which the counter is read, as shown to the user."""
    read: Callable[[], float]
    """Function that returns the energy in joules since an arbitrary moment. It raises GaugeError if
    the counter cannot be read.
    """
    limit: float = math.inf
    """Energy in joules at which the counter starts again from zero."""

    def difference(self, before: float, after: float) -> float:
        """Return the energy in joules between two readings that are less than `limit` apart."""
        if after >= before:
            return after - before
        return after - before + self.limit if math.isfinite(self.limit) else 0.0
