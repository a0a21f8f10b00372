"""Find the launch bounds of the updates that are fastest on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gauge_mc.bench import BETA, seconds_of
from gauge_mc.devices.base import Registers
from gauge_mc.devices.bounds import REGISTERS as REGISTERS_IN_ALL
from gauge_mc.devices.bounds import Bounds
from gauge_mc.devices.cuda import CudaDevice
from gauge_mc.devices.source import DEFAULT_LUXURY, Variant
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.random import Random
from gauge_mc.updates import heatbath, overrelax

THREADS = (64, 128, 256)
REGISTERS = (64, 72, 80, 96, 112, 128, 168, 255)
WORTHWHILE = 0.99
"""A gain of less than 1 % may be chance."""


@dataclass(frozen=True)
class Trial:
    """One choice of bounds for one kernel.

    Attributes
    ----------
    kernel : str
    bounds : Bounds
    registers : Registers or None
        What the compiler made of them.
    ns_per_link : float
        Of an update.
    kept : bool
        Whether these are the fastest so far.
    """

    kernel: str
    bounds: Bounds
    registers: Registers | None
    ns_per_link: float
    kept: bool


def candidates() -> list[Bounds]:
    """Return bounds that differ in threads, or in the registers that they leave a thread."""
    found = {}
    for threads in THREADS:
        for registers in REGISTERS:
            bounds = Bounds(threads, max(1, REGISTERS_IN_ALL // (threads * registers)))
            found[threads, bounds.registers] = bounds
    return list(found.values())


def tune(
    device: CudaDevice,
    group: str,
    lattice: Lattice,
    precision: str = "single",
    random: str = "philox",
    luxury: int = DEFAULT_LUXURY,
    seconds: float = 0.2,
) -> Iterator[Trial]:
    """Try bounds for heatbath and overrelaxation, and keep the fastest for this kind of GPU.

    Parameters
    ----------
    device : CudaDevice
    group, lattice, precision, random, luxury
        Of the field and the generator.
    seconds : float
        About how long to time each choice.

    Yields
    ------
    Trial
        Each choice when it has been tried; the first of each kernel is what was used before.
    """
    field = Field.hot(lattice, group, precision, device)
    generator = Random.for_field(field, random, luxury=luxury)
    heatbath(field, BETA[group], generator, sweeps=5)
    slab = field.slabs[0]
    calls: dict[tuple[str, Variant], Callable[[int], object]] = {
        ("heatbath", slab.variant(random, luxury)): partial(
            heatbath, field, BETA[group], generator
        ),
        ("overrelaxation", slab.variant()): partial(overrelax, field),
    }
    for (kernel, variant), call in calls.items():
        before = best = device.tuned.bounds(kernel, variant)
        least = float("inf")
        try:
            for bounds in [before, *(b for b in candidates() if b != before)]:
                # Whole sweeps in one launch, of a small lattice, would not depend on the bounds.
                device.bind(kernel, variant, bounds, whole_sweeps=False)
                time = seconds_of(field.ring, call, seconds)[0] / lattice.links
                kept = time < WORTHWHILE * least
                if kept:
                    best, least = bounds, time
                registers = device.kernel(kernel, variant).registers
                yield Trial(kernel, bounds, registers, time * 1e9, kept)
        finally:
            device.bind(kernel, variant, best)
        device.tuned.keep(kernel, variant, best)
