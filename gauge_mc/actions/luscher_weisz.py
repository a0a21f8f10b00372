"""The one-loop improved action of Lüscher and Weisz, with parallelograms and tadpole factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property

from gauge_mc.actions import ACTIONS, Action
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.colouring import CUBES
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.numbers import number
from gauge_mc.quoting import shortened

U0 = (0.1, 1.0)
"""Smallest and largest tadpole factor, to catch typing errors."""

KERNELS = replace(
    Choice.of("action", "with-parallelograms", "action/luscher_weisz.h", "LuscherWeisz"),
    needs_registers=True,
)


class LuscherWeisz(Action):
    """The choice of the user to give a tadpole factor, as in ``luscher-weisz:0.89``."""

    name = "luscher-weisz"
    formula = (
        "beta (sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over 2x1 rectangles of "
        "(1 - Re Tr U_r / N) + c2 sum over parallelograms of (1 - Re Tr U_q / N)), "
        "c1 = -(1 + 0.4805 a) / (20 u0^2), c2 = -0.03325 a / u0^2, a = -4 ln(u0) / 3.06839 (M. "
        "Luescher and P. Weisz, Phys. Lett. B 158 (1985) 250; M. Alford et al., hep-lat/9507010), "
        "beta is the factor of the plaquettes, with any u0, as in luscher-weisz:0.89"
    )
    header = "action/luscher_weisz.h"
    cpp = "LuscherWeisz"
    colouring = CUBES

    def with_parameter(self, text: str) -> Action:
        """Return the action with this tadpole factor."""
        least, most = U0
        try:
            u0 = number(text)
        except ValueError:
            u0 = math.nan
        if not least <= u0 <= most:
            raise UsageError(
                f"The action {self.name} needs a tadpole factor u0 between {least:g} and "
                f"{most:g}, not '{shortened(text)}'; give one as in {self.name}:0.89."
            )
        return _with_tadpole_factor(float(f"{u0:.10g}"))

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Refuse the action without a tadpole factor."""
        raise UsageError(
            f"The action {self.name} needs a tadpole factor u0: give it as {self.name}:0.89."
        )

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the kernels."""
        return KERNELS


class GivenLuscherWeisz(LuscherWeisz):
    """The action with a tadpole factor that the user has given.

    Here beta is the factor of the plaquettes, as in the publications. With u0 = 1 the action is
    that at tree level, for which beta (1 + 8 c1) = 3/5 beta is 2 N / g^2.

    Parameters
    ----------
    u0 : float
        Tadpole factor, usually the fourth root of the mean plaquette.
    """

    def __init__(self, u0: float) -> None:
        self.u0 = u0
        self.name = f"{LuscherWeisz.name}:{u0:.10g}"
        alpha = -4 * math.log(u0) / 3.06839
        self.c1 = -(1 + 0.4805 * alpha) / (20 * u0**2)
        self.c2 = -0.03325 * alpha / u0**2
        general, _, _ = LuscherWeisz.formula.rpartition(", with any u0")
        self.formula = f"{general}, u0 = {u0:.10g}, c1 = {self.c1:.10g}, c2 = {self.c2:.10g}"

    def with_parameter(self, text: str) -> Action:
        """Refuse a second tadpole factor."""
        return Action.with_parameter(self, text)

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N and the coefficients of rectangles and parallelograms.

        Raises
        ------
        UsageError
            If u0 is not 1 and the group is not SU(3), for which the one-loop coefficients are.
        """
        if group.colours != 3 and self.u0 != 1:
            raise UsageError(
                f"The one-loop coefficients of the action {self.name} are those for SU(3); choose "
                f"this group, or {LuscherWeisz.name}:1 at tree level for {group.label}."
            )
        return {"beta_over_n": beta / group.colours, "c1": self.c1, "c2": self.c2}

    def facts(self, beta: float) -> dict[str, str]:
        """Return the formula, and beta times the sum of the coefficients, in the other convention.

        A plane wave of long wavelength sees c0 + 8 c1 + 8 c2 plaquettes, with c0 = 1.
        """
        whole = beta * (1 + 8 * self.c1 + 8 * self.c2)
        return {"formula": self.formula, "beta_sum": f"{whole:.10g} (beta (1 + 8 c1 + 8 c2))"}


@cache
def _with_tadpole_factor(u0: float) -> Action:
    return GivenLuscherWeisz(u0)


ACTIONS.register(LuscherWeisz())
