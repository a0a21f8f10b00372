"""The parts of a trajectory of hybrid Monte Carlo, to be timed one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise

from gauge_mc.actions import Coupling
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.solvers import Failures
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.momenta import draw_momenta
from gauge_mc.updates.monomials import Monomial
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from gauge_mc.updates.quark_links import QuarkLinks
from gauge_mc.updates.quarks import QuarkTerm
from gauge_mc.updates.replica_dynamics import ReplicaDynamics
from gauge_mc.updates.update_parts import UpdatePart

SIZE = 1e-3
"""Size of the kicks and drifts that are timed, after which links are still thermal."""


def trajectory_parts(
    field: Field,
    coupling: Coupling,
    random: Random,
    moves: Sequence[Move],
    gauge_level: int,
    terms: Sequence[QuarkTerm],
) -> Iterator[UpdatePart]:
    """Yield the parts of a trajectory of a field, which is not changed.

    Parameters
    ----------
    field : Field
        The links.
    coupling : Coupling
        The gauge action.
    random : Random
        The random numbers of the momenta.
    moves : sequence of Kick or Drift
        The trajectory.
    gauge_level : int
        Level of the gauge action.
    terms : sequence of QuarkTerm
        The terms of quarks.
    """
    gauge, momenta = GaugeMonomial(coupling, field), AlgebraField.like(field)
    kicks = _kicks(moves, {gauge_level})
    yield UpdatePart("gauge force and drift", GaugeSteps(field, gauge), kicks, essential=True)
    yield UpdatePart.of("momenta", partial(draw_momenta, momenta, random))
    yield UpdatePart.of("gauge action", partial(gauge.action, field))
    if terms:
        levels = {one.level for one in terms}
        yield from _quark_parts(field, momenta, random, moves, terms)
        taken = _kicks(moves, levels) + 2
        yield UpdatePart.of("links of quarks", partial(QuarkLinks(field).take, field), taken)


def replica_parts(
    field: Field,
    randoms: Sequence[Random],
    moves: Sequence[Move],
    gauge_level: int,
    groups: Sequence[ReplicaDynamics],
    terms: Sequence[QuarkTerm],
) -> Iterator[UpdatePart]:
    """Yield the parts of trajectories of several chains that move together; see `trajectory_parts`.

    Parameters
    ----------
    field : Field
        The links, one replica for every chain.
    randoms : sequence of Random
        The random numbers of every chain.
    moves : sequence of Kick or Drift
        The trajectory, which is the same for all chains.
    gauge_level : int
        Level of the gauge action.
    groups : sequence of ReplicaDynamics
        Chains that move together.
    terms : sequence of QuarkTerm
        The terms of quarks.
    """
    first = 0
    for one in groups:
        one.start(field.part(first, one.chains))
        first += one.chains

    def draw() -> None:
        for one in groups:
            one.begin_momenta()()

    def actions() -> None:
        for one in groups:
            one.begin_actions()()

    draw()
    kicks, chains = _kicks(moves, {gauge_level}), first
    force = SeveralGaugeSteps(groups)
    yield UpdatePart("gauge force and drift", force, kicks, essential=True, chains=chains)
    yield UpdatePart.of("momenta", draw, chains=chains)
    yield UpdatePart.of("gauge action", actions, chains=chains)
    if terms:
        yield from _replica_quark_parts(groups, randoms, moves, terms)


def _replica_quark_parts(
    groups: Sequence[ReplicaDynamics],
    randoms: Sequence[Random],
    moves: Sequence[Move],
    terms: Sequence[QuarkTerm],
) -> Iterator[UpdatePart]:
    """Yield pseudofermions, action and force of every term of quarks, and the links of quarks."""
    firsts = [*accumulate((one.chains for one in groups), initial=0)]
    parts = [slice(*pair) for pair in pairwise(firsts)]

    def links() -> None:
        for one in groups:
            one.take([0] * one.chains)

    def drawn(number: int) -> None:
        for one, some in zip(groups, parts, strict=True):
            one.terms[number].draw(randoms[some], Failures())

    def force(number: int) -> None:
        for one in groups:
            one.kick_all(one.terms[number], SIZE)

    def action(number: int) -> None:
        links()
        for one in groups:
            one.terms[number].actions(Failures())

    links()
    for number, term in enumerate(terms):
        for name, call, calls in (
            ("drawn", partial(drawn, number), 1),
            ("force", partial(force, number), _kicks(moves, {term.level})),
            ("action", partial(action, number), 1),
        ):
            for one in groups:
                one.terms[number].iterations[:] = 0
            call()
            count = max(int(one.terms[number].iterations.max()) for one in groups)
            essential = bool(count) or name != "drawn"
            given = f"{term.name} {name}", call, calls, essential, count
            yield UpdatePart.of(*given, chains=len(randoms))
    taken = _kicks(moves, {one.level for one in terms}) + 2
    yield UpdatePart.of("links of quarks", links, taken, chains=len(randoms))


def _quark_parts(
    field: Field,
    momenta: AlgebraField,
    random: Random,
    moves: Sequence[Move],
    terms: Sequence[QuarkTerm],
) -> Iterator[UpdatePart]:
    """Yield pseudofermions, action and force of every term of quarks."""
    links = QuarkLinks(field)
    for one in terms:
        term = one.make(links)
        for name, call, calls in (
            ("drawn", partial(term.draw, field, random), 1),
            ("force", partial(term.kick, field, momenta, SIZE), _kicks(moves, {one.level})),
            ("action", partial(_new_action, links, field, term), 1),
        ):
            call()
            count = term.iterations
            essential = bool(count) or name != "drawn"
            yield UpdatePart.of(f"{one.name} {name}", call, calls, essential, count)


def _new_action(links: QuarkLinks, field: Field, term: Monomial) -> Energy:
    """Return an action on links that are not those with which pseudofermions were drawn."""
    links.take(field)
    return term.action(field)


def _kicks(moves: Iterable[Move], levels: Collection[int]) -> int:
    """Return the number of forces of some of the levels, which share those at one time."""
    times = groupby(moves, lambda one: isinstance(one, Kick))
    return sum(
        max(
            (one.forces for one in group if isinstance(one, Kick) and one.level in levels),
            default=0,
        )
        for _, group in times
    )


class GaugeSteps:
    """Kicks and drifts of links and momenta back and forth between two fields.

    Parameters
    ----------
    field : Field
        The links with which to begin.
    monomial : GaugeMonomial
        The gauge action.
    """

    def __init__(self, field: Field, monomial: GaugeMonomial) -> None:
        layout = field.layouts[0]
        kind = (field.lattice, field.group.name, field.precision, field.devices)
        make = partial(Field.empty, *kind, above=layout.above, below=layout.below)
        self._fields, self._momenta = (make(), make()), AlgebraField.like(field)
        draw_momenta(self._momenta, Random.for_field(field, seed=1))
        for one in self._fields:
            one.copy(field)
            one.exchange_halo(monomial.halo_depth)
        self._ways = [
            list(monomial.kick_and_drift(*pair, self._momenta, SIZE, SIZE))
            for pair in (self._fields, self._fields[::-1])
        ]

    def __call__(self, times: int) -> None:
        """Do so many of them, without halo exchanges."""
        for n in range(times):
            for launch in self._ways[n % 2]:
                launch()


class SeveralGaugeSteps:
    """Kicks and drifts of several chains, back and forth between two fields as `GaugeSteps` does.

    Parameters
    ----------
    groups : sequence of ReplicaDynamics
        Chains that move together, with their links and momenta.
    """

    def __init__(self, groups: Sequence[ReplicaDynamics]) -> None:
        way: list[Move] = [Kick(SIZE), Drift(SIZE), Kick(SIZE), Drift(SIZE), Kick(SIZE)]
        self._plans = [one.plan([[GaugeMonomial.name]], [way] * one.chains) for one in groups]

    def __call__(self, times: int) -> None:
        """Do so many of them."""
        for n in range(times):
            for plan in self._plans:
                for launch in plan.stages[n % 2].moves:
                    launch()
