"""The Wilson flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gauge_mc.actions import ACTIONS
from gauge_mc.flows import FLOWS, Flow


class WilsonFlow(Flow):
    """The flow of the Wilson action; M. Luescher, arXiv:1006.4518, eq. (1.4)."""

    name = "wilson"
    formula = "force of the Wilson action (arXiv:1006.4518)"
    action = ACTIONS["wilson"].choice
    coefficients: ClassVar[Mapping[str, float]] = {"beta_over_n": 1.0}
    halo_depth = 1
    fastest = 16.0
    rectangle = 0.0


FLOWS.register(WilsonFlow())
