"""Groups of tests of quarks."""

import pytest


@pytest.fixture(params=[pytest.param("su2", marks=pytest.mark.slow), "su3"])
def group(request: pytest.FixtureRequest) -> str:
    """Both groups; the larger one in quick tests, where some name the other one themselves."""
    return request.param
