"""Energy counters: those of processors (RAPL), of NVIDIA GPUs (NVML) and of AMD GPUs (ROCm SMI)."""

from __future__ import annotations

import ctypes
import functools
import math
import re
from collections.abc import Callable
from ctypes import byref, c_char_p, c_float, c_uint32, c_uint64, c_ulonglong, c_void_p
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gauge_mc.devices.host import allowed_cores
from gauge_mc.errors import GaugeError


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


POWERCAP = Path("/sys/class/powercap")
"""Folder with the energy counters of the system."""

PROCESSORS = Path("/sys/devices/system/cpu")
"""Folder that tells to which package a core belongs."""

ALLOW = f"sudo chmod a+r {POWERCAP}/intel-rapl:*/energy_uj   # until the next restart"
LOAD = "sudo modprobe intel_rapl_msr   # which does nothing in a virtual machine"


def package_counters(
    powercap: Path | None = None, processors: Path | None = None
) -> list[EnergyCounter]:
    """Return the counters of the packages whose cores this process may use."""
    counters = []
    packages = _packages_of_this_process(processors or PROCESSORS)
    # Parts of a package are called intel-rapl:0:0; the whole machine may be called psys.
    for folder in sorted((powercap or POWERCAP).glob("intel-rapl:[0-9]*")):
        name = _text(folder / "name") if folder.name.count(":") == 1 else ""
        package = re.match(r"package-(\d+)", name)
        if package and (packages is None or int(package[1]) in packages):
            read = partial(_joules, folder / "energy_uj")
            limit = _joules(folder / "max_energy_range_uj")
            counters.append(EnergyCounter(name, "RAPL", read, limit))
    if not counters:
        raise GaugeError("this system shows no energy counter of the processor (RAPL)")
    for counter in counters:
        counter.read()
    return counters


def _joules(path: Path) -> float:
    """Return the energy in a file in joules."""
    text = _text(path)
    if not text.isdecimal():
        raise GaugeError(f"{path} contains no number")
    return int(text) / 1e6  # of microjoules


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except PermissionError as error:
        raise GaugeError("only root can read the energy counters (RAPL)") from error
    except OSError as error:
        raise GaugeError(f"{path} cannot be read ({error.strerror})") from error


def _packages_of_this_process(processors: Path) -> set[int] | None:
    """Return the numbers of the packages whose cores this process may use; None if unknown."""
    paths = [processors / f"cpu{core}/topology/physical_package_id" for core in allowed_cores()]
    try:
        return {int(path.read_text()) for path in paths}
    except (OSError, ValueError):
        return None


NVML = ("libnvidia-ml.so.1",)
"""File name of the management library that comes with NVIDIA's driver."""

ROCM_SMI = tuple(f"librocm_smi64.so{end}" for end in ("", ".7", ".6", ".5", ".1"))
"""File names of the library that manages AMD GPUs: that of a development package, those of ROCm's
releases, and Debian's.
"""

INSTALL_NVML = "export NVIDIA_DRIVER_CAPABILITIES=compute,utility   # when the container is started"
INSTALL_ROCM_SMI = "apt install librocm-smi64-1   # or ROCm from AMD"

NVML_NOT_SUPPORTED, ROCM_NOT_SUPPORTED = 3, 2
"""Error codes of GPUs that have no counter."""


def nvidia_counter(address: str) -> EnergyCounter:
    """Return the counter of the GPU at a PCI bus address, which is the same for all processes."""
    library = _loaded(NVML, "the NVIDIA driver", "nvmlInit_v2", _check_nvml)
    handle = c_void_p()
    find = library.nvmlDeviceGetHandleByPciBusId_v2
    _check_nvml(library, find(address.encode(), byref(handle)))

    def read() -> float:
        energy = c_ulonglong()
        _check_nvml(library, library.nvmlDeviceGetTotalEnergyConsumption(handle, byref(energy)))
        return energy.value / 1e3  # of millijoules

    read()
    return EnergyCounter(address, "NVML", read)


def amd_counter(address: str) -> EnergyCounter:
    """Return the counter of the GPU at a PCI bus address, which is the same for all processes."""
    library = _loaded(ROCM_SMI, "ROCm", "rsmi_init", _check_rocm, 0)
    number = _number_of(library, address)

    def read() -> float:
        count, unit, moment = c_uint64(), c_float(), c_uint64()
        outputs = byref(count), byref(unit), byref(moment)
        _check_rocm(library, library.rsmi_dev_energy_count_get(number, *outputs))
        return count.value * unit.value / 1e6  # of microjoules

    read()
    return EnergyCounter(address, "ROCm SMI", read)


def _number_of(library: ctypes.CDLL, address: str) -> c_uint32:
    """Return the number by which ROCm SMI knows a GPU."""
    count, place = c_uint32(), c_uint64()
    _check_rocm(library, library.rsmi_num_monitor_devices(byref(count)))
    for number in range(count.value):
        _check_rocm(library, library.rsmi_dev_pci_id_get(c_uint32(number), byref(place)))
        # The domain is in the bits from 32 on; the bus, the device and the function are below.
        bus, device, function = place.value >> 8 & 0xFF, place.value >> 3 & 0x1F, place.value & 7
        if f"{place.value >> 32:04x}:{bus:02x}:{device:02x}.{function}" == address.lower():
            return c_uint32(number)
    raise GaugeError(f"ROCm SMI does not know the GPU at {address}")


@functools.cache
def _loaded(
    names: tuple[str, ...],
    owner: str,
    begin: str,
    check: Callable[[ctypes.CDLL, int], None],
    *arguments: int,
) -> ctypes.CDLL:
    """Load and initialise a library, by the first of its names under which there is one."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
            result = getattr(library, begin)(*map(c_uint64, arguments))
        except (OSError, AttributeError):
            continue
        check(library, result)
        return library
    raise GaugeError(f"the library {names[0]} of {owner} does not load")


def _check_nvml(library: ctypes.CDLL, result: int) -> None:
    """Raise GaugeError for an error code of NVML."""
    if result == NVML_NOT_SUPPORTED:
        raise GaugeError("this GPU has no energy counter; those since Volta have one")
    if result:
        library.nvmlErrorString.restype = c_char_p
        raise GaugeError(f"NVML fails: {library.nvmlErrorString(result).decode()}")


def _check_rocm(library: ctypes.CDLL, result: int) -> None:
    """Raise GaugeError for an error code of ROCm SMI."""
    if result == ROCM_NOT_SUPPORTED:
        raise GaugeError("this GPU has no energy counter")
    if result:
        text = c_char_p()
        library.rsmi_status_string(result, byref(text))
        words = (text.value or str(result).encode()).decode()
        raise GaugeError(f"ROCm SMI fails: {words.strip().rstrip('.')}")
