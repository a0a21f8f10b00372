"""Forecast of the memory that a measurement takes on devices, by a rehearsal without memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table

from gauge_mc.devices import Device, describe_devices
from gauge_mc.devices.rehearsal import RehearsalDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import DevicePool, Devices
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import NoMemoryError
from gauge_mc.fields.field import Field
from gauge_mc.observables import Measurer, Observable
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field

SPLIT = "let several devices share every configuration with --split"
"""Advice if the memory is too small for stored configurations."""

DIVIDE = "let more --devices share the lattice"
"""Advice if the memory is too small along the way."""

SAID = 2**30
"""Memory in bytes from which on the start of a measurement says it."""


def of_free(needed: int, free: int) -> str:
    """Return in words how many bytes are needed, and how many are free."""
    return f"{decimal(needed)} of {decimal(free)} that are free"


@documented
@dataclass(frozen=True)
class MemoryForecast:
    """Memory that a measurement takes on devices."""

    observable: str = result_field("Name of the observable.")
    group: str = result_field("Gauge group.")
    lattice: str = result_field("Extents of the lattice.")
    device: str = result_field("Names of the devices.")
    device_bytes: int = result_field(
        "Memory of all devices that the measurement takes when it takes most, without what the "
        "driver takes for itself, and if iterations need not go on in higher precision."
    )
    free_device_bytes: int = result_field("Memory of all devices that is free.")
    shortage: str | None = result_field(
        "Why the memory is too small, in a sentence; None if it is not.", None
    )

    @property
    def sentence(self) -> str:
        """The memory that is needed and that is free, in words."""
        return of_free(self.device_bytes, self.free_device_bytes)

    def table(self) -> RenderableType:
        """Return the content as a table."""
        table = Table.grid(padding=(0, 2))
        table.add_row("measurement", f"{self.observable} (nothing was measured)")
        table.add_row("links", f"{self.group} on {self.lattice}")
        table.add_row("device", self.device)
        table.add_row("memory", self.sentence)
        return table


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of one device, or of the host if the device works there."""

    name: str
    """Name of the device."""
    needed: int
    """Bytes that are needed."""
    free: int
    """Bytes that are free."""

    @property
    def lacks(self) -> bool:
        """Whether there are too few."""
        return self.needed > self.free


def rehearse(
    observables: Sequence[Observable],
    lattice: Lattice,
    group: str,
    precision: str,
    devices: Devices,
    sharing: bool = False,
) -> list[int]:
    """Return the largest memory in bytes that measurements take, for each device of a group.

    They are carried out without memory and kernels; see `RehearsalDevice`. It begins with the
    links that are measured, and is done twice, because scratch memory stays.

    Parameters
    ----------
    observables : sequence of Observable
        The observables, ready for the ensemble. Those that cannot be rehearsed do not count.
    lattice, group, precision
        Those of the links.
    devices : Device or DeviceGroup
        The devices of this process that share the lattice.
    sharing : bool
        Whether the observables share results, as those that a run measures along the way do.
    """
    real = DeviceGroup.of(devices)
    actors = [RehearsalDevice(one) for one in real.devices]
    stage = replace(real, devices=tuple(cast(Device, one) for one in actors))
    wanted = [one.rehearsed for one in observables if one.rehearsed]
    measurers: list[Measurer] = []
    for _ in range(2):
        field = Field.cold(lattice, group, precision, stage)
        # Results are all zero, and so are denominators of ratios.
        with stage.measuring() if sharing else nullcontext(), np.errstate(all="ignore"):
            measurers = measurers or [one.measurer(field) for one in wanted]
            for measure in measurers:
                measure(field)
        del field
    return [actor.memory.most for actor in actors]


def memory_of(
    observable: Observable,
    lattice: Lattice,
    group: str,
    precision: str,
    pool: DevicePool,
) -> MemoryForecast:
    """Return the memory that a measurement takes on a pool of devices; see `rehearse`.

    Parameters
    ----------
    observable, lattice, group, precision
        See `rehearse`.
    pool : DevicePool
        Devices, or groups of devices, each of which measures a configuration at a time.
    """

    def job(devices: Devices, numbers: Sequence[int]) -> Generator[list[DeviceMemory], None, None]:
        for _ in numbers:
            needed = rehearse([observable], lattice, group, precision, devices)
            yield _memory(DeviceGroup.of(devices), needed)

    found = [*pool.results(job, range(len(pool.devices)))]
    each = [one for several in found for one in several]
    return MemoryForecast(
        observable.name,
        group,
        str(lattice),
        describe_devices(one.name for one in each),
        sum(one.needed for one in each),
        sum(one.free for one in each),
        next(
            (_shortage(f"{observable.name} needs", one, SPLIT) for one in each if one.lacks), None
        ),
    )


def memory_beside(observables: Iterable[Observable], field: Field) -> list[int]:
    """Return the memory in bytes that measurements along the way take besides the field.

    It is that on each device of this process of all observables that may take much. If the lattice
    is shared by several processes, between which nothing can be rehearsed, it is 0.

    Raises
    ------
    NoMemoryError
        If a device has less.
    """
    several, devices = [one for one in observables if one.takes_memory], field.devices
    if not several or devices.processes.size > 1:
        return [0] * len(field.slabs)
    kind = field.lattice, field.group.name, field.precision, devices
    pairs = zip(rehearse(several, *kind, sharing=True), field.slabs, strict=True)
    needed = [nbytes - slab.buffer.nbytes for nbytes, slab in pairs]
    names = in_words([one.name for one in several])
    names += " need" if len(several) > 1 else " needs"
    for memory in _memory(devices, needed):
        if memory.lacks:
            raise NoMemoryError(_shortage(names, memory, DIVIDE))
    return needed


def _memory(devices: DeviceGroup, needed: Sequence[int]) -> list[DeviceMemory]:
    """Return the memory of every device of a group, or of the host that all of them share."""
    first = devices.devices[0]
    if first.in_host_memory:
        return [DeviceMemory(devices.name, sum(needed), first.free_bytes())]
    pairs = zip(devices.devices, needed, strict=True)
    return [DeviceMemory(one.name, nbytes, one.free_bytes()) for one, nbytes in pairs]


def _shortage(need: str, memory: DeviceMemory, otherwise: str) -> str:
    """Return why a device has too little memory, given what needs it, and what to do."""
    return (
        f"{need} {decimal(memory.needed)} of memory on {memory.name}, where "
        f"{decimal(memory.free)} are free: measure fewer quarks or smearing levels at a time, or "
        f"{otherwise}."
    )


def refuse_shortage(forecast: MemoryForecast) -> None:
    """Refuse a measurement for which a device has too little memory.

    Raises
    ------
    NoMemoryError
        If it has.
    """
    if forecast.shortage:
        raise NoMemoryError(forecast.shortage)
