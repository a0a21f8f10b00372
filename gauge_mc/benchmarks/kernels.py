"""Benchmarks of updates, of observables, and of smearings and gradient flows in units of sweeps."""

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
from gauge_mc.benchmarks.timing import (
    SOURCE,
    Bench,
    BenchResult,
    Repetition,
    Timing,
    neighbour_bandwidth,
    table_of,
    used,
)
from gauge_mc.devices.base import Registers, TunableDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import WORD_BYTES
from gauge_mc.errors import NoMemoryError, UnknownNameError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable, measure_repeatedly
from gauge_mc.quoting import shortened
from gauge_mc.random import GENERATORS
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.smearing import NO_SMEARING, SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates.heatbath import HEATBATH, OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.sweep import ONE_REPLICA, norms_of

if TYPE_CHECKING:
    from gauge_mc.benchmarks.plan import BenchPlan

WITHOUT_EXCHANGE, EXCHANGE = f"{defaults.ALGORITHM}, no exchange", "exchange"
"""Names in a `Benchmark`: a usual sweep without halo exchange, and the exchange alone."""

THERMALISATION = 10
"""Number of heatbath sweeps before the timing, so that links and staples are typical."""

FLOW_STEP = 0.02
"""Size of the steps of gradient flows, on which their time does not depend."""

WORTHWHILE = 0.99
"""Ratio of times below which new launch bounds are kept; a smaller gain may be chance."""

KINDS: tuple[Mapping[str, Any], ...] = (OBSERVABLES, SMEARINGS, TEMPORAL_LINKS, FLOWS)
"""Registries of everything that is timed in units of sweeps."""

SUFFIXES = ("", " smearing", " temporal links", " flow")
"""Words after the name of a member of each of `KINDS`."""


@documented
@dataclass(frozen=True)
class KernelTime:
    """The time of one kernel."""

    name: str = result_field(
        "Name of the update or observable, and of the generator if it is not the chosen one, as in "
        "``heatbath, lcg``."
    )
    ns_per_link: float = result_field("Median time in ns per link of the lattice.")
    spread: float = result_field("Longest minus shortest time, divided by the median.")
    links_per_s: float = result_field("Links per second.")
    bytes_per_link: float | None = result_field("Bytes per link if none is read twice in a launch.")
    roofline: float | None = result_field("Time of a copy of these bytes, divided by the time.")
    registers: int | None = result_field("Registers per thread; None without CUDA.")
    spilled: int | None = result_field("Spilled bytes per thread; None without CUDA.")
    nj_per_link: float | None = result_field("Energy of the devices in nJ per link.")


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
    copy_gb_per_s: float = result_field("Bandwidth of a copy, read and written, in GB/s.")
    neighbour_gb_per_s: float | None = result_field("Bandwidth of sends to neighbours in GB/s.")
    kernels: list[KernelTime] = result_field("Times of the kernels.")
    left_out: list[str] = result_field("Kernels that were not timed, with the reasons.")
    energy_source: str = result_field(SOURCE)

    @property
    def rates(self) -> list[Timing]:
        """The links per second, in 10^9; see `BenchResult`."""
        return [Timing(x.name, x.links_per_s / 1e9, x.roofline) for x in self.kernels]

    @property
    def _times(self) -> dict[str, float]:
        return {kernel.name: kernel.ns_per_link for kernel in self.kernels}

    @property
    def ratios(self) -> dict[str, float]:
        """Times of updates with another action or generator in units of the default ones."""
        times = self._times
        usual = {name: name.partition(", ")[0] for name in times if name != WITHOUT_EXCHANGE}
        return {x: times[x] / times[y] for x, y in usual.items() if x != y and y in times}

    @property
    def hidden(self) -> float | None:
        """Fraction of the halo exchange that is hidden behind the computation of a heatbath sweep.

        None for a single slab, and on CPUs, where copies are not asynchronous.
        """
        times = self._times
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
        energy = f"energy: {'counters of' if available else 'not available,'} {self.energy_source}"
        old = (before or {}).get
        rows = [
            (x, x.spread / 2, x.links_per_s / 1e6, (time := old(x.name)) and x.ns_per_link / time)
            for x in self.kernels
        ]
        columns = {"kernel": "{0.name}", "ns/link": "{0.ns_per_link:.4g}", "±": "{1:.0%}"}
        columns |= {"Mlink/s": "{2:.0f}", "B/link": "{0.bytes_per_link:g}"}
        columns |= {"roofline": "{0.roofline:.0%}", "nJ/link": "{0.nj_per_link:.3g}"}
        columns |= {"regs": "{0.registers:d}", "spill": "{0.spilled:d}"}
        columns |= {} if before is None else {"ratio": "{3:.3f}"}
        table = table_of(columns, rows, ("nJ/link", "regs", "spill"))
        return [title, table, *lines, *self.left_out, energy]


