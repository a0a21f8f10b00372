"""The one-loop improved action of Lüscher and Weisz, with parallelograms and tadpole factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar

from gauge_mc.actions import ACTIONS, SIX_LINKS, Action
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.loops import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Loops
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group, special_unitary
from gauge_mc.options import Option

U0 = Option(
    "u0",
    float,
    "Tadpole factor, usually the fourth root of the mean plaquette.",
    metavar="U0",
    least=0.1,
    most=1.0,
    symbol="u₀",
    axis="$u_0$",
    tag="u0_",
)
"""The tadpole factor; the bounds catch typing errors."""

KERNELS = replace(
    Choice.of("action", "with-parallelograms", "action/luscher_weisz.h", "LuscherWeisz"),
    needs_registers=True,
)


class LuscherWeisz(Action):
    """The action with the one-loop coefficients and a tadpole factor.

    Here beta is the factor of the plaquettes, as in the publications. With u0 = 1 the action is
    that at tree level, for which beta (1 + 8 c1) = 3/5 beta is 2 N / g^2.
    """

    name = "luscher-weisz"
    qcdml: ClassVar = {"tpLuescherWeiszGluonAction": {**SIX_LINKS, "u0": U0.name}}
    header = "action/luscher_weisz.h"
    cpp = "LuscherWeisz"
    isotropic = KERNELS
    beta_is = "the factor of the plaquettes"
    options = (U0,)
    artefacts = (2, 4)  # g^4 a^2 and a^4

    @property
    def u0(self) -> float:
        """Tadpole factor; not a number until it is given."""
        return float(self.values.get(U0.name, math.nan))

    @property
    def c1(self) -> float:
        """Coefficient of the rectangles."""
        return -(1 + 0.4805 * self._alpha) / (20 * (self.u0 * self.u0))

    @property
    def c2(self) -> float:
        """Coefficient of the parallelograms."""
        return -0.03325 * self._alpha / (self.u0 * self.u0)

    @property
    def loops(self) -> Mapping[Loops, float]:
        """The coefficients of plaquettes, rectangles and parallelograms."""
        return {PLAQUETTES: 1.0, RECTANGLES: self.c1, PARALLELOGRAMS: self.c2}

    @property
    def _alpha(self) -> float:
        return -4 * float(Decimal(self.u0).ln()) / 3.06839  # math.log may differ between machines

    @property
    def formula(self) -> str:  # type: ignore[override]
        """Formula of the action, with its coefficients."""
        numbers = "with any u0"
        if U0.name in self.values:
            numbers = f"u0 = {self.u0:.10g}, c1 = {self.c1:.10g}, c2 = {self.c2:.10g}"
        return (
            "beta (sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over 2x1 rectangles of "
            "(1 - Re Tr U_r / N) + c2 sum over parallelograms of (1 - Re Tr U_q / N)), "
            "c1 = -(1 + 0.4805 a) / (20 u0^2), c2 = -0.03325 a / u0^2, a = -4 ln(u0) / 3.06839 (M. "
            "Luescher and P. Weisz, Phys. Lett. B 158 (1985) 250; M. Alford et al., "
            f"hep-lat/9507010), beta is the factor of the plaquettes, {numbers}"
        )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N and the coefficients of rectangles and parallelograms.

        Raises
        ------
        UsageError
            If u0 is not 1 and the group is not SU(3), for which the one-loop coefficients are.
        """
        if group.name != special_unitary(3) and self.u0 != 1:
            raise UsageError(
                f"The one-loop coefficients of the action {self.name} are those for SU(3); choose "
                f"this group, or {U0.flag} 1 at tree level for {group.label}."
            )
        return {"beta_over_n": beta / group.colours, "c1": self.c1, "c2": self.c2}

    def metadata(self, beta: float) -> dict[str, str]:
        """Return the formula, and beta in the convention 2 N / g^2.

        The latter is beta times c0 + 8 c1 + 8 c2, with c0 = 1: the action of a plane wave of long
        wavelength in units of that of the plaquettes.
        """
        whole = beta * (1 + 8 * self.c1 + 8 * self.c2)
        return {"formula": self.formula, "beta_sum": f"{whole:.10g} (beta (1 + 8 c1 + 8 c2))"}


ACTIONS.register(LuscherWeisz())
