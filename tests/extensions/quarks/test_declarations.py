"""Mistakes in declarations of Dirac operators end in one sentence that names the module."""

from typing import ClassVar

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.operators import OPERATORS, DiracOperator, operator_with
from gauge_mc.extensions.quarks.operators import PlainWilson as Wilson
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from tests.calls import call

HERE = __name__


class Two(Wilson):
    """An operator with two parameters without defaults."""

    name = "two"
    parameters: ClassVar[tuple[Option, ...]] = (
        Option("one", float, "One.", default="0"),
        Option("other", float, "Other.", default="0"),
    )

    def __init__(self, field, kappa, one, other, boundary=-1):
        super().__init__(field, kappa, boundary)
        self.values = one, other


@pytest.fixture
def two():
    """Register an operator for a while."""
    OPERATORS.register(Two)
    yield Two
    OPERATORS.remove("two")


def test_parameters_of_operators_that_are_not_given_are_zero(two):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "double", CpuDevice(1))
    made = operator_with(field, 0.1, other=2.0)
    assert isinstance(made, Two)
    assert made.values == (0.0, 2.0)


def test_an_operator_must_take_the_parameters_that_it_declares():
    class Deaf(DiracOperator):
        name = "deaf"
        parameters: ClassVar[tuple[Option, ...]] = (
            Option("volume", float, "Volume.", default="0"),
        )
        diagonal = Wilson.diagonal

        def terms(self, prepared, slab):
            return None

    with pytest.raises(GaugeError, match=rf"Deaf in the module {HERE} declares .* volume, but"):
        OPERATORS.register(Deaf)


def test_options_of_one_name_are_refused_and_both_owners_are_named(monkeypatch):
    """`alpha` of an operator changed what `--alpha` of APE smearing meant."""
    alpha = Option("alpha", float, "Something else.", default="0")

    class Loud(Two):
        name = "loud"
        parameters = (alpha,)

        def __init__(self, field, kappa, alpha, boundary=-1):
            DiracOperator.__init__(self, field, kappa, boundary)

    OPERATORS.register(Loud)
    try:
        said, code = call(
            *[
                "generate",
                "--lattice",
                "4",
                "--measure",
                "mesons:1:kappa=0.12:alpha=1",
                "--output",
                "nowhere",
            ]
        )
    finally:
        OPERATORS.remove("loud")
    assert "Both the Dirac operator loud and the smearing ape declare an option --alpha" in said
    assert code == 1
