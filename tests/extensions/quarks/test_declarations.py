"""Two options of one name are refused, and both owners are named."""

from typing import ClassVar

from gauge_mc.extensions.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.extensions.quarks.operators import PlainWilson as Wilson
from gauge_mc.options import Option
from tests.calls import call


def test_options_of_one_name_are_refused_and_both_owners_are_named():
    """`alpha` of an operator changed what `--alpha` of APE smearing meant."""

    class Loud(Wilson):
        name = "loud"
        parameters: ClassVar[tuple[Option, ...]] = (
            Option("alpha", float, "Something else.", default="0"),
        )

        def __init__(self, field, kappa, alpha, boundary=-1):
            DiracOperator.__init__(self, field, kappa, boundary)

    OPERATORS.register(Loud)
    try:
        measure = "mesons:1:kappa=0.12:alpha=1"
        words = ("--lattice", "4", "--measure", measure, "--output", "nowhere")
        said, code = call("generate", *words)
    finally:
        OPERATORS.remove("loud")
    assert "Both the Dirac operator loud and the smearing ape declare an option --alpha" in said
    assert code == 1
