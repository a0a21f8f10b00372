"""Two degenerate flavours of quarks."""

from __future__ import annotations

from collections.abc import Sequence

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.forces.normal import QuarkSolver
from gauge_mc.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials import MONOMIALS, Monomial
from gauge_mc.updates.pseudofermions import draw_all, local_norms


@MONOMIALS.register
class TwoFlavours(Monomial):
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
    title : str
        See `Monomial`.
    """

    name = "two-flavours"
    summary = "pseudofermions of two flavours of one mass"
    chosen_by = "quarks"
    solves = True
    vectors = 48

    def __init__(
        self,
        operator: DiracOperator,
        request: QuarkSolver,
        number: int,
        title: str = "two_flavours",
    ) -> None:
        super().__init__(operator.field, title)
        self._operator, self._request, self._number = operator, request, number
        self._system = QuarkSystem(operator, request)
        self._eta = SpinorField.empty(operator.field, parity=EVEN)
        self._multiply = self._system.reduced().apply(self._system.phi, self._eta)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh eta, for normal random vectors eta; see `Monomial.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self._multiply()
        self._system.forget()
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh^-1 phi|^2; see `Monomial.actions`."""
        wanted = self._left(failures)
        found = self._system.solve_half(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        return local_norms(self._system.y)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`."""
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._operator.add_force(force, system.x, system.y, [1.0])
