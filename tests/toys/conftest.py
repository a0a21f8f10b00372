"""Tests of the toys, which are also the templates of `python tests/tools/new.py`."""

import pytest


@pytest.fixture(autouse=True)
def _toys(toys):
    """Let every test see them."""
