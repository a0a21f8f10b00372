"""Energy counters of AMD GPUs: ROCm SMI, the library that manages them."""

from __future__ import annotations

import ctypes
import functools
from ctypes import byref, c_char_p, c_float, c_uint32, c_uint64

from gauge_mc.devices.host import EnergyCounter
from gauge_mc.errors import GaugeError

LIBRARY = "librocm_smi64.so"
"""Name of the library, which a development package installs."""

NAMES = (LIBRARY, f"{LIBRARY}.7", f"{LIBRARY}.6", f"{LIBRARY}.5", f"{LIBRARY}.1")
"""File names under which the library is looked for: those of ROCm's releases, and Debian's."""

NOT_SUPPORTED = 2
"""Error code of a GPU that lacks what was asked for."""

JOULE = 1e6
"""Number of the counters' units, microjoules, in a joule."""

INSTALL = "apt install librocm-smi64-1   # or ROCm from AMD"


def gpu_counter(address: str) -> EnergyCounter:
    """Return the counter of the GPU at a PCI bus address, which is the same for all processes."""
    library = _load(NAMES)
    number = _number_of(library, address)

    def read() -> float:
        count, unit, moment = c_uint64(), c_float(), c_uint64()
        outputs = byref(count), byref(unit), byref(moment)
        _check(library, library.rsmi_dev_energy_count_get(number, *outputs))
        return count.value * unit.value / JOULE

    read()
    return EnergyCounter(address, "ROCm SMI", read)


def _number_of(library: ctypes.CDLL, address: str) -> c_uint32:
    """Return the number by which the library knows a GPU."""
    count, place = c_uint32(), c_uint64()
    _check(library, library.rsmi_num_monitor_devices(byref(count)))
    for number in range(count.value):
        _check(library, library.rsmi_dev_pci_id_get(c_uint32(number), byref(place)))
        if _address_of(place.value) == address.lower():
            return c_uint32(number)
    raise GaugeError(f"ROCm SMI does not know the GPU at {address}")


def _address_of(place: int) -> str:
    """Return a PCI bus address: the domain, from bit 32 on, the bus, the device, the function."""
    bus, device, function = place >> 8 & 0xFF, place >> 3 & 0x1F, place & 7
    return f"{place >> 32:04x}:{bus:02x}:{device:02x}.{function}"


@functools.cache
def _load(names: tuple[str, ...]) -> ctypes.CDLL:
    """Load and initialise the library, by the first of its names under which there is one."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
            result = library.rsmi_init(c_uint64(0))
        except (OSError, AttributeError):
            continue
        _check(library, result)
        return library
    raise GaugeError(f"the library {names[0]} of ROCm does not load")


def _check(library: ctypes.CDLL, result: int) -> None:
    """Raise GaugeError for an error code."""
    if result == NOT_SUPPORTED:
        raise GaugeError("this GPU has no energy counter")
    if result:
        text = c_char_p()
        library.rsmi_status_string(result, byref(text))
        words = (text.value or str(result).encode()).decode()
        raise GaugeError(f"ROCm SMI fails: {words.strip().rstrip('.')}")
