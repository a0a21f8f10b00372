"""Smearings by name, with options as on the command line."""

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.smearing import SMEARINGS, make_smearing, smearing_options
from gauge_mc.smearing.ape import Ape


def test_a_smearing_is_made_by_its_name():
    assert make_smearing("none", {"weight": None}) is None
    assert make_smearing("ape", {}) == Ape()
    given = {"weight": 1, "dims": 4, "projection": "polar", "alpha": None}
    assert make_smearing("ape", given) == Ape(1.0, 4, "polar")
    assert make_smearing("ape", {"alpha": 0.5}) == Ape.from_alpha(0.5)


def test_the_form_does_not_depend_on_the_number_of_staples():
    (weight,) = [option for option in Ape.options if option.name == "weight"]
    for text in (weight.help.replace("Σ of the", "sum of").replace("→", "->"), Ape.__doc__):
        assert "U -> P[U + w sum of staples]" in text
    assert "P[U + w sum of staples]" in str(Ape())


def test_options_come_once():
    names = [option.name for option in smearing_options()]
    assert set(names) >= {"weight", "alpha", "dims", "projection"}
    assert len(names) == len(set(names))
    assert SMEARINGS["ape"] is Ape


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("none", {"weight": 0.2}, "--weight is not for --smear none"),
        ("ape", {"rho": 0.1}, "--rho is not an option of --smear ape"),
        ("ape", {"weight": 0.2, "alpha": 0.5}, "--weight and --alpha are two forms of the same"),
        ("ape", {"dims": 3.5}, "--dims is 3.5; give a value of type int"),
        ("ape", {"dims": 5}, "dimension of the staples is 5"),
        ("hyp", {}, "There is no smearing 'hyp'"),
    ],
)
def test_names_and_options_that_are_refused(name, values, sentence):
    with pytest.raises(UsageError, match=sentence):
        make_smearing(name, values)
