"""Messages of the whole program to which only extensions lead."""

from tests.advice.scenarios import OF_EXTENSIONS
from tests.advice.test_advice import listed_messages


def test_messages_to_which_only_extensions_lead_are_listed_there():
    assert {*listed_messages()} >= OF_EXTENSIONS
