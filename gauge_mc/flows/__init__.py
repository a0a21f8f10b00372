"""Gradient flows.

Each flow has a module of its name, with an instance of `Flow` that is registered in `FLOWS`. It is
the steepest descent of an action, whose C++ header sums the staples around a link.
"""

from __future__ import annotations

from collections.abc import Mapping

from gauge_mc.actions import ANISOTROPY
from gauge_mc.devices.kernels import Choice
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
