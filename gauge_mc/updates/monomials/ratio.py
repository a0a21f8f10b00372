"""Ratios of the determinants of two masses."""

from __future__ import annotations

from dataclasses import replace

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.forces.normal import OddSites, QuarkSolver, QuarkSystem
from gauge_mc.quarks.forces.pseudofermions import draw_vectors
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials.quark_forces import QuarkMonomial, local_norm


class Ratio(QuarkMonomial):
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
    name : str
        Name of the monomial.
    """

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: QuarkSolver,
        number: int,
        name: str = "ratio",
    ) -> None:
        super().__init__(light.field, name)
        self._light, self._heavy = light, heavy
        self._request, self._number = request, number
        self._system = QuarkSystem(light, request)
        self._drawing = QuarkSystem(heavy, replace(request, history=0))
        self._eta = SpinorField.empty(light.field, parity=EVEN)
        # phi and X on all sites, whose odd parts are those of the heavy operator.
        self._phi, self._x = (SpinorField.empty(light.field) for _ in range(2))
        self._lift_phi = OddSites(heavy, self._phi)
        self._lift_x = OddSites(heavy, self._x, dagger=True)
        self._copy_x = Combine(self._x, self._system.x, parity=EVEN)
        self._copy_phi = Combine(self._phi, self._drawing.y, parity=EVEN)
        self._multiply_eta = self._system.reduced().apply(self._drawing.phi, self._eta)
        self._multiply_phi = self._drawing.reduced().apply(self._system.phi, self._phi)
        self._drawn_at = -1

    def draw(self, links: Field, random: Random) -> None:
        """Draw phi = Mh2^-1 Mh1 eta, for normal random vectors eta."""
        draw_vectors(self._eta, random, self._number)
        self._multiply_eta()
        self._iterations += self._drawing.solve_half(self._request.action_tolerance)
        self._copy_phi(0, 1)
        self._system.forget()
        self._drawn_at = self._light.refreshed

    def action(self, links: Field) -> Energy:
        """Return |Mh1^-1 Mh2 phi|^2, which is |eta|^2 on the links for which phi was drawn."""
        if self._light.refreshed == self._drawn_at:
            return local_norm(self._eta)
        self._multiply_phi()
        self._iterations += self._system.solve_half(self._request.action_tolerance)
        return local_norm(self._system.y)

    def add_force(self, force: AlgebraField) -> None:
        """Add the force; see `QuarkMonomial.add_force`.

        dS is 2 Re X^dagger (dMh2 phi - dMh1 Y) with Y = Mh1^-1 Mh2 phi and X = Mh1^-dagger Y.
        """
        self._multiply_phi()
        system = self._system
        self._iterations += system.solve(self._request.force_tolerance, extrapolated=True)
        self._light.add_force(force, system.x, system.y, [1.0])
        self._copy_x(0, 1)
        self._lift_x()
        self._lift_phi()
        self._heavy.add_force(force, self._x, self._phi, [-1.0])
