"""Benchmark of trajectories of hybrid Monte Carlo, and of their parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gauge_mc import defaults
from gauge_mc.algorithms import ALGORITHMS, Tuning
from gauge_mc.benchmarks import timing
from gauge_mc.benchmarks.kernels import THERMALISATION, flow_step
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.gradient_flow import STAGES
from gauge_mc.flows import FLOWS
from gauge_mc.groups import GROUPS
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.heatbath import heatbath

if TYPE_CHECKING:
    from gauge_mc.benchmarks.plan import BenchPlan

FLOW = "wilson"
"""The flow whose stage is timed, unless one has the staples of the action."""

JOULES_PER_KWH = 3.6e6


@documented
@dataclass(frozen=True)
class PartTime:
    """The time of a part of a trajectory."""

    name: str = result_field("Name of the part.")
    calls: int = result_field("Number of times that it is done in a trajectory of all chains.")
    seconds: float = result_field("Time of one, timed alone, in seconds.")
    share: float = result_field("Time of all, divided by that of the trajectory.")
    essential: bool = result_field("Whether it is a force or a solver.")
    iterations: int = result_field("Iterations of solvers in one of them.")
    chains: int = result_field("Number of chains for which it is done at once.")


@documented
@dataclass(frozen=True)
class HmcTime(timing.BenchResult):
    """Times of a trajectory of hybrid Monte Carlo and of its parts."""

    precision: str = result_field("Precision of the links.")
    action: str = result_field("Gauge action.")
    algorithm: str = result_field("The algorithm with its options.")
    links: int = result_field("Number of links of the lattice.")
    chains: int = result_field("Number of chains; see `PartTime.chains`.")
    flow: str = result_field("Gradient flow with the staples of the action, or the Wilson flow.")
    flow_stage_s: float = result_field(
        "Time in seconds of a stage of it, three of which are a step."
    )
    trajectory_s: float = result_field("Time in seconds of a trajectory of every chain.")
    parts: list[PartTime] = result_field(
        "The parts of the trajectory, first a kick of the gauge action with the drift after it."
    )
    joules: float | None = result_field("Energy in joules of a trajectory of every chain.")
    energy_source: str = result_field(timing.SOURCE)

    @property
    def rates(self) -> list[timing.Timing]:
        """The links per second of whole trajectories, in 10^9; see `BenchResult`."""
        return [timing.Timing("trajectory", 1 / self.ns_per_link(self.trajectory_s, self.chains))]

    @property
    def ratio(self) -> float:
        """Time of the gauge force and the drift of a chain in stages of the flow."""
        return self.parts[0].seconds / self.parts[0].chains / self.flow_stage_s

    @property
    def chain_s(self) -> float:
        """Time in seconds of a trajectory, for each chain."""
        return self.trajectory_s / self.chains

    @property
    def inside(self) -> float:
        """Time of forces and solvers, each timed alone, divided by that of the trajectory.

        It may be above 1, since a trajectory finds in the caches what it has just used.
        """
        return sum(part.share for part in self.parts if part.essential)

    @property
    def per_kwh(self) -> float | None:
        """Number of trajectories per kWh, of all chains; None if the energy is not available."""
        return self.chains * JOULES_PER_KWH / self.joules if self.joules else None

    def ns_per_link(self, seconds: float, chains: int = 1) -> float:
        """Return a time for some chains in ns per link."""
        return seconds / (chains * self.links) * 1e9

    def report(self) -> list[Any]:
        """Return lines and a table of the parts."""
        columns = {"part of a trajectory": "{0.name}", "number": "{0.calls}", "ms each": "{1:.4g}"}
        columns |= {"ns/link": "{2:.4g}", "iterations": "{3}", "share": "{0.share:.1%}"}
        rows = [
            (x, 1e3 * x.seconds, self.ns_per_link(x.seconds, x.chains), x.iterations or "")
            for x in self.parts
        ]
        several = self.chains > 1
        stage = (
            f"gauge force and drift take {self.ratio:.3g} times a stage of the {self.flow} flow "
            f"({self.ns_per_link(self.flow_stage_s):.4g} ns/link)"
        )
        summary = (
            f"a trajectory{' of every chain' * several} takes {self.trajectory_s:.4g} s"
            f"{f', {self.chain_s:.4g} s for each' * several}; forces and solvers, each timed "
            f"alone, take {self.inside:.1%} of that"
        )
        energy = f"energy: not available, {self.energy_source}"
        if self.joules is not None:
            energy = (
                f"energy: {self.joules / self.chains:.4g} J per trajectory, {self.per_kwh:.4g} "
                f"trajectories per kWh; counters of {self.energy_source}"
            )
        algorithm = f"{self.action}, {self.algorithm}{f', {self.chains} chains' * several}"
        return [self.subject, algorithm, timing.table_of(columns, rows), stage, summary, energy]


def usual_trajectory(plan: BenchPlan, lattice: Lattice) -> Parameters:
    """Return the parameters of a run with the usual options of hybrid Monte Carlo."""
    values = {name: getattr(plan, name) for name in ("group", "precision", "action", "rng")}
    values |= {"beta": GROUPS[plan.group].beta, "lattice": str(lattice), "luxury": plan.luxury}
    values["algorithm"] = next(name for name, x in ALGORITHMS.items() if x.has_parts)
    return Parameters.from_values({name: x for name, x in values.items() if x is not None})


def hmc_time(bench: timing.Bench, parameters: Parameters, chains: int = 1) -> HmcTime:
    """Time trajectories on a thermal field, or on the configuration with which a run starts."""
    p, algorithm = parameters, parameters.algorithm
    if not algorithm.has_parts:
        raise UsageError(f"--hmc times trajectories; the algorithm {algorithm.name} has none.")
    batch = thermal(p, bench.devices, chains)
    field, randoms = batch.field, [chain.random for chain in batch.chains]
    couplings, links = [p.coupling] * chains, p.lattice.links
    untimed = list(algorithm.parts(field, couplings, randoms))
    bench = bench.of(2 + len(untimed))
    matching = (x for x in FLOWS.values() if x.action == p.action.choice and not x.corrected)
    flow = next(matching, FLOWS[FLOW])
    step = timing.repeatedly(flow_step(flow, field.replicas[0]))
    stage_s = bench.timing("stages", step).seconds / STAGES
    del step  # which frees its memory
    parts = [
        PartTime(
            *(x.name, x.calls, bench.timing(x.name, x.call).seconds, math.nan),
            *(x.essential, x.iterations, x.chains),
        )
        for x in untimed
    ]
    untimed.clear()  # which frees their memory
    tunings = [Tuning() for _ in randoms]
    update = algorithm.prepare(field, couplings, randoms, defaults.CHAIN_VERSION, tunings)
    whole = bench.timing("trajectory", timing.repeatedly(update), energy=True)
    parts = [replace(x, share=x.calls * x.seconds / whole.seconds) for x in parts]
    heading = *bench.heading, p.precision, p.action.said, str(algorithm), links, chains, flow.name
    energy = whole.energy.joules, whole.energy.source
    return HmcTime(*heading, stage_s, whole.seconds, parts, *energy)


def thermal(p: Parameters, devices: DeviceGroup, chains: int) -> Batch:
    """Return chains as runs start them, with thermal links unless these are from a file."""

    def begun(number: int) -> Chain:
        chain = Chain.begin(replace(p, seed=p.seed + number), devices)
        if p.start in ("hot", "cold"):
            heatbath(chain.field, p.beta, chain.random, THERMALISATION, p.action)
            chain.random.step = 0
        return chain

    return Batch((begun(number) for number in range(chains)), chains)
