"""How fast the kernels are, and how that compares with what the memory allows."""

from __future__ import annotations

import ctypes
import datetime
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from gauge_mc import __version__
from gauge_mc.devices import Device
from gauge_mc.devices.base import Registers, repeated
from gauge_mc.devices.source import DEFAULT_LUXURY
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.observables.polyakov import polyakov_loop
from gauge_mc.observables.wilson import WilsonLoops
from gauge_mc.random import KINDS, Random
from gauge_mc.ring import Ring
from gauge_mc.ring.exchange import Exchange
from gauge_mc.smearing import Ape
from gauge_mc.updates import heatbath, overrelax
from gauge_mc.waves import CHECKERBOARD

BETA = {"su2": 2.5, "su3": 6.0}
WITHOUT_EXCHANGE = "heatbath, no exchange"
EXCHANGE = "exchange"
"""Names in a `Benchmark` of what slabs do by themselves, and of what they do for each other."""

LINKS_MOVED = {"heatbath": 9.0, "overrelaxation": 9.0, "plaquette": 1.0, "polyakov": 0.25}
"""Links read and written for each link of the lattice, where none is read twice by one launch: to
update one direction of one parity means to read all links of both parities and write an eighth."""


class _CopyArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("source", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class KernelTime:
    """What one kernel took.

    Attributes
    ----------
    name : str
        ``heatbath``, ``overrelaxation``, ``plaquette`` or ``polyakov``; ``heatbath, lcg`` and
        the like with another generator.
    ns_per_link : float
        Median time in ns for each link of the lattice.
    spread : float
        Largest less smallest time, as a part of the median.
    links_per_s : float
        The inverse, per second.
    bytes_per_link : float
        Least bytes of links moved for each link, if nothing is read twice by one launch.
    roofline : float
        The time that these bytes need at the copy's bandwidth, as a part of the time taken.
    registers, spilled : int or None
        Registers a thread and bytes spilled, of a CUDA kernel.
    """

    name: str
    ns_per_link: float
    spread: float
    links_per_s: float
    bytes_per_link: float
    roofline: float
    registers: int | None
    spilled: int | None


@dataclass(frozen=True)
class Benchmark:
    """Times of all kernels.

    Attributes
    ----------
    date, version : str
        When, and of which gauge-mc.
    device, compiler : str
        Where, and what compiled the kernels.
    group, lattice, precision, random : str
        What was timed.
    slabs : int
        Devices that share the lattice.
    lanes : int
        Sites in a register.
    copy_gb_per_s : float
        Bandwidth of a copy far larger than the caches, bytes read and bytes written counted; of
        all devices together.
    kernels : list of KernelTime
        The times.
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

    @property
    def hidden(self) -> float | None:
        """The part of the exchange between slabs that costs a heatbath sweep no time.

        None for one slab, and on CPUs, which copy themselves.
        """
        times = {kernel.name: kernel.ns_per_link for kernel in self.kernels}
        if EXCHANGE not in times or self.kernels[0].registers is None:
            return None
        exposed = (times["heatbath"] - times[WITHOUT_EXCHANGE]) / times[EXCHANGE]
        return 1 - min(max(exposed, 0.0), 1.0)  # noise can take it beyond


def benchmark(
    device: Device | Ring,
    group: str,
    lattice: Lattice,
    precision: str = "single",
    random: str = "philox",
    seconds: float = 1.0,
    luxury: int = DEFAULT_LUXURY,
) -> Benchmark:
    """Time all kernels on a thermal field.

    Parameters
    ----------
    device : Device or Ring
        Where.
    group, lattice, precision, random
        Of the field and the generator.
    seconds : float
        About how long to time each kernel.
    luxury : int
        The level of ``ranlux``.

    Raises
    ------
    UsageError, GaugeError
        As `Field.hot` and `Random.for_field` do.
    """
    ring = Ring.of(device)
    field = Field.hot(lattice, group, precision, ring)
    generator = Random.for_field(field, random, luxury=luxury)
    bandwidth = copy_bandwidth(ring, group, precision)
    heatbath(field, BETA[group], generator, sweeps=10)
    overrelax(field, sweeps=5)
    links_moved = dict(LINKS_MOVED)
    calls: dict[str, Callable[[int], object]] = {
        "heatbath": lambda sweeps: heatbath(field, BETA[group], generator, sweeps)
    }
    if len(field.layouts) > 1:  # next to what it is compared with, since clocks change
        apart = replace(field)
        vars(apart)["halo"] = Exchange(ring, field.slabs, ())
        calls[WITHOUT_EXCHANGE] = partial(heatbath, apart, BETA[group], generator)
        calls[EXCHANGE] = partial(_exchange, field)
        links_moved[EXCHANGE] = 4 * len(field.layouts) / lattice.t
    calls |= {
        "overrelaxation": lambda sweeps: overrelax(field, sweeps),
        "plaquette": lambda times: [plaquette(field) for _ in range(times)],
        "polyakov": lambda times: [polyakov_loop(field) for _ in range(times)],
    }
    drawn_by = dict.fromkeys(calls, random)
    for kind in KINDS:
        if kind != random:
            name, other = f"heatbath, {kind}", Random.for_field(field, kind, luxury=luxury)
            calls[name] = partial(heatbath, field, BETA[group], other)
            drawn_by[name] = kind
    link_bytes = field.components * field.layout.real.itemsize
    kernels = []
    for name, call in calls.items():
        median, spread = seconds_of(ring, call, seconds)
        kernel = name.partition(",")[0]
        moved = links_moved[kernel] * link_bytes
        registers: Registers | None = None
        if kernel in LINKS_MOVED:
            registers = field.slabs[0].kernel(kernel, drawn_by.get(name, random), luxury).registers
        kernels.append(
            KernelTime(
                name,
                ns_per_link=median / lattice.links * 1e9,
                spread=spread / median,
                links_per_s=lattice.links / median,
                bytes_per_link=moved,
                roofline=moved * lattice.links / bandwidth / median,
                registers=registers.count if registers else None,
                spilled=registers.spilled if registers else None,
            )
        )
    return Benchmark(
        datetime.date.today().isoformat(),
        __version__,
        ring.name,
        field.device.compiler_name,
        group,
        str(lattice),
        precision,
        random,
        len(field.layouts),
        field.layout.lanes,
        bandwidth / 1e9,
        kernels,
    )


def _exchange(field: Field, sweeps: int) -> None:
    """Exchange what sweeps exchange."""
    for _ in range(sweeps):
        for mu, parity in CHECKERBOARD:
            field.halo.start(field.window(mu, parity))
            field.halo.finish()


@dataclass(frozen=True)
class LoopsTime:
    """What Wilson loops cost, in units of heatbath sweeps of the same field.

    Attributes
    ----------
    device, group, lattice, precision : str
        What was timed.
    r_max, t_max : int
        Largest loops, on axis: 12, or half the lattice.
    heatbath_s : float
        Seconds for one heatbath sweep.
    loops : float
        All W(R, T) of one smearing level, gauge fixing included.
    iteration : float
        One iteration of APE smearing.
    """

    device: str
    group: str
    lattice: str
    precision: str
    r_max: int
    t_max: int
    heatbath_s: float
    loops: float
    iteration: float

    def __str__(self) -> str:
        what = f"{self.group.upper()} {self.lattice}, {self.precision} precision on {self.device}"
        return (
            f"{what}: all Wilson loops on axis with R ≤ {self.r_max} and T ≤ {self.t_max} cost "
            f"{self.loops:.3g} heatbath sweeps of {1e3 * self.heatbath_s:.4g} ms, an iteration "
            f"of smearing {self.iteration:.3g}"
        )


def loops_time(
    device: Device | Ring,
    group: str,
    lattice: Lattice,
    precision: str = "single",
    seconds: float = 1.0,
) -> LoopsTime:
    """Time Wilson loops and smearing on a thermal field. Arguments and errors as `benchmark`."""
    field = Field.hot(lattice, group, precision, device)
    generator = Random.for_field(field)
    heatbath(field, BETA[group], generator, sweeps=10)
    ring = field.ring
    sweep, _ = seconds_of(ring, lambda n: heatbath(field, BETA[group], generator, n), seconds)
    r_max, t_max = min(12, *(n // 2 for n in lattice.extents[:3])), min(12, lattice.t // 2)
    loops, ape = WilsonLoops(field, r_max, t_max), Ape()
    measured, _ = seconds_of(ring, lambda n: [list(loops(field)) for _ in range(n)], seconds)
    other = Field.empty(lattice, group, precision, ring)

    def smear(iterations: int) -> None:
        for _ in range(iterations):
            ape(field, other)

    smeared, _ = seconds_of(ring, smear, seconds)
    return LoopsTime(
        field.ring.name,
        group,
        str(lattice),
        precision,
        r_max,
        t_max,
        sweep,
        measured / sweep,
        smeared / sweep,
    )


def copy_bandwidth(ring: Ring, group: str, precision: str) -> float:
    """Bytes per second, read and written, of copies larger than any cache on all devices at once.

    The faster of a kernel's copy, which has the CPU's threads, and the driver's.
    """
    lattice = Lattice(32, 32, 32, 16 if ring.devices[0].backend == "cpu" else 128)
    pairs = [
        [Field.cold(lattice, group, precision, device).slabs[0] for _ in range(2)]
        for device in ring.devices
    ]

    def by_kernel(times: int) -> None:
        for source, target in pairs:
            addresses = source.buffer.address, target.buffer.address
            arguments = _CopyArguments(source.geometry, source.work(), *addresses)
            source.kernel("copy")(repeated([arguments], times))

    def by_driver(times: int) -> None:
        for _ in range(times):
            for source, target in pairs:
                source.device.copy(target.buffer, source.buffer)

    median = min(seconds_of(ring, copy, seconds=0.3)[0] for copy in (by_kernel, by_driver))
    moved = sum(2 * source.buffer.nbytes for source, _ in pairs)
    return sum(ring.processes.gather(moved / median))


def seconds_of(ring: Ring, call: Callable[[int], object], seconds: float) -> tuple[float, float]:
    """Median and range of seconds for one of many: calls are grouped to last some time."""

    def timed(times: int) -> float:
        ring.synchronize()
        start = time.perf_counter()
        call(times)
        ring.synchronize()
        return (time.perf_counter() - start) / times

    once = ring.processes.share(min(timed(1) for _ in range(3)))
    times = max(1, round(seconds / 10 / once))
    for _ in range(3):  # clocks take a while to settle
        timed(times)
    results = [timed(times) for _ in range(max(3, min(10, int(seconds / (times * once)))))]
    return statistics.median(results), max(results) - min(results)
