"""The twisted mass."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.options import Option
from gauge_mc.quarks.diagonal import MU, TERMS, DiagonalTerm, finite


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
        self.mass = 2 * kappa * finite("The twisted mass", mu)
