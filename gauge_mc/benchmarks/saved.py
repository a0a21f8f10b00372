"""Results of ``gauge-mc bench`` that were saved in files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gauge_mc import defaults
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.run.parameters import Parameters

MAX_SAVED = 2**20
"""Maximum size of a saved result in bytes."""


NAMES = ("device", "group", "lattice", "precision", "random")
"""Keys of the file that are words."""


@dataclass(frozen=True)
class SavedBenchmark:
    """Times of kernels that were measured before."""

    device: str
    """Names of the devices."""
    group: str
    """Gauge group."""
    lattice: str
    """Extents of the lattice."""
    precision: str
    """Precision of the links."""
    random: str
    """Name of the random number generator."""
    times: Mapping[str, float]
    """Times in ns per link, by kernel."""

    @classmethod
    def read(cls, path: Path) -> SavedBenchmark:
        """Read a file that ``gauge-mc bench --save`` has written.

        Raises
        ------
        UsageError
            If the file is not one.
        """
        try:
            found = parse_json(read_text(path, MAX_SAVED))
            times = {str(one["name"]): float(one["ns_per_link"]) for one in found["kernels"]}
            if not all(0 < time < math.inf for time in times.values()):
                raise ValueError
            return cls(**{name: str(found[name]) for name in NAMES}, times=times)
        except (GaugeError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise UsageError(
                f"{path} is not a result of gauge-mc bench; write one with --save."
            ) from error

    def ns_per_link(self, parameters: Parameters, device: str) -> float | None:
        """Return the time of a link update in ns if a run did nothing but its sweeps.

        It is None if the benchmark has another group, precision, generator or device, or the time
        of an update does not follow from those of sweeps.

        Parameters
        ----------
        parameters : Parameters
            Parameters of the run.
        device : str
            Names of its devices.
        """
        p = parameters
        own = (p.group, p.precision, p.rng, device)
        if own != (self.group, self.precision, self.random, self.device):
            return None
        action = f", {p.action.said}" if p.action.tags(defaults.ACTION) else ""
        counts = {f"{name}{action}": n for name, n in p.algorithm.timed_sweeps.items() if n}
        if not counts or not counts.keys() <= self.times.keys():
            return None
        return sum(n * self.times[name] for name, n in counts.items()) / p.algorithm.sweeps
