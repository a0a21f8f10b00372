"""Values of options that must be given, for tests of all actions."""

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.options import Option
from tests.updates.every_action import EVERY, coupling_of, examples


@pytest.mark.parametrize("group", ["su2", "su3", "su4"])
@pytest.mark.parametrize("action", EVERY, ids=lambda one: one.name)
def test_every_action_has_a_coupling(action, group):
    coupling = coupling_of(action, group=group)
    assert coupling.action.values.keys() == {one.name for one in action.options}


def test_values_suit_the_group():
    action = ACTIONS["luscher-weisz"]
    assert coupling_of(action).action.u0 == 0.9
    assert coupling_of(action, group="su2").action.u0 == 1


@pytest.mark.parametrize(
    ("kind", "bounds", "expected"),
    [
        (float, {}, 0.9),
        (float, {"most": 1 / 8, "inside": True}, -0.1),
        (float, {"least": 5.0}, 6.0),
        (float, {"most": -5.0}, -6.0),
        (float, {"least": 1.0, "most": 2.0, "inside": True}, 1.5),
        (int, {}, 1),
        (int, {"least": 3}, 4),
        (str, {"choices": ("one", "two")}, "one"),
    ],
)
def test_values_follow_from_the_declaration(kind, bounds, expected):
    option = Option("some", kind, **bounds)
    assert examples(option)[0] == option.checked(expected)
