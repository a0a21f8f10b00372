"""Energy that the devices of a device group use."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from gauge_mc.devices.host import EnergyCounter
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError


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
                self._counters |= {one.name: one for one in device.energy_counters()}
            self._last = {name: one.read() for name, one in self._counters.items()}
        except GaugeError as error:
            self._missing = str(error)
        self.joules = dict.fromkeys(self._counters, 0.0)

    def read(self) -> float | None:
        """Read the counters of this process, and return the energy of its devices in joules.

        Some counters start again from zero after a quarter of an hour, and must be read more often
        than that.

        Returns
        -------
        float or None
            None if the energy is not available.
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
        """Add up energies over the processes, which must all call this.

        Parameters
        ----------
        joules : mapping of str to float or None
            Energies in joules of the parts of this host, by name; None if unknown. If processes
            share a part, the largest of their values counts.
        """
        source = " + ".join(sorted({one.source for one in self._counters.values()}))
        found: dict[tuple[str, str], float] = {}
        everyone = self._processes.allgather((platform.node(), dict(joules), source, self._missing))
        for host, parts, _, missing in everyone:
            if missing:
                return EnergyUse(None, missing)
            for name, spent in parts.items():
                if spent is None:
                    return EnergyUse(None, "the energy counters do not advance")
                found[host, name] = max(spent, found.get((host, name), 0.0))
        return EnergyUse(sum(found.values()), everyone[0][2])
