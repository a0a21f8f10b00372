"""Benchmark of observables, smearings, temporal links and gradient flows in units of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from gauge_mc import defaults
from gauge_mc.benchmarks.kernels import THERMALISATION
from gauge_mc.benchmarks.timing import Bench, BenchResult, Rate
from gauge_mc.errors import UnknownNameError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable
from gauge_mc.quoting import shortened
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.smearing import NO_SMEARING, SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates.heatbath import heatbath, overrelax

STEP = 0.02
"""Size of the steps of gradient flows, on which their time does not depend."""


KINDS: tuple[Mapping[str, Any], ...] = (OBSERVABLES, SMEARINGS, TEMPORAL_LINKS, FLOWS)
"""Registries of everything that is timed."""

Thing = TypeVar("Thing")


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
    smearings: dict[str, float] = result_field(
        "Time of one iteration with the default options, by smearing."
    )
    temporal_links: dict[str, float] = result_field(
        "Time to make the temporal links of static sources, by kind."
    )
    flows: dict[str, float] = result_field(
        "Time of one Runge-Kutta step with fixed step size, by gradient flow."
    )

    @property
    def rates(self) -> dict[str, Rate]:
        """The links per second, in 10^9; see `BenchResult`."""
        kinds = (self.observables, self.smearings, self.temporal_links, self.flows)
        return {
            name: Rate(1 / self.ns_per_link(sweeps))
            for kind in kinds
            for name, sweeps in kind.items()
        }

    def ns_per_link(self, sweeps: float) -> float:
        """Return a time in ns per link, given in heatbath sweeps."""
        return 1e9 * self.heatbath_s * sweeps / self.links

    def overrelaxations(self, sweeps: float) -> float:
        """Return a time in overrelaxation sweeps, given in heatbath sweeps."""
        return self.heatbath_s * sweeps / self.overrelaxation_s


def observables_time(
    bench: Bench, precision: str = defaults.PRECISION, names: Collection[str] = ()
) -> ObservablesTime:
    """Time observables, smearings, temporal links and flows on a thermal field."""
    bench = bench.of(2 + sum(len(_named(names, kinds)) for kinds in KINDS))
    lattice, group = bench.lattice, bench.group
    field = Field.hot(lattice, group, precision, bench.devices)
    generator, beta = Random.for_field(field), GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    bench.begin("heatbath")
    sweep = bench.repeated(partial(heatbath, field, beta, generator))
    bench.begin("overrelaxation")
    reflection = bench.repeated(partial(overrelax, field))

    def measurement(kind: type[Observable]) -> Callable[[], object]:
        options = {**kind.bench_options, **({"smear": NO_SMEARING} if kind.smears else {})}
        return partial(kind.for_lattice(lattice, **options).measurer(field), field)

    def onto(smear: Callable[[Field, Field], object]) -> Callable[[], object]:
        return partial(smear, field, Field.empty(lattice, group, precision, bench.devices))

    def step(flow: Flow) -> Callable[[], object]:
        gradient_flow = GradientFlow(flow, field)
        gradient_flow.start(field)
        return partial(gradient_flow.step, STEP)

    def timed(things: Mapping[str, Any], make: Callable[[Any], Any], kind: str) -> dict[str, float]:
        times = {}
        for name, subject in _named(names, things).items():
            bench.begin(f"{name}{kind}")
            times[name] = bench.time(make(subject)) / sweep  # its buffers are freed then
        return times

    observables = timed(OBSERVABLES, measurement, "")
    smearings = timed(SMEARINGS, lambda x: onto(x.from_options({})), "")
    links = timed(TEMPORAL_LINKS, lambda x: onto(x()), " temporal links")
    flows = timed(FLOWS, step, " flow")
    about = (*bench.heading, precision, lattice.links)
    return ObservablesTime(*about, sweep, reflection, observables, smearings, links, flows)


def check_names(names: Collection[str]) -> None:
    """Refuse names that neither an observable nor a smearing, temporal links or a flow has."""
    valid = sorted({name for kinds in KINDS for name in kinds})
    for name in names:
        if name not in valid:
            raise UnknownNameError(
                f"--observables: There is no observable, smearing, kind of temporal links or flow "
                f"'{shortened(name)}'{nearest(name, valid)}"
            )


def _named(names: Collection[str], kinds: Mapping[str, Thing]) -> dict[str, Thing]:
    """Return the things of a kind that have one of the names; without names, the usual ones."""
    if names:
        return {name: kinds[name] for name in kinds if name in names}
    return {name: kind for name, kind in kinds.items() if getattr(kind, "benched", True)}
