"""Devices that share a lattice, a slab of time slices each, as a ring closed by periodicity."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

from gauge_mc.devices import Device, DeviceChoice, choose_devices, in_words, open_device
from gauge_mc.devices.cpu import CpuDevice
from gauge_mc.devices.cuda import gpu_id
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.lattice import Lattice
from gauge_mc.ring.processes import Alone, Processes

T = TypeVar("T")

LEAST_SLICES = 2
"""Of a slab, whose first and last slice are updated before the others."""


@dataclass(frozen=True)
class Ring:
    """Devices that share lattices. Results do not depend on how many there are, to the bit.

    Attributes
    ----------
    devices : tuple of Device
        Those of this process, of one kind.
    processes : Processes
        All that take part, the same number of them in each.
    slices : tuple of int, optional
        Time slices of every slab; by default as equal as possible.

    Raises
    ------
    GaugeError
        If the devices store links in different ways.
    """

    devices: tuple[Device, ...]
    processes: Processes = field(default_factory=Alone)
    slices: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        kinds = {(d.backend, d.group_bytes, d.lanes("single")) for d in self.devices}
        if len(set().union(*self.processes.gather(kinds))) > 1:
            raise GaugeError(
                "The devices store links in different ways and cannot share a lattice: use "
                "processors of one kind."
            )

    @classmethod
    def of(cls, devices: Ring | Device | None) -> Ring:
        """A ring from one device (by default the one that `open_device` finds), or itself."""
        if isinstance(devices, Ring):
            return devices
        return cls((devices or open_device(),))

    @property
    def name(self) -> str:
        """What the devices are, in words."""
        names = self.processes.gather([device.name for device in self.devices])
        return in_words(name for process in names for name in process)

    @property
    def root(self) -> bool:
        """Whether this process is the one that reads and writes files."""
        return self.processes.rank == 0

    @cached_property
    def counts(self) -> list[int]:
        """How many devices every process has."""
        return self.processes.gather(len(self.devices))

    @property
    def first_slab(self) -> int:
        """The number in the ring of this process's first slab."""
        return sum(self.counts[: self.processes.rank])

    def process_of(self, slab: int) -> int:
        """The process that a slab belongs to."""
        return next(rank for rank, end in enumerate(accumulate(self.counts)) if slab < end)

    def slabs(self, lattice: Lattice) -> list[range]:
        """The time slices of every slab of a lattice, in the order of the ring.

        Raises
        ------
        UsageError
            If there are too few slices, or `slices` does not fit the lattice.
        """
        count = sum(self.counts)
        if lattice.t < LEAST_SLICES * count:
            raise UsageError(
                f"The lattice {lattice} has {lattice.t} time slices, too few for {count} devices, "
                f"each of which takes at least {LEAST_SLICES}: use at most "
                f"{lattice.t // LEAST_SLICES} devices."
            )
        # Even numbers of slices make good tiles on a GPU.
        bounds = [2 * (lattice.t // 2 * n // count) for n in range(count + 1)]
        if self.slices is not None:
            bounds = [0, *accumulate(self.slices)]
            enough = count == 1 or min(self.slices) >= LEAST_SLICES
            if not enough or len(self.slices) != count or bounds[-1] != lattice.t:
                raise UsageError(
                    f"Slabs of {', '.join(map(str, self.slices))} time slices do not make the "
                    f"lattice {lattice} on {count} devices; each needs {LEAST_SLICES} or more."
                )
        return [range(*pair) for pair in pairwise(bounds)]

    def gathered(self, lattice: Lattice, get: Callable[[int], T]) -> Iterator[T]:
        """Collect something of every time slice in the root; all processes call it.

        Parameters
        ----------
        lattice : Lattice
        get : callable
            From a time slice of this process to what is wanted.

        Yields
        ------
        object
            In the root what is wanted of t = 0, 1, …; in the other processes nothing.
        """
        for t, owner in enumerate(self._owners(lattice)):
            if owner == self.processes.rank:
                value = get(t)
                if self.root:
                    yield value
                else:
                    self.processes.send(value, 0)
            elif self.root:
                yield self.processes.receive(owner)

    def spread(self, lattice: Lattice, values: Iterator[T], put: Callable[[int, T], None]) -> None:
        """Deal out something for every time slice; all processes call it.

        Parameters
        ----------
        lattice : Lattice
        values : iterator
            What there is for t = 0, 1, …, in the root; not used in other processes.
        put : callable
            Takes a time slice of this process and what there is for it.
        """
        for t, owner in enumerate(self._owners(lattice)):
            if self.root:
                value = next(values)
                if owner == 0:
                    put(t, value)
                else:
                    self.processes.send(value, owner)
            elif owner == self.processes.rank:
                put(t, self.processes.receive(0))

    def _owners(self, lattice: Lattice) -> list[int]:
        return [self.process_of(n) for n, times in enumerate(self.slabs(lattice)) for _ in times]

    def synchronize(self) -> None:
        """Wait until all devices of this process have ended their work."""
        for device in self.devices:
            device.synchronize()

    def close(self) -> None:
        """Close the devices of this process."""
        for device in self.devices:
            device.close()


def open_ring(
    devices: str | None,
    backend: str = "auto",
    threads: int | None = None,
    processes: Processes | None = None,
    share_gpus: bool = False,
    every_gpu: bool = False,
) -> Ring:
    """Open devices for one lattice.

    Parameters
    ----------
    devices, backend, threads, every_gpu
        As for `gauge_mc.devices.choose_devices`. Several processes of a host share out the GPUs
        that are chosen, by default all; or each has the CPU, with its share of the cores.
    processes : Processes, optional
        That share the lattice; by default this one alone.
    share_gpus : bool
        Whether two processes may use one GPU.

    Raises
    ------
    UsageError, GaugeError
        As `choose_devices` and `DeviceChoice.open`; GaugeError also if there are fewer GPUs than
        processes on this host.
    """
    processes = processes or Alone()
    choices = choose_devices(devices, backend, threads, every_gpu or processes.size > 1)
    if choices[0].backend == "cuda":
        mine = _shared_out(choices, processes, share_gpus)
        return Ring(tuple(choice.open() for choice in mine), processes)
    if threads is None:
        cores = os.sched_getaffinity(0)
        alike = processes.gather((platform.node(), cores)).count((platform.node(), cores))
        choices = choose_devices(devices, "cpu", max(1, len(cores) // alike))
    beside = len(choices) > 1
    return Ring(tuple(CpuDevice(c.threads, beside=beside) for c in choices), processes)


def _shared_out(
    choices: tuple[DeviceChoice, ...], processes: Processes, share_gpus: bool
) -> tuple[DeviceChoice, ...]:
    """Return which of the chosen GPUs are for this process.

    A launcher may let every process see GPUs of its own; otherwise those that see the same GPUs
    share them out.
    """
    ids = [gpu_id(choice.ordinal) for choice in choices]
    everyone = processes.gather((platform.node(), ids))
    alike = [rank for rank, seen in enumerate(everyone) if seen == everyone[processes.rank]]
    number, count = alike.index(processes.rank), len(alike)
    mine = choices[len(choices) * number // count : len(choices) * (number + 1) // count]
    if not mine and share_gpus:
        mine = (choices[number % len(choices)],)
    used = processes.gather([(platform.node(), gpu_id(choice.ordinal)) for choice in mine])
    names = [name for one in used for name in one]
    if not share_gpus and (len(set(names)) < len(names) or not all(used)):
        raise GaugeError(
            f"On {platform.node()} there are more processes than GPUs: start one process a GPU, or "
            "let them share with --share-gpus."
        )
    return mine
