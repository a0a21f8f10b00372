"""The Wilson operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.fields.field import Field
from gauge_mc.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.quarks.vectors.transport import ANTIPERIODIC


@OPERATORS.register
class PlainWilson(DiracOperator):
    """M = 1 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    """

    name = "wilson"
    qcdml: ClassVar = {"wilsonQuarkAction": {"kappa": "kappa"}}

    def __init__(
        self, field: Field, kappa: float, boundary: complex | Sequence[complex] = ANTIPERIODIC
    ) -> None:
        super().__init__(field, kappa, boundary)
