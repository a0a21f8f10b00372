"""Hybrid Monte Carlo of the gauge field."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, cast

from gauge_mc import defaults
from gauge_mc.actions import Coupling
from gauge_mc.algorithms import ALGORITHMS, Algorithm, ChainSpec, Records, Tuning, Update
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import Value
from gauge_mc.option_items import Items
from gauge_mc.options import Option
from gauge_mc.updates.chain_steps import UpdatePart, repeated
from gauge_mc.updates.checks import check_force, check_term
from gauge_mc.updates.integrators import (
    INTEGRATORS,
    MOST_STEPS,
    Drift,
    Kick,
    Move,
    StepTuner,
    TimeScales,
    TrajectoryLevel,
    check_levels,
    gauge_level,
)
from gauge_mc.updates.molecular_dynamics import (
    COPY_REPLICAS,
    DRIFT,
    MolecularDynamics,
    MovingChains,
    Outcome,
    bytes_of_trajectory,
    divided,
)
from gauge_mc.updates.momenta import MOMENTA
from gauge_mc.updates.monomials import GAUGE, Failures
from gauge_mc.updates.monomials.gauge import KICK, KICK_AND_DRIFT
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA
from gauge_mc.updates.terms import (
    ACTION_TERMS,
    PRECISION,
    ActionTerms,
    NamedMonomial,
    RunMonomial,
    check_precision,
    terms_of_action,
)

if TYPE_CHECKING:
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice

SIZE = 1e-3
"""Size of the kicks and drifts that are timed, after which links are still thermal."""


def _term_parts(
    groups: Sequence[MolecularDynamics],
    randoms: Sequence[Random],
    moves: Sequence[Move],
    terms: Sequence[RunMonomial],
) -> Iterator[UpdatePart]:
    """Yield pseudofermions, action and force of every other term, and the links that they see."""
    firsts = [*accumulate((group.chains for group in groups), initial=0)]
    parts = [slice(*pair) for pair in pairwise(firsts)]

    def links() -> None:
        for group in groups:
            group.update_halos()
            group.show(group.start)

    def drawn(number: int) -> None:
        for group, some in zip(groups, parts, strict=True):
            group.terms[number].draw(randoms[some], Failures())

    def force(number: int) -> None:
        for group in groups:
            group.kick_all(group.terms[number], SIZE)

    def action(number: int) -> None:
        links()
        for group in groups:
            group.terms[number].actions(Failures())

    links()
    for number, term in enumerate(terms):
        for name, call, calls in (
            ("drawn", partial(drawn, number), 1),
            ("force", partial(force, number), _kicks(moves, {term.level})),
            ("action", partial(action, number), 1),
        ):
            for group in groups:
                group.terms[number].iterations[:] = 0
            call()
            count = max(int(group.terms[number].iterations.max()) for group in groups)
            essential = bool(count) or name != "drawn"
            arguments = f"{term.title} {name}", repeated(call), calls, essential, count
            yield UpdatePart(*arguments, chains=len(randoms))
    views = _kicks(moves, {term.level for term in terms}) + 2
    yield UpdatePart("links of quarks", repeated(links), views, chains=len(randoms))


def _kicks(moves: Iterable[Move], levels: Collection[int]) -> int:
    """Return the number of forces of some of the levels, which share those at one time."""
    times = groupby(moves, lambda move: isinstance(move, Kick))
    return sum(
        max((x.forces for x in group if isinstance(x, Kick) and x.level in levels), default=0)
        for _, group in times
    )


class GaugeSteps:
    """Kicks and drifts of links and momenta back and forth between two fields.

    Parameters
    ----------
    groups : sequence of MolecularDynamics
        Chains that move together, with their links and momenta.
    """

    def __init__(self, groups: Sequence[MolecularDynamics]) -> None:
        away: list[Move] = [Kick(SIZE), Drift(SIZE)]
        way = [*away, *away, *away, Kick(SIZE)]
        self._plans = [group.plan([[GAUGE]], [way] * group.chains) for group in groups]
        for dynamics, plan in zip(groups, self._plans, strict=True):
            dynamics.begin(plan, Failures())()

    def __call__(self, times: int) -> None:
        """Do so many of them, without halo exchanges."""
        for n in range(times):
            for plan in self._plans:
                for launch in plan.stages[1 + n % 2].moves:
                    launch()


LARGEST_DRIFT = 0.5
"""Largest drift of a step. Momenta have eigenvalues of up to about 4, and the exponential of a
matrix of norm 2 is computed to 12 digits (``EXPONENTIAL_TERMS`` in ``cuda_src/group/algebra.h``).
"""

INTEGRATOR = Option(
    "integrator",
    str,
    "Integrator of the equations of motion.",
    choices=tuple(INTEGRATORS),
    usual=defaults.INTEGRATOR,
    tag="",
)
LENGTH = Option(
    "length",
    float,
    "Length τ of a trajectory.",
    least=1e-3,
    most=1e3,
    usual=1.0,
    symbol="τ",
    axis=r"$\tau$",
    tag="tau",
)
STEPS = Option(
    "steps",
    int,
    "Steps of a trajectory; 0 lets the thermalisation find the number that --acceptance needs.",
    least=0,
    most=MOST_STEPS,
    usual=0,
    tag="steps",
)
ACCEPTANCE = Option(
    "acceptance",
    float,
    "Acceptance for which the thermalisation finds the number of steps.",
    least=0.01,
    most=0.999,
    usual=0.8,
    tag="acc",
)
LEVELS = Option(
    "levels",
    str,
    "Nested time scales of a trajectory, the outermost first, as INTEGRATOR:STEPS, where the steps "
    "are those per drift of the level above. The gauge action is on the last level, or on that "
    "with the word gauge after its steps.",
    default="one level",
    metavar="NAME:STEPS[:gauge],...",
    usual=Items(),
    items=TrajectoryLevel,
    tag="",
)


BUSY_WITH_TERMS = 0.5
"""Share of the `busy_sites` of a device that chains with further terms of the action have together,
whose vectors are to stay in the caches of a CPU."""

MOST_WITH_TERMS = 32
"""Largest number of chains with further terms that move together. The more there are with solvers,
the fewer of them have true residuals due at a time, each time with launches of their own: on an
H200 a trajectory of each of 256 chains on 4^4 took five times as long as of each of 32."""

MONOMIALS = Option(
    NamedMonomial.option,
    str,
    "Further terms of the action, such as adjoint-plaquette:beta=0.5, several with commas between "
    "them.",
    default="none",
    metavar="NAME[:level=N][:OPTION=VALUE...],...",
    usual=Items(),
    items=NamedMonomial,
    tag="",
)

FAILURES = Option(
    "failures",
    int,
    "Trajectories in a row in which solvers fail, and which are therefore rejected, after which a "
    "run with quarks ends.",
    least=1,
    most=MOST_STEPS,
    usual=5,
)

COLUMNS = (
    Column("delta_h", float, "Change of the energy in the trajectory.", symbol="ΔH"),
    Column(
        "accepted",
        int,
        "1 if the trajectory was accepted, 0 if not.",
        average="acceptance",
        main=True,
    ),
    Column("probability", float, "Probability with which it was accepted, min(1, exp(-ΔH))."),
    Column("steps", int, "Number of steps of the trajectory."),
    Column("action", float, "Gauge action of the links after the update, per site."),
    Column("kinetic", float, "Kinetic energy at its end, per link and generator."),
    Column("force", float, "Root mean square of the force |F| of a link at its end."),
    Column("largest_force", float, "Largest force |F| of a link at its end."),
)
"""Columns of all runs; the forces are those of the gauge action."""

FAILED = Column("failed", int, "1 if a solver has failed, so that ΔH is not known, 0 if not.")


def columns_of(term: RunMonomial) -> tuple[Column, ...]:
    """Return the columns of a term of the action besides the gauge action."""
    iterations = Column("iterations", int, "Iterations of its solvers in the trajectory.")
    columns = (
        Column("force", float, "Root mean square of its force |F| over links and kicks."),
        Column("largest_force", float, "Largest force |F| on a link in the trajectory."),
        *([iterations] if term.kind.solves else []),
        *term.kind.columns,
    )
    return tuple(replace(x, name=f"{x.name}_{term.title}") for x in columns)


class HybridMonteCarlo(Algorithm):
    """An update is a trajectory of molecular dynamics, which is accepted or rejected.

    In the first half of the thermalisation every trajectory is accepted.

    S. Duane, A. D. Kennedy, B. J. Pendleton and D. Roweth, Phys. Lett. B 195 (1987) 216.
    """

    name = "hmc"
    has_parts = True
    summary = "hybrid Monte Carlo, one trajectory per update"
    unstated = (MONOMIALS.name,)
    normalisation = (
        "dU/dt = P U, H = -sum of Tr P^2 + S(U), |F|^2 = -2 Tr F^2, one trajectory per row"
    )

    @property
    def options(self) -> tuple[Option, ...]:  # type: ignore[override]
        """The options, among them those whose values are terms of the action, such as quarks."""
        terms = (kind.option for kind in ACTION_TERMS.values())
        return (INTEGRATOR, LENGTH, STEPS, ACCEPTANCE, LEVELS, *terms, MONOMIALS, FAILURES)

    @property
    def later(self) -> tuple[str, ...]:  # type: ignore[override]
        """See `Algorithm.later`."""
        return (LEVELS.name, *ACTION_TERMS, MONOMIALS.name, FAILURES.name)

    @property
    def sweeps(self) -> int:
        """1: a trajectory changes every link once, however many steps it has."""
        return 1

    @property
    def strict(self) -> bool:
        """All trajectories are; see `Algorithm.strict`."""
        return True

    @cached_property
    def columns(self) -> TableColumns:  # type: ignore[override]
        """The columns of all runs, and those of the terms besides the gauge action."""
        terms = [column for term in self.terms for column in columns_of(term)]
        return TableColumns(*COLUMNS, *([FAILED] if self._solves else []), *terms)

    @property
    def labels(self) -> list[str]:
        """The quarks and other such terms; see `Algorithm.labels`."""
        return [
            getattr(value, "label", f"{kind.words or kind.name} {value}")
            for kind in self._acting
            for value in self.values[kind.name]
        ]

    @property
    def _acting(self) -> list[ActionTerms]:
        """The kinds of terms of which there are some."""
        return [x for x in ACTION_TERMS.values() if self.values.get(x.name)]

    @cached_property
    def terms(self) -> list[RunMonomial]:
        """The terms of the action besides the gauge action."""
        return terms_of_action(self.values, max(len(self.levels), 1))

    @property
    def _solves(self) -> bool:
        """Whether there are solvers, which may fail."""
        return any(term.kind.solves for term in self.terms)

    @property
    def levels(self) -> tuple[TrajectoryLevel, ...]:
        """The levels that were asked for; none if there is one."""
        return cast(tuple[TrajectoryLevel, ...], self.values[LEVELS.name])

    @property
    def steps(self) -> int:
        """The given number of steps; 0 if it is to be found."""
        steps: int = self.values[STEPS.name]
        return steps or next((level.steps for level in self.levels), 0)

    @cached_property
    def scales(self) -> TimeScales:
        """The time scales of a trajectory."""
        levels = self.levels
        integrator = INTEGRATORS[self.values[INTEGRATOR.name]]
        acting = {gauge_level(levels), *(term.level for term in self.terms)}
        return TimeScales.of(levels, integrator, acting)

    def chains_at_once(self, count: int, sites: int, busy_sites: int) -> int:
        """Return the largest number of chains that move together; see the base class."""
        share, most = self._group_limits
        return int(min(count, most, max(1, int(share * busy_sites) // sites)))

    @property
    def _group_limits(self) -> tuple[float, float]:
        """The share of a device's busy sites, and the number of chains, of a group at most."""
        return (BUSY_WITH_TERMS, MOST_WITH_TERMS) if self.terms else (1.0, math.inf)

    @property
    def least_steps(self) -> int:
        """Number of steps from which on drifts are small enough."""
        drift: float = self.values[LENGTH.name] * self.scales.largest_drift
        return math.ceil(drift / LARGEST_DRIFT)

    def check(self) -> HybridMonteCarlo:
        """Return this algorithm if its integrators exist and its steps are small enough."""
        INTEGRATORS.check(self.values[INTEGRATOR.name], INTEGRATOR.name)
        levels, steps = self.levels, self.values[STEPS.name]
        check_levels(levels)
        _ = self.terms  # which refuses levels that do not exist
        if steps and levels and levels[0].steps not in (0, steps):
            raise UsageError(
                f"--steps is {steps}, but --levels says {levels[0].steps} for the outermost level; "
                "leave one of them out."
            )
        if 0 < self.steps < self.least_steps:
            raise UsageError(
                f"--steps is {self.steps}, too few for a trajectory of the length "
                f"{self.values[LENGTH.name]:g}; give at least {self.least_steps}, or a smaller "
                "--length."
            )
        return super().check()

    def check_run(self, thermalize: int, precision: str) -> None:
        """Refuse to find steps without a thermalisation, and terms on inexact links."""
        for kind in self._acting:
            if kind.needs_double:
                check_precision(kind.name, precision)
        if not (self.steps or thermalize):
            raise UsageError(
                "--thermalize is 0, so that there are no trajectories from which to find the "
                "number of steps; give --steps."
            )

    @property
    def usual_precision(self) -> str:
        """Double precision if a term needs it."""
        exact = any(kind.needs_double for kind in self._acting)
        return PRECISION if exact else super().usual_precision

    def fastest_devices(
        self, devices: DeviceGroup, lattice: Lattice, group: str, precision: str
    ) -> tuple[DeviceGroup, str]:
        """Return the devices on which the terms of the action are fastest; see the base class."""
        reasons = []
        for kind in self._acting:
            devices, reason = kind.fastest_devices(devices, lattice, group, precision)
            reasons += [reason] if reason else []
        return devices, " ".join(reasons)

    def live(self, record: tuple[Value, ...]) -> tuple[str, ...]:
        """Return ΔH, and whether the trajectory was rejected."""
        if not record:
            return ()
        delta, accepted = record[:2]
        return (f"ΔH {delta:+.2g}{'' if accepted else ' (rejected)'}",)

    def caution(self, precision: str) -> str:
        """Return a caution for single precision; see `Algorithm.caution`."""
        if precision == "double":
            return ""
        return (
            "Links in single precision: trajectories are reversible to 1e-6 only, and rounding "
            "changes ΔH by some 1e-6 times the square root of the number of links; choose "
            "--precision double for averages that can be trusted."
        )

    def kernels(self, ensemble: ChainSpec) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
        """Yield the kernels of trajectories and of the value of the action."""
        replicas = self._replicas(ensemble.several)
        yield KICK_AND_DRIFT, (ensemble.action.choice, replicas)
        yield KICK, (ensemble.action.choice, replicas)
        yield MOMENTA, (ensemble.random, replicas)
        if replicas == MANY_REPLICAS:
            yield COPY_REPLICAS, ()
        if self.scales.shifted or self.scales.has_bare_drifts(gauge_level(self.levels)):
            yield DRIFT, ()
        for loops in ensemble.action.loops:
            yield loops.kernel, ()

    def prepare(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        version: int,
        tunings: Sequence[Tuning],
    ) -> Update:
        """Return the update; see `Algorithm.prepare`."""
        replicas = self._replicas(len(couplings) > 1)
        for coupling in couplings:
            check_force(field, coupling, replicas)
        for term in self.terms:
            check_term(field, term, couplings[0], replicas, randoms[0])
        levels: list[list[str]] = [[] for _ in range(max(len(self.levels), 1))]
        for term in self.terms:
            levels[term.level].append(term.title)
        levels[gauge_level(self.levels)].append(GAUGE)
        groups, parts = [], self._groups(field)
        dynamicses = self._dynamics(field, couplings, randoms, parts)
        for some, dynamics in zip(parts, dynamicses, strict=True):
            tuners = [self._tuner(tuning) for tuning in tunings[some]]
            numbers = [tuning.numbers for tuning in tunings[some]]
            arguments = self.scales, self.values[LENGTH.name], randoms[some], tuners, numbers
            groups.append(MovingChains(dynamics, levels, *arguments, self.values[FAILURES.name]))

        def update() -> Records:
            for group, some in zip(groups, parts, strict=True):
                group.check()
                if taken(tunings[some]):
                    group.actions = None
            return [self._record(field, x) for group in groups for x in group.update()]

        return update

    def _replicas(self, several: bool) -> Choice:
        """Return how kernels treat the replicas of one chain or of several."""
        return MANY_REPLICAS if several else ONE_REPLICA

    def _groups(self, field: Field) -> list[slice]:
        """Return groups of replicas that move together."""
        if len(field.replicas) == 1:
            return [slice(0, 1)]
        each = bytes_of_trajectory(
            field, sum(term.vectors for term in self.terms), self.scales.shifted
        )
        return divided(field, each, *self._group_limits)

    def _dynamics(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        parts: Sequence[slice],
    ) -> Iterator[MolecularDynamics]:
        """Yield the dynamics of groups; those of a size share their memory."""
        dynamicses: dict[int, MolecularDynamics] = {}
        make, replicas = [term.make for term in self.terms], self._replicas(len(couplings) > 1)
        for some in parts:
            count = some.stop - some.start
            links = field if len(couplings) == 1 else field.part(some.start, count)
            arguments = links, couplings[some], randoms[some], make, replicas
            dynamicses[count] = MolecularDynamics(*arguments, dynamicses.get(count))
            yield dynamicses[count]

    def parts(
        self, field: Field, couplings: Sequence[Coupling], randoms: Sequence[Random]
    ) -> Iterator[UpdatePart]:
        """Yield the parts of trajectories; see `Algorithm.parts`."""
        steps, level = self._tuner(Tuning()).steps, gauge_level(self.levels)
        moves = self.scales.trajectory(self.values[LENGTH.name], steps)
        groups = list(self._dynamics(field, couplings, randoms, self._groups(field)))

        def draw() -> None:
            for group in groups:
                group.begin_momenta()()

        def actions() -> None:
            for group in groups:
                group.begin_actions(group.start)()

        for dynamics in groups:
            dynamics.update_halos()
        draw()
        kicks, chains = _kicks(moves, {level}), len(randoms)
        force = GaugeSteps(groups)
        yield UpdatePart("gauge force and drift", force, kicks, essential=True, chains=chains)
        yield UpdatePart("momenta", repeated(draw), chains=chains)
        yield UpdatePart("gauge action", repeated(actions), chains=chains)
        if self.terms:
            yield from _term_parts(groups, randoms, moves, self.terms)

    def _tuner(self, tuning: Tuning) -> StepTuner:
        return StepTuner(
            tuning.numbers,
            tuning.updates,
            self.steps,
            self.values[ACCEPTANCE.name],
            self.scales.order,
            self.least_steps,
        )

    def _record(self, field: Field, outcome: Outcome) -> tuple[Value, ...]:
        """Return the row of the table for a trajectory."""
        action = outcome.action / field.lattice.sites
        kinetic = outcome.kinetic / (field.lattice.links * field.group.dimension)
        forces = outcome.forces
        terms = self.terms
        names = [GAUGE, *(term.title for term in terms)]
        sizes = [
            (forces.mean(name), forces.largest(name)) if forces else (0.0, 0.0) for name in names
        ]
        rows = zip(terms, sizes[1:], outcome.iterations, outcome.measured, strict=True)
        entries = [
            (*size, *([count] if term.kind.solves else []), *values)
            for term, size, count, values in rows
        ]
        failed = [int(forces is None)] if self._solves else []
        return (
            outcome.change,
            int(outcome.accepted),
            outcome.probability,
            outcome.steps,
            action,
            kinetic,
            *sizes[0],
            *failed,
            *(value for values in entries for value in values),
        )


def taken(tunings: Sequence[Tuning]) -> bool:
    """Return whether links of some replicas were changed, and take note of it."""
    changed = any(tuning.links_changed for tuning in tunings)
    for tuning in tunings:
        tuning.links_changed = False
    return changed


ALGORITHMS.register(HybridMonteCarlo())
