"""The clover term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.devices.kernels import Choice
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, check_declared
from gauge_mc.quarks.diagonal import LARGEST, TERMS, DiagonalTerm
from gauge_mc.quarks.forces.clover_force import CloverForce
from gauge_mc.quarks.vectors.storage import StoredSlab

CSW = Option(
    "csw",
    float,
    "Coefficient c_SW of the clover term.",
    "0",
    least=-LARGEST,
    most=LARGEST,
)


@TERMS.register
class Clover(DiagonalTerm):
    """(i/2) kappa c_SW sum over mu, nu of sigma_mu_nu F_mu_nu.

    It removes the errors of order a at tree level for c_SW = 1; see ``cuda_src/dirac/clover.h``.

    Parameters
    ----------
    kappa : float
        The hopping parameter.
    csw : float
        The coefficient c_SW.
    """

    name = "clover-term"
    parameters: ClassVar[tuple[Option, ...]] = (CSW,)
    matrix = Choice.of("term", "Clover", "dirac/clover.h", "Clover")

    def __init__(self, kappa: float, csw: float) -> None:
        check_declared(self.parameters, {CSW.name: csw}, "the clover term")
        self.coefficients = {"factor": kappa * csw}

    def add_force(
        self, force: AlgebraField, links: Field, derivative: Sequence[StoredSlab]
    ) -> None:
        """Add the force of an action; see `DiagonalTerm.add_force`."""
        CloverForce.of(links).add(force, derivative, self.coefficients["factor"])
