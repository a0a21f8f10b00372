"""Benchmark of observables and smearings in units of heatbath sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gauge_mc import defaults
from gauge_mc.bench.kernels import THERMALISATION
from gauge_mc.bench.timing import seconds_of
from gauge_mc.devices import Device
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.smearing import NO_SMEARING, SMEARINGS, Smearing
from gauge_mc.updates.heatbath import heatbath


@dataclass(frozen=True)
class ObservablesTime:
    """The times of observables and smearings, in units of a heatbath sweep of the same field.

    Attributes
    ----------
    device, group, lattice, precision : str
        Device, gauge group, lattice, and precision of the links.
    heatbath_s : float
        Time of one heatbath sweep in seconds.
    observables : dict of str to float
        Time of one measurement with the default options but without smearing, by observable.
    smearings : dict of str to float
        Time of one iteration with the default options, by smearing.
    """

    device: str
    group: str
    lattice: str
    precision: str
    heatbath_s: float
    observables: dict[str, float]
    smearings: dict[str, float]


def observables_time(
    device: Device | DeviceGroup,
    group: str,
    lattice: Lattice,
    precision: str = defaults.PRECISION,
    seconds: float = 1.0,
    progress: Callable[[str, int], object] = lambda name, total: None,
) -> ObservablesTime:
    """Time all observables and smearings on a thermal field; for the parameters see `benchmark`."""
    field = Field.hot(lattice, group, precision, device)
    generator, beta = Random.for_field(field), GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    devices, total = field.devices, 1 + len(OBSERVABLES) + len(SMEARINGS)
    progress("heatbath", total)
    sweep, _ = seconds_of(devices, partial(heatbath, field, beta, generator), seconds)
    observables = {}
    for name, one in OBSERVABLES.items():
        progress(name, total)
        options = {**one.bench_options, **({"smear": NO_SMEARING} if one.smears else {})}
        measure = one.for_lattice(lattice, **options).measurer(field)
        median, _ = seconds_of(devices, partial(_measure, measure, field), seconds)
        observables[name] = median / sweep
        del measure  # frees its buffers
    other = Field.empty(lattice, group, precision, devices)
    smearings = {}
    for name, kind in SMEARINGS.items():
        progress(name, total)
        smear = partial(_smear, kind.from_options({}), field, other)
        smearings[name] = seconds_of(devices, smear, seconds)[0] / sweep
    return ObservablesTime(
        devices.name, group, str(lattice), precision, sweep, observables, smearings
    )


def _measure(measure: Callable[[Field], object], field: Field, times: int) -> None:
    for _ in range(times):
        measure(field)


def _smear(smearing: Smearing, source: Field, target: Field, times: int) -> None:
    for _ in range(times):
        smearing(source, target)
