"""The parts of a trajectory of hybrid Monte Carlo, to be timed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gauge_mc.actions import Coupling
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.momenta import draw_momenta
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from gauge_mc.updates.update_parts import UpdatePart

SIZE = 1e-3
"""Size of the kicks and drifts that are timed, after which links are still thermal."""


def trajectory_parts(
    field: Field, coupling: Coupling, random: Random, kicks: int
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
    kicks : int
        Number of kicks of the gauge action.
    """
    gauge, momenta = GaugeMonomial(coupling, field), AlgebraField.like(field)
    yield UpdatePart("gauge force and drift", GaugeSteps(field, gauge), kicks, essential=True)
    yield UpdatePart.of("momenta", partial(draw_momenta, momenta, random))
    yield UpdatePart.of("gauge action", partial(gauge.action, field))


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
