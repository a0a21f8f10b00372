"""Timing of work on devices, and what the results of all benchmarks share."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gauge_mc.devices.base import Copy, Registers, repeated
from gauge_mc.devices.kernels import REAL_BYTES, Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import EnergyMeter, EnergyUse
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.results import documented, result_field

if TYPE_CHECKING:
    from rich.table import Table

LEAST_SECONDS = 1.0
"""Minimum time in seconds of a measurement of energy; GPUs' counters advance every 20 to 100 ms."""

CHUNK_SECONDS, LEAST_CHUNKS = 0.02, 4
"""Approximate time in seconds between two readings of the counters, and their minimum number."""

COPY_SECONDS = 0.3
"""Longest approximate time for the measurement of the copy bandwidth in seconds."""

COPY_EXTENT, COPY_LEAST_EXTENT = 32, 4
"""Spatial extent of the lattice that is copied, and its minimum if there is little free memory."""

COPY_SHARE = 0.8
"""Fraction of the free memory that the two fields of the copy may occupy."""

LEAST_RESULTS, MOST_RESULTS, WARM_UPS = 3, 10, 3
"""Numbers of timed groups of repetitions, and of groups before them, while clock rates settle."""

SOURCE = "Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is not available."
"""Description of the field of results with an energy."""

COPY = Kernel("copy")

NO_ENERGY = EnergyUse(None, "")

Repetition = Callable[[int], object]
"""Function that does something a given number of times."""

BenchProgress = Callable[[str, int], object]
"""Function that is called with the name of what is timed next and with the number of all things."""


@documented
@dataclass(frozen=True)
class Timing:
    """How fast something is: the row of which all results, tables and figures are made."""

    name: str = result_field("What was timed.")
    rate: float = result_field("Its rate; see `BenchResult.unit`.")
    share: float | None = result_field("Rate divided by that of a copy of the same bytes.", None)
    storage: str = result_field("Precision of spinors if there are several, in the name too.", "")
    seconds: float = result_field("Median time of one in seconds.", math.nan)
    spread: float = result_field("Longest minus shortest time, divided by the median.", math.nan)
    energy: EnergyUse = result_field("Energy of one, if it was measured.", NO_ENERGY)

    @property
    def bound(self) -> float | None:
        """The rate with which a copy would move its bytes."""
        return self.share and self.rate / self.share


@documented
@dataclass(frozen=True)
class Bench:
    """Where things are timed, and for how long each."""

    devices: DeviceGroup = result_field("One device, or those that share the lattice.")
    group: str = result_field("Name of the gauge group.")
    lattice: Lattice = result_field("Extents of the lattice.")
    seconds: float = result_field("Approximate time in seconds for each thing.", 1.0)
    progress: BenchProgress = result_field("Called before each is timed.", lambda name, total: None)
    total: int = result_field("Number of things that are timed.", 0)

    def of(self, total: int) -> Bench:
        """Return the same for a number of things."""
        return replace(self, total=total)

    def begin(self, name: str) -> None:
        """Tell what is timed next."""
        self.progress(name, self.total)

    def copy(self, precision: str = "single") -> float:
        """Return the bandwidth of a copy in bytes/s."""
        self.begin("copy")
        seconds = min(self.seconds, COPY_SECONDS)
        return copy_bandwidth(self.devices, self.group, precision, seconds=seconds)

    def timing(
        self,
        name: str,
        call: Repetition,
        work: float = 1.0,
        least: float | None = None,
        energy: bool = False,
    ) -> Timing:
        """Time what a call does many times, with the work of one and the least time for a copy."""
        self.begin(name)
        median, spread = seconds_of(self.devices, call, self.seconds)
        used = energy_of(self.devices, call, self.seconds, median) if energy else NO_ENERGY
        share = least and least / median
        return Timing(name, work / median, share, "", median, spread / median, used)

    def time(self, *calls: Callable[[], object]) -> float:
        """Return the median time in seconds of some calls after each other."""
        return seconds_of(self.devices, repeatedly(*calls), self.seconds)[0]

    @property
    def heading(self) -> tuple[str, str, str]:
        """The fields with which every result begins; see `BenchResult`."""
        return self.devices.name, self.group, str(self.lattice)


@documented
@dataclass(frozen=True)
class BenchResult:
    """A result of a benchmark, with rates to compare between lattices, precisions and devices."""

    unit = "Glink/s"
    """Unit of the rates."""
    device: str = result_field("Names of the devices.")
    group: str = result_field("Gauge group.")
    lattice: str = result_field("Extents of the lattice.")

    @property
    def rates(self) -> list[Timing]:
        """What can be compared; empty if nothing can."""
        return []

    @property
    def subject(self) -> str:
        """Group, lattice, precision and devices, for the first line."""
        precision = getattr(self, "precision", None)
        kind = f", {precision} precision" if precision else ""
        return f"{self.group.upper()} {self.lattice}{kind} on {self.device}"

    def report(self) -> list[Any]:
        """Return lines and tables that show it."""
        raise NotImplementedError


def repeatedly(*calls: Callable[[], object]) -> Repetition:
    """Return a function that does some calls after each other, a given number of times."""

    def repeat(times: int) -> None:
        for _ in range(times):
            for call in calls:
                call()

    return repeat


def used(registers: Registers | None) -> tuple[int | None, int | None]:
    """Return the registers and the spilled bytes per thread, which other devices do not have."""
    return (registers.count, registers.spilled) if registers else (None, None)


