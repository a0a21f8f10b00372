"""Calculations on several emulated GPUs give the bytes of one, whatever the order of their work.

`tests.tools.orders` says how often orders find a missing wait.
"""

import pytest

from tests import emulator
from tests.domain.conftest import open_group
from tests.emulator import orders

pytestmark = pytest.mark.gpu

DIVISIONS = [(4, 8), (2, 4, 3, 3)]

SCENARIOS = orders.scenarios()
QUICK = ("heatbath", "flow", "hmc omf2", "domain-wall", "products")
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SCENARIOS]


@pytest.fixture(scope="module")
def alone():
    """The bytes of one GPU, by scenario."""
    return {}


@pytest.fixture
def ordered(request):
    """Let the emulated GPUs work in an order."""
    driver = emulator.driver()
    if driver is None:
        pytest.skip("a real GPU has an order of its own")
    with orders.order_of(driver, request.param):
        yield


@pytest.mark.parametrize("ordered", orders.EXTREMES, indirect=True)
@pytest.mark.parametrize("kind", ["cuda", "cuda-sent"])
@pytest.mark.parametrize("slices", DIVISIONS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_work_changes_no_byte(name, slices, kind, ordered, alone):
    scenario = SCENARIOS[name]
    if name not in alone:
        alone[name] = scenario(open_group("cuda", (12,)))
    devices = open_group(kind, slices)
    assert scenario(devices) == alone[name]
    devices.close()
