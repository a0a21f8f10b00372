"""Terms of the action that a user names: their options, levels, names and columns."""

import pytest

from gauge_mc.algorithms import parse
from gauge_mc.errors import UsageError
from gauge_mc.files.columns import Column
from gauge_mc.options import Option
from gauge_mc.updates.monomials import MONOMIALS, Monomial
from gauge_mc.updates.terms import NamedMonomial, monomial_terms


class Springs(Monomial):
    """A term without content."""

    name = "pretended-springs"
    summary = "nothing"
    options = (
        Option("stiffness", float, "Stiffness of the springs.", least=0, most=10),
        Option("kinds", int, "Number of kinds.", least=1, most=3, usual=1),
    )
    columns = (Column("stretch", float, "Their stretch."),)

    def actions(self, failures):
        return []

    def add_force(self, force, wanted, failures):
        pass


class Weights(Springs):
    """Another one."""

    name = "pretended-weights"
    options = (Option("heaviness", float, "Their weight.", least=0, most=10, usual=1.0),)
    columns = ()


@pytest.fixture(autouse=True)
def _registered():
    for one in (Springs, Weights):
        MONOMIALS.register(one)
    yield
    for one in (Springs, Weights):
        MONOMIALS.remove(one.name)


def test_text_tables_and_objects_are_the_same():
    text = "pretended-springs:level=1:stiffness=2.0,pretended-weights"
    read = NamedMonomial.several(text)
    tables = [
        {"monomial": "pretended-springs", "level": 1, "stiffness": 2},
        {"monomial": "pretended-weights"},
    ]
    assert read == NamedMonomial.several(tables)
    assert str(read) == text
    assert [one.own_values for one in read] == [{"stiffness": 2.0, "kinds": 1}, {"heaviness": 1.0}]


def test_terms_have_names_and_levels_of_their_own():
    text = "pretended-springs:stiffness=1,pretended-weights:level=1,pretended-springs:stiffness=2"
    terms = [*monomial_terms(NamedMonomial.several(text), 2)]
    names = ["pretended_springs", "pretended_weights", "pretended_springs2"]
    assert [(one.title, one.level, one.kind) for one in terms] == [
        (name, level, kind)
        for name, level, kind in zip(names, (0, 1, 0), (Springs, Weights, Springs), strict=True)
    ]


def test_columns_are_those_of_the_terms_that_there_are():
    text = "pretended-springs:stiffness=1"
    algorithm = parse("hmc").with_options(monomials=text).check()
    assert [one.name for one in algorithm.columns][8:] == [
        "force_pretended_springs",
        "largest_force_pretended_springs",
        "stretch_pretended_springs",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pretended-strings", "pretended-springs"),
        ("gauge", "gauge is a term of every run"),
        ("level=0", "needs a name; give "),
        ("pretended-springs", "pretended-springs needs stiffness: Stiffness of the springs"),
        (
            "pretended-weights:stiffness=1",
            "pretended-weights has no option stiffness; leave it out",
        ),
        ("pretended-springs:stiffness=11", "11"),
        (
            "pretended-weights:level=1",
            "asks for level 1, but the last one is 0; add it to --levels",
        ),
    ],
)
def test_what_is_refused(text, sentence):
    with pytest.raises(UsageError, match=sentence):
        parse("hmc").with_options(monomials=text).check()
