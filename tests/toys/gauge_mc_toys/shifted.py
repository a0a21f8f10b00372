"""The Wilson operator with a shift."""

from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.options import Option
from gauge_mc.quarks.operators import DiracOperator


class Shifted(DiracOperator):
    """M = 1 + shift - kappa D."""

    name = "shifted"
    parameters = (Option("shift", float, "Number that is added to M.", "0"),)
    diagonal = Choice.of("diagonal", "Shift", Path(__file__).with_name("shift.h"), "Shift")

    def __init__(self, field, kappa, shift, boundary=-1):
        super().__init__(field, kappa, boundary)
        self.shift = shift

    def terms(self, prepared, slab):
        """Fill the structure of the header."""
        return prepared.made_terms(slab, shift=self.shift)
