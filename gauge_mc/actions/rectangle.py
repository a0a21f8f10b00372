"""Actions with plaquettes and rectangles, with any coefficient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from gauge_mc.actions import ACTIONS, Action, RectangleAction, RectangleKernels
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.numbers import number
from gauge_mc.quoting import shortened

LEAST_C1 = -1000.0
"""Smallest coefficient, to catch typing errors."""


class GivenRectangleAction(RectangleAction):
    """The action with a coefficient that the user has given.

    Parameters
    ----------
    c1 : float
    """

    source = "given by the user"

    def __init__(self, c1: float) -> None:
        self.name, self.c1 = f"rectangle:{c1:.10g}", c1
        super().__init__()


class AnyRectangleAction(RectangleKernels):
    """The choice of the user to give a coefficient, as in ``rectangle:-0.1``."""

    name = "rectangle"
    formula = "as for the other actions with rectangles, with any c1, as in rectangle:-0.1"

    def with_parameter(self, text: str) -> Action:
        """Return the action with this c1."""
        try:
            c1 = number(text)
        except ValueError:
            c1 = math.nan
        if not LEAST_C1 <= c1 < 1 / 8:
            raise UsageError(
                f"The action rectangle needs a coefficient c1 from {LEAST_C1:g} to below 1/8, not "
                f"'{shortened(text)}'; give one as in rectangle:-0.1."
            )
        return _with_coefficient(float(f"{c1:.10g}"))

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Refuse the action without a coefficient."""
        raise UsageError("The action rectangle needs a coefficient c1: give it as rectangle:-0.1.")


@cache
def _with_coefficient(c1: float) -> Action:
    return GivenRectangleAction(c1)


ACTIONS.register(AnyRectangleAction())
