"""The Zeuthen flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gauge_mc.flows import FLOWS, Flow
from gauge_mc.flows.symanzik import COEFFICIENTS, RECTANGLES


class ZeuthenFlow(Flow):
    """The flow without errors of order a^2; A. Ramos and S. Sint, arXiv:1508.05552."""

    name = "zeuthen"
    formula = "(1 + D D*/12) times the force of the Symanzik action (arXiv:1508.05552)"
    action = RECTANGLES
    coefficients: ClassVar[Mapping[str, float]] = COEFFICIENTS
    halo_depth = 2
    corrected = True


FLOWS.register(ZeuthenFlow())
