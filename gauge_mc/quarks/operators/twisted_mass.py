"""The Wilson operator with a twisted mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quarks.diagonal.twist import Twist
from gauge_mc.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.quarks.vectors.transport import ANTIPERIODIC


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
    parameters: ClassVar[tuple[Option, ...]] = Twist.parameters
    qcdml: ClassVar = {"wilsonTmQuarkAction": {"kappa": "kappa", "mu": "mu"}}

    def __init__(
        self,
        field: Field,
        kappa: float,
        mu: float,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary, Twist(kappa, mu))
