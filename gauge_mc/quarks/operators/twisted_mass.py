"""The Wilson operator with a twisted mass."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.devices.kernels import Choice
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quarks.hopping import PreparedOperator
from gauge_mc.quarks.operators import MU, OPERATORS, DiracOperator, finite
from gauge_mc.quarks.transport import ANTIPERIODIC


@OPERATORS.register
class TwistedMass(DiracOperator):
    """M = 1 + 2 i kappa mu gamma_5 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    mu : float
        The twisted mass, with the sign of the up quark.
    """

    name = "twisted-mass"
    parameters: ClassVar[tuple[Option, ...]] = (MU,)
    diagonal = Choice.of("diagonal", "Twist", "dirac/twist.h", "Twist")

    def __init__(
        self,
        field: Field,
        kappa: float,
        mu: float,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary)
        self.mu = finite("The twisted mass", mu)

    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms``; see `DiracOperator.terms`."""
        return prepared.made_terms(slab, mass=2 * self.kappa * self.mu)
