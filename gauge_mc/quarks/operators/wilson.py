"""The Wilson operator."""

from __future__ import annotations

import ctypes

from gauge_mc.devices.kernels import Choice
from gauge_mc.quarks.hopping import PreparedOperator
from gauge_mc.quarks.operators import OPERATORS, DiracOperator


@OPERATORS.register
class PlainWilson(DiracOperator):
    """M = 1 - kappa D."""

    name = "wilson"
    diagonal = Choice.of("diagonal", "Unit", "dirac/unit.h", "Unit")

    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms``; see `DiracOperator.terms`."""
        return prepared.made_terms(slab, none=0)
