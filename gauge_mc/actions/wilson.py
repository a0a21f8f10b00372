"""The Wilson action."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gauge_mc.actions import ACTIONS, ANISOTROPY, Action
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.colouring import PARITIES
from gauge_mc.domain.loops import PLAQUETTES, Loops
from gauge_mc.groups import Group


class Wilson(Action):
    """S = beta sum over plaquettes of (1 - Re Tr U_p / N); Wilson, Phys. Rev. D 10 (1974) 2445."""

    name = "wilson"
    formula = "beta sum over plaquettes of (1 - Re Tr U_p / N), beta = 2 N / g^2"
    header = "action/wilson.h"
    cpp = "Wilson"
    colouring = PARITIES
    options = (ANISOTROPY,)
    rectangle = 0.0
    loops: Mapping[Loops, float] = MappingProxyType({PLAQUETTES: 1.0})
    anisotropic = Choice.of(
        "action", "anisotropic wilson", "action/anisotropic_wilson.h", "AnisotropicWilson"
    )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N."""
        return {"beta_over_n": beta / group.colours}


ACTIONS.register(Wilson())
