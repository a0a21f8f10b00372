"""The Symanzik flow."""

from __future__ import annotations

from collections.abc import Mapping

from gauge_mc.actions import WITH_RECTANGLES
from gauge_mc.domain.loops import RECTANGLES
from gauge_mc.flows import FLOWS, Flow

C1 = -1 / 12
"""Coefficient of the rectangles in the tree-level improved action of M. Luescher and P. Weisz,
Commun. Math. Phys. 97 (1985) 59; that of the plaquettes is 1 - 8 C1 = 5/3."""

COEFFICIENTS = {"beta_over_n": 1.0, "c0": 1 - 8 * C1, "c1": C1}


class SymanzikFlow(Flow):
    """The flow of the tree-level improved action with rectangles, c1 = -1/12."""

    name = "symanzik"
    formula = "force of the Symanzik action, c0 = 5/3, c1 = -1/12"
    action = WITH_RECTANGLES
    coefficients: Mapping[str, float] = COEFFICIENTS
    halo_depth = RECTANGLES.depth
    fastest = 16 * (1 - 8 * C1)
    rectangle = C1


FLOWS.register(SymanzikFlow())
