"""Tests of the toys, which are also the templates of `python tests/tools/new.py`."""

import pytest

from tests.emulator.own_sites import own_sites_only


@pytest.fixture(autouse=True)
def _toys(toys):
    """Let every test see them, and fail if one of their kernels stores to other sites."""
    with own_sites_only():
        yield
