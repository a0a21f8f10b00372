"""Terms of quarks beside those that a user names."""

import pytest

from gauge_mc.algorithms import parse
from gauge_mc.errors import UsageError


def test_columns_of_quarks_are_added():
    algorithm = parse("hmc").check()
    with_quarks = algorithm.with_options(quarks="kappa=0.1").columns
    added = {one.name for one in with_quarks} - {one.name for one in algorithm.columns}
    own = {"force_quarks1", "largest_force_quarks1", "iterations_quarks1"}
    assert added == {"failed", *own}


def test_terms_of_quarks_are_not_named():
    words = "two-flavours is a term of every run or of its quarks; .* --quarks"
    with pytest.raises(UsageError, match=words):
        parse("hmc").with_options(monomials="two-flavours").check()