Timer = tuple[TimedSweep, float | None]
"""A kernel to time, with the links read and written per link of the lattice; None if unknown."""


def benchmark(bench: Bench, plan: BenchPlan) -> Benchmark:
    """Time all kernels on a thermal field."""
    devices, group, precision = bench.devices, bench.group, plan.precision
    field = Field.hot(bench.lattice, group, precision, devices)
    generator = Random.for_field(field, plan.rng, luxury=plan.luxury)
    copy = bench.copy(precision)
    beside = neighbour_bandwidth(devices, group, precision)
    heatbath(field, GROUPS[group].beta, generator, THERMALISATION)
    overrelax(field, THERMALISATION // 2)
    sweeps = _TimedSweeps(field, generator, plan)
    layouts, links = field.layouts, field.lattice.links
    link_bytes = field.group.components * layouts[0].real.itemsize
    kernels, energies = [], []
    total, timers = sweeps.timers()
    bench = bench.of(total)
    for sweep, links_moved in timers:
        moved = None if links_moved is None else links_moved * link_bytes
        timing = bench.timing(
            sweep.name, sweep.call, links, moved and moved * links / copy, energy=True
        )
        energies.append(timing.energy)
        times = timing.seconds / links * 1e9, timing.spread, timing.rate, moved, timing.share
        energy = timing.energy.nj_per_link(links)
        kernels.append(KernelTime(sweep.name, *times, *used(sweep.registers()), energy))
        del sweep  # which frees the memory of a generator
    source = next((x for x in energies if x.joules is not None), energies[-1]).source
    about = datetime.date.today().isoformat(), __version__, devices.devices[0].compiler_name
    layout = precision, plan.rng, len(layouts), layouts[0].lanes
    speeds = copy / 1e9, beside and beside / 1e9
    heading = *bench.heading, *about, *layout, *speeds
    return Benchmark(*heading, kernels, sweeps.left_out, source)


def timed_observables() -> list[type[Observable]]:
    """Return the observables that return one record, without those that take long."""
    return [x for x in OBSERVABLES.values() if x.columns.averaged and x.benched]


def check_names(names: Iterable[str], in_sweeps: bool) -> None:
    """Refuse names of nothing that is timed, alone or with ``--observables`` in units of sweeps."""
    complaint = "There is no update or observable '{}' whose speed bench measures"
    valid = [*ALGORITHMS[defaults.ALGORITHM].timed_sweeps, *(x.name for x in timed_observables())]
    if in_sweeps:
        valid = [*chain(*KINDS)]
        complaint = (
            "--observables: There is no observable, smearing, kind of temporal links or flow '{}'"
        )
    for name in names:
        if name not in valid:
            near = nearest(name, sorted({*valid}))
            raise UnknownNameError(f"{complaint.format(shortened(name))}{near}")


class _TimedSweeps:
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
            if not _fits(self._field, GENERATORS[name].state_words):
                title = f"{self._algorithm.name}, {name}"
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


@documented
@dataclass(frozen=True)
class ObservablesTime(BenchResult):
    """Times of observables, smearings, temporal links and flows, in heatbath sweeps of a field."""

    precision: str = result_field("Precision of the links.")
    links: int = result_field("Number of links of the lattice.")
    heatbath_s: float = result_field("Time of a sweep of heatbath in seconds.")
    overrelaxation_s: float = result_field("Time of a sweep of overrelaxation in seconds.")
    observables: dict[str, float] = result_field(
        "Time of one measurement without smearing, by observable: with the default options, and "
        "along the gradient flow at t = 0 only."
    )
    smearings: dict[str, float] = result_field("Time of an iteration with the default options.")
    temporal_links: dict[str, float] = result_field("Time to make the links of static sources.")
    flows: dict[str, float] = result_field("Time of a Runge-Kutta step of fixed size.")

    @property
    def rates(self) -> list[Timing]:
        """The links per second, in 10^9; see `BenchResult`."""
        return [Timing(name, 1 / self.ns_per_link(x)) for name, _, x in self._sweeps()]

    def _sweeps(self) -> Iterator[tuple[str, str, float]]:
        """Yield the names with what is said after them, and the times in heatbath sweeps."""
        kinds = self.observables, self.smearings, self.temporal_links, self.flows
        for suffix, kind in zip(SUFFIXES, kinds, strict=True):
            yield from ((name, suffix, sweeps) for name, sweeps in kind.items())

    def ns_per_link(self, sweeps: float) -> float:
        """Return a time in ns per link, given in heatbath sweeps."""
        return 1e9 * self.heatbath_s * sweeps / self.links

    def report(self) -> list[Any]:
        """Return lines and a table of the times."""
        rows = [
            (f"{name}{suffix}", *(f"{x:.{4 if x > 999 else 3}g}" for x in times))
            for name, suffix, y in self._sweeps()
            for times in [(self.ns_per_link(y), y, y * self.heatbath_s / self.overrelaxation_s)]
        ]
        columns = {"one measurement, iteration or step": "{0}", "ns/link": "{1}"}
        columns |= {"heatbath\nsweeps": "{2}", "overrelaxation\nsweeps": "{3}"}
        first, second = (f"{1e3 * x:.4g} ms" for x in (self.heatbath_s, self.overrelaxation_s))
        sweeps_take = f"a heatbath sweep takes {first}, an overrelaxation sweep {second}"
        return [self.subject, sweeps_take, table_of(columns, rows)]


def observables_time(
    bench: Bench, precision: str = defaults.PRECISION, names: Sequence[str] = ()
) -> ObservablesTime:
    """Time observables, smearings, temporal links and flows on a thermal field."""
    things = [
        [(x, y) for x, y in kind.items() if (x in names if names else getattr(y, "benched", True))]
        for kind in KINDS
    ]
    bench = bench.of(2 + sum(map(len, things)))
    lattice, group = bench.lattice, bench.group
    field = Field.hot(lattice, group, precision, bench.devices)
    generator, beta = Random.for_field(field), GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    sweep = bench.timing("heatbath", partial(heatbath, field, beta, generator)).seconds
    reflection = bench.timing("overrelaxation", partial(overrelax, field)).seconds

    def measurement(kind: type[Observable]) -> Callable[[], object]:
        options = {**kind.bench_options, **({"smear": NO_SMEARING} if kind.smears else {})}
        return partial(kind.for_lattice(lattice, **options).measurer(field), field)

    def onto(smear: Callable[[Field, Field], object]) -> Callable[[], object]:
        return partial(smear, field, Field.empty(lattice, group, precision, bench.devices))

    makers: tuple[Callable[[Any], Callable[[], object]], ...] = (
        measurement,
        lambda x: onto(x.from_options({})),
        lambda x: onto(x()),
        partial(flow_step, field=field),
    )
    times: list[dict[str, float]] = []
    for kind, maker, suffix in zip(things, makers, ("", "", *SUFFIXES[2:]), strict=True):
        times.append({})
        for name, thing in kind:
            bench.begin(f"{name}{suffix}")
            times[-1][name] = bench.time(maker(thing)) / sweep  # its buffers are freed then
    return ObservablesTime(*bench.heading, precision, lattice.links, sweep, reflection, *times)


def flow_step(flow: Flow, field: Field) -> Callable[[], object]:
    """Return a function that does a step of a gradient flow."""
    gradient_flow = GradientFlow(flow, field)
    gradient_flow.start(field)
    return partial(gradient_flow.step, FLOW_STEP)


def tune(
    devices: DeviceGroup, plan: BenchPlan, lattice: Lattice, seconds: float = 0.2
) -> Iterator[tuple[Timing, str, Registers | None, bool]]:
    """Find the fastest launch bounds of heatbath and overrelaxation, and keep them.

    Yield the timing of the kernel, each choice, its registers, and whether it is the fastest yet.
    """
    device = devices.devices[0]
    if not isinstance(device, TunableDevice) or devices.processes.size > 1:
        raise UsageError("--tune works only on a GPU and in one process; leave it out.")
    field = Field.hot(lattice, plan.group, plan.precision, device)
    generator = Random.for_field(field, plan.rng, luxury=plan.luxury)
    beta, action = GROUPS[plan.group].beta, plan.action or defaults.ACTION
    heatbath(field, beta, generator, sweeps=5)
    slab, bench = field.slabs[0], Bench(field.devices, plan.group, lattice, seconds)
    acting = (*Coupling.of(beta, action).action.choices, norms_of(plan.precision))
    drawing = slab.variant(*acting, generator.choice, ONE_REPLICA)
    calls: list[tuple[Kernel, Variant, Repetition]] = [
        (HEATBATH, drawing, partial(heatbath, field, beta, generator, action=action)),
        (OVERRELAXATION, slab.variant(*acting), partial(overrelax, field, action=action)),
    ]
    for kernel, variant, call in calls:
        choices = device.tuning_choices(kernel, variant)
        best, least = choices[0], float("inf")
        try:
            for choice in choices:
                device.use(kernel, variant, choice)
                field.prepared.clear()
                timing = bench.timing(kernel.name, call, lattice.links)
                faster = timing.seconds < WORTHWHILE * least
                if faster:
                    best, least = choice, timing.seconds
                yield timing, str(choice), device.kernel(kernel, variant).registers(), faster
        finally:
            device.keep(kernel, variant, best)
            field.prepared.clear()
