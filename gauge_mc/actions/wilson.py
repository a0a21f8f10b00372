"""The Wilson action."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from gauge_mc.actions import ACTIONS, ANISOTROPY, BETA, Action, LengthScale
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.loops import PLAQUETTES, Loops
from gauge_mc.groups import Group, special_unitary

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
    LengthScale("1/√σ", SU3, 5.6, 6.5, 0.01, "hep-lat/9711003", _inverse_root_of_tension),
    LengthScale("r₀", SU3, 5.7, 6.92, 0.007, "hep-lat/0108008", _r0),
    LengthScale("√t₀", SU3, 5.96, 6.92, 0.005, "arXiv:1503.05652", _sqrt_t0),
)
"""Lengths of SU(3) in units of the lattice spacing."""


class Wilson(Action):
    """S = beta sum over plaquettes of (1 - Re Tr U_p / N); Wilson, Phys. Rev. D 10 (1974) 2445."""

    name = "wilson"
    qcdml: ClassVar = {
        "plaquetteGluonAction": {"beta": BETA.name},
        "anisotropicWilsonGluonAction": {
            "xi0": ANISOTROPY.name,
            "anisoDirection": "anisoDirection",
            "beta": BETA.name,
        },
    }
    formula = "beta sum over plaquettes of (1 - Re Tr U_p / N), beta = 2 N / g^2"
    header = "action/wilson.h"
    cpp = "Wilson"
    options = (ANISOTROPY,)
    rectangle = 0.0
    scales = SCALES
    loops: Mapping[Loops, float] = MappingProxyType({PLAQUETTES: 1.0})
    anisotropic = Choice.of(
        "action", "anisotropic wilson", "action/anisotropic_wilson.h", "AnisotropicWilson"
    )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N."""
        return {"beta_over_n": beta / group.colours}


ACTIONS.register(Wilson())
