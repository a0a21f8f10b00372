"""What tests of the whole program need of publishing; see `tests.samples`."""

from tests.extensions.publishing.scenarios import ELSEWHERE as ELSEWHERE
from tests.extensions.publishing.scenarios import SCENARIOS as SCENARIOS

CALLS = {
    "publish": [("run", "published", "--author", "Doe, Jane")],
    "paper": [(), ("guagnelli_r0", "--kept")],
}
"""Calls that print each document of its commands; see ``tests/cli/test_json.py``."""