def table_of(
    columns: Mapping[str, str], rows: Iterable[Sequence[Any]], optional: Collection[str] = ()
) -> Table:
    """Return a table, given formats of the objects in a row by heading, such as ``{0.name}``.

    Unknown numbers are dashes; optional columns without any number are left out.
    """
    from rich.table import Table

    def text(form: str, row: Sequence[Any]) -> str:
        try:
            return form.format(*row)
        except TypeError:  # None, which has no format of a number
            return "–"

    table, rows = Table(), [*rows]
    cells = {heading: [text(form, row) for row in rows] for heading, form in columns.items()}
    cells = {x: texts for x, texts in cells.items() if {*texts} != {"–"} or x not in optional}
    for n, heading in enumerate(cells):  # names may be long, and numbers are never broken
        table.add_column(heading, justify="right" if n else "left", no_wrap=n > 0, overflow="fold")
    for texts in zip(*cells.values(), strict=True):
        table.add_row(*texts)
    return table


def energy_of(devices: DeviceGroup, call: Repetition, seconds: float, once: float) -> EnergyUse:
    """Return the energy per repetition. All processes must call this."""
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
    each = {name: slope([r[name] for r in readings]) for name in meter.joules}
    return meter.combined({name: x and x / times for name, x in each.items()})


def slope(readings: Sequence[float]) -> float | None:
    """Return the mean increase of a counter between its first and its last advance.

    It may stand still for several readings.
    """
    pairs = enumerate(pairwise(readings), 1)
    advances = [n for n, (before, after) in pairs if after > before]
    if len(advances) < 2:
        return None
    first, last = advances[0], advances[-1]
    return (readings[last] - readings[first]) / (last - first)


def elapsed(devices: DeviceGroup, call: Repetition, times: int) -> float:
    """Return the time in seconds of a number of repetitions together."""
    devices.synchronize()
    start = time.perf_counter()
    call(times)
    devices.synchronize()
    return time.perf_counter() - start


def seconds_of(devices: DeviceGroup, call: Repetition, seconds: float) -> tuple[float, float]:
    """Return the median and the range of the time per repetition, in seconds."""
    once = devices.processes.broadcast(min(elapsed(devices, call, 1) for _ in range(2)))
    times = max(1, round(seconds / 10 / once))
    for _ in range(WARM_UPS if once < seconds else 0):  # nothing has to settle after a long one
        elapsed(devices, call, times)
    number = max(LEAST_RESULTS, min(MOST_RESULTS, int(seconds / (times * once))))
    results = [elapsed(devices, call, times) / times for _ in range(number)]
    return statistics.median(results), max(results) - min(results)


def copy_bandwidth(
    devices: DeviceGroup, group: str, precision: str, seconds: float = COPY_SECONDS
) -> float:
    """Return the bandwidth of a simultaneous copy on all devices in bytes/s, read and written.

    The fields are larger than any cache, if enough memory is free. The faster result of a kernel
    and of the driver is returned, each of which takes about `seconds`.
    """
    pairs = _pairs(devices, group, precision)

    def by_kernel(times: int) -> None:
        for source, target in pairs:
            addresses = {"source": source.buffer.address, "target": target.buffer.address}
            once = source.arguments(COPY, source.whole(), **addresses)
            source.kernel(COPY)(repeated([once], times))

    by_driver = repeatedly(*(partial(x.device.copy, y.buffer, x.buffer) for x, y in pairs))
    median = min(seconds_of(devices, copy, seconds)[0] for copy in (by_kernel, by_driver))
    moved = sum(2 * source.buffer.nbytes for source, _ in pairs)
    return sum(devices.processes.allgather(moved / median))


def neighbour_bandwidth(devices: DeviceGroup, group: str, precision: str) -> float | None:
    """Return the bandwidth of simultaneous copies from each device of a process to the next one."""
    if len(devices.devices) == 1:
        return None
    pairs = _pairs(devices, group, precision)
    sends = [
        source.device.prepare_copies(
            [Copy(source.buffer.address, target.device, target.buffer.address)],
            source.buffer.nbytes,
        )
        for (source, _), (_, target) in zip(pairs, [*pairs[1:], pairs[0]], strict=True)
    ]

    sent = sum(source.buffer.nbytes for source, _ in pairs)
    median = seconds_of(devices, repeatedly(*sends), COPY_SECONDS)[0]
    return sum(devices.processes.allgather(sent / median))


def _pairs(devices: DeviceGroup, group: str, precision: str) -> list[tuple[Slab, Slab]]:
    """Return two fields of the same size on each device of a process that fit into its memory."""
    pairs, link_bytes = [], GROUPS[group].components * REAL_BYTES[precision]
    for device in devices.devices:
        extents = [COPY_EXTENT, COPY_EXTENT, COPY_EXTENT, 16 if device.in_host_memory else 128]
        room = COPY_SHARE * device.free_bytes() / 2
        while 4 * math.prod(extents) * link_bytes > room and max(extents) > COPY_LEAST_EXTENT:
            longest = max(range(4), key=lambda mu: (extents[mu], mu))
            extents[longest] //= 2
        links = Lattice(*extents), group, precision, DeviceGroup((device,))
        pairs.append((Field.cold(*links).slabs[0], Field.cold(*links).slabs[0]))
    return pairs
