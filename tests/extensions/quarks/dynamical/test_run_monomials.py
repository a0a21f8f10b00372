"""Terms of quarks beside those that a user names."""

import pytest

from gauge_mc.algorithms import parse
from gauge_mc.errors import UsageError


def test_terms_of_quarks_are_not_named():
    words = "two-flavours is a term of every run or of its quarks; .* --quarks"
    with pytest.raises(UsageError, match=words):
        parse("hmc").with_options(monomials="two-flavours").check()
