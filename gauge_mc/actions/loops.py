"""The Wilson action."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import ClassVar

from gauge_mc import actions
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.lattice import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Loops
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group, special_unitary
from gauge_mc.options import Option

B0, B1 = 11 / (4 * math.pi) ** 2, 102 / (4 * math.pi) ** 4
"""Coefficients of the beta function of SU(3) without quarks."""


def _two_loops(beta: float) -> float:
    """Return ln(Lambda a) of SU(3) to two loops, with g^2 = 6 / beta."""
    g2 = 6 / beta
    return -1 / (2 * B0 * g2) - B1 / (2 * B0**2) * math.log(B0 * g2)


def _r0(beta: float) -> float:
    """Return ln(r0/a) of SU(3); S. Necco and R. Sommer, hep-lat/0108008, eq. (2.6)."""
    x = beta - 6
    return 1.6804 + 1.7331 * x - 0.7849 * x**2 + 0.4428 * x**3


def _inverse_root_of_tension(beta: float) -> float:
    """Return -ln(sqrt(sigma) a) of SU(3); R. G. Edwards et al., hep-lat/9711003."""
    f = _two_loops(beta)
    x = math.exp(2 * (f - _two_loops(6.0)))
    return math.log(0.01364) - f - math.log(1 + 0.2731 * x - 0.01545 * x**2 + 0.01975 * x**3)


def _sqrt_t0(beta: float) -> float:
    """Return ln(sqrt(t0)/a) of SU(3); A. Francis et al., arXiv:1503.05652."""
    ratio = (1 - 9.945 / beta + 24.191 / beta**2) / (1 - 5.334 / beta + 1.452 / beta**2)
    two_loops = beta / (12 * B0) + B1 / (2 * B0**2) * math.log(6 * B0 / beta)
    return two_loops * ratio


SU3 = special_unitary(3)

SCALES = (
    actions.LengthScale("1/√σ", SU3, 5.6, 6.5, 0.01, "hep-lat/9711003", _inverse_root_of_tension),
    actions.LengthScale("r₀", SU3, 5.7, 6.92, 0.007, "hep-lat/0108008", _r0),
    actions.LengthScale("√t₀", SU3, 5.96, 6.92, 0.005, "arXiv:1503.05652", _sqrt_t0),
)
"""Lengths of SU(3) in units of the lattice spacing."""


class Wilson(actions.Action):
    """S = beta sum over plaquettes of (1 - Re Tr U_p / N); Wilson, Phys. Rev. D 10 (1974) 2445."""

    name = "wilson"
    qcdml: ClassVar = {
        "plaquetteGluonAction": {"beta": actions.BETA.name},
        "anisotropicWilsonGluonAction": {
            "xi0": actions.ANISOTROPY.name,
            "anisoDirection": "anisoDirection",
            "beta": actions.BETA.name,
        },
    }
    formula = "beta sum over plaquettes of (1 - Re Tr U_p / N), beta = 2 N / g^2"
    header = "action/wilson.h"
    cpp = "Wilson"
    options = (actions.ANISOTROPY,)
    rectangle = 0.0
    scales = SCALES
    loops: Mapping[Loops, float] = MappingProxyType({PLAQUETTES: 1.0})
    anisotropic = Choice.of(
        "action", "anisotropic wilson", "action/anisotropic_wilson.h", "AnisotropicWilson"
    )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N."""
        return {"beta_over_n": beta / group.colours}


actions.ACTIONS.register(Wilson())


C1 = Option(
    "c1",
    float,
    "Coefficient of the 2×1 rectangles, below 1/8; that of the plaquettes is 1 - 8 c₁.",
    metavar="C1",
    least=-1000.0,
    most=1 / 8,
    inside=True,
    symbol="c₁",
    axis="$c_1$",
    tag="c1_",
)
"""The coefficient; the bounds catch typing errors."""


class AnyRectangleAction(actions.RectangleAction):
    """The action with a coefficient that the user gives."""

    name = "rectangle"
    source = "given by the user"
    options = (C1, actions.ANISOTROPY)

    @property
    def c1(self) -> float:  # type: ignore[override]
        """Coefficient of the rectangles; not a number until it is given."""
        return float(self.values.get(C1.name, "nan"))


actions.ACTIONS.register(AnyRectangleAction())


class Iwasaki(actions.RectangleAction):
    """The action of Iwasaki, improved by the renormalisation group."""

    name = "iwasaki"
    qcdml: ClassVar = {"iwasakiRGGluonAction": actions.SIX_LINKS}
    c1 = -0.331
    source = "Y. Iwasaki, arXiv:1111.7054"


actions.ACTIONS.register(Iwasaki())


class Dbw2(actions.RectangleAction):
    """The DBW2 action, a doubly blocked Wilson action with two couplings."""

    name = "dbw2"
    qcdml: ClassVar = {"DBW2GluonAction": actions.SIX_LINKS}
    c1 = -1.4088
    source = "T. Takaishi, Phys. Rev. D 54 (1996) 1050; hep-lat/9911033"


actions.ACTIONS.register(Dbw2())


class Symanzik(actions.RectangleAction):
    """The tree-level improved action."""

    name = "symanzik"
    qcdml: ClassVar = {"treelevelSymanzikGluonAction": actions.SIX_LINKS}
    c1 = -1 / 12
    artefacts = (2, 4)  # g^2 a^2 and a^4
    source = "M. Luescher and P. Weisz, Commun. Math. Phys. 97 (1985) 59"


actions.ACTIONS.register(Symanzik())


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


class LuscherWeisz(actions.Action):
    """The action with the one-loop coefficients and a tadpole factor.

    Here beta is the factor of the plaquettes, as in the publications. With u0 = 1 the action is
    that at tree level, for which beta (1 + 8 c1) = 3/5 beta is 2 N / g^2.
    """

    name = "luscher-weisz"
    qcdml: ClassVar = {"tpLuescherWeiszGluonAction": {**actions.SIX_LINKS, "u0": U0.name}}
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
        """Return beta / N and the coefficients of rectangles and parallelograms."""
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
        rescaled = beta * (1 + 8 * self.c1 + 8 * self.c2)
        return {"formula": self.formula, "beta_sum": f"{rescaled:.10g} (beta (1 + 8 c1 + 8 c2))"}


actions.ACTIONS.register(LuscherWeisz())
