"""Gradient flows.

Each flow is an instance of `Flow` that is registered in `FLOWS`. It is the steepest descent of an
action, whose C++ header sums the staples around a link.
"""

from __future__ import annotations

from collections.abc import Mapping

from gauge_mc.actions import ACTIONS, ANISOTROPY, WITH_RECTANGLES
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.lattice import PLAQUETTES, RECTANGLES
from gauge_mc.errors import UsageError
from gauge_mc.registry import Registry


class Flow:
    """A gradient flow dV/dt = Z(V) V with the force Z = -P(sum of the action's loops).

    P is the traceless antihermitian part, and every loop begins with the link. The flow time t is
    in lattice units.
    """

    name: str
    """Name on the command line."""
    formula: str
    """Formula of the force, with its source."""
    action: Choice
    """Compile-time selection of the action."""
    coefficients: Mapping[str, float]
    """Members of ``Coefficients`` in the header of the action. Only the staples of the action enter
    the force, not its weight.
    """
    halo_depth: int
    """Largest distance in t between a link and the links of its staples, in time slices."""
    fastest: float
    """Rate at which the fastest modes of a smooth field decay, which limits the step."""
    corrected: bool = False
    """Whether the force is multiplied by 1 + D_mu D*_mu / 12, as in the kernel ``zeuthen_stage``.
    """
    rectangle: float | None = None
    """Coefficient c1 of rectangles in the action, in units of c0 + 8 c1, where c0 is the
    coefficient of plaquettes, for perturbation theory at tree level; None if the action is of
    another kind.
    """
    anisotropy: float = 1.0
    """The anisotropy xi = a_s / a_t that the flow takes the lattice to have. The force of links
    along t is divided by xi^2, and planes with direction t have the weight xi^2 in the energy.
    """

    def with_anisotropy(self, anisotropy: float) -> Flow:
        """Return the flow on a lattice with the anisotropy xi = a_s / a_t, or itself if xi = 1.

        Raises
        ------
        UsageError
            If the anisotropy is outside of the bounds of `ANISOTROPY`, or the flow has no
            anisotropic form.
        """
        ANISOTROPY.checked(anisotropy)
        if anisotropy == 1:
            return self
        return self._with_anisotropy(anisotropy)

    def _with_anisotropy(self, anisotropy: float) -> Flow:
        raise UsageError(
            f"The {self.name} flow has no anisotropic form; choose another flow, or give the "
            "anisotropy 1."
        )


FLOWS: Registry[Flow] = Registry("flow", __name__, Flow)


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
        anisotropic = ACTIONS["wilson"].anisotropic
        assert anisotropic
        self.action, self.anisotropy = anisotropic, anisotropy
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
