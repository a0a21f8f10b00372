"""Heatbath with overrelaxation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gauge_mc import defaults
from gauge_mc.actions import Coupling
from gauge_mc.algorithms import (
    ALGORITHMS,
    Algorithm,
    ChainSpec,
    Records,
    TimedSweep,
    Tuning,
    Update,
)
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.options import Option
from gauge_mc.updates.heatbath import HEATBATH, OVERRELAXATION, heatbath_sweep, overrelaxation_sweep
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA

MOST_SWEEPS = 10**6
"""Largest number of sweeps of a kind in one update, to catch typing errors."""

SWEEPS = Option(
    "heatbath",
    int,
    "Heatbath sweeps per update.",
    least=1,
    most=MOST_SWEEPS,
    usual=defaults.HEATBATH,
    tag="hb",
)
OVERRELAX = Option(
    "overrelax",
    int,
    "Overrelaxation sweeps per update.",
    least=0,
    most=MOST_SWEEPS,
    usual=defaults.OVERRELAX,
    tag="or",
)


class Heatbath(Algorithm):
    """An update consists of heatbath sweeps, followed by overrelaxation sweeps."""

    name = "heatbath"
    summary = "heatbath sweeps, followed by overrelaxation sweeps"
    options = (SWEEPS, OVERRELAX)

    @property
    def sweeps(self) -> int:
        """Number of sweeps in an update."""
        return sum(self.values.values())

    @property
    def strict(self) -> bool:
        """All updates are; see `Algorithm.strict`."""
        return True

    @property
    def draws(self) -> int:
        """Every heatbath sweep takes a step; see `Algorithm.draws`."""
        heatbaths: int = self.values[SWEEPS.name]
        return heatbaths

    def kernels(self, ensemble: ChainSpec) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
        """Yield the kernels of both kinds of sweeps.

        The kernel of overrelaxation is also the one that checks the action.
        """
        choices, norms = ensemble.action.choices, ensemble.norms
        replicas = MANY_REPLICAS if ensemble.several else ONE_REPLICA
        yield HEATBATH, (*choices, ensemble.random, replicas, norms)
        yield OVERRELAXATION, (*choices, norms)

    def prepare(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        version: int,
        tunings: Sequence[Tuning],
    ) -> Update:
        """Return the update; see `Algorithm.prepare`."""
        heat = heatbath_sweep(field, couplings, randoms, version)
        reflect = overrelaxation_sweep(field, [coupling.action for coupling in couplings], version)
        heatbaths, overrelax = self.draws, self.values[OVERRELAX.name]

        def update() -> Records:
            heat(heatbaths, randoms[0].step + 1)
            reflect(overrelax)
            for random in randoms:
                random.step += heatbaths
            return ()

        return update

    @property
    def timed_sweeps(self) -> Mapping[str, int]:
        """Numbers of sweeps of both kinds in an update."""
        return {HEATBATH.name: self.draws, OVERRELAXATION.name: self.values[OVERRELAX.name]}

    def timed(self, field: Field, coupling: Coupling, random: Random) -> Iterator[TimedSweep]:
        """Yield a sweep of each kind; see `Algorithm.timed`."""
        heat = heatbath_sweep(field, [coupling], [random])

        def sweep(times: int) -> None:
            heat(times, random.step + 1)
            random.step += times

        yield TimedSweep(HEATBATH.name, sweep, heat.registers, visits_links=True, draws=True)
        reflect = overrelaxation_sweep(field, [coupling.action])
        yield TimedSweep(OVERRELAXATION.name, reflect, reflect.registers, visits_links=True)


ALGORITHMS.register(Heatbath())
