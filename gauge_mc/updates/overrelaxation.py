"""Overrelaxation sweeps."""

from __future__ import annotations

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.updates.sweep import Sweep, sweep_of

OVERRELAXATION = Kernel("overrelaxation")


def overrelax(field: Field, sweeps: int = 1, action: str = defaults.ACTION) -> None:
    """Reflect every link about its staples, which leaves the action unchanged.

    Parameters
    ----------
    field : Field
        Updated in place.
    sweeps : int
        How often every link is updated.
    action : str
        The name of the action.

    Raises
    ------
    UsageError
        If there is no such action.
    """
    overrelaxation_sweep(field, action)(sweeps)


def overrelaxation_sweep(field: Field, action: str) -> Sweep:
    """Prepare overrelaxation sweeps; parameters and errors as of `overrelax`."""
    chosen = ACTIONS[action]
    # The coupling multiplies all coefficients, and a reflection does not depend on it.
    coefficients = chosen.coefficients(field.group, beta=1.0)
    key = (OVERRELAXATION, chosen)
    return sweep_of(field, OVERRELAXATION, chosen, [], lambda _: {"action": coefficients}, key)
