"""Values of options of quarks in Python: numbers and sequences, as well as text."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.operators import OPERATORS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.cards import _property
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


def test_ranges_state_whether_their_ends_are_allowed():
    """A Dirac operator accepts the ends of a parameter if the declaration of it does."""
    open_ended = []
    for operator in OPERATORS.values():
        for one in operator.parameters:
            for end in (one.least, one.most):
                if one.kind is float and end in (0, 2):
                    refused = [_refusal(one.checked, end)]
                    refused.append(_refusal(operator.check_parameters, **{one.name: end}))
                    if one.inside:
                        assert all("which are not allowed themselves" in said for said in refused)
                        open_ended.append(one.name)
                    elif one.name != "b":  # one of b and c at least is above 0
                        assert refused == ["", ""]
    assert set(open_ended) == {"m5", "rho"}
    schema = _property(next(one for one in OPERATORS["overlap"].parameters if one.name == "rho"))
    assert (schema["exclusiveMinimum"], schema["exclusiveMaximum"]) == (0, 2)


def _refusal(check, *values, **named):
    try:
        check(*values, **named)
    except UsageError as error:
        return str(error)
    return ""


def test_names_are_taken_in_any_case():
    quarks = "kappa=0.1:boundary=Periodic:solver=CG"
    values = {"algorithm": "hmc", "precision": "double", "levels": "OMF2:4,Leapfrog:2"}
    found = Parameters.from_values({**values, "quarks": quarks})
    assert found == Parameters.from_values({**values, "quarks": quarks.lower()})
