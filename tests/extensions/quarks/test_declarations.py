"""Mistakes in declarations of Dirac operators end in one sentence that names the module."""

from typing import ClassVar

from gauge_mc.extensions.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.extensions.quarks.operators import PlainWilson as Wilson
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
