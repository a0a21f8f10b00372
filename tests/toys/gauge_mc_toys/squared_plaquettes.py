"""A monomial: squares of plaquettes."""

from pathlib import Path

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import AlgebraField
from gauge_mc.fields.sums import SlabSums
from gauge_mc.files.columns import Column
from gauge_mc.options import Option
from gauge_mc.updates.momenta import Energy, replica_sums
from gauge_mc.updates.monomials import Failures, Mask, Monomial

SQUARED_PLAQUETTES = Kernel("squared_plaquettes", Path(__file__).parent)


class SquaredPlaquettes(Monomial):
    """S = strength times the sum over all plaquettes of 1 - (Re Tr U_p / N)^2."""

    name = "squared-plaquettes"
    summary = "squares of plaquettes"
    options = (Option("strength", float, "Factor of the squares.", least=-100, most=100),)
    columns = (Column("square", float, "Average of 1 - (Re Tr / N)^2 over plaquettes at its end."),)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain."""
        sums = self._launched(None)
        self.found = replica_sums(self.field.devices, sums, self.chains)
        return [Energy.of(self.values["strength"] * one) for one in self.found]

    def measured(self, chain: int) -> tuple[float, ...]:
        """Return the average over plaquettes."""
        return (float(self.found[chain].sum()) / (6 * self.field.lattice.sites),)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        self._launched(force)

    def _launched(self, force: AlgebraField | None) -> list[SlabSums]:
        sums = [SlabSums(slab, 1, 1, scratch=self.title) for slab in self.field.slabs]
        for n, one in enumerate(sums):
            values = {
                "links": one.slab.buffer.address,
                "force": force.slabs[n].buffer.address if force else None,
                "factor": self.values["strength"] if force else 0.0,
            }
            one.launch(SQUARED_PLAQUETTES, values)
        return sums
