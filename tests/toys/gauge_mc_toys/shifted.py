"""The Wilson operator with a shift."""

import ctypes
from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.extensions.quarks.hopping import PreparedOperator
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.fields.field import Field
from gauge_mc.options import Option


class Shifted(DiracOperator):
    """M = 1 + shift - kappa D."""

    name = "shifted"
    parameters = (Option("shift", float, "Number that is added to M.", default="0"),)
    diagonal = Choice.of("diagonal", "Shifted", Path(__file__).parent / "shifted.h", "Shifted")

    def __init__(self, field: Field, kappa: float, shift: float, boundary: float = -1) -> None:
        super().__init__(field, kappa, boundary)
        self.shift = shift

    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Fill the structure of the header."""
        return prepared.made_terms(slab, shift=self.shift)
