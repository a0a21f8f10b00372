"""Two degenerate flavours of quarks."""

from __future__ import annotations

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.forces.normal import QuarkSolver, QuarkSystem
from gauge_mc.quarks.forces.pseudofermions import draw_vectors
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials.quark_forces import QuarkMonomial, local_norm


class TwoFlavours(QuarkMonomial):
    """S = phi^dagger (Mh Mh^dagger)^-1 phi on the even sites, for det(Mh Mh^dagger).

    Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe, so that |det M|^2 is |det A_oo|^2 det(Mh Mh^dagger).
    With a twisted mass the two flavours have opposite signs of it. S. A. Gottlieb et al., Phys.
    Rev. D 35 (1987) 2531; T. DeGrand and P. Rossi, Comput. Phys. Commun. 60 (1990) 211.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    request : QuarkSolver
        How the solutions are computed.
    number : int
        Number of the field of pseudofermions among those of the run, from 0.
    name : str
        Name of the monomial.
    """

    def __init__(
        self,
        operator: DiracOperator,
        request: QuarkSolver,
        number: int,
        name: str = "two_flavours",
    ) -> None:
        super().__init__(operator.field, name)
        self._operator, self._request, self._number = operator, request, number
        self._system = QuarkSystem(operator, request)
        self._eta = SpinorField.empty(operator.field, parity=EVEN)
        self._multiply = self._system.reduced().apply(self._system.phi, self._eta)
        self._drawn_at = -1

    def draw(self, links: Field, random: Random) -> None:
        """Draw phi = Mh eta, for normal random vectors eta."""
        draw_vectors(self._eta, random, self._number)
        self._multiply()
        self._system.forget()
        self._drawn_at = self._operator.refreshed

    def action(self, links: Field) -> Energy:
        """Return |Mh^-1 phi|^2, which is |eta|^2 on the links for which phi was drawn."""
        if self._operator.refreshed == self._drawn_at:
            return local_norm(self._eta)
        self._iterations += self._system.solve_half(self._request.action_tolerance)
        return local_norm(self._system.y)

    def add_force(self, force: AlgebraField) -> None:
        """Add the force; see `QuarkMonomial.add_force`."""
        system = self._system
        self._iterations += system.solve(self._request.force_tolerance, extrapolated=True)
        self._operator.add_force(force, system.x, system.y, [1.0])
