"""Benchmark of observables, smearings, temporal links and gradient flows in units of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from gauge_mc import defaults
from gauge_mc.benchmarks.kernels import THERMALISATION
from gauge_mc.benchmarks.timing import seconds_of
from gauge_mc.devices import Device
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UnknownNameError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quoting import shortened
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.smearing import NO_SMEARING, SMEARINGS, Smearing
from gauge_mc.temporal_links import TEMPORAL_LINKS, TemporalLinks
from gauge_mc.updates.heatbath import heatbath
from gauge_mc.updates.overrelaxation import overrelax

STEP = 0.02
"""Size of the steps of gradient flows, on which their time does not depend."""


KINDS: tuple[Mapping[str, Any], ...] = (OBSERVABLES, SMEARINGS, TEMPORAL_LINKS, FLOWS)
"""Registries of everything that is timed."""

Thing = TypeVar("Thing")


@documented
@dataclass(frozen=True)
class ObservablesTime:
    """Times of observables, smearings, temporal links and flows, in heatbath sweeps of a field."""

    device: str = result_field("Names of the devices.")
    group: str = result_field("Gauge group.")
    lattice: str = result_field("Extents of the lattice.")
    precision: str = result_field("Precision of the links.")
    links: int = result_field("Number of links of the lattice.")
    heatbath_s: float = result_field("Time of a sweep of heatbath in seconds.")
    overrelaxation_s: float = result_field("Time of a sweep of overrelaxation in seconds.")
    observables: dict[str, float] = result_field(
        "Time of one measurement without smearing, by observable: with the default options, and "
        "along the gradient flow at t = 0 only."
    )
    smearings: dict[str, float] = result_field(
        "Time of one iteration with the default options, by smearing."
    )
    temporal_links: dict[str, float] = result_field(
        "Time to make the temporal links of static sources, by kind."
    )
    flows: dict[str, float] = result_field(
        "Time of one Runge-Kutta step with fixed step size, by gradient flow."
    )

    def ns_per_link(self, sweeps: float) -> float:
        """Return a time in ns per link, given in heatbath sweeps."""
        return 1e9 * self.heatbath_s * sweeps / self.links

    def overrelaxations(self, sweeps: float) -> float:
        """Return a time in overrelaxation sweeps, given in heatbath sweeps."""
        return self.heatbath_s * sweeps / self.overrelaxation_s


def observables_time(
    device: Device | DeviceGroup,
    group: str,
    lattice: Lattice,
    precision: str = defaults.PRECISION,
    seconds: float = 1.0,
    progress: Callable[[str, int], object] = lambda name, total: None,
    names: Collection[str] = (),
) -> ObservablesTime:
    """Time observables, smearings, temporal links and flows on a thermal field; see `benchmark`.

    Parameters
    ----------
    device, group, lattice, precision, seconds, progress
        See `benchmark`.
    names : collection of str
        Names of what is timed; without names, everything that does not take long. See
        `check_names`.

    Returns
    -------
    ObservablesTime
        The times; those of sweeps in seconds, all others in heatbath sweeps.
    """
    field = Field.hot(lattice, group, precision, device)
    generator, beta = Random.for_field(field), GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    devices, total = field.devices, 2 + sum(len(_named(names, kinds)) for kinds in KINDS)
    progress("heatbath", total)
    sweep, _ = seconds_of(devices, partial(heatbath, field, beta, generator), seconds)
    progress("overrelaxation", total)
    reflection, _ = seconds_of(devices, partial(overrelax, field), seconds)
    observables = {}
    for name, one in _named(names, OBSERVABLES).items():
        progress(name, total)
        options = {**one.bench_options, **({"smear": NO_SMEARING} if one.smears else {})}
        measure = one.for_lattice(lattice, **options).measurer(field)
        median, _ = seconds_of(devices, partial(_measure, measure, field), seconds)
        observables[name] = median / sweep
        del measure  # frees its buffers
    other = Field.empty(lattice, group, precision, devices)
    smearings = {}
    for name, kind in _named(names, SMEARINGS).items():
        progress(name, total)
        smear = partial(_smear, kind.from_options({}), field, other)
        smearings[name] = seconds_of(devices, smear, seconds)[0] / sweep
    temporal_links = {}
    for name, links in _named(names, TEMPORAL_LINKS).items():
        progress(f"{name} temporal links", total)
        make = partial(_smear, links(), field, other)
        temporal_links[name] = seconds_of(devices, make, seconds)[0] / sweep
    del other
    flows = {}
    for name, flow in _named(names, FLOWS).items():
        progress(f"{name} flow", total)
        flows[name] = _step_seconds(field, flow, seconds) / sweep
    about = (devices.name, group, str(lattice), precision, lattice.links)
    return ObservablesTime(*about, sweep, reflection, observables, smearings, temporal_links, flows)


def check_names(names: Collection[str]) -> None:
    """Refuse names that neither an observable nor a smearing, temporal links or a flow has.

    Raises
    ------
    UnknownNameError
        The message suggests a similar name.
    """
    known = sorted({name for kinds in KINDS for name in kinds})
    for name in names:
        if name not in known:
            raise UnknownNameError(
                f"--observables: There is no observable, smearing, kind of temporal links or flow "
                f"'{shortened(name)}'{nearest(name, known)}"
            )


def _named(names: Collection[str], kinds: Mapping[str, Thing]) -> dict[str, Thing]:
    """Return the things of a kind that have one of the names; without names, the usual ones."""
    if names:
        return {name: kinds[name] for name in kinds if name in names}
    return {name: one for name, one in kinds.items() if getattr(one, "benched", True)}


def _step_seconds(field: Field, flow: Flow, seconds: float) -> float:
    """Return the time of one step of a gradient flow."""
    made = GradientFlow(flow, field)
    made.start(field)
    return seconds_of(field.devices, partial(_flow, made), seconds)[0]


def _flow(flow: GradientFlow, times: int) -> None:
    for _ in range(times):
        flow.step(STEP)


def _measure(measure: Callable[[Field], object], field: Field, times: int) -> None:
    for _ in range(times):
        measure(field)


def _smear(smearing: Smearing | TemporalLinks, source: Field, target: Field, times: int) -> None:
    for _ in range(times):
        smearing(source, target)
