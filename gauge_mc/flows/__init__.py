"""Gradient flows.

Each flow has a module of its name, with an instance of `Flow` that is registered in `FLOWS`. It is
the steepest descent of an action, whose C++ header sums the staples around a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gauge_mc.devices.kernels import Choice
from gauge_mc.registry import Registry


class Flow:
    """A gradient flow dV/dt = Z(V) V with the force Z = -P(sum of the action's loops).

    P is the traceless antihermitian part, and every loop begins with the link. The flow time t is
    in lattice units.

    Attributes
    ----------
    name : str
        Name on the command line.
    formula : str
        Formula of the force, with its source.
    action : Choice
        Compile-time selection of the action.
    coefficients : mapping of str to float
        Members of ``Coefficients`` in the header of the action.
    halo_depth : int
        Largest distance in t between a link and the links of its staples, in time slices.
    corrected : bool
        Whether the kernel ``zeuthen_stage`` adds its correction to the force.
    """

    name: str
    formula: str
    action: Choice
    coefficients: ClassVar[Mapping[str, float]]
    halo_depth: int
    corrected: bool = False


FLOWS: Registry[Flow] = Registry("flow", __name__)
