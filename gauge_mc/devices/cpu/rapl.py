"""Energy counters of CPU packages: RAPL (running average power limit), as Linux shows them.

A package is what sits in one socket. Its counter covers the cores, the caches and the memory
controller, but not the memory. On most systems only root can read it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from gauge_mc.devices.host import EnergyCounter, allowed_cores
from gauge_mc.errors import GaugeError

POWERCAP = Path("/sys/class/powercap")
"""Folder with the energy counters of the system."""

PROCESSORS = Path("/sys/devices/system/cpu")
"""Folder that tells to which package a core belongs."""

JOULE = 1e6
"""Number of the counters' units, microjoules, in a joule."""

ALLOW = f"sudo chmod a+r {POWERCAP}/intel-rapl:*/energy_uj   # until the next restart"
LOAD = "sudo modprobe intel_rapl_msr   # which does nothing in a virtual machine"


def package_counters(
    powercap: Path | None = None, processors: Path | None = None
) -> list[EnergyCounter]:
    """Return the counters of the packages whose cores this process may use.

    Parameters
    ----------
    powercap, processors : Path, optional
        Folders to read; by default `POWERCAP` and `PROCESSORS`.

    Raises
    ------
    GaugeError
        If there is no counter, or one of them cannot be read.
    """
    found = []
    here = _packages_of_this_process(processors or PROCESSORS)
    # Parts of a package are called intel-rapl:0:0; the whole machine may be called psys.
    for folder in sorted((powercap or POWERCAP).glob("intel-rapl:[0-9]*")):
        name = _text(folder / "name") if folder.name.count(":") == 1 else ""
        package = re.match(r"package-(\d+)", name)
        if package and (here is None or int(package[1]) in here):
            read = partial(_joules, folder / "energy_uj")
            limit = _joules(folder / "max_energy_range_uj")
            found.append(EnergyCounter(name, "RAPL", read, limit))
    if not found:
        raise GaugeError("this system shows no energy counter of the processor (RAPL)")
    for counter in found:
        counter.read()
    return found


def _joules(path: Path) -> float:
    """Return the energy in a file in joules."""
    text = _text(path)
    if not text.isdecimal():
        raise GaugeError(f"{path} contains no number")
    return int(text) / JOULE


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except PermissionError as error:
        raise GaugeError("only root can read the energy counters (RAPL)") from error
    except OSError as error:
        raise GaugeError(f"{path} cannot be read ({error.strerror})") from error


def _packages_of_this_process(processors: Path) -> set[int] | None:
    """Return the numbers of the packages whose cores this process may use; None if unknown."""
    cores = allowed_cores()
    paths = [processors / f"cpu{core}/topology/physical_package_id" for core in cores]
    try:
        return {int(path.read_text()) for path in paths}
    except (OSError, ValueError):
        return None
