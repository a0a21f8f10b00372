"""The twisted mass."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.options import Option, check_declared
from gauge_mc.quarks.diagonal import MU, TERMS, DiagonalTerm


@TERMS.register
class Twist(DiagonalTerm):
    """2 i kappa mu gamma_5.

    Parameters
    ----------
    kappa : float
        The hopping parameter.
    mu : float
        The twisted mass, with the sign of the up quark.
    """

    name = "twist"
    parameters: ClassVar[tuple[Option, ...]] = (MU,)

    def __init__(self, kappa: float, mu: float) -> None:
        check_declared(self.parameters, {MU.name: mu}, "the twisted mass")
        self.mass = 2 * kappa * mu
