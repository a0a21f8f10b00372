"""All actions for tests of what they have in common, with values for options that must be given."""

import math
from itertools import product

import pytest

from gauge_mc.actions import ACTIONS, ANISOTROPY, Coupling, RectangleAction
from gauge_mc.errors import UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option

BETA, XI0 = 5.3, 1.7

VALUES = (0.9, 1, -0.1)
"""Numbers that are tried in this order for an option that must be given, before those that follow
from its bounds."""


class DividedRectangleAction(RectangleAction):
    """An action as in another package, with an option that must be given and that no test knows."""

    name = "divided-rectangle"
    source = "of the tests"
    options = (Option("divisor", float, "-1 / c1.", least=5.0), ANISOTROPY)

    @property
    def c1(self):
        return -1 / self.values.get("divisor", math.nan)


TOY = (DividedRectangleAction.name, False)
"""A pair for `every_action`."""

EVERY = (*ACTIONS.values(), DividedRectangleAction())


def every_action(*quick):
    """Parametrise a test by `action` and `anisotropic`; other pairs than the quick ones are slow.

    The quick pairs have the name of an action.
    """
    values = [
        pytest.param(
            *(action, anisotropic),
            id=f"{action.name}-{anisotropic}",
            marks=[] if (action.name, anisotropic) in quick else pytest.mark.slow,
        )
        for action, anisotropic in product(EVERY, (False, True))
    ]
    return pytest.mark.parametrize(("action", "anisotropic"), values)


def loops_of(action):
    """Return the closed paths from a site of all loops, with their factors in the action / beta."""
    in_space, along_t = action.factors.values() or (1.0, 1.0)
    return [
        (path, coefficient * (along_t if any(mu == 3 for mu, _ in path) else in_space))
        for loops, coefficient in action.loops.items()
        for path in loops.paths
    ]


def examples(option):
    """Return values of an option that its declaration allows; the last is there for any bounds."""
    if option.kind not in (int, float):
        return option.choices[:1]
    low = option.least if math.isfinite(option.least) else min(option.most, 1.0) - 2
    high = option.most if math.isfinite(option.most) else low + 2
    between = option.kind((low + high) / 2)
    return [value for value in (*VALUES, between) if allowed(option, value)]


def allowed(option, value):
    """Return whether a value has the type of an option and is within its bounds."""
    try:
        option.checked(value)
    except UsageError:
        return False
    return option.kind(value) == value


def coupling_of(action, anisotropic=False, group="su3", beta=BETA):
    """Return the coupling of an action with all that it needs, for a group.

    The test is skipped if the action has no anisotropic form, although one is wanted.
    """
    options = {one.name for one in action.options}
    if anisotropic and ANISOTROPY.name not in options:
        pytest.skip("the action has no anisotropic form")
    more = {ANISOTROPY.name: XI0} if anisotropic else {}
    needed = [one for one in action.options if one.usual is None]
    for values in product(*map(examples, needed)):
        given = {one.name: value for one, value in zip(needed, values, strict=True)}
        coupling = Coupling.of(beta, action, **given, **more)
        try:
            coupling.coefficients(GROUPS[group])
        except UsageError:  # as u0 for other groups than SU(3)
            continue
        return coupling
    raise AssertionError(f"no value of the options of {action.name} suits {group}")
