"""The parts of a trajectory of hybrid Monte Carlo, to be timed one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise

from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.solvers import Failures
from gauge_mc.updates.integrators import Drift, Kick, Move
from gauge_mc.updates.molecular_dynamics import MolecularDynamics
from gauge_mc.updates.monomials import GAUGE
from gauge_mc.updates.run_monomials import RunMonomial
from gauge_mc.updates.update_parts import UpdatePart

SIZE = 1e-3
"""Size of the kicks and drifts that are timed, after which links are still thermal."""


def trajectory_parts(
    randoms: Sequence[Random],
    moves: Sequence[Move],
    gauge_level: int,
    groups: Sequence[MolecularDynamics],
    terms: Sequence[RunMonomial],
) -> Iterator[UpdatePart]:
    """Yield the parts of trajectories of one chain or several, whose links are not changed.

    Parameters
    ----------
    randoms : sequence of Random
        The random numbers of every chain.
    moves : sequence of Kick or Drift
        The trajectory, which is the same for all chains.
    gauge_level : int
        Level of the gauge action.
    groups : sequence of MolecularDynamics
        Chains that move together.
    terms : sequence of RunMonomial
        The terms besides the gauge action.
    """

    def draw() -> None:
        for one in groups:
            one.begin_momenta()()

    def actions() -> None:
        for one in groups:
            one.begin_actions(one.start)()

    for one in groups:
        one.update_halos()
    draw()
    kicks, chains = _kicks(moves, {gauge_level}), len(randoms)
    force = GaugeSteps(groups)
    yield UpdatePart("gauge force and drift", force, kicks, essential=True, chains=chains)
    yield UpdatePart.of("momenta", draw, chains=chains)
    yield UpdatePart.of("gauge action", actions, chains=chains)
    if terms:
        yield from _term_parts(groups, randoms, moves, terms)


def _term_parts(
    groups: Sequence[MolecularDynamics],
    randoms: Sequence[Random],
    moves: Sequence[Move],
    terms: Sequence[RunMonomial],
) -> Iterator[UpdatePart]:
    """Yield pseudofermions, action and force of every other term, and the links that they see."""
    firsts = [*accumulate((one.chains for one in groups), initial=0)]
    parts = [slice(*pair) for pair in pairwise(firsts)]

    def links() -> None:
        for one in groups:
            one.update_halos()
            one.show(one.start)

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
            given = f"{term.title} {name}", call, calls, essential, count
            yield UpdatePart.of(*given, chains=len(randoms))
    taken = _kicks(moves, {one.level for one in terms}) + 2
    yield UpdatePart.of("links of quarks", links, taken, chains=len(randoms))


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
    groups : sequence of MolecularDynamics
        Chains that move together, with their links and momenta.
    """

    def __init__(self, groups: Sequence[MolecularDynamics]) -> None:
        away: list[Move] = [Kick(SIZE), Drift(SIZE)]
        way = [*away, *away, *away, Kick(SIZE)]
        self._plans = [one.plan([[GAUGE]], [way] * one.chains) for one in groups]
        for one, plan in zip(groups, self._plans, strict=True):
            one.begin(plan, Failures())()

    def __call__(self, times: int) -> None:
        """Do so many of them, without halo exchanges."""
        for n in range(times):
            for plan in self._plans:
                for launch in plan.stages[1 + n % 2].moves:
                    launch()
