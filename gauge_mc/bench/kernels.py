"""Times of the updates, with every generator, and of the observables."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gauge_mc import __version__, defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.bench.timing import copy_bandwidth, seconds_of
from gauge_mc.devices import Device
from gauge_mc.devices.base import Registers
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import WORD_BYTES
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import heatbath, heatbath_sweep
from gauge_mc.updates.overrelaxation import overrelax, overrelaxation_sweep

HEATBATH = "heatbath"
WITHOUT_EXCHANGE = "heatbath, no exchange"
EXCHANGE = "exchange"
"""Names in a `Benchmark` of what slabs do by themselves, and of what they do for each other."""

UPDATE_MOVES = 9.0
"""Links read and written for each link in a sweep, if no launch reads a link twice: to update one
direction on one parity, all links of both parities are read and an eighth is written."""

THERMALISATION = 10
"""Heatbath sweeps before anything is timed, so that links and staples are typical."""


@dataclass(frozen=True)
class KernelTime:
    """The time of one kernel.

    Attributes
    ----------
    name : str
        The update or observable; ``heatbath, lcg`` and the like with another generator.
    ns_per_link : float
        Median time in ns for each link of the lattice.
    spread : float
        Difference between the longest and the shortest time, as a part of the median.
    links_per_s : float
        Links per second.
    bytes_per_link : float or None
        Least bytes moved for each link if no launch reads a link twice; None if not known.
    roofline : float or None
        The time that these bytes need at the bandwidth of a copy, as a part of the time taken.
    registers, spilled : int or None
        Registers of a thread and bytes spilled, of the CUDA kernel that ran.
    """

    name: str
    ns_per_link: float
    spread: float
    links_per_s: float
    bytes_per_link: float | None
    roofline: float | None
    registers: int | None
    spilled: int | None


@dataclass(frozen=True)
class Benchmark:
    """The times of all kernels.

    Attributes
    ----------
    date, version : str
        The day, and the version of gauge-mc.
    device, compiler : str
        The devices, and the compiler of their kernels.
    group, lattice, precision, random : str
        What was timed.
    slabs : int
        The number of devices that share the lattice.
    lanes : int
        Sites in a register.
    copy_gb_per_s : float
        Bandwidth of a large copy on all devices together, in GB/s read and written.
    kernels : list of KernelTime
    left_out : list of str
        What was not timed, and why.
    """

    date: str
    version: str
    device: str
    compiler: str
    group: str
    lattice: str
    precision: str
    random: str
    slabs: int
    lanes: int
    copy_gb_per_s: float
    kernels: list[KernelTime]
    left_out: list[str]

    @property
    def hidden(self) -> float | None:
        """The part of the halo exchange that costs a heatbath sweep no time.

        None for one slab, and on CPUs, which copy themselves.
        """
        times = {kernel.name: kernel.ns_per_link for kernel in self.kernels}
        if EXCHANGE not in times or self.kernels[0].registers is None:
            return None
        exposed = (times[HEATBATH] - times[WITHOUT_EXCHANGE]) / times[EXCHANGE]
        return 1 - min(max(exposed, 0.0), 1.0)  # noise can exceed the bounds


@dataclass(frozen=True)
class Item:
    """Something to time.

    Attributes
    ----------
    name : str
    call : callable
        Takes a number of repetitions.
    links_moved : float or None
        Links moved for each link of the lattice.
    registers : callable
        Returns the registers of the kernel that runs.
    """

    name: str
    call: Callable[[int], object]
    links_moved: float | None
    registers: Callable[[], Registers | None] = lambda: None


def benchmark(
    device: Device | DeviceGroup,
    group: str,
    lattice: Lattice,
    precision: str = defaults.PRECISION,
    random: str = defaults.RNG,
    seconds: float = 1.0,
    luxury: int | None = None,
    progress: Callable[[str, int], object] = lambda name, total: None,
) -> Benchmark:
    """Time all kernels on a thermal field.

    Parameters
    ----------
    device : Device or DeviceGroup
    group, lattice, precision, random
        The kind of the field, and the generator.
    seconds : float
        About how long to time each kernel.
    luxury : int, optional
        The quality level of the generator.
    progress : callable
        Called with the name of what is timed next, and how many there are.

    Raises
    ------
    UsageError, GaugeError
        As of `Field.hot` and `Random.for_field`.
    """
    devices = DeviceGroup.of(device)
    field = Field.hot(lattice, group, precision, devices)
    generator = Random.for_field(field, random, luxury=luxury)
    progress("copy", 0)
    bandwidth = copy_bandwidth(devices, group, precision)
    beta = GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    overrelax(field, THERMALISATION // 2)
    left_out: list[str] = []
    items = [*_updates(field, beta, generator), *_observables(field)]
    others = [name for name in GENERATORS if name != random]
    link_bytes = field.group.components * field.layouts[0].real.itemsize
    kernels = []
    for item in chain(items, _other_generators(field, beta, others, luxury, left_out)):
        progress(item.name, len(items) + len(others))
        median, spread = seconds_of(devices, item.call, seconds)
        moved = None if item.links_moved is None else item.links_moved * link_bytes
        registers = item.registers()
        kernels.append(
            KernelTime(
                item.name,
                ns_per_link=median / lattice.links * 1e9,
                spread=spread / median,
                links_per_s=lattice.links / median,
                bytes_per_link=moved,
                roofline=None if moved is None else moved * lattice.links / bandwidth / median,
                registers=registers.count if registers else None,
                spilled=registers.spilled if registers else None,
            )
        )
        del item  # whose generator may hold memory
    return Benchmark(
        datetime.date.today().isoformat(),
        __version__,
        devices.name,
        devices.devices[0].compiler_name,
        group,
        str(lattice),
        precision,
        random,
        len(field.layouts),
        field.layouts[0].lanes,
        bandwidth / 1e9,
        kernels,
        left_out,
    )


def _updates(field: Field, beta: float, generator: Random) -> Iterator[Item]:
    """Yield the updates, and what slabs exchange."""
    sweep = heatbath_sweep(field, beta, generator, defaults.ACTION)
    yield Item(HEATBATH, partial(heatbath, field, beta, generator), UPDATE_MOVES, sweep.registers)
    if len(field.layouts) > 1:  # next to what it is compared with, since clocks change
        apart = replace(field)
        vars(apart)["halo"] = HaloExchange(field.devices, field.slabs, ())
        alone = partial(heatbath, apart, beta, generator)
        yield Item(WITHOUT_EXCHANGE, alone, UPDATE_MOVES, sweep.registers)
        moved = 4 * len(field.layouts) / field.lattice.t
        yield Item(EXCHANGE, partial(_exchange, field), moved)
    reflect = overrelaxation_sweep(field, defaults.ACTION)
    yield Item("overrelaxation", partial(overrelax, field), UPDATE_MOVES, reflect.registers)


def _observables(field: Field) -> Iterator[Item]:
    """Yield the observables of one record."""
    for one in OBSERVABLES.values():
        if not one.quantities:
            continue
        measure, kernel = one.for_lattice(field.lattice).measurer(field), one.main_kernel
        registers = field.slabs[0].kernel(kernel).registers if kernel else lambda: None
        yield Item(one.name, partial(_repeat, measure, field), one.links_moved, registers)


def _repeat(measure: Callable[[Field], object], field: Field, times: int) -> None:
    for _ in range(times):
        measure(field)


def _other_generators(
    field: Field, beta: float, names: Sequence[str], luxury: int | None, left_out: list[str]
) -> Iterator[Item]:
    """Yield heatbaths with other generators, one at a time, since states take memory.

    Those whose states do not fit into the free memory are appended to `left_out`.
    """
    for name in names:
        if not _fits(field, GENERATORS[name].state_words):
            left_out.append(f"{HEATBATH}, {name}: its states do not fit into the free memory")
            continue
        random = Random.for_field(field, name, luxury=luxury)
        sweep = heatbath_sweep(field, beta, random, defaults.ACTION)
        call = partial(heatbath, field, beta, random)
        yield Item(f"{HEATBATH}, {name}", call, UPDATE_MOVES, sweep.registers)
        del random, sweep, call


def _fits(field: Field, words: int) -> bool:
    """Return whether so many words a site fit into the free memory of all devices."""
    site_bytes = WORD_BYTES * words * field.lattice.slice_sites
    needed = [site_bytes * slab.layout.slices for slab in field.slabs]
    free = [slab.device.free_bytes() for slab in field.slabs]
    if field.slabs[0].device.in_host_memory:  # which slabs share
        needed, free = [sum(needed)], free[:1]
    short = any(one > there for one, there in zip(needed, free, strict=True))
    return not any(field.devices.processes.gather(short))


def _exchange(field: Field, sweeps: int) -> None:
    """Exchange what sweeps exchange."""
    for _ in range(sweeps):
        for one in ACTIONS[defaults.ACTION].update_sets:
            field.halo.post(field.window(one.mu, one.parity))
            field.halo.wait()
