"""Plaquettes in the adjoint representation."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.sums import SlabSums
from gauge_mc.options import Option
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.updates.energy import Energy, replica_sums
from gauge_mc.updates.monomials import MONOMIALS, Monomial

ADJOINT_PLAQUETTE = Kernel("adjoint_plaquette")


@MONOMIALS.register
class AdjointPlaquette(Monomial):
    """S = beta sum_p (1 - Tr_A U_p / (N^2 - 1)), where Tr_A U = |Tr U|^2 - 1.

    With the Wilson action it is the mixed action of plaquettes in the fundamental and the adjoint
    representation (G. Bhanot and M. Creutz, Phys. Rev. D 24 (1981) 3212), whose coupling beta_A is
    `beta`.
    """

    name = "adjoint-plaquette"
    summary = "plaquettes in the adjoint representation"
    qcdml: ClassVar = {"plaquetteGluonAction": {"beta": "beta"}}
    representation = "adjoint"
    options = (Option("beta", float, "Coupling β_A of adjoint plaquettes.", least=-1e3, most=1e3),)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain."""
        found = replica_sums(self.field.devices, self._launched(), self.chains)
        return [Energy.of(self.values["beta"] * one) for one in found]

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        self._launched(force)

    def _launched(self, force: AlgebraField | None = None) -> list[SlabSums]:
        """Return sums that have begun, and add the forces if there is a field for them."""
        sums = [SlabSums(slab, 1, 1, scratch=self.title) for slab in self.field.slabs]
        for n, one in enumerate(sums):
            values = {
                "links": one.slab.buffer.address,
                "force": force.slabs[n].buffer.address if force else None,
                "factor": self.values["beta"] if force else 0.0,
            }
            one.launch(ADJOINT_PLAQUETTE, values)
        return sums
