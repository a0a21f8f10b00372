"""Groups of devices that share a lattice, each with a slab of time slices."""

from __future__ import annotations

import platform
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from gauge_mc.devices import BACKENDS, Device, DeviceChoice, choose_devices, describe_devices
from gauge_mc.devices.base import streamed
from gauge_mc.devices.choice import AUTOMATIC, open_device
from gauge_mc.devices.host import allowed_cores
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.mpi import Processes
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.signatures import checks_types

T = TypeVar("T")


class ResultCache:
    """Cache of results that depend on the links, such as quark propagators.

    Results are kept only within the context `links_stay`, and only those of one owner at a time.
    """

    def __init__(self) -> None:
        self._owner: object = None
        self._found: dict[Hashable, Any] | None = None

    @contextmanager
    def links_stay(self) -> Iterator[None]:
        """Keep results in this context, and drop them at its end."""
        before, self._found = self._found, {} if self._found is None else self._found
        try:
            yield
        finally:
            self._found = before
            if before is None:
                self._owner = None

    def once(self, owner: object, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a result from the cache, or compute it."""
        if self._found is None:
            return compute()
        if owner is not self._owner:
            self._found.clear()
            self._owner = owner
        if key not in self._found:
            self._found[key] = compute()
        result: T = self._found[key]
        return result


LEAST_SLICES = 2
"""Minimum number of time slices per slab, so that its first and last slice are different."""


@dataclass(frozen=True)
class DeviceGroup:
    """Devices that share lattices. Results are bit-for-bit the same for any number of devices.

    The devices form a ring: each is a neighbour of the next one, and the last is a neighbour of the
    first, because the lattice is periodic in time.

    Attributes
    ----------
    devices : tuple of Device
        The devices of this process, all of the same kind.
    processes : Processes
        All processes that share the lattices.
    slices : tuple of int, optional
        Number of time slices of every slab; by default as equal as possible.
    shared : ResultCache
        Results that measurements of the same links share, within `measuring`.

    Raises
    ------
    GaugeError
        If the devices store links in different ways.
    """

    devices: tuple[Device, ...]
    processes: Processes = field(default_factory=Processes)
    slices: tuple[int, ...] | None = None
    shared: ResultCache = field(default_factory=ResultCache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = {(d.backend, d.packet_bytes, d.lanes("single")) for d in self.devices}
        if len(set().union(*self.processes.allgather(kinds))) > 1:
            raise GaugeError(
                "The devices store links in different ways and cannot share a lattice: use "
                "processors of one kind."
            )

    @classmethod
    def of(cls, devices: DeviceGroup | Device | None) -> DeviceGroup:
        """Return a group unchanged, or a group of one device, by default that of `open_device`."""
        return devices if isinstance(devices, DeviceGroup) else cls((devices or open_device(),))

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """The names of the devices, as shown to the user."""
        names = self.processes.allgather([device.name for device in self.devices])
        return describe_devices(name for process in names for name in process)

    @property
    def root(self) -> bool:
        """Whether this is the root process, which reads and writes files."""
        return self.processes.rank == 0

    @cached_property
    def counts(self) -> list[int]:
        """The number of devices of every process."""
        return self.processes.allgather(len(self.devices))

    @property
    def first_slab(self) -> int:
        """The number of this process's first slab among all slabs."""
        return sum(self.counts[: self.processes.rank])

    def process_of(self, slab: int) -> int:
        """Return the process to which a slab belongs."""
        return next(rank for rank, end in enumerate(accumulate(self.counts)) if slab < end)

    def slabs(self, lattice: Lattice) -> list[range]:
        """Return the time slices of each slab of a lattice, in order.

        Raises
        ------
        UsageError
            If the lattice has too few time slices, or `slices` does not fit the lattice.
        """
        count = sum(self.counts)
        refuse_too_many(count, lattice)
        # GPUs are faster with an even number of slices.
        bounds = [2 * (lattice.t // 2 * n // count) for n in range(count + 1)]
        if self.slices is not None:
            bounds = [0, *accumulate(self.slices)]
            enough = count == 1 or min(self.slices) >= LEAST_SLICES
            if not enough or len(self.slices) != count or bounds[-1] != lattice.t:
                raise UsageError(
                    f"Slabs of {', '.join(map(str, self.slices))} time slices do not make up the "
                    f"lattice {lattice} on {count} devices: give {count} numbers of at least "
                    f"{LEAST_SLICES} with the sum {lattice.t}."
                )
        return [range(*pair) for pair in pairwise(bounds)]

    def gather_slices(self, lattice: Lattice, get: Callable[[int], T]) -> Iterator[T]:
        """Collect a value for every time slice in the root process; all processes must call this.

        Parameters
        ----------
        lattice : Lattice
            The lattice whose time slices are meant.
        get : callable
            Takes a time slice of this process and returns its value.

        Yields
        ------
        object
            The values for t = 0, 1, … in the root process; nothing in other processes.
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

    def scatter_slices(
        self, lattice: Lattice, values: Iterator[T], put: Callable[[int, T], None]
    ) -> None:
        """Distribute a value for every time slice; all processes must call this.

        Parameters
        ----------
        lattice : Lattice
            The lattice whose time slices are meant.
        values : iterator
            The values for t = 0, 1, … in the root process; ignored in other processes.
        put : callable
            Takes a time slice of this process and its value.
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

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Let work on the side streams run beside the other work, while links do not change.

        Both begin after all work issued before. All later work, on every device, waits for both, so
        that an update does not change links that are still read. All processes must call this.
        """
        devices = streamed(self.devices)
        for device in devices:
            device.fork()
        try:
            with self.shared.links_stay():
                yield
        finally:
            for device in devices:
                device.join()
        self.fence()

    def fence(self) -> None:
        """Let later work on every device begin only after all work issued so far, on all devices.

        All processes must call this.
        """
        events = [device.event() for device in self.devices] if len(self.devices) > 1 else []
        for device in self.devices:
            for event in events:
                device.wait(event)
        if self.processes.size > 1:
            self.synchronize()
            self.processes.allgather(None)

    def compute(self, strict: bool) -> None:
        """Say whether fields that are made from now on are computed with the same bits everywhere.

        Fields that were made before must not be used any longer if they differ in this.
        """
        for device in self.devices:
            device.strict = strict

    @property
    def strict(self) -> bool:
        """Whether fields are computed with the same bits everywhere."""
        return any(device.strict for device in self.devices)

    def synchronize(self) -> None:
        """Wait until all devices of this process have finished their work."""
        for device in self.devices:
            device.synchronize()

    def close(self) -> None:
        """Close the devices of this process."""
        for device in self.devices:
            device.close()


def refuse_too_many(count: int, lattice: Lattice) -> None:
    """Refuse more devices than a lattice can be divided among."""
    if lattice.t < LEAST_SLICES * count:
        raise UsageError(
            f"The lattice {lattice} has {lattice.t} time slices, too few for {count} devices, "
            f"each of which needs at least {LEAST_SLICES}: use at most "
            f"{lattice.t // LEAST_SLICES} devices."
        )


@checks_types
def open_device_group(
    devices: str | None = None,
    backend: str = AUTOMATIC,
    threads: int | None = None,
    processes: Processes | None = None,
    share_gpus: bool = False,
    all_by_default: bool = False,
    lattice: Lattice | None = None,
) -> DeviceGroup:
    """Open devices as a device group.

    Parameters
    ----------
    devices, backend, threads, all_by_default
        See `gauge_mc.devices.choose_devices`. If there are several processes on a host, the chosen
        GPUs (by default all) are distributed over them. On CPUs each process gets an equal share
        of the cores.
    processes : Processes, optional
        The processes that share the lattices; by default only this one.
    share_gpus : bool
        Whether two processes may use the same GPU.
    lattice : Lattice, optional
        Lattice that the devices are to share. Too many devices are refused before any is opened.

    Raises
    ------
    UsageError, GaugeError
        If there are too many devices for the lattice, if they cannot be chosen or opened (see
        `choose_devices` and `DeviceChoice.open`),
        or if there are fewer GPUs than processes on this host.
    """
    processes = processes or Processes()
    choices = choose_devices(devices, backend, threads, all_by_default or processes.size > 1)
    if choices[0].numbered:
        mine = _share_of_this_process(choices, processes, share_gpus)
        if lattice:
            refuse_too_many(len(mine), lattice)
        return DeviceGroup(tuple(choice.open() for choice in mine), processes)
    if threads is None:
        cores = allowed_cores()
        alike = processes.allgather((platform.node(), cores)).count((platform.node(), cores))
        if alike > 1:
            share = max(1, BACKENDS[choices[0].backend].available_threads() // alike)
            choices = choose_devices(devices, choices[0].backend, share)
    if lattice:
        refuse_too_many(len(choices), lattice)
    worker = len(choices) > 1
    return DeviceGroup(tuple(choice.open(worker) for choice in choices), processes)


def _share_of_this_process(
    choices: tuple[DeviceChoice, ...], processes: Processes, share_gpus: bool
) -> tuple[DeviceChoice, ...]:
    """Return the part of the chosen GPUs that this process uses.

    A launcher may let each process see only its own GPUs. Processes that see the same GPUs divide
    them among themselves.
    """

    def identities(choices: tuple[DeviceChoice, ...]) -> list[str]:
        return [BACKENDS[choice.backend].identity(choice.ordinal) for choice in choices]

    everyone = processes.allgather((platform.node(), identities(choices)))
    alike = [rank for rank, x in enumerate(everyone) if x == everyone[processes.rank]]
    number, count = alike.index(processes.rank), len(alike)
    mine = choices[len(choices) * number // count : len(choices) * (number + 1) // count]
    if not mine and share_gpus:
        mine = (choices[number % len(choices)],)
    used = processes.allgather([(platform.node(), i) for i in identities(mine)])
    names = [name for x in used for name in x]
    if not share_gpus and (len(set(names)) < len(names) or not all(used)):
        raise GaugeError(
            f"On {platform.node()} there are more processes than GPUs: start one process per GPU, "
            "or let processes share a GPU with --share-gpus."
        )
    return mine
