"""Benchmark of observables, smearings, temporal links and gradient flows in units of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gauge_mc import defaults
from gauge_mc.benchmarks.kernels import THERMALISATION, refuse_others
from gauge_mc.benchmarks.timing import Bench, BenchResult, Timing, table_of
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable
from gauge_mc.results import documented, result_field
from gauge_mc.smearing import NO_SMEARING, SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates.heatbath import heatbath, overrelax

STEP = 0.02
"""Size of the steps of gradient flows, on which their time does not depend."""


KINDS: tuple[Mapping[str, Any], ...] = (OBSERVABLES, SMEARINGS, TEMPORAL_LINKS, FLOWS)
"""Registries of everything that is timed."""

SUFFIXES = ("", " smearing", " temporal links", " flow")
"""What is said after a name of each kind."""


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

    def overrelaxations(self, sweeps: float) -> float:
        """Return a time in overrelaxation sweeps, given in heatbath sweeps."""
        return self.heatbath_s * sweeps / self.overrelaxation_s

    def report(self) -> list[Any]:
        """Return lines and a table of the times."""
        rows = [
            (
                name,
                suffix,
                *(
                    f"{x:.{4 if x > 999 else 3}g}"
                    for x in (self.ns_per_link(y), y, self.overrelaxations(y))
                ),
            )
            for name, suffix, y in self._sweeps()
        ]
        columns = {"one measurement, iteration or step": "{0}{1}", "ns/link": "{2}"}
        columns |= {"heatbath\nsweeps": "{3}", "overrelaxation\nsweeps": "{4}"}
        first, second = (f"{1e3 * x:.4g} ms" for x in (self.heatbath_s, self.overrelaxation_s))
        sweeps_take = f"a heatbath sweep takes {first}, an overrelaxation sweep {second}"
        return [self.subject, sweeps_take, table_of(columns, rows)]


def observables_time(
    bench: Bench, precision: str = defaults.PRECISION, names: Collection[str] = ()
) -> ObservablesTime:
    """Time observables, smearings, temporal links and flows on a thermal field."""
    chosen = [
        {
            x: thing
            for x, thing in kind.items()
            if (x in names if names else getattr(thing, "benched", True))
        }
        for kind in KINDS
    ]
    bench = bench.of(2 + sum(map(len, chosen)))
    lattice, group = bench.lattice, bench.group
    field = Field.hot(lattice, group, precision, bench.devices)
    generator, beta = Random.for_field(field), GROUPS[group].beta
    heatbath(field, beta, generator, THERMALISATION)
    sweep = bench.timing("heatbath", partial(heatbath, field, beta, generator), 1).seconds
    reflection = bench.timing("overrelaxation", partial(overrelax, field), 1).seconds

    def measurement(kind: type[Observable]) -> Callable[[], object]:
        options = {**kind.bench_options, **({"smear": NO_SMEARING} if kind.smears else {})}
        return partial(kind.for_lattice(lattice, **options).measurer(field), field)

    def onto(smear: Callable[[Field, Field], object]) -> Callable[[], object]:
        return partial(smear, field, Field.empty(lattice, group, precision, bench.devices))

    def step(flow: Flow) -> Callable[[], object]:
        gradient_flow = GradientFlow(flow, field)
        gradient_flow.start(field)
        return partial(gradient_flow.step, STEP)

    makers: tuple[Callable[[Any], Callable[[], object]], ...] = (
        measurement,
        lambda x: onto(x.from_options({})),
        lambda x: onto(x()),
        step,
    )
    times: list[dict[str, float]] = []
    for things, maker, suffix in zip(chosen, makers, ("", "", *SUFFIXES[2:]), strict=True):
        times.append({})
        for name, thing in things.items():
            bench.begin(f"{name}{suffix}")
            times[-1][name] = bench.time(maker(thing)) / sweep  # its buffers are freed then
    return ObservablesTime(*bench.heading, precision, lattice.links, sweep, reflection, *times)


def check_names(names: Collection[str]) -> None:
    """Refuse names that neither an observable nor a smearing, temporal links or a flow has."""
    complaint = (
        "--observables: There is no observable, smearing, kind of temporal links or flow '{}'"
    )
    refuse_others(names, [x for kind in KINDS for x in kind], complaint)
