"""Values of options of quarks in Python: numbers and sequences, as well as text."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.parameters import Parameters

LATTICE = Lattice(4, 4, 4, 8)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ({"kappa": "0.11,0.12"}, {"kappa": [0.12, 0.11]}),
        ({"kappa": "0.1", "mu": "1"}, {"kappa": 0.1, "mu": 1}),
        ({"kappa": "0.1", "boundary": "0,0.5,0,1"}, {"kappa": 0.1, "boundary": (0, 0.5, 0, 1)}),
    ],
)
def test_options_take_numbers_as_well_as_text(text, typed):
    kind = OBSERVABLES["mesons"]
    first, second = (kind.for_lattice(LATTICE, **one) for one in (text, typed))
    assert first.header == second.header
    assert first.records == second.records
    usual = kind.for_lattice(LATTICE, kappa=0.1)
    assert (usual.header, usual.records) != (second.header, second.records)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kappa": [0.1, float("nan")]}, "--kappa is nan; give a number"),
        ({"kappa": -0.1}, "--kappa is -0.1; give a number"),
        ({"kappa": 0.1, "boundary": (0, 1)}, "give antiperiodic or periodic, or four"),
    ],
)
def test_other_values_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        OBSERVABLES["mesons"].for_lattice(LATTICE, **options)


def test_names_are_taken_in_any_case():
    quarks = "kappa=0.1:boundary=Periodic:solver=CG"
    values = {"algorithm": "hmc", "precision": "double", "levels": "OMF2:4,Leapfrog:2"}
    found = Parameters.from_values({**values, "quarks": quarks})
    assert found == Parameters.from_values({**values, "quarks": quarks.lower()})
