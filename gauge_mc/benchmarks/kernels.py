"""Benchmark of the updates, with every random number generator, and of the observables."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from gauge_mc import __version__, defaults
from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.algorithms import ALGORITHMS, Algorithm
from gauge_mc.benchmarks.timing import (
    COPY_SECONDS,
    Bench,
    BenchResult,
    Rate,
    copy_bandwidth,
    energy_of,
    neighbour_bandwidth,
    seconds_of,
)
from gauge_mc.devices.base import Registers, TunableDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.device_pool import EnergyUse
from gauge_mc.domain.halo import HaloExchange
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import WORD_BYTES
from gauge_mc.errors import NoMemoryError, UnknownNameError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable, measure_repeatedly
from gauge_mc.quoting import shortened
from gauge_mc.random import GENERATORS
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.updates.heatbath import HEATBATH, OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.sweep import ONE_REPLICA, norms_of

if TYPE_CHECKING:
    from gauge_mc.benchmarks import BenchPlan

WITHOUT_EXCHANGE = f"{defaults.ALGORITHM}, no exchange"
EXCHANGE = "exchange"
"""Names in a `Benchmark`: a usual sweep without halo exchange, and the exchange alone."""

THERMALISATION = 10
"""Number of heatbath sweeps before the timing, so that links and staples are typical."""


@documented
@dataclass(frozen=True)
class KernelTime:
    """The time of one kernel."""

    name: str = result_field(
        "Name of the update or observable. With another than the chosen generator, the name of "
        "the generator follows, as in ``heatbath, lcg``."
    )
    ns_per_link: float = result_field("Median time in ns per link of the lattice.")
    spread: float = result_field(
        "Difference between the longest and the shortest time, divided by the median."
    )
    links_per_s: float = result_field("Links per second.")
    bytes_per_link: float | None = result_field(
        "Bytes moved per link if no launch reads a link twice; None if unknown."
    )
    roofline: float | None = result_field(
        "Time that these bytes take at the bandwidth of a copy, divided by the measured time."
    )
    registers: int | None = result_field(
        "Registers per thread of a CUDA kernel; None for other kernels."
    )
    spilled: int | None = result_field(
        "Spilled bytes per thread of a CUDA kernel; None for other kernels."
    )
    nj_per_link: float | None = result_field(
        "Energy of the devices in nJ per link of the lattice; None if it is not available."
    )


@documented
@dataclass(frozen=True)
class Benchmark(BenchResult):
    """The times of all kernels."""

    date: str = result_field("Date in ISO 8601.")
    version: str = result_field("Version of gauge-mc.")
    compiler: str = result_field("Name of the compiler of their kernels.")
    precision: str = result_field("Precision of the links.")
    random: str = result_field("Name of the random number generator.")
    slabs: int = result_field("Number of devices that share the lattice.")
    lanes: int = result_field("Number of sites in a vector register.")
    copy_gb_per_s: float = result_field(
        "Bandwidth of a large copy on all devices together in GB/s, read and written."
    )
    neighbour_gb_per_s: float | None = result_field(
        "Bytes that all devices together send to the next one in large copies, in GB/s; None for "
        "one device."
    )
    kernels: list[KernelTime] = result_field("Times of the kernels.")
    left_out: list[str] = result_field("Kernels that were not timed, with the reasons.")
    energy_source: str = result_field(
        "Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is not available."
    )

    @property
    def rates(self) -> dict[str, Rate]:
        """The links per second, in 10^9; see `BenchResult`."""
        return {
            kernel.name: Rate(
                kernel.links_per_s / 1e9,
                kernel.roofline and kernel.links_per_s / kernel.roofline / 1e9,
            )
            for kernel in self.kernels
        }

    @property
    def ratios(self) -> dict[str, float]:
        """Times of updates with another action or generator in units of the default ones."""
        times = {kernel.name: kernel.ns_per_link for kernel in self.kernels}
        parts = {name: name.partition(", ") for name in times}
        return {
            name: times[name] / times[first]
            for name, (first, comma, _) in parts.items()
            if comma and first in times and name != WITHOUT_EXCHANGE
        }

    @property
    def hidden(self) -> float | None:
        """Fraction of the halo exchange that is hidden behind the computation of a heatbath sweep.

        None for a single slab, and on CPUs, where copies are not asynchronous.
        """
        times = {kernel.name: kernel.ns_per_link for kernel in self.kernels}
        if EXCHANGE not in times or self.kernels[0].registers is None:
            return None
        exposed = (times[defaults.ALGORITHM] - times[WITHOUT_EXCHANGE]) / times[EXCHANGE]
        return 1 - min(max(exposed, 0.0), 1.0)  # statistical noise can exceed the bounds


@dataclass(frozen=True)
class KernelTimer:
    """A kernel to time.

    Attributes
    ----------
    name : str
        Name in the table of results.
    call : callable
        Function that carries out a given number of repetitions.
    links_moved : float or None
        Links read and written per link of the lattice; None if unknown.
    registers : callable
        Function that returns the register usage of the kernel, or None.
    """

    name: str
    call: Callable[[int], object]
    links_moved: float | None
    registers: Callable[[], Registers | None] = lambda: None


def benchmark(bench: Bench, plan: BenchPlan) -> Benchmark:
    """Time all kernels on a thermal field."""
    devices, group, lattice = bench.devices, bench.group, bench.lattice
    precision, names = plan.precision, plan.updates
    field = Field.hot(lattice, group, precision, devices)
    generator = Random.for_field(field, plan.rng, luxury=plan.luxury)
    bench.begin("copy")
    bandwidth = copy_bandwidth(devices, group, precision, min(bench.seconds, COPY_SECONDS))
    beside = neighbour_bandwidth(devices, group, precision)
    beta = GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    overrelax(field, THERMALISATION // 2)
    left_out: list[str] = []
    usual = Coupling.of(beta)
    another = Coupling.of(beta, plan.action) if plan.action else usual
    first = ALGORITHMS[defaults.ALGORITHM]
    items = [*_updates(field, usual, generator, first)]
    if another != usual:
        items += _updates(field, another, generator, first)
    items += _observables(field, names)
    generators = [name for name in GENERATORS if name != plan.rng]
    rest = _other_algorithms(field, usual, generator, left_out)
    count = len(items) + len(generators) + len(ALGORITHMS) - 1
    if names:
        items = [item for item in items if item.name.partition(", ")[0] in names]
        generators, rest, count = [], iter(()), len(items)
    link_bytes = field.group.components * field.layouts[0].real.itemsize
    kernels, energies = [], list[EnergyUse]()
    bench = bench.of(count)
    by_generator = _other_generators(field, beta, generators, plan.luxury, left_out)
    for item in chain(items, by_generator, rest):
        bench.begin(item.name)
        median, spread = seconds_of(devices, item.call, bench.seconds)
        energies.append(energy_of(devices, item.call, bench.seconds, median))
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
                nj_per_link=energies[-1].nj_per_link(lattice.links),
            )
        )
        del item  # frees the memory of its generator
    return Benchmark(
        *bench.heading,
        datetime.date.today().isoformat(),
        __version__,
        devices.devices[0].compiler_name,
        precision,
        plan.rng,
        len(field.layouts),
        field.layouts[0].lanes,
        bandwidth / 1e9,
        beside and beside / 1e9,
        kernels,
        left_out,
        next((energy for energy in energies if energy.joules is not None), energies[-1]).source,
    )


def timed_observables() -> list[type[Observable]]:
    """Return the observables that return one record, without those that take long."""
    return [x for x in OBSERVABLES.values() if x.columns.averaged and x.benched]


def check_update_names(names: Sequence[str]) -> None:
    """Refuse names that neither an update of the usual algorithm nor an observable has."""
    updates = ALGORITHMS[defaults.ALGORITHM].timed_sweeps
    valid = sorted([*updates, *(o.name for o in timed_observables())])
    for name in names:
        if name not in valid:
            raise UnknownNameError(
                f"There is no update or observable '{shortened(name)}' whose speed bench "
                f"measures{nearest(name, valid)}"
            )


def _updates(
    field: Field, coupling: Coupling, generator: Random, algorithm: Algorithm
) -> Iterator[KernelTimer]:
    """Yield what an algorithm times; the action is named beside it unless it is the usual one."""
    action = coupling.action
    usual = coupling == Coupling.of(coupling.beta)
    moved = _links_moved(field, coupling)
    for part in algorithm.timed(field, coupling, generator):
        name = part.name if usual else f"{part.name}, {action.said}"
        yield KernelTimer(name, part.call, moved if part.visits_links else None, part.registers)
        if usual and part.name == defaults.ALGORITHM and len(field.layouts) > 1:
            # Timed directly after the sweep, because clock rates drift.
            yield from _exchanges(field, coupling, generator, algorithm, moved)


def _links_moved(field: Field, coupling: Coupling) -> float:
    """Return the links per link that a sweep moves: each launch reads all; all write each once."""
    return len(coupling.action.update_sets(field.lattice)) + 1.0


def _exchanges(
    field: Field, coupling: Coupling, generator: Random, algorithm: Algorithm, moved: float
) -> Iterator[KernelTimer]:
    """Yield the first sweep of an algorithm without halo exchange, and the exchange alone."""
    apart = replace(field)
    exchange = HaloExchange(field.devices, field.slabs, ())
    vars(apart)["halo"] = lambda depth=1: exchange
    sweep = next(algorithm.timed(apart, coupling, generator))
    yield KernelTimer(WITHOUT_EXCHANGE, sweep.call, moved, sweep.registers)
    share = 4 * len(field.layouts) / field.lattice.t
    yield KernelTimer(EXCHANGE, partial(_exchange, field), share)


def _observables(field: Field, names: Sequence[str]) -> Iterator[KernelTimer]:
    """Yield those with these names, or all that return one record and do not take long."""
    for timed in timed_observables():
        if names and timed.name not in names:
            continue
        observable, kernel = timed.for_lattice(field.lattice), timed.main_kernel
        registers = field.slabs[0].kernel(kernel).registers if kernel else lambda: None
        call = partial(_record, observable, field)
        yield KernelTimer(timed.name, call, timed.links_moved, registers)


def _record(observable: Observable, field: Field, times: int) -> None:
    """Measure as a run does, in blocks of records; one by one without memory for a block."""
    try:
        recorder = observable.recorder(field)
    except NoMemoryError:
        if field.devices.processes.size > 1:  # the others would wait for this one
            raise
        for _ in range(times):
            observable.measure(field)
        return
    measure_repeatedly(recorder, field.devices, times)


def _other_generators(
    field: Field, beta: float, names: Sequence[str], luxury: int | None, left_out: list[str]
) -> Iterator[KernelTimer]:
    """Yield the sweeps that draw numbers, with other generators, one at a time to save memory.

    Generators whose states do not fit into the free memory are appended to `left_out`.
    """
    usual, coupling = ALGORITHMS[defaults.ALGORITHM], Coupling.of(beta)
    moved = _links_moved(field, coupling)
    for name in names:
        if not _fits(field, GENERATORS[name].state_words):
            left_out.append(f"{usual.name}, {name}: its states do not fit into the free memory")
            continue
        random = Random.for_field(field, name, luxury=luxury)
        for part in usual.timed(field, coupling, random):
            if part.draws:
                yield KernelTimer(f"{part.name}, {name}", part.call, moved, part.registers)
        del random, part


def _other_algorithms(
    field: Field, coupling: Coupling, generator: Random, left_out: list[str]
) -> Iterator[KernelTimer]:
    """Yield the updates of other algorithms than the usual one.

    Algorithms whose fields do not fit into the free memory are appended to `left_out`.
    """
    for name, algorithm in ALGORITHMS.items():
        if name == defaults.ALGORITHM:
            continue
        try:
            yield from _updates(field, coupling, generator, algorithm)
        except NoMemoryError:
            if field.devices.processes.size > 1:  # the others would wait for this one
                raise
            left_out.append(f"{name}: its fields do not fit into the free memory")


def _fits(field: Field, words: int) -> bool:
    """Return whether `words` 32-bit words per site fit into the free memory of all devices."""
    slice_bytes = WORD_BYTES * words * field.lattice.slice_sites
    sizes = [slice_bytes * slab.layout.slices for slab in field.slabs]
    free = [slab.device.free_bytes() for slab in field.slabs]
    if field.slabs[0].device.in_host_memory:  # all slabs share the memory
        sizes, free = [sum(sizes)], free[:1]
    short = any(y > x for y, x in zip(sizes, free, strict=True))
    return not any(field.devices.processes.allgather(short))


def _exchange(field: Field, sweeps: int) -> None:
    """Carry out the halo exchanges of a number of sweeps."""
    for _ in range(sweeps):
        for update_set in ACTIONS[defaults.ACTION].update_sets(field.lattice):
            field.halo().post(field.window(update_set.mu, update_set.parity))
            field.halo().wait()


WORTHWHILE = 0.99
"""Ratio of times below which a new choice is kept; a smaller gain may be chance."""


@dataclass(frozen=True)
class BoundsTiming:
    """One choice of launch bounds for one kernel."""

    kernel: str
    """Name of the kernel."""
    choice: str
    """Launch bounds, as text."""
    registers: Registers | None
    """Register usage of the compiled kernel; None if unknown."""
    ns_per_link: float
    """Time of a sweep in ns per link."""
    kept: bool
    """Whether this is the fastest choice so far."""


def tune(
    device: TunableDevice, plan: BenchPlan, lattice: Lattice, seconds: float = 0.2
) -> Iterator[BoundsTiming]:
    """Find the fastest launch bounds of heatbath and overrelaxation, and keep them."""
    field = Field.hot(lattice, plan.group, plan.precision, device)
    generator = Random.for_field(field, plan.rng, luxury=plan.luxury)
    beta, action = GROUPS[plan.group].beta, plan.action or defaults.ACTION
    heatbath(field, beta, generator, sweeps=5)
    slab = field.slabs[0]
    acting = (*Coupling.of(beta, action).action.choices, norms_of(plan.precision))
    calls: list[tuple[Kernel, Variant, Callable[[int], object]]] = [
        (
            HEATBATH,
            slab.variant(*acting, generator.choice, ONE_REPLICA),
            partial(heatbath, field, beta, generator, action=action),
        ),
        (OVERRELAXATION, slab.variant(*acting), partial(overrelax, field, action=action)),
    ]
    for kernel, variant, call in calls:
        choices = device.tuning_choices(kernel, variant)
        best, least = choices[0], float("inf")
        try:
            for choice in choices:
                device.use(kernel, variant, choice)
                field.prepared.clear()
                time = seconds_of(field.devices, call, seconds)[0] / lattice.links
                faster = time < WORTHWHILE * least
                if faster:
                    best, least = choice, time
                registers = device.kernel(kernel, variant).registers()
                yield BoundsTiming(kernel.name, str(choice), registers, time * 1e9, faster)
        finally:
            device.keep(kernel, variant, best)
            field.prepared.clear()
