"""What quarks declare to the whole program: options, messages, and readers of files."""

from typing import ClassVar

import pytest

from gauge_mc.extensions.quarks.operators import OPERATORS, DiracOperator
from gauge_mc.extensions.quarks.operators import PlainWilson as Wilson
from gauge_mc.options import Option
from gauge_mc.run.parameters import Parameters
from tests.advice.scenarios import OF_EXTENSIONS
from tests.advice.test_advice import listed_messages
from tests.calls import call
from tests.files.extremes import calls_of_parsers


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


def test_names_are_taken_in_any_case():
    quarks = "kappa=0.1:boundary=Periodic:solver=CG"
    values = {"algorithm": "hmc", "precision": "double", "levels": "OMF2:4,Leapfrog:2"}
    found = Parameters.from_values({**values, "quarks": quarks})
    assert found == Parameters.from_values({**values, "quarks": quarks.lower()})


def test_messages_to_which_only_extensions_lead_are_listed_there():
    assert {*listed_messages()} >= OF_EXTENSIONS


OWN = {"modes.mode_files": "it has a digest, and tests of kept modes"}
"""Modules with parsers whose values are not tried as in ``tests/files/test_extremes.py``."""


@pytest.mark.slow
def test_no_other_reader_is_not_tried():
    here = "extensions.quarks."
    found = {name.removeprefix(here) for name in calls_of_parsers() if name.startswith(here)}
    assert {next((one for one in OWN if name.startswith(one)), name) for name in found} == {*OWN}
