"""The Zeuthen flow."""

from __future__ import annotations

from collections.abc import Mapping

from gauge_mc.actions import WITH_RECTANGLES
from gauge_mc.domain.loops import RECTANGLES
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.flows.symanzik import C1, COEFFICIENTS


class ZeuthenFlow(Flow):
    """The flow without errors of order a^2; A. Ramos and S. Sint, arXiv:1508.05552."""

    name = "zeuthen"
    formula = "(1 + D D*/12) times the force of the Symanzik action (arXiv:1508.05552)"
    action = WITH_RECTANGLES
    coefficients: Mapping[str, float] = COEFFICIENTS
    halo_depth = RECTANGLES.depth
    fastest = 16 * (1 - 8 * C1) * (1 - 4 / 12)
    corrected = True
    rectangle = C1


FLOWS.register(ZeuthenFlow())
