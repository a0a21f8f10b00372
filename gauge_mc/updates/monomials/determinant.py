"""The determinant of the part of a Dirac operator that is diagonal in the sites."""

from __future__ import annotations

import math

from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.quarks.forces.derivative import DiagonalDerivative, log_determinants
from gauge_mc.quarks.matrices.hermitian import FORMS, HERMITIAN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.spinors import SPINS
from gauge_mc.updates.energy import Energy, replica_sums
from gauge_mc.updates.monomials import MONOMIALS, Monomial


@MONOMIALS.register
class Determinant(Monomial):
    """S = -(flavours / 2) ln det (A A^dagger) on the odd sites, for flavours with det M each.

    It accompanies the pseudofermions for Mh, the operator on the even sites, because
    det M = det A_oo det Mh. A A^dagger is H^2 + m^2, of which S is the sum over sites.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    flavours : int
        Number of flavours.
    title : str
        See `Monomial`.

    Raises
    ------
    UsageError
        If A is not composed of terms.
    """

    name = "determinant"
    summary = "determinant of the diagonal part of a Dirac operator on the odd sites"
    chosen_by = "quarks"
    solves = True
    vectors = 48

    def __init__(
        self, operator: DiracOperator, flavours: int = 2, title: str = "determinant"
    ) -> None:
        super().__init__(operator.field, title)
        if operator.diagonal not in FORMS:
            raise UsageError(
                f"The determinant of the diagonal part of the operator {operator.name} is not "
                "known; choose an operator that is composed of terms."
            )
        self._operator, self._flavours = operator, flavours

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain, as the contributions of blocks of sites."""
        part, weight = self._operator.hermitian, -self._flavours / 2
        devices, replicas = self.field.devices, self.field.layouts[0].replicas
        if self._operator.diagonal == HERMITIAN:
            found = replica_sums(devices, log_determinants(part), replicas)
            return [Energy.of(weight * one) for one in found]
        numbers = self.field.lattice.sites // 2 * SPINS * self.field.group.colours
        return [Energy.of(weight * numbers * math.log1p(part.mass**2))] * replicas

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        if self._operator.diagonal == HERMITIAN:
            derivative = DiagonalDerivative.of(self.field)
            blocks = derivative.of_determinant(self._operator.hermitian, -self._flavours)
            self._operator.add_term_forces(force, blocks)
