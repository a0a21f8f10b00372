"""Timing of work on devices."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from gauge_mc.devices.base import Copy, repeated
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
"""Minimum time in seconds over which the energy is measured.

The counter of a GPU advances every 20 to 100 ms."""

CHUNK_SECONDS = 0.02
"""Approximate time in seconds between two readings of the counters."""

LEAST_CHUNKS = 4
"""Minimum number of readings after the first one."""


def energy_of(
    devices: DeviceGroup, call: Callable[[int], object], seconds: float, once: float
) -> EnergyUse:
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
    """Return the mean increase of a counter from one reading to the next.

    Only the readings between its first and its last advance count, because it may stand still for
    several readings.
    """
    pairs = enumerate(pairwise(readings), 1)
    advances = [n for n, (before, after) in pairs if after > before]
    if len(advances) < 2:
        return None
    first, last = advances[0], advances[-1]
    return (readings[last] - readings[first]) / (last - first)


COPY = Kernel("copy")

BenchProgress = Callable[[str, int], object]
"""Function that is called with the name of what is timed next and with the number of all things."""

COPY_SECONDS = 0.3
"""Longest approximate time for the measurement of the copy bandwidth in seconds."""

COPY_EXTENT = 32
"""Spatial extent of the lattice that is copied."""

COPY_LEAST_EXTENT = 4
"""Minimum extent of the lattice that is copied, for devices with little free memory."""

COPY_SHARE = 0.8
"""Fraction of the free memory that the two fields of the copy may occupy."""

LEAST_RESULTS = 3
"""Smallest number of timed groups of repetitions."""

WARM_UPS = 3
"""Number of untimed groups of repetitions, during which clock rates settle."""


NO_ENERGY = EnergyUse(None, "")


@dataclass(frozen=True)
class Timing:
    """How fast something is: the row of which all results, tables and figures are made."""

    name: str
    """What was timed."""
    rate: float
    """Its rate; see `BenchResult.unit`."""
    share: float | None = None
    """Rate divided by that with which a copy would move its bytes; None if these are unknown."""
    storage: str = ""
    """Precision of spinors, of which a benchmark times several, and which the name contains."""
    seconds: float = math.nan
    """Median time of one in seconds."""
    spread: float = math.nan
    """Difference between the longest and the shortest time, divided by the median."""
    energy: EnergyUse = NO_ENERGY
    """Energy of one, if it was measured."""

    @property
    def bound(self) -> float | None:
        """The rate with which a copy would move its bytes."""
        return self.share and self.rate / self.share


@dataclass(frozen=True)
class Bench:
    """Where things are timed, and for how long each."""

    devices: DeviceGroup
    """One device, or those that share the lattice."""
    group: str
    """Name of the gauge group."""
    lattice: Lattice
    """Extents of the lattice."""
    seconds: float = 1.0
    """Approximate time in seconds for each thing."""
    progress: BenchProgress = lambda name, total: None
    """Called with a name and the number of things before each is timed."""
    total: int = 0
    """Number of things that are timed."""

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
        call: Callable[[int], object],
        work: float,
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

        def repeat(times: int) -> None:
            for _ in range(times):
                for call in calls:
                    call()

        return seconds_of(self.devices, repeat, self.seconds)[0]

    @property
    def heading(self) -> tuple[str, str, str]:
        """Return the fields with which every result begins; see `BenchResult`."""
        return self.devices.name, self.group, str(self.lattice)


@documented
@dataclass(frozen=True)
class BenchResult:
    """A result of a benchmark, with rates that can be compared.

    They are compared between lattices, precisions and devices.
    """

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

    rows = [*rows]
    cells = {heading: [text(form, row) for row in rows] for heading, form in columns.items()}
    cells = {x: texts for x, texts in cells.items() if {*texts} != {"–"} or x not in optional}
    table = Table()
    for n, heading in enumerate(cells):  # names may be long, and numbers are never broken
        justify: Literal["left", "right"] = "right" if n else "left"
        table.add_column(heading, justify=justify, no_wrap=n > 0, overflow="fold")
    for texts in zip(*cells.values(), strict=True):
        table.add_row(*texts)
    return table


def seconds_of(
    devices: DeviceGroup, call: Callable[[int], object], seconds: float
) -> tuple[float, float]:
    """Return the median and the range of the time per repetition, in seconds."""

    def timed(times: int) -> float:
        devices.synchronize()
        start = time.perf_counter()
        call(times)
        devices.synchronize()
        return (time.perf_counter() - start) / times

    once = devices.processes.broadcast(min(timed(1) for _ in range(2)))
    times = max(1, round(seconds / 10 / once))
    for _ in range(WARM_UPS if once < seconds else 0):  # nothing has to settle after a long one
        timed(times)
    results = [
        timed(times) for _ in range(max(LEAST_RESULTS, min(10, int(seconds / (times * once)))))
    ]
    return statistics.median(results), max(results) - min(results)


def copy_bandwidth(
    devices: DeviceGroup, group: str, precision: str, seconds: float = COPY_SECONDS
) -> float:
    """Return the bandwidth of a simultaneous copy on all devices in bytes/s, read and written.

    The copied fields are larger than any cache, if enough memory is free. The copy is done by a
    kernel and by the driver, for about `seconds` each; the faster result is returned.
    """
    pairs = [_pair(DeviceGroup((device,)), group, precision) for device in devices.devices]

    def by_kernel(times: int) -> None:
        for source, target in pairs:
            addresses = {"source": source.buffer.address, "target": target.buffer.address}
            once = source.arguments(COPY, source.whole(), **addresses)
            source.kernel(COPY)(repeated([once], times))

    def by_driver(times: int) -> None:
        for _ in range(times):
            for source, target in pairs:
                source.device.copy(target.buffer, source.buffer)

    median = min(seconds_of(devices, copy, seconds)[0] for copy in (by_kernel, by_driver))
    moved = sum(2 * source.buffer.nbytes for source, _ in pairs)
    return sum(devices.processes.allgather(moved / median))


def neighbour_bandwidth(devices: DeviceGroup, group: str, precision: str) -> float | None:
    """Return the bandwidth of simultaneous copies from each device of a process to the next one."""
    if len(devices.devices) == 1:
        return None
    pairs = [_pair(DeviceGroup((device,)), group, precision) for device in devices.devices]
    following = [*pairs[1:], pairs[0]]
    sends = [
        source.device.prepare_copies(
            [Copy(source.buffer.address, target.device, target.buffer.address)],
            source.buffer.nbytes,
        )
        for (source, _), (_, target) in zip(pairs, following, strict=True)
    ]

    def send(times: int) -> None:
        for _ in range(times):
            for transfer in sends:
                transfer()

    sent = sum(source.buffer.nbytes for source, _ in pairs)
    return sum(devices.processes.allgather(sent / seconds_of(devices, send, COPY_SECONDS)[0]))


def _pair(device: DeviceGroup, group: str, precision: str) -> tuple[Slab, Slab]:
    """Return two fields of the same size on a device that fit into its free memory."""
    slices = 16 if device.devices[0].in_host_memory else 128
    extents = [COPY_EXTENT, COPY_EXTENT, COPY_EXTENT, slices]
    link_bytes = GROUPS[group].components * REAL_BYTES[precision]
    room = COPY_SHARE * device.devices[0].free_bytes() / 2
    while 4 * math.prod(extents) * link_bytes > room and max(extents) > COPY_LEAST_EXTENT:
        longest = max(range(4), key=lambda mu: (extents[mu], mu))
        extents[longest] //= 2
    lattice = Lattice(*extents)
    source, target = (Field.cold(lattice, group, precision, device).slabs[0] for _ in range(2))
    return source, target
