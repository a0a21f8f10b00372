"""The Wilson flow."""

from __future__ import annotations

from collections.abc import Mapping

from gauge_mc.actions import ACTIONS
from gauge_mc.domain.loops import PLAQUETTES
from gauge_mc.flows import FLOWS, Flow


class WilsonFlow(Flow):
    """The flow of the Wilson action; M. Luescher, arXiv:1006.4518, eq. (1.4)."""

    name = "wilson"
    formula = "force of the Wilson action (arXiv:1006.4518)"
    action = ACTIONS["wilson"].choice
    coefficients: Mapping[str, float] = {"beta_over_n": 1.0}
    halo_depth = PLAQUETTES.depth
    fastest = 16.0
    rectangle: float | None = 0.0

    def _with_anisotropy(self, anisotropy: float) -> Flow:
        return AnisotropicWilsonFlow(anisotropy)


class AnisotropicWilsonFlow(WilsonFlow):
    """The flow on an anisotropic lattice; S. Borsanyi et al., arXiv:1205.0781, section 2.

    With t in units of a_s^2, the staples of links in space are weighted by 1, or by xi^2 in planes
    with direction t, and those of links along t by 1.

    Parameters
    ----------
    anisotropy : float
        xi = a_s / a_t.
    """

    rectangle = None

    def __init__(self, anisotropy: float) -> None:
        chosen = ACTIONS["wilson"].anisotropic
        assert chosen
        self.action, self.anisotropy = chosen, anisotropy
        self.formula = (
            f"{WilsonFlow.formula}; planes with t times xi^2 for links in space (arXiv:1205.0781)"
        )
        squared = anisotropy * anisotropy
        self.fastest = 12 + 4 * squared
        self.coefficients = {
            **super().coefficients,
            "in_space": 1.0,
            "along_t": squared,
        }


FLOWS.register(WilsonFlow())
