"""Ratios of the determinants of two masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.forces.normal import OddSites, QuarkSolver
from gauge_mc.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials import MONOMIALS, Monomial
from gauge_mc.updates.pseudofermions import draw_all, local_norms


@MONOMIALS.register
class Ratio(Monomial):
    """S = |Mh1^-1 Mh2 phi|^2 on the even sites, for det(Mh1 Mh1^dagger) / det(Mh2 Mh2^dagger).

    Together with `TwoFlavours` of the heavier mass it replaces that of the lighter one.
    M. Hasenbusch, Phys. Lett. B 519 (2001) 177 (hep-lat/0107019).

    Parameters
    ----------
    light, heavy : DiracOperator
        The operators M1 and M2, on links that are updated before a method is called.
    request : QuarkSolver
        How the solutions are computed.
    number : int
        Number of the field of pseudofermions among those of the run, from 0.
    title : str
        See `Monomial`.
    """

    name = "ratio"
    summary = "ratio of the determinants of two masses of two flavours"
    chosen_by = "quarks"
    solves = True
    vectors = 48

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: QuarkSolver,
        number: int,
        title: str = "ratio",
    ) -> None:
        super().__init__(light.field, title)
        self._light, self._heavy = light, heavy
        self._request, self._number = request, number
        self._system = QuarkSystem(light, request)
        self._drawing = QuarkSystem(heavy, replace(request, history=0))
        empty = partial(SpinorField.empty, light.field, fifth=light.fifth)
        self._eta = empty(parity=EVEN)
        # phi and X on all sites, whose other parts are those of the heavy operator.
        self._phi, self._x = (empty() for _ in range(2))
        self._take_x = self._drawing.reduced().left_part(self._x, self._system.even)
        self._lift_phi = OddSites(heavy, self._phi)
        self._lift_x = OddSites(heavy, self._x, dagger=True)
        self._copy_phi = Combine(self._phi, self._drawing.y, parity=EVEN)
        self._multiply_eta = self._system.reduced().apply(self._drawing.phi, self._eta)
        self._multiply_phi = self._drawing.reduced().apply(self._system.phi, self._phi)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh2^-1 Mh1 eta, for normal random vectors eta; see `Monomial.draw`."""
        wanted = draw_all(self._eta, randoms, self._number, failures)
        self._multiply_eta()
        found = self._drawing.solve_half(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        self._copy_phi(0, 1)
        self._system.forget()
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh1^-1 Mh2 phi|^2; see `Monomial.actions`."""
        self._multiply_phi()
        wanted = self._left(failures)
        found = self._system.solve_half(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        return local_norms(self._system.y)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`.

        dS is 2 Re X^dagger (dMh2 phi - dMh1 Y) with Y = Mh1^-1 Mh2 phi and X = Mh1^-dagger Y.
        """
        self._multiply_phi()
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._light.add_force(force, system.x, system.y, [1.0])
        self._take_x()
        self._lift_x()
        self._lift_phi()
        self._heavy.add_force(force, self._x, self._phi, [-1.0])
