"""Files as parameters of tests of kernels: those of larger groups are for slow tests."""

import pytest

from tests.formats.format_samples import GROUPS, HELD


def param(group, *values):
    """Return a parameter of a test, which is slow if the group is a larger one."""
    return pytest.param(*values, marks=() if group in GROUPS else pytest.mark.slow)


SOURCES = [param(one[1], one) for one in HELD]
"""`HELD` as values of one argument."""
