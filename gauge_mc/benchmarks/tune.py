"""Search for the launch bounds with which the updates run fastest on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.benchmarks.timing import seconds_of
from gauge_mc.devices.base import Registers, TunableDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.updates.chain_versions import norms_of
from gauge_mc.updates.heatbath import HEATBATH, heatbath
from gauge_mc.updates.overrelaxation import OVERRELAXATION, overrelax
from gauge_mc.updates.replicas import ONE_REPLICA

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
    device: TunableDevice,
    group: str,
    lattice: Lattice,
    precision: str = defaults.PRECISION,
    random: str = defaults.RNG,
    luxury: int | None = None,
    seconds: float = 0.2,
    action: str | Action = defaults.ACTION,
) -> Iterator[BoundsTiming]:
    """Find the fastest launch bounds of heatbath and overrelaxation, and keep them for the device.

    Parameters
    ----------
    device : TunableDevice
        The GPU for which the bounds are stored.
    group, lattice, precision, random, luxury
        Gauge group, lattice, precision of the links, and random number generator with its level.
    seconds : float
        Approximate time for each choice in seconds.
    action : str or Action
        Action of the updates.

    Yields
    ------
    BoundsTiming
        Result of each choice. The first one of each kernel is the choice used before.
    """
    field = Field.hot(lattice, group, precision, device)
    generator, beta = Random.for_field(field, random, luxury=luxury), GROUPS[group].beta
    heatbath(field, beta, generator, sweeps=5)
    slab = field.slabs[0]
    acting = (*Coupling.of(beta, action).action.choices, norms_of(precision))
    calls: list[tuple[Kernel, Variant, Callable[[int], object]]] = [
        (
            HEATBATH,
            slab.variant(*acting, generator.choice, ONE_REPLICA),
            partial(heatbath, field, beta, generator, action=action),
        ),
        (
            OVERRELAXATION,
            slab.variant(*acting),
            partial(overrelax, field, action=action),
        ),
    ]
    for kernel, variant, call in calls:
        choices = device.tuning_choices(kernel, variant)
        best, least = choices[0], float("inf")
        try:
            for choice in choices:
                device.use(kernel, variant, choice)
                field.prepared.clear()
                time = seconds_of(field.devices, call, seconds)[0] / lattice.links
                kept = time < WORTHWHILE * least
                if kept:
                    best, least = choice, time
                registers = device.kernel(kernel, variant).registers()
                yield BoundsTiming(kernel.name, str(choice), registers, time * 1e9, kept)
        finally:
            device.keep(kernel, variant, best)
            field.prepared.clear()
