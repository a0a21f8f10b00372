"""Actions with plaquettes and rectangles, with any coefficient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property

from gauge_mc.actions import ACTIONS, Action
from gauge_mc.devices.kernels import Choice
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.quoting import shortened

HEADER, CPP = "action/rectangles.h", "Rectangles"

RECTANGLES = Choice.of("action", "rectangles", HEADER, CPP)
"""The compile-time choice of all actions with rectangles, which differ in numbers only."""


class RectangleKernels(Action):
    """An action whose kernels are those with rectangles."""

    header = HEADER
    cpp = CPP
    halo_depth = 2

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the kernels."""
        return RECTANGLES


class RectangleAction(RectangleKernels):
    """S = beta (c0 sum (1 - Re Tr U_p / N) + c1 sum (1 - Re Tr U_r / N)), c0 = 1 - 8 c1.

    The sums are over all plaquettes and all rectangles of 2x1 links.

    Attributes
    ----------
    c1 : float
        Coefficient of the rectangles.
    source : str
        Publication that proposes this coefficient.
    """

    c1: float
    source: str

    def __init__(self) -> None:
        self.rectangle = self.c1
        self.formula = (
            "beta (c0 sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over 2x1 rectangles of "
            f"(1 - Re Tr U_r / N)), c1 = {self.c1:.10g}, c0 = 1 - 8 c1 = {1 - 8 * self.c1:.10g} "
            f"({self.source}), beta = 2 N / g^2"
        )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N and the coefficients of plaquettes and rectangles."""
        return {"beta_over_n": beta / group.colours, "c0": 1 - 8 * self.c1, "c1": self.c1}


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
            c1 = float(text)
        except ValueError:
            c1 = math.nan
        if not -math.inf < c1 < 1 / 8:
            raise UsageError(
                f"The action rectangle needs a coefficient c1 below 1/8, not '{shortened(text)}'; "
                "give one as in rectangle:-0.1."
            )
        return _with_coefficient(float(f"{c1:.10g}"))

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Refuse the action without a coefficient."""
        raise UsageError("The action rectangle needs a coefficient c1: give it as rectangle:-0.1.")


@cache
def _with_coefficient(c1: float) -> Action:
    return GivenRectangleAction(c1)


ACTIONS.register(AnyRectangleAction())
