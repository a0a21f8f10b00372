"""A number that is added to the mass of quarks."""

from collections.abc import Sequence
from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.extensions.quarks.diagonal import DiagonalTerm
from gauge_mc.extensions.quarks.vectors import StoredSlab
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.options import Option


class ExtraMass(DiagonalTerm):
    """2 kappa m, so that M / (2 kappa) has another mass."""

    name = "extra-mass"
    parameters = (Option("extra", float, "Number m that is added to the mass.", default="0"),)
    matrix = Choice.of("term", "ExtraMass", Path(__file__).parent / "extra_mass.h", "ExtraMass")

    def __init__(self, kappa: float, extra: float) -> None:
        self.coefficients = {"shift": 2 * kappa * extra}

    def add_force(
        self, force: AlgebraField, links: Field, derivative: Sequence[StoredSlab]
    ) -> None:
        """Add nothing: the term does not depend on the links."""
