"""Benchmark of the updates, with every random number generator, and of the observables."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from gauge_mc import __version__, defaults
from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.algorithms import ALGORITHMS, Algorithm, TimedSweep
from gauge_mc.benchmarks.timing import Bench, BenchResult, Timing, neighbour_bandwidth, table_of
from gauge_mc.devices.base import Registers, TunableDevice
from gauge_mc.devices.kernels import Kernel, Variant
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
    from gauge_mc.benchmarks.plan import BenchPlan

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
    def rates(self) -> list[Timing]:
        """The links per second, in 10^9; see `BenchResult`."""
        return [Timing(x.name, x.links_per_s / 1e9, x.roofline) for x in self.kernels]

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

    def report(self, before: Mapping[str, float] | None = None) -> list[Any]:
        """Return lines and a table, with ratios to earlier times in ns per link, by kernel."""
        title = (
            f"{self.group.upper()} {self.lattice}, {self.precision} precision, {self.random} on "
            f"{self.device}, {self.lanes} site{'s' * (self.lanes > 1)} per register; copy "
            f"{self.copy_gb_per_s:.4g} GB/s"
        )
        lines = [f"{x}: {n:.3g} times {x.partition(', ')[0]}" for x, n in self.ratios.items()]
        if self.hidden is not None:
            lines.append(f"{self.hidden:.0%} of the halo exchange is hidden behind the heatbath")
        available = any(kernel.nj_per_link is not None for kernel in self.kernels)
        source = "counters of" if available else "not available,"
        old = (before or {}).get
        ratios = [(time := old(x.name)) and x.ns_per_link / time for x in self.kernels]
        rows = [
            (x, x.spread / 2, x.links_per_s / 1e6, ratio)
            for x, ratio in zip(self.kernels, ratios, strict=True)
        ]
        columns = {"kernel": "{0.name}", "ns/link": "{0.ns_per_link:.4g}", "±": "{1:.0%}"}
        columns |= {"Mlink/s": "{2:.0f}", "B/link": "{0.bytes_per_link:g}"}
        columns |= {"roofline": "{0.roofline:.0%}", "nJ/link": "{0.nj_per_link:.3g}"}
        columns |= {"regs": "{0.registers:d}", "spill": "{0.spilled:d}"}
        columns |= {} if before is None else {"ratio": "{3:.3f}"}
        table = table_of(columns, rows, ("nJ/link", "regs", "spill"))
        energy = f"energy: {source} {self.energy_source}"
        return [title, table, *lines, *self.left_out, energy]


Timer = tuple[TimedSweep, float | None]
"""A kernel to time, with the links read and written per link of the lattice; None if unknown."""


def benchmark(bench: Bench, plan: BenchPlan) -> Benchmark:
    """Time all kernels on a thermal field."""
    devices, group, precision = bench.devices, bench.group, plan.precision
    field = Field.hot(bench.lattice, group, precision, devices)
    generator = Random.for_field(field, plan.rng, luxury=plan.luxury)
    bandwidth = bench.copy(precision)
    beside = neighbour_bandwidth(devices, group, precision)
    heatbath(field, GROUPS[group].beta, generator, THERMALISATION)
    overrelax(field, THERMALISATION // 2)
    things = _Things(field, generator, plan)
    links, link_bytes = field.lattice.links, field.group.components * field.layouts[0].real.itemsize
    kernels, energies = [], []
    total, timers = things.timers()
    bench = bench.of(total)
    for sweep, links_moved in timers:
        moved = None if links_moved is None else links_moved * link_bytes
        least = moved and moved * links / bandwidth
        timing = bench.timing(sweep.name, sweep.call, links, least, energy=True)
        energies.append(timing.energy)
        registers = sweep.registers()
        used = registers.count if registers else None, registers.spilled if registers else None
        times = timing.seconds / links * 1e9, timing.spread, timing.rate
        energy = timing.energy.nj_per_link(links)
        kernels.append(KernelTime(sweep.name, *times, moved, timing.share, *used, energy))
        del sweep  # which frees the memory of a generator
    source = next((x for x in energies if x.joules is not None), energies[-1]).source
    about = datetime.date.today().isoformat(), __version__, devices.devices[0].compiler_name
    field_words = precision, plan.rng, len(field.layouts), field.layouts[0].lanes
    speeds = bandwidth / 1e9, beside and beside / 1e9
    heading = *bench.heading, *about, *field_words, *speeds
    return Benchmark(*heading, kernels, things.left_out, source)


def timed_observables() -> list[type[Observable]]:
    """Return the observables that return one record, without those that take long."""
    return [x for x in OBSERVABLES.values() if x.columns.averaged and x.benched]


def check_update_names(names: Sequence[str]) -> None:
    """Refuse names that neither an update of the usual algorithm nor an observable has."""
    updates = ALGORITHMS[defaults.ALGORITHM].timed_sweeps
    refuse_others(
        names,
        (*updates, *(o.name for o in timed_observables())),
        "There is no update or observable '{}' whose speed bench measures",
    )


def refuse_others(names: Iterable[str], valid: Sequence[str], complaint: str) -> None:
    """Refuse names that are not valid, with a complaint."""
    for name in names:
        if name not in valid:
            near = nearest(name, sorted({*valid}))
            raise UnknownNameError(f"{complaint.format(shortened(name))}{near}")


class _Things:
    """What is timed on a field."""

    def __init__(self, field: Field, generator: Random, plan: BenchPlan) -> None:
        self._field, self._generator, self._plan = field, generator, plan
        self._usual = Coupling.of(GROUPS[field.group.name].beta)
        self._algorithm = ALGORITHMS[defaults.ALGORITHM]
        self.left_out: list[str] = []
        """What does not fit into the free memory."""

    def timers(self) -> tuple[int, Iterator[Timer]]:
        """Return the number of things if all fit into the memory, and the things."""
        names, action = self._plan.updates, self._plan.action
        another = Coupling.of(self._usual.beta, action) if action else self._usual
        couplings = dict.fromkeys((self._usual, another))
        first = [x for coupling in couplings for x in self._updates(self._algorithm, coupling)]
        first += self._observables()
        if names:
            first = [x for x in first if x[0].name.partition(", ")[0] in names]
            return len(first), iter(first)
        generators = [name for name in GENERATORS if name != self._plan.rng]
        total = len(first) + len(generators) + len(ALGORITHMS) - 1
        return total, chain(first, self._with_generators(generators), self._other_algorithms())

    def _updates(self, algorithm: Algorithm, coupling: Coupling) -> Iterator[Timer]:
        """Yield what an algorithm times; the action is named beside it unless it is usual."""
        usual = coupling == self._usual
        for part in algorithm.timed(self._field, coupling, self._generator):
            name = part.name if usual else f"{part.name}, {coupling.action.said}"
            moved = self._moved(coupling) if part.visits_links else None
            yield replace(part, name=name), moved
            if usual and part.name == defaults.ALGORITHM and len(self._field.layouts) > 1:
                # Timed directly after the sweep, because clock rates drift.
                yield from self._exchanges()

    def _moved(self, coupling: Coupling) -> float:
        """Return the links per link that a sweep moves: a launch reads all; all write each once."""
        return len(coupling.action.update_sets(self._field.lattice)) + 1.0

    def _exchanges(self) -> Iterator[Timer]:
        """Yield the usual sweep without halo exchange, and the exchange alone."""
        field, apart = self._field, replace(self._field)
        nothing = HaloExchange(field.devices, field.slabs, ())
        vars(apart)["halo"] = lambda depth=1: nothing
        sweep = next(self._algorithm.timed(apart, self._usual, self._generator))
        yield replace(sweep, name=WITHOUT_EXCHANGE), self._moved(self._usual)

        def exchange(sweeps: int) -> None:
            for _ in range(sweeps):
                for update_set in ACTIONS[defaults.ACTION].update_sets(field.lattice):
                    field.halo().post(field.window(update_set.mu, update_set.parity))
                    field.halo().wait()

        yield TimedSweep(EXCHANGE, exchange), 4 * len(field.layouts) / field.lattice.t

    def _observables(self) -> Iterator[Timer]:
        """Yield those with the names, or all that return one record and do not take long."""
        field, names = self._field, self._plan.updates
        for timed in timed_observables():
            if not names or timed.name in names:
                kernel = timed.main_kernel
                registers = field.slabs[0].kernel(kernel).registers if kernel else lambda: None
                record = partial(_record, timed.for_lattice(field.lattice), field)
                yield TimedSweep(timed.name, record, registers), timed.links_moved

    def _with_generators(self, names: Sequence[str]) -> Iterator[Timer]:
        """Yield the sweeps that draw numbers, with one generator at a time to save memory."""
        for name in names:
            title = f"{self._algorithm.name}, {name}"
            if not _fits(self._field, GENERATORS[name].state_words):
                self.left_out.append(f"{title}: its states do not fit into the free memory")
                continue
            random = Random.for_field(self._field, name, luxury=self._plan.luxury)
            for part in self._algorithm.timed(self._field, self._usual, random):
                if part.draws:
                    yield replace(part, name=f"{part.name}, {name}"), self._moved(self._usual)
            del random, part

    def _other_algorithms(self) -> Iterator[Timer]:
        """Yield the updates of other algorithms than the usual one."""
        for name, algorithm in ALGORITHMS.items():
            try:
                if name != defaults.ALGORITHM:
                    yield from self._updates(algorithm, self._usual)
            except NoMemoryError:
                if self._field.devices.processes.size > 1:  # the others would wait for this one
                    raise
                self.left_out.append(f"{name}: its fields do not fit into the free memory")


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


def _fits(field: Field, words: int) -> bool:
    """Return whether `words` 32-bit words per site fit into the free memory of all devices."""
    slice_bytes = WORD_BYTES * words * field.lattice.slice_sites
    sizes = [slice_bytes * slab.layout.slices for slab in field.slabs]
    free = [slab.device.free_bytes() for slab in field.slabs]
    if field.slabs[0].device.in_host_memory:  # all slabs share the memory
        sizes, free = [sum(sizes)], free[:1]
    short = any(y > x for y, x in zip(sizes, free, strict=True))
    return not any(field.devices.processes.allgather(short))


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
    slab, bench = field.slabs[0], Bench(field.devices, plan.group, lattice, seconds)
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
                time = bench.timing(kernel.name, call, 1).seconds / lattice.links
                faster = time < WORTHWHILE * least
                if faster:
                    best, least = choice, time
                registers = device.kernel(kernel, variant).registers()
                yield BoundsTiming(kernel.name, str(choice), registers, time * 1e9, faster)
        finally:
            device.keep(kernel, variant, best)
            field.prepared.clear()
