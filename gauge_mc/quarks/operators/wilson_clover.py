"""The Wilson operator with the clover term, and with a twisted mass on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quarks.diagonal.clover_term import Clover
from gauge_mc.quarks.diagonal.twist import Twist
from gauge_mc.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.quarks.vectors.transport import ANTIPERIODIC


@OPERATORS.register
class WilsonClover(DiracOperator):
    """M = 1 + (i/2) kappa c_SW sigma F + 2 i kappa mu gamma_5 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    csw : float
        The coefficient c_SW of the clover term; see `Clover`.
    mu : float
        The twisted mass.
    """

    name = "wilson-clover"
    parameters: ClassVar[tuple[Option, ...]] = (*Clover.parameters, *Twist.parameters)
    qcdml: ClassVar = {
        "cloverQuarkAction": {"kappa": "kappa", "cSW": "csw"},
        "wilsonCloverTmQuarkAction": {"kappa": "kappa", "mu": "mu", "cSW": "csw"},
    }

    def __init__(
        self,
        field: Field,
        kappa: float,
        csw: float,
        mu: float = 0.0,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary, Clover(kappa, csw), Twist(kappa, mu))
